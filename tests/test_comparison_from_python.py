"""What users bring to a comparison, do twice, and get wrong."""

import re
import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from torch import nn

from lossmith import GeneralizedCrossEntropyLoss, make_objective
from lossmith.command_line import main
from lossmith.studies import compare, open_study
from lossmith.studies.design.given_settings import settings_from

QUICK = {"epochs": 1, "seeds": 1, "rates": 0.1, "references": False, "progress": False, "workers": 1}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    features = generator.normal(size=(120, 3))
    return pd.DataFrame(features, columns=["a", "b", "c"]).assign(y=(features[:, 0] > 0).astype(int) + 5)


@pytest.fixture
def table(frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame.to_csv("table.csv", index=False)
    return tmp_path


class Scaled(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, logits, target):
        return self.factor * nn.functional.cross_entropy(logits, target)


def test_a_changed_loss_of_the_same_name_is_not_taken_for_the_old_one(frame, tmp_path):
    first = compare(frame, target="y", losses={"mine": Scaled(1.0)}, noise=0, output=tmp_path / "a", **QUICK)
    again = compare(frame, target="y", losses={"mine": Scaled(1.0)}, noise=0, output=tmp_path / "a", **QUICK)
    assert again.results.accuracy.equals(first.results.accuracy)
    with pytest.raises(ValueError, match=r"holds a study with another mine of the same name; give another --output\.$"):
        compare(frame, target="y", losses={"mine": Scaled(-1.0)}, noise=0, output=tmp_path / "a", **QUICK)


def test_data_in_memory_stays_with_its_study(frame, tmp_path):
    study = compare(frame, target="y", losses="ce", noise=0, output=tmp_path, keep="weights", **QUICK)
    assert study.model(1)(study.load().inputs[:2]).shape == (2, 2)
    with pytest.raises(ValueError, match="begun in Python with data of its own, which it does not hold"):
        open_study(tmp_path).load()


def test_splits_may_be_arrays(frame, tmp_path):
    """They are at hand for every replicate, and for whoever has the study in Python; its file holds numbers and text alone."""
    values, classes = frame[["a", "b", "c"]].to_numpy(), frame["y"].to_numpy()
    parts = {"test": slice(30), "validation": slice(30, 50)}
    split = {name: (values[rows], classes[rows]) for name, rows in parts.items()}
    options = {"losses": "ce", "noise": 0, "output": tmp_path, **QUICK, "seeds": 2}
    data = compare((values[50:], classes[50:]), **split, **options).load()
    assert [len(part) for part in (data.train, data.validation, data.test)] == [70, 20, 30]
    assert data.labels[data.test].tolist() == (classes[:30] - 5).tolist()
    with pytest.raises(ValueError, match="begun in Python with data of its own, which it does not hold"):
        open_study(tmp_path).load()
    with pytest.raises(ValueError, match="holds a study of other data"):
        compare((values[50:], classes[50:]), **{**split, "test": (values[:9], classes[:9])}, **options)


def test_files_may_be_paths_and_groups_an_array(table, tmp_path):
    options = {"losses": "ce", "noise": "within-groups(0.2)", "groups": np.array([0, 0]), **QUICK}
    study = compare(table / "table.csv", test=table / "table.csv", output=tmp_path / "a", **options)
    assert open_study(tmp_path / "a").settings.loading == {"test": str(table / "table.csv"), "groups": [0, 0]}
    assert len(study.load().test) == 120


def test_seeds_losses_and_noises_can_be_added(table, capsys):
    quick = ["--epochs", "1", "--rates", "0.1", "--no-references", "--workers", "1", "--no-report", "--output", "st"]
    assert main(["compare", "table.csv", "--losses", "ce", "--noise", "0", "--seeds", "1", *quick]) == 0
    before = open_study("st").store.finished()
    assert main(["compare", "table.csv", "--losses", "ce,gce", "--noise", "0,0.2", "--seeds", "2", *quick]) == 0
    study = open_study("st")
    assert before < study.store.finished()
    assert len(study.results) == 2 * 2 * 2
    assert main(["compare", "table.csv", "--losses", "gce", "--noise", "0,0.2", "--seeds", "2", *quick]) == 2
    assert "holds a study with other losses" in capsys.readouterr().err


def test_resume_finds_the_data_from_another_directory(table, monkeypatch):
    compare("table.csv", target="y", losses="ce", noise=0, output="st", **QUICK)
    (table / "y").write_text("a file that is called like the target")
    (table / "elsewhere").mkdir()
    monkeypatch.chdir(table / "elsewhere")
    assert main(["resume", "../st"]) == 0


def test_every_replicate_finds_the_data_from_another_directory(table, frame, monkeypatch):
    frame[::4].to_csv("test.csv", index=False)
    study = compare("table.csv", test="test.csv", target="y", losses="ce", noise=0, output="st", **{**QUICK, "seeds": 2})
    before = study.results.accuracy
    with closing(sqlite3.connect("st/study.sqlite")) as connection, connection:
        for part in ("choice WHERE seed = 1", "array WHERE run = 2", "curve WHERE run = 2", "run WHERE id = 2"):
            connection.execute(f"DELETE FROM {part}")  # noqa: S608
    (table / "elsewhere").mkdir()
    monkeypatch.chdir(table / "elsewhere")
    assert open_study("../st").progress() == (1, 2)
    assert main(["resume", "../st"]) == 0
    again = open_study("../st")
    assert again.results.accuracy.equals(before)
    assert np.array_equal(again.load(1).labels[again.load(1).test], again.test_labels(1))


def test_what_cannot_work_fails_before_training_and_leaves_nothing(table, capsys):
    for words, message in [
        (["--noise", "0,within-groups(0.4)"], "groups"),
        (["--noise", "asymmetric(0.4, [0, 6])"], "got 6"),
        (["--model", "resnet20"], "resnet20 takes images"),
        (["--losses", "smooth-topk"], "k must be < number of classes 2, got 5"),
        (["--test-share", "0"], "has no test split to compare losses on"),
        (["--metric", "top5"], "metric top5 needs more than 5 classes, got 2."),
        (["--validation-share", "0"], "has no validation split to choose by; give one of --rates, got 9 trials"),
        (["--losses", "gce(q=0.5),gce(0.5)"], "got 'gce(q=0.5)' and 'gce(0.5)', which are the same"),
        (["--output", "table.csv"], "table.csv must be a folder, got a file"),
    ]:
        assert main(["compare", "table.csv", *words]) == 2
        said = capsys.readouterr().err
        assert message in said, said
        assert said.count("\n") == 1
    assert [path.name for path in table.iterdir()] == ["table.csv"]


def test_a_loss_that_returns_no_number_is_named(frame, tmp_path):
    with pytest.raises(ValueError, match=r"^mine: a loss must return one number, got \(2,\)\.$"):
        compare(frame, target="y", losses={"mine": nn.CrossEntropyLoss(reduction="none")}, output=tmp_path, **QUICK)


@pytest.mark.parametrize(
    ("brought", "message"),
    [
        (
            {"losses": {"ce": "ce", "l": lambda a, b: a.sum()}},
            "losses must be expressions, objectives or modules, got 'l', a function.",
        ),
        ({"losses": [nn.BCELoss()]}, r"the loss BCELoss() must take logits (2, 2) and class indices: "),
        ({"losses": "ce", "test": 7}, "test must be a path, the name of a data set, a data frame or arrays, got 7."),
        ({"losses": "ce", "workers": 0}, "workers must be a whole number >= 1, got 0."),
        ({"losses": []}, "losses must name at least one, got none; leave them out for the usual seven."),
        (
            {"losses": "ce", "model": nn.Linear(2, 2)},
            "model must be a name or a function (input shape, number of classes) -> module",
        ),
    ],
)
def test_what_is_brought_must_be_of_use(brought, message, frame, tmp_path):
    with pytest.raises((TypeError, ValueError), match=f"^compare: {re.escape(message)}"):
        compare(frame, target="y", noise=0, output=tmp_path / "study", **(QUICK | brought))
    assert not (tmp_path / "study").exists()


def test_objectives_are_losses_too(frame, tmp_path):
    losses = [make_objective("dropout(keep=0.5)"), "ce", GeneralizedCrossEntropyLoss(q=0.5)]
    study = compare(frame, target="y", losses=losses, noise=0, output=tmp_path, **QUICK)
    assert set(study.results.loss) == {"dropout(keep=0.5)", "ce", "gce(q=0.5)"}


def test_what_will_hardly_do_what_was_meant_is_said(table, capsys):
    many = pd.DataFrame({"x": np.arange(300.0), "y": np.repeat(np.arange(30), 10)})
    many.to_csv("many.csv", index=False)
    assert main(["compare", "many.csv", "--losses", "logit-bias(mae)", "--noise", "0.98", "--dry-run", "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    assert "noise symmetric(0.98): of 30 classes the true one is no longer the commonest label" in printed


def test_a_comparison_that_learns_nothing_says_so(tmp_path):
    labels = np.repeat([0, 1], [190, 10])
    data = (np.zeros((200, 1)) + np.random.default_rng(0).normal(size=(200, 1)), labels)
    study = compare(data, losses=["ce", "gce"], noise=0, output=tmp_path, **QUICK)
    assert (
        "No loss does better than always predicting the commonest class, 95.0 % of the test split." in study.recommend().evidence
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"losses": [1]}, "compare: losses must be text, got 1."),
        ({"data": 5}, "compare: data must be text, got 5."),
        ({"model": 3}, "compare: model must be text, got 3."),
        ({"rates": [0.1, "x"]}, "compare: rates must be numbers, got 'x'."),
        ({"losses": []}, "compare: losses must name at least one, got none."),
        ({"seeds": True}, "compare: seeds must be a whole number >= 1, got True."),
    ],
)
def test_settings_of_the_wrong_type(given, message):
    with pytest.raises(ValueError) as caught:
        settings_from(given)
    assert str(caught.value) == message


def test_lists_may_be_one_item_or_text():
    settings = settings_from({"losses": "ce, agce(b=1, q=0.5)", "noise": 0.2, "rates": 0.1})
    assert settings.losses == ("ce", "agce(b=1, q=0.5)")
    assert settings.noise == ("symmetric(0.2)",)
    assert settings.rates == (0.1,)
