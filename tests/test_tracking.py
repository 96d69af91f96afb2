"""What trackers are told, and that none of them can stop a study. The real clients are in tests/integrations."""

import sys
import time
from types import ModuleType

import pytest

import lossmith
from lossmith.studies.tracking import tracker, tracking

SMALL = {"losses": ["ce", "gce"], "noise": [0.2], "seeds": 2, "rates": [0.1], "epochs": 3, "references": False, "workers": 1}


class Recorder:
    fails_at = ""

    def __init__(self):
        self.told = []

    def __getattribute__(self, name):
        value = super().__getattribute__(name)
        if name == type(self).fails_at:
            raise RuntimeError("no such server.\nmore")
        return value

    def begin(self, study):
        self.told.append(("begin", study.name, study.known_as, study.settings["epochs"]))
        return "by this name"

    def run(self, run):
        self.told.append(("run", run))

    def results(self, seed, measures):
        self.told.append(("results", seed, measures))

    def report(self, page, answer):
        self.told.append(("report", page.read_text(encoding="utf-8")[:15], answer))

    def end(self, *, finished):
        self.told.append(("end", finished))


@pytest.fixture
def recorders(monkeypatch):
    made = []
    module = ModuleType("recorder")
    module.make = lambda: made.append(Recorder()) or made[-1]
    monkeypatch.setitem(sys.modules, "recorder", module)
    monkeypatch.setitem(tracker.TRACKERS, "wandb", tracker._Home("recorder", "json"))
    monkeypatch.setattr(Recorder, "fails_at", "")
    return made


def test_a_tracker_is_told_of_everything_in_time_and_knows_a_study_again(recorders, tmp_path):
    study = lossmith.compare("digits", rows=300, output=tmp_path / "mine", track="wandb", progress=False, **SMALL)
    told = recorders[0].told
    assert told[0] == ("begin", "mine", "", 3)
    assert told[-1] == ("end", True)
    assert told[-2] == ("report", "<!doctype html>", str(study.recommend()))
    runs = [each[1] for each in told if each[0] == "run"]
    assert {(run.parameters["loss"], run.parameters["seed"]) for run in runs} == {
        (loss, s) for loss in ("ce", "gce") for s in (0, 1)
    }
    results = {each[1]: each[2] for each in told if each[0] == "results"}
    for row in study.results.itertuples():
        assert results[row.seed][f"symmetric(0.2)/{row.loss}/accuracy"] == row.accuracy
        (run,) = (run for run in runs if (run.parameters["loss"], run.parameters["seed"]) == (row.loss, row.seed))
        assert (run.measures["accuracy"], run.parameters["learning_rate"], len(run.curves["train_loss"])) == (
            row.accuracy,
            0.1,
            3,
        )

    more = {**SMALL, "seeds": 3}
    lossmith.compare("digits", rows=300, output=tmp_path / "mine", track=["wandb"], progress=False, **more)
    assert recorders[1].told[0] == ("begin", "mine", "by this name", 3)
    assert {each[1].parameters["seed"] for each in recorders[1].told if each[0] == "run"} == {2}


@pytest.mark.parametrize("fails_at", ["begin", "run", "report", "end"])
def test_a_tracker_that_fails_is_said_once_and_stops_nothing(recorders, monkeypatch, tmp_path, capsys, fails_at):
    monkeypatch.setattr(Recorder, "fails_at", fails_at)
    study = lossmith.compare("digits", rows=300, output=tmp_path / "mine", track="wandb", **{**SMALL, "seeds": 1})
    assert len(study.results) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("track:")]
    assert said == ["track: wandb failed, RuntimeError: no such server; the study goes on without it."]


def test_a_tracker_that_hangs_is_waited_for_and_left(monkeypatch, recorders):
    monkeypatch.setattr(tracking, "_PATIENCE", 0.05)
    monkeypatch.setattr(Recorder, "results", lambda *_: time.sleep(1))
    said = []
    beside = tracking.Tracking(["wandb"], said.append)
    beside.results(0, {}, ())
    beside.end()
    assert said == ["track: wandb did not take everything within 0.05 seconds; the study goes on without it."]


def test_what_is_missing_or_unknown_is_said_before_training(monkeypatch, tmp_path):
    monkeypatch.setitem(tracker.TRACKERS, "wandb", tracker._Home("recorder", "not_there"))
    with pytest.raises(ValueError, match="track 'wandb' needs not_there, which is not installed: pip install not_there"):
        lossmith.compare("digits", track="wandb", output=tmp_path / "mine", progress=False, **SMALL)
    with pytest.raises(ValueError, match="track must be one of mlflow, tensorboard, wandb, got 'mlfow'; did you mean 'mlflow'"):
        lossmith.compare("digits", track="mlfow", output=tmp_path / "mine", progress=False, **SMALL)
    assert not (tmp_path / "mine").exists()
