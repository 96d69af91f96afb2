"""A training function of the user's own under a study: trials, tuning, races, noise, what goes wrong, kill and resume."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import lossmith
from lossmith.data import load_data
from lossmith.report import write_report
from lossmith.studies import analyse, open_study
from lossmith.studies.compare import planned
from lossmith.studies.comparison import Comparison
from lossmith.studies.design.given_settings import settings_from
from lossmith.studies.design.tuned_ranges import read_tuned, written_tuned
from lossmith.studies.own_training.own_replicate import failure_of
from lossmith.studies.protocol.procedure import Procedure
from lossmith.studies.protocol.replicates import Replicates
from lossmith.studies.storage.store import Store
from lossmith.training.learning_rate_schedules import Moment, make_learning_rate_schedule
from lossmith.training.models.named_models import make_backbone
from lossmith.training.own.trial import Trial, TrialStopped
from lossmith.training.recipe import Run
from lossmith.training.seeds import generator, seeded

CLASSES = 3


def rows_of(seed: int, rows: int = 60) -> tuple[torch.Tensor, torch.Tensor]:
    draw = np.random.default_rng(seed)
    labels = np.arange(rows) % CLASSES
    return torch.tensor(draw.normal(size=(rows, 4)) + 2 * np.eye(CLASSES, 4)[labels], dtype=torch.float32), torch.tensor(labels)


def quick(trial: Trial) -> dict[str, object]:
    """A softmax regression of a few steps."""
    inputs, labels = rows_of(trial.seed)
    noisy = trial.labels(labels)
    model = nn.Linear(4, CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=trial.settings.get("learning_rate", 0.5))
    for epoch in range(1, trial.settings.get("epochs", 6) + 1):
        optimizer.zero_grad()
        trial.loss(model(inputs[:40]), noisy[:40]).backward()
        optimizer.step()
        right = (model(inputs[40:50]).argmax(1) == noisy[40:50]).float().mean()
        trial.report(epoch, accuracy=right)
    rows = torch.arange(50, 60) + 60 * trial.seed  # every replicate has rows of its own
    return {"logits": model(inputs[50:]), "labels": labels[50:], "train_rows": 50, "test_rows": rows}


def compare(tmp_path: Path, train=quick, **settings):
    given = {"losses": ["ce", "gce"], "noise": [0, 0.2], "seeds": 2, "progress": False, "workers": 1, **settings}
    return lossmith.compare(train=train, output=tmp_path / "study", **given)


def test_everything_downstream_of_a_study_works(tmp_path):
    study = compare(tmp_path, tune={"learning_rate": (0.05, 2.0)}, trials=4, epochs=6)
    results, trials = study.results, study.trials
    assert len(results) == 2 * 2 * 2
    assert results.accuracy.between(0, 1).all()
    assert study.classes == ("0", "1", "2")
    assert len(trials) >= 4 * len(results)
    assert trials.stopped.any()
    assert np.isclose(trials.groupby(["loss", "noise", "seed"]).weight.sum(), 4).all()
    assert study.curves.validation_accuracy.notna().all()
    assert study.test_logits(int(results.run.iloc[0])).shape == (10, CLASSES)
    assert results.noise_rate.max() == pytest.approx(0.2)
    assert (results.seconds > 0).all()
    assert results.memory.notna().all()
    assert study.overlap.ratio == pytest.approx(10 / 50)
    assert "ce" in str(study.recommend())
    page = write_report(study).read_text()
    assert page.startswith("<!doctype html>")
    assert "own training" in page
    assert "nesterov <b>" not in page  # of the built-in trainer
    assert "calibration" in lossmith.studies.analyse(study)["none"].as_json()


def test_trials_are_drawn_as_for_the_built_in_trainer(tmp_path):
    own = settings_from({"tune": {"learning_rate": (0.003, 0.5)}, "trials": 5, "model": "own training", "data": ""})
    built_in = settings_from({"tune": ["learning_rate=0.003:0.5"], "trials": 5, "optimizer": "sgd", "model": "mlp"})
    from lossmith.studies.design.trials import drawn_settings

    rates = [[setting.learning_rate for setting in drawn_settings(each, "ce", 7)] for each in (own, built_in)]
    assert rates[0] == rates[1]
    assert all(0.003 <= rate <= 0.5 for rate in rates[0])


def plain_loop(trial: Trial) -> dict[str, object]:
    """What the built-in trainer does to one run, as a plain loop."""
    data = Replicates(settings_from({}), "digits", load_data("digits")).data(trial.seed)
    train, validation, test = data.train, data.validation, data.test
    noisy = trial.labels(data.labels, train)
    checked = trial.labels(data.labels, validation)
    with seeded(trial.seed, "weights"):
        model = trial.objective.build(make_backbone("mlp", data.input_shape), data.num_classes).model
    parameters, rate = list(model.parameters()), trial.settings["learning_rate"]
    optimizer = torch.optim.SGD(parameters, lr=rate, momentum=0.9, nesterov=True)
    order, epochs, cosine = generator(trial.seed, "batches"), trial.settings["epochs"], make_learning_rate_schedule("cosine")
    for epoch in range(epochs):
        batches = [part for part in torch.randperm(len(train), generator=order).split(64) if len(part) > 1]
        for step, batch in enumerate(batches):
            for group in optimizer.param_groups:
                group["lr"] = rate * cosine.factor(Moment(epoch, step, len(batches), epochs))
            optimizer.zero_grad()
            trial.loss(model(data.inputs[train[batch]]), noisy[batch]).backward()
            optimizer.step()
        trial.report(epoch + 1, accuracy=(model(data.inputs[validation]).argmax(1) == checked).float().mean())
    with torch.no_grad():
        return {"logits": model(data.inputs[test]), "labels": data.labels[test]}


def test_a_plain_loop_gives_the_numbers_of_the_built_in_trainer(tmp_path):
    common = {"losses": ["ce", "gce"], "noise": [0.2], "seeds": 1, "epochs": 3, "progress": False, "workers": 1}
    own = lossmith.compare(train=plain_loop, rates=[0.1], output=tmp_path / "own", **common)
    built = {"model": "mlp", "batch_size": 64, "optimizer": "sgd", "schedule": "cosine", "references": False}
    built_in = lossmith.compare("digits", rates=[0.1], output=tmp_path / "built-in", **built, **common)
    for loss in ("ce", "gce"):
        runs = [int(study.results.set_index("loss").run[loss]) for study in (own, built_in)]
        np.testing.assert_allclose(own.test_logits(runs[0]), built_in.test_logits(runs[1]), rtol=2e-3, atol=2e-3)


def test_what_is_measured_wakes_no_threads(tmp_path, monkeypatch):
    threads, run = [], Procedure.run
    monkeypatch.setattr(Procedure, "run", lambda procedure: (threads.append(torch.get_num_threads()), run(procedure)))
    torch.set_num_threads(2)
    try:
        compare(tmp_path, quick, seeds=1, noise=[0])
        assert (threads, torch.get_num_threads()) == ([1], 2)
    finally:
        torch.set_num_threads(1)


def test_replicates_side_by_side_leave_the_number_of_threads_as_it_was(tmp_path, monkeypatch):
    threads, run, all_begun = [], Procedure.run, threading.Barrier(3)

    def first_come_first_gone(procedure):
        threads.append(torch.get_num_threads())
        place = len(threads)
        all_begun.wait(10)
        run(procedure)
        time.sleep(0.1 * place)
        threads.append(torch.get_num_threads())

    monkeypatch.setattr(Procedure, "run", first_come_first_gone)
    monkeypatch.setattr(Comparison, "replicates_at_once", lambda _: 3)
    torch.set_num_threads(2)
    try:
        compare(tmp_path, lambda trial: {"accuracy": 0.5}, seeds=3, noise=[0])
        with ThreadPoolExecutor(1) as fresh:  # a new thread has what was set last, whichever thread set it
            threads.append(fresh.submit(torch.get_num_threads).result())
        assert (threads, torch.get_num_threads()) == ([1] * 6 + [2], 2)
    finally:
        torch.set_num_threads(1)


def test_measures_alone_are_enough(tmp_path):
    def measured(trial):
        trial.labels([0, 1, 2] * 20)
        return {"accuracy": 0.5 + 0.1 * (trial.name == "gce") + 0.01 * trial.seed, "validation_accuracy": 0.7, "nll": 1.0}

    study = compare(tmp_path, measured, seeds=5)
    assert study.results.groupby("loss").accuracy.mean()["gce"] == pytest.approx(0.62)
    assert study.classes == ()
    assert "gce" in str(study.recommend())
    assert "gce" in write_report(study).read_text()


FAULTS = {
    "raises": (lambda trial: 1 / 0, "ZeroDivisionError: division by zero"),
    "nothing": (lambda trial: None, "must return a dictionary of logits or probabilities with labels"),
    "unknown": (lambda trial: {"acuracy": 0.5}, "unknown 'acuracy'; did you mean 'accuracy'?"),
    "shape": (lambda trial: {"logits": np.zeros(5), "labels": np.zeros(5, int)}, "numbers (rows, classes) for logits"),
    "NaN": (lambda trial: {"logits": np.full((5, 3), np.nan), "labels": np.zeros(5, int)}, "finite logits, got 15"),
    "labels": (lambda trial: {"logits": np.zeros((5, 3)), "labels": np.full(5, 3)}, "labels in [0, 3), got 3 to 3"),
    "no labels": (lambda trial: {"logits": np.zeros((5, 3))}, "labels with logits, got none"),
    "sums": (lambda trial: {"probabilities": np.ones((5, 3)), "labels": np.zeros(5, int)}, "sum to 1 in every row"),
    "percent": (lambda trial: {"accuracy": 93.0}, "accuracy in [0, 1], got 93"),
    "not finite": (lambda trial: {"accuracy": float("nan")}, "a finite number for accuracy, got nan"),
    "exits": (lambda trial: sys.exit("out of memory"), "SystemExit: out of memory"),
    "reports": (lambda trial: trial.report(1, acuracy=0.3), "report: 'acuracy' must be one of accuracy, loss"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_trial_that_fails_says_why_and_the_others_go_on(tmp_path, fault):
    broken, words = FAULTS[fault]
    study = compare(tmp_path, lambda trial: broken(trial) if trial.name == "gce" else quick(trial), noise=[0])
    reasons = study.results.set_index("loss").untrained
    assert (reasons["ce"] == "").all()
    assert reasons["gce"].str.startswith("failed: ").all()
    assert reasons["gce"].str.contains(words, regex=False).all()
    assert "\n" not in reasons["gce"].iloc[0]
    assert study.recommend().loss == "ce"
    assert words.split("'")[0] in write_report(study).read_text().replace("&#x27;", "'").replace("&#39;", "'")


@pytest.mark.parametrize(
    ("fails", "advice"),
    [
        (lambda trial: True, "No loss to recommend. Every loss failed."),
        (lambda trial: trial.seed == 0, "No loss to recommend. Every loss failed."),  # neither loss has trained in all replicates
        (lambda trial: (trial.seed, trial.name) == (1, "gce"), "Stay with ce"),
    ],
    ids=["every trial", "the first replicate", "one trial"],
)
def test_whatever_fails_there_is_an_answer_and_a_report(tmp_path, fails, advice):
    def train(trial):
        if fails(trial):
            raise ValueError("no GPU here")
        return {"logits": np.eye(3)[np.arange(20) % 3], "labels": np.arange(20) % 3}  # the same test rows in all replicates

    study = compare(tmp_path, train, noise=[0], seeds=3)
    told = study.recommend()
    assert str(told).startswith(advice)
    assert "replicates: ValueError: no GPU here" in " ".join(str(told).split())
    assert "no GPU here" in write_report(study).read_text()
    if advice.startswith("Stay"):
        analyse(study)
        assert study.analyses


def test_reasons_of_an_earlier_version_are_read(tmp_path):
    study = compare(tmp_path, lambda trial: 1 / 0, noise=[0], losses=["ce"], seeds=1)
    run = next(iter(study.store.finished()))
    assert failure_of(run, study.store).startswith("ZeroDivisionError")
    earlier = run._replace(seed=1)
    study.store.set_meta("failures", {repr(tuple(earlier)): "no GPU"})
    assert failure_of(earlier, study.store) == "no GPU"


def test_noise_that_was_never_made_is_no_result(tmp_path):
    study = compare(tmp_path, lambda trial: {"accuracy": 0.9}, noise=[0.2], losses=["ce"])
    assert study.results.untrained.str.contains("never called trial.labels, so that the noise symmetric(0.2)", regex=False).all()


def test_predictions_of_trials_that_will_never_count_are_not_stored(tmp_path, monkeypatch):
    def train(trial):
        return {**quick(trial), "validation_accuracy": trial.settings["value"] / 10}

    kept, add = [], Store.add
    monkeypatch.setattr(Store, "add", lambda store, runs, keep: kept.append(runs[0][0].run in keep) or add(store, runs, keep))
    given = {"losses": ["ce"], "noise": [0], "seeds": 1, "trials": 5}
    study = compare(tmp_path, train, tune={"value": [3, 1, 4, 2, 5]}, **given)
    scores = [round(10 * score) for score in study.trials.sort_values("run").validation_accuracy]
    assert sorted(scores) == [1, 2, 3, 4, 5]
    assert kept == [score == max(scores[: place + 1]) for place, score in enumerate(scores)]
    assert study.test_logits(int(study.results.run.iloc[0])).shape == (10, 3)


def test_settings_need_something_to_be_chosen_by(tmp_path):
    study = compare(tmp_path, lambda trial: {"accuracy": 0.9}, noise=[0], losses=["ce"], tune={"width": [8, 16]})
    assert study.results.untrained.str.contains("nothing to choose settings by", regex=False).all()


def test_whatever_is_tuned_reaches_the_function(tmp_path):
    seen = []

    def train(trial):
        seen.append(dict(trial.settings))
        assert isinstance(trial.settings["width"], int)
        assert trial.loss.q == pytest.approx(
            trial.run.parameters.startswith("q=") and float(trial.run.parameters[2:].split(",")[0])
        )
        return {"accuracy": 0.5, "validation_accuracy": trial.settings["width"] / 100}

    tune = {"learning_rate": (1e-3, 1.0), "width": [8, 16, 32], "activation": ["relu", "mish"], "parameters": True}
    study = compare(tmp_path, train, losses=["gce"], noise=[0], tune=tune, trials=6, seeds=1)
    assert {each["activation"] for each in seen} == {"relu", "mish"}
    assert "width=32" in study.results.parameters.iloc[0]
    assert open_study(study.folder).settings.tuned.keys() == {"learning_rate", "width", "activation"}


def test_labels_are_those_of_the_study(tmp_path):
    labels = torch.arange(300) % CLASSES
    trials = [Trial(Run(loss, "symmetric(0.4)", 3, 0.1), lossmith.make_objective(loss), {}, tmp_path) for loss in ("ce", "gce")]
    first, second = (trial.labels(labels) for trial in trials)
    assert torch.equal(first, second)
    assert (first != labels).float().mean() == pytest.approx(0.4)
    assert torch.equal(trials[0].labels(labels, torch.arange(100)).sort().values.unique(), torch.arange(CLASSES))
    assert isinstance(trials[0].labels(labels.tolist()), np.ndarray)
    for wrong, words in ((torch.rand(5), "class indices"), ([-1, 0], "class indices"), ([], "class indices")):
        with pytest.raises(ValueError, match=words):
            trials[0].labels(wrong)
    instance = Trial(Run("ce", "instance(0.4)", 3, 0.1), lossmith.make_objective("ce"), {}, tmp_path)
    with pytest.raises(ValueError, match="depends on the inputs"):
        instance.labels(labels)
    assert (instance.labels(labels, inputs=torch.randn(300, 4)) != labels).float().mean() == pytest.approx(0.4, abs=0.05)


def test_a_stop_passes_through_code_that_catches_everything(tmp_path):
    trial = Trial(Run("ce", "none", 0, 0.1), lossmith.make_objective("ce"), {}, tmp_path, stop_after=2)
    trial.report(1, accuracy=0.3)

    def careless():
        try:
            trial.report(2, accuracy=0.4)
        except Exception:  # noqa: BLE001
            pytest.fail("caught")

    with pytest.raises(TrialStopped):
        careless()


def test_trials_go_on_from_what_they_left_in_their_folder(tmp_path):
    calls = []

    def train(trial):
        checkpoint = trial.folder / "epoch.json"
        done = json.loads(checkpoint.read_text()) if checkpoint.exists() else 0
        calls.append(done)
        for epoch in range(done + 1, trial.settings["epochs"] + 1):
            checkpoint.write_text(json.dumps(epoch))
            trial.report(epoch, accuracy=0.5 + trial.settings["learning_rate"] / 10)
        return {"accuracy": 0.5, "validation_accuracy": 0.5 + trial.settings["learning_rate"] / 10}

    study = compare(tmp_path, train, losses=["ce"], noise=[0], seeds=1, epochs=9, trials=6, tune={"learning_rate": (0.1, 1.0)})
    assert calls.count(3) == 3  # two that were best, and one for those that were stopped, at a third of the epochs
    kept = [folder for folder in (study.folder / "trials").iterdir() if folder.is_dir()]
    assert len(kept) == 1


SCRIPT = """
import sys, time
from pathlib import Path
def train(trial):
    with open(Path(__file__).with_name("calls"), "a") as file:
        print(trial.name, trial.seed, trial.settings["learning_rate"], file=file)
    time.sleep(0.1)
    trial.labels([0, 1] * 30)
    rate = min(trial.settings["learning_rate"], 1)
    return {"accuracy": 0.5 + rate / 10, "validation_accuracy": rate}
"""


def test_kill_and_resume_from_the_command_line(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    words = [
        "compare",
        "train.py:train",
        "--losses",
        "ce,gce",
        "--noise",
        "0",
        "--seeds",
        "2",
        "--output",
        "study",
        "--workers",
        "2",
    ]
    command = [sys.executable, "-m", "lossmith", *words, "--tune", "learning_rate=0.1:0.5", "--trials", "4", "--no-report"]
    calls = tmp_path / "calls"
    with subprocess.Popen(  # noqa: S603
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while not calls.exists() or len(calls.read_text().splitlines()) < 6:
            assert process.poll() is None
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
    stored = len(open_study(tmp_path / "study").store.finished())
    assert stored >= 3
    done = subprocess.run(
        [sys.executable, "-m", "lossmith", "resume", "study", "--workers", "2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    study = open_study(tmp_path / "study")
    assert not study.unfinished
    assert "Stay with ce" in done.stdout
    lines = calls.read_text().splitlines()
    assert len(lines) <= len(study.trials) + 3  # at most those that were in training are trained twice
    assert study.results.groupby("loss").accuracy.mean().nunique() == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("absent.py:train", "must be a Python file, got none"),
        ("train.py:tran", "must have a function 'tran', got none; did you mean 'train'?"),
        ("broken.py:train", "cannot be imported: ZeroDivisionError"),
    ],
)
def test_functions_that_cannot_be_found(tmp_path, monkeypatch, text, words):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(textwrap.dedent(SCRIPT))
    Path("broken.py").write_text("1 / 0")
    with pytest.raises(ValueError, match=words.split("(")[0].replace("?", r"\?")):
        planned(settings_from({"data": text, "losses": ["ce"]}))


def test_what_does_not_go_together(tmp_path):
    for given, words in (
        ({"data": "digits"}, "data belongs to train"),
        ({"model": "mlp"}, "model belongs to train"),
        ({"train": 3}, "train must be a function"),
    ):
        with pytest.raises(TypeError, match=words):
            lossmith.compare(**{"train": quick, **given})
    with pytest.raises(ValueError, match="give num_classes"):
        compare(tmp_path, losses=["ce", "logit-bias(mae)"])
    with pytest.raises(ValueError, match="class_weight needs data"):
        compare(tmp_path, class_weight="balanced")
    with pytest.raises(ValueError, match="tune can give a range to learning_rate and weight_decay, got 'width'"):
        settings_from({"tune": ["width=1|2"]})


def test_num_classes_fits_losses(tmp_path):
    study = compare(tmp_path, losses=["ce", "logit-bias(mae)"], num_classes=CLASSES, noise=[0], seeds=1)
    assert (study.results.untrained == "").all() or "failed" not in "".join(study.results.untrained)


def test_a_study_of_a_changed_function_is_another_study(tmp_path):
    def train(trial):
        return {"accuracy": 0.5}

    compare(tmp_path, train, noise=[0], seeds=1)

    def train(trial):
        return {"accuracy": 0.6}

    with pytest.raises(ValueError, match="another train of the same name"):
        compare(tmp_path, train, noise=[0], seeds=1)


def test_minutes_decide_how_many_replicates(tmp_path):
    study = compare(tmp_path, lambda trial: {"accuracy": 0.5}, noise=[0], seeds=None, minutes=5)
    assert study.results.seed.nunique() == 20


def test_test_rows_belong_to_the_replicate(tmp_path):
    def train(trial):
        draw = np.random.default_rng(len(trial.name))
        return {"probabilities": np.full((20, 3), 1 / 3), "labels": draw.integers(0, 3, 20)}

    study = compare(tmp_path, train, noise=[0], seeds=1)
    assert study.results.set_index("loss").untrained["gce"].startswith("failed: train must return the same labels")


@pytest.mark.parametrize("wrong", ["learning_rate", "learning_rate=", "=1:2", "a b=1:2", "x=2:1", "x=1:2:3", "x=a:b"])
def test_ranges_that_cannot_be_read(wrong):
    with pytest.raises(ValueError, match="tune must"):
        read_tuned(wrong)


def test_ranges_are_written_and_read_again():
    tune = {"a": (1e-4, 0.1), "b": [1, 2, "three"], "c": (1, 5), "d": (0.0, 1.0)}
    read = dict(read_tuned(item) for item in written_tuned(tune))
    assert read["a"].log
    assert read["c"].whole
    assert not read["d"].log
    assert read["b"].values == (1, 2, "three")
    with pytest.raises(ValueError, match="must be a pair of numbers or a list"):
        written_tuned({"a": [True]})


@pytest.mark.parametrize("example", ["own_training", "own_training_sklearn", "own_training_ddp"])
def test_examples_run(tmp_path, monkeypatch, capsys, example):
    spec = importlib.util.spec_from_file_location(example, Path(__file__).parents[1] / "examples" / f"{example}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, example, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(sys, "argv", [example, "--quick", "--output", str(tmp_path / "study")])
    module.main()
    assert "Stay with ce" in capsys.readouterr().out
    assert not open_study(tmp_path / "study").results.untrained.str.startswith("failed").any()
