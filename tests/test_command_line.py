"""The command ``lossmith``, run as a user runs it."""

import inspect
import subprocess
import sys

import pytest

import lossmith
from lossmith import LOSSES
from lossmith.command_line import main
from lossmith.objectives import OBJECTIVES, make_objective
from lossmith.published_trainings import PRESETS
from lossmith.schedules import SCHEDULES


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "lossmith", *arguments], capture_output=True, text=True, check=False)  # noqa: S603


def test_help_does_not_import_torch():
    code = "import sys; from lossmith.command_line import main\ntry: main(['--help'])\nfinally: assert 'torch' not in sys.modules"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert "list every loss and objective" in result.stdout


def test_importing_the_package_does_not_import_torch_but_using_it_does():
    code = "import sys, lossmith; assert 'torch' not in sys.modules; lossmith.FocalLoss(); assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603


def test_only_torch_and_numpy_are_imported_by_the_losses():
    code = (
        "import sys, torch; before = {name.partition('.')[0] for name in sys.modules};"
        "import lossmith; lossmith.make_loss('ce');"
        "more = {name.partition('.')[0] for name in sys.modules} - before - set(sys.stdlib_module_names);"
        "assert more == {'lossmith'}, more"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603


@pytest.mark.parametrize("columns", ["80", "160"])
def test_list_names_every_loss_objective_and_schedule(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["list"]) == 0
    losses, objectives, schedules = (part.splitlines() for part in capsys.readouterr().out.rstrip().split("\n\n"))
    for listed, names in ((losses, LOSSES), (objectives[1:], OBJECTIVES), (schedules[1:], SCHEDULES)):
        assert [line.split("(")[0].split()[0] for line in listed] == list(names)


@pytest.mark.parametrize("name", LOSSES)
def test_show(name, capsys):
    assert main(["show", name]) == 0
    shown = capsys.readouterr().out
    assert LOSSES[name].__name__ in shown
    assert all(f"  {parameter} = " in shown for parameter in LOSSES[name].limits)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_show_objective(name, capsys):
    assert main(["show", name]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{name}: an objective")
    assert all(parameter in shown for parameter in inspect.signature(OBJECTIVES[name]).parameters if parameter != "schedules")
    assert (f"{name}@cifar-10: " in shown) == (name in PRESETS)


@pytest.mark.parametrize("name", [name for name in PRESETS if name in LOSSES])
def test_show_loss_with_the_preset_of_a_data_set(name, capsys):
    assert main(["show", f"{name}@cifar-100"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{make_objective(f'{name}@cifar-100').loss}: lossmith.{LOSSES[name].__name__}")
    assert f"  {name}@cifar-100: " in shown


@pytest.mark.parametrize("name", SCHEDULES)
def test_show_schedule(name, capsys):
    assert main(["show", name]) == 0
    assert capsys.readouterr().out.startswith(f"{name}: a schedule")


@pytest.mark.parametrize("name", ["two-pass-cot", "cot", "nce-agce"])
def test_show_names_presets_that_can_be_read(name, capsys):
    assert main(["show", name]) == 0
    lines = [line.split(" = ") for line in capsys.readouterr().out.splitlines() if line.startswith(f"  {name}@10")]
    assert len(lines) == 3
    for preset, written in lines:
        assert repr(make_objective(preset.strip()).loss) == repr(make_objective(written).loss)


def test_show_takes_spaces(capsys):
    assert main(["show", " cosine-softmax (tau=0.1) "]) == 0
    assert capsys.readouterr().out.startswith("cosine-softmax (tau=0.1): an objective")


def test_show_objective_with_a_wrong_parameter(capsys):
    assert main(["show", "cosine-softmax(tua=1)"]) == 2
    assert "did you mean 'tau'?" in capsys.readouterr().err


def test_show_knows_which_objective_was_meant(capsys):
    assert main(["show", "cosine-soft"]) == 2
    assert "unknown loss, objective or schedule 'cosine-soft'; did you mean 'cosine-softmax'?" in capsys.readouterr().err


def test_as_a_module():
    result = run("show", "gec")
    assert result.returncode == 2
    assert (
        result.stderr == "lossmith: unknown loss, objective or schedule 'gec'; did you mean 'gce'? 'lossmith list' names all.\n"
    )


def test_a_star_import_brings_every_public_name():
    names: dict[str, object] = {}
    exec("from lossmith import *", names)  # noqa: S102
    assert {"make_loss", "tempered_softmax", "LossScheduler", *(loss.__name__ for loss in LOSSES.values())} <= set(names)


def test_a_missing_file_is_named_without_numbers(tmp_path, capsys):
    assert main(["compare", str(tmp_path / "missing.toml")]) == 2
    assert capsys.readouterr().err == f"lossmith: {tmp_path / 'missing.toml'}: no such file or directory.\n"


def test_modules_are_attributes_of_the_package():
    code = "import lossmith; print(lossmith.heads.CosineLinear.__name__, lossmith.schedules.Linear.__name__)"
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603
    assert result.stdout == "CosineLinear Linear\n"
    with pytest.raises(AttributeError, match="module 'lossmith' has no attribute 'nothing'"):
        _ = lossmith.nothing


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["compare", "--loses", "ce"],
            "lossmith compare: unknown option --loses; did you mean '--losses'? See 'lossmith compare --help'.",
        ),
        (["compare", "digits", "more"], "lossmith compare: unrecognized arguments: more. See 'lossmith compare --help'."),
        (["analyze", "study"], "lossmith: unknown command 'analyze'; did you mean 'analyse'? See 'lossmith --help'."),
        (["--quiet"], "lossmith: unknown option --quiet. See 'lossmith --help'."),
        (
            ["compare", "--seeds", "two"],
            "lossmith compare: argument --seeds: invalid int value: 'two'. See 'lossmith compare --help'.",
        ),
    ],
)
def test_what_cannot_be_parsed_is_one_line(arguments, line, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"{line}\n"


def test_an_unknown_noise_names_the_known_ones(capsys):
    assert main(["compare", "digits", "--noise", "abc", "--dry-run"]) == 2
    assert "unknown noise 'abc' in 'abc'; known are none, symmetric, uniform, pair, " in capsys.readouterr().err


def test_a_file_that_is_no_study_is_named(tmp_path, capsys):
    file = tmp_path / "messy.csv"
    file.write_text("a,b")
    assert main(["status", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"lossmith: {file} is not a study of lossmith; a study is a folder")
