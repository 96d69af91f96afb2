"""Every setting is checked for its type and range with one line: in files, in Python and on the command line."""

import datetime
import math
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lossmith
from lossmith.command_line import main
from lossmith.studies.design.given_settings import LOADING, settings_from
from lossmith.studies.design.setting_checks import CHECKS, checked
from lossmith.studies.design.settings_file import read_settings
from lossmith.training.recipe import Recipe

NESTED = {"a": [1, {"b": None}]}
NUMBERS = (-1, 1e400, math.nan, "60", 1.5j, NESTED, [], b"1", True, datetime.date(2024, 1, 1), 10**400)
TEXTS = (7, 1.5, True, NESTED, [], b"x", datetime.time(1))
WHOLES = (*NUMBERS, 1e9, 2.5)
WRONG = {
    "data": TEXTS,
    "losses": ([], [1], NESTED, 7, True, [["ce"]], [NESTED]),
    "noise": ([], [None], NESTED, True, [NESTED], [["0.2"]], datetime.date(2024, 1, 1)),
    "seeds": (*WHOLES, 0),
    "rates": ([], [0], ["x"], [math.inf], [math.nan], [10**400], NESTED, [[0.1]], True, [-1], "1e999"),
    "trials": (*WHOLES, 0),
    "decays": ([], [-1], ["x"], [math.inf], [math.nan], [10**400], NESTED, [[0.1]], True),
    "loss_rates": (
        [],
        {},
        7,
        True,
        [0.1],
        "0.1",
        "ce",
        "ce=",
        "ce=x",
        "ce=0",
        "=0.1",
        "gce(q=0.5)",
        NESTED,
        {1: 0.1},
        {"ce": []},
    ),
    "loss_decays": ([], {}, 7, True, [0.1], "0.1", "ce=-1", NESTED, {"ce": math.nan}, {"ce": [[0.1]]}),
    "num_classes": (*WHOLES, 0, 1),
    "processes": (*WHOLES, 0),
    "tune": ([], [1], NESTED, 7, "all", [["parameters"]]),
    "tune_on": (*TEXTS, "all"),
    "metric": (*TEXTS, "all"),
    "class_weight": (*TEXTS, "all"),
    "draws": (*TEXTS, "all"),
    "published": TEXTS,
    "minutes": (*NUMBERS, 0),
    "train_rows": (*WHOLES, 0),
    "references": (0, 1, "true", None, [], NESTED),
    "clean_validation": (0, 1, "true", None, [], NESTED),
    "model": TEXTS,
    "optimizer": TEXTS,
    "schedule": TEXTS,
    "nesterov": (0, 1, "true", None, [], NESTED),
    "decay_vectors": (0, 1, "true", None, [], NESTED),
    "augment": ([], [1], NESTED, 7, [["crop"]]),
    "precision": TEXTS,
    "select": TEXTS,
    "keep": ([], [1], NESTED, 7, [["features"]]),
    "epochs": (*WHOLES, 0, 10**7),
    "batch_size": (*WHOLES, 0),
    "momentum": (*NUMBERS, 1.0),
    "clipping": NUMBERS,
    "mixup": NUMBERS,
    "averaging": (*NUMBERS, 1.0),
    "patience": WHOLES,
    "target": (1.5, True, NESTED, [], b"x"),
    "true_label": TEXTS,
    "validation": (7, 1.5, True, b"x", {1}),
    "test": (7, 1.5, True, b"x", {1}),
    "split_column": TEXTS,
    "groups": (7, 1.5, True, b"x"),
    "validation_share": (*NUMBERS, 1.0),
    "test_share": (*NUMBERS, 1.0),
    "seed": WHOLES,
    "rows": (*WHOLES, 0),
    "imbalance": (-1, 1.5, 10**400, 1.5j, NESTED, [], b"1", True, math.nan, "x", "", "step", "step(x)", "9" * 2000),
    "text": TEXTS,
    "encoder": (7, 1.5, True, NESTED, [], b"x"),
    "fine_tune": (0, 1, "true", None, [], NESTED),
    "cache": (7, 1.5, True, NESTED, [], b"x"),
    "track": (7, 1.5, True, NESTED, [], [7], "mlfow"),
    "resize": (0, -1, 2.5, "32", True, NESTED, [], [1, 2, 3], [32, "x"], [0, 5]),
    "folder": (7, 1.5, True, NESTED, [], b"x"),
}


def test_every_setting_has_a_check():
    names = {*vars(settings_from({})), *vars(Recipe())} - {"loading", "recipe"}
    assert set(CHECKS) == names | set(LOADING) == set(WRONG)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_wrong_types_are_one_line(name, value):
    with pytest.raises(ValueError, match=f"^compare: {name} must (be|name) ") as caught:
        settings_from({name: value})
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(name=st.sampled_from(sorted(CHECKS)), value=anything)
def test_a_check_returns_or_refuses_in_one_line(name, value):
    refusal = ""
    try:
        checked(name, value)
    except ValueError as error:
        refusal = str(error)
    assert not refusal or refusal.startswith(f"compare: {name} must ")
    assert len(refusal) < 400


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('epochs = "60"', "compare: epochs must be a whole number in [1, 1e+06], got '60'."),
        ("epochs = 1e9", "compare: epochs must be a whole number in [1, 1e+06], got 1000000000.0."),
        ('momentum = "x"', "compare: momentum must be a number in [0, 1), got 'x'."),
        ("folder = 7", "compare: folder must be the path of a folder, got 7."),
        ("noise = {a = 1}", "compare: noise must be text or numbers, got {'a': 1}."),
        ("seeds = 1000000000", "compare: a study must have 1,000,000 runs at most, got"),
        (f"x = {'[' * 5000}", "too many brackets within one another."),
        (f"epochs = {'9' * 5000}", "study.toml: "),
        (f"{'x' * 5000} = 1", "compare: unknown setting 'xxxx"),
        (f"model = {'x' * 5000}", "study.toml: Invalid value"),
        ("test = 2024-01-01", "compare: test must be a path, the name of a data set, a data frame or arrays, got datetime.date"),
        ("test = [1, 2, 3]", ""),
        ("test = {a = 1}", ""),
        ("groups = [1, 2]", ""),
        ("groups = {a = [1]}", ""),
        ('data = "a\\u0000b"', ""),
    ],
)
def test_files_with_wrong_types_are_one_line(written, expected, tmp_path, capsys):
    file = tmp_path / "study.toml"
    losses = "" if written.startswith("losses") else 'losses = ["ce"]\n'
    file.write_text(losses + written, encoding="utf-8")
    assert main(["compare", str(file), "--dry-run"]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("lossmith: ")
    assert printed.count("\n") == 1
    assert len(printed) < 600
    assert expected in printed


def test_files_that_are_no_toml_are_named(tmp_path):
    file = tmp_path / "study.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"study\.toml: must be UTF-8 text"):
        read_settings(file)
    file.write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(ValueError, match=r"study\.toml: a study must be written in 1,048,576 bytes at most, got 1,048,577\."):
        read_settings(file)


def test_a_pipe_is_no_study(tmp_path):
    os.mkfifo(tmp_path / "study.toml")
    with pytest.raises(ValueError, match=r"study\.toml: must be a file, got a pipe\.$"):
        read_settings(tmp_path / "study.toml")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": "60"}, "epochs must be a whole number"),
        ({"momentum": "x"}, "momentum must be a number"),
        ({"folder": 7}, "folder must be the path of a folder, got 7"),
        ({"noise": {"a": 1}}, "noise must be text or numbers"),
        ({"losses": 7}, "losses must be expressions, objectives or modules, got 7"),
        ({"output": 7}, "output must be the path of a folder, got 7"),
        ({"workers": "2"}, "workers must be a whole number >= 1, got '2'"),
    ],
)
def test_python_says_the_same(settings, message, tmp_path):
    with pytest.raises((ValueError, TypeError), match=f"^compare: {message}"):
        lossmith.compare("iris", **({"output": tmp_path, "losses": ["ce"]} | settings))


def test_the_command_line_says_the_same(capsys):
    assert main(["compare", "iris", "--epochs", "10000000", "--dry-run"]) == 2
    assert capsys.readouterr().err == "lossmith: compare: epochs must be a whole number in [1, 1e+06], got 10000000.\n"


def test_numbers_of_numpy_are_numbers():
    given = {"epochs": np.int64(3), "seeds": np.int32(2), "rates": [np.float32(0.5)], "noise": np.float64(0.2)}
    settings = settings_from(given)
    assert (settings.recipe.epochs, settings.seeds, settings.rates, settings.noise) == (3, 2, (0.5,), ("symmetric(0.2)",))
    assert type(settings.seeds) is int
