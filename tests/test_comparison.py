"""``lossmith compare`` from outside: plan, train, stop, resume, read."""

import os
import shlex
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from lossmith.command_line import main
from lossmith.studies import Study, compare, open_study
from lossmith.studies.budget.cost import Cost
from lossmith.studies.design.given_settings import settings_from
from lossmith.studies.measures import METRICS
from lossmith.studies.protocol.tuning import best_trial

QUICK = {"epochs": 2, "seeds": 2, "rates": [0.03, 0.3], "references": False, "progress": False, "workers": 1}


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Study:
    folder = tmp_path_factory.mktemp("studies") / "digits"
    losses = ["ce", "gce", "bi-tempered", "cosine-softmax"]
    return compare("digits", losses=losses, noise=[0, 0.4], output=folder, keep=["features", "weights"], **QUICK)


def test_every_loss_noise_and_seed_has_one_row(study):
    results = study.results
    assert len(results) == 4 * 2 * 2
    assert not results.duplicated(["loss", "noise", "seed"]).any()
    assert list(results.loss.unique()) == ["ce", "gce", "bi-tempered", "cosine-softmax"]
    assert list(results.noise.unique()) == ["none", "symmetric(0.4)"]
    assert len(study.trials) >= 4 * 2 * 2 * 2
    assert study.progress() == (16, 16)


def test_measures_are_those_of_the_stored_predictions(study):
    for row in study.results.itertuples():
        probabilities = study.test_probabilities(row.run)
        labels = study.test_labels(row.seed)
        assert probabilities.shape == (len(labels), 10)
        assert row.accuracy == pytest.approx(np.mean(probabilities.argmax(1) == labels))
        assert 0 <= row.ece <= 1
        assert np.isfinite(row.nll)
    assert study.results.accuracy.mean() > 0.5


def test_false_labels_are_measured_only_where_labels_are_false(study):
    clean = study.results.noise == "none"
    for measure in ("false_label_accuracy", "memorised"):
        assert study.results[measure][clean].isna().all()
        assert study.results[measure][~clean].between(0, 1).all()
    assert (study.results.noise_rate[clean] == 0).all()
    assert study.results.noise_rate[~clean].between(0.35, 0.45).all()


def test_curves_have_every_epoch_of_the_runs_that_count(study):
    curves = study.curves
    last = curves.groupby(["loss", "noise", "seed"], sort=False).last()
    results = study.results.set_index(["loss", "noise", "seed"])
    pd.testing.assert_series_equal(last.test_accuracy, results.accuracy, check_names=False)
    assert (last.epoch == results.epochs).all()


def test_the_best_trial_by_its_validation_rows_counts_at_each_noise(study):
    trials = study.trials
    for key, cell in trials.groupby(["loss", "noise", "seed"]):
        counting = cell[cell.counts]
        assert len(counting) == 1, key
        assert counting.run.item() == best_trial(cell.to_dict("records"))["run"]
    assert set(trials.noise) == {"none", "symmetric(0.4)"}


def test_every_replicate_has_its_own_split(study):
    first, second = study.load(0), study.load(1)
    assert not set(first.test.tolist()) & set(second.test.tolist())  # they take turns
    assert not torch.equal(first.test, second.test)
    assert np.array_equal(study.test_labels(1), second.labels[second.test])
    assert study.overlap.ratio == pytest.approx(len(first.test) / (len(first.labels) - len(first.test)))
    assert not study.overlap.rows


def test_the_table_has_means_and_standard_errors(study):
    cell = study.table().loc["gce", "symmetric(0.4)"]
    values = study.results.query("loss == 'gce' and noise == 'symmetric(0.4)'").accuracy
    assert cell == f"{values.mean():.3f} +- {values.std() / 2**0.5:.3f}"
    with pytest.raises(ValueError, match=r"^Study: unknown measure 'acuracy'; did you mean 'accuracy'\?$"):
        study.table("acuracy")


def test_noise_is_stored_with_the_labels_that_training_saw(study):
    matrix = study.noise_matrix("symmetric(0.4)")
    assert matrix.shape == (10, 10)
    assert np.allclose(matrix.sum(1), 1)
    assert np.diag(matrix).mean() == pytest.approx(0.6, abs=0.05)
    data = study.load(1)
    labels = study.noisy_labels("symmetric(0.4)", 1)
    assert np.array_equal(labels[data.test], data.labels[data.test])
    assert np.mean(labels[data.validation] != data.labels[data.validation].numpy()) > 0.3


def test_kept_weights_and_features_give_the_stored_logits(study):
    runs = study.results[study.results.seed == 1].set_index("loss").run
    data = study.load(1)
    for run in (runs["ce"].iloc[0], runs["cosine-softmax"].iloc[0]):
        model = study.model(run)
        with torch.no_grad():
            logits = model(data.inputs[data.test])
        assert np.allclose(logits, study.test_logits(run), atol=1e-4)
        features = torch.from_numpy(study.test_features(run))
        assert np.allclose(model.head(features).detach(), study.test_logits(run), atol=1e-4)


def test_the_same_call_again_trains_nothing(study):
    before = (study.folder / "study.sqlite").stat().st_mtime_ns
    losses = list(study.settings.losses)
    compare("digits", losses=losses, noise=[0, 0.4], output=study.folder, keep=["features", "weights"], **QUICK)
    assert (study.folder / "study.sqlite").stat().st_mtime_ns == before


def test_another_study_in_the_same_folder_is_refused(study):
    with pytest.raises(ValueError, match=r"holds a study with other losses, epochs; give another --output\.$"):
        compare(
            "digits", losses=["ce"], noise=[0, 0.4], output=study.folder, keep=["features", "weights"], **{**QUICK, "epochs": 9}
        )


def test_same_seeds_same_numbers_whatever_the_workers(study, tmp_path):
    losses = list(study.settings.losses)
    options = {**QUICK, "workers": 2}
    again = compare("digits", losses=losses, noise=[0, 0.4], output=tmp_path, keep=["features", "weights"], **options)
    columns = [name for name in again.results.columns if name not in ("seconds", "memory", "run")]
    pd.testing.assert_frame_equal(again.results[columns], study.results[columns])


def test_a_study_knows_how_to_be_run_again(study, capsys):
    words = shlex.split(study.provenance["command"])
    assert words[:2] == ["lossmith", "compare"]
    before = (study.folder / "study.sqlite").stat().st_mtime_ns
    assert main([*words[1:], "--no-report"]) == 0  # an error if any setting differed, and nothing to train
    assert study.table().loc["gce", "symmetric(0.4)"] in capsys.readouterr().out
    assert (study.folder / "study.sqlite").stat().st_mtime_ns == before
    assert study.provenance["versions"]["torch"] == torch.__version__


class SquaredError(nn.Module):
    def forward(self, logits, target):
        return (torch.softmax(logits, 1) - nn.functional.one_hot(target, logits.shape[1])).square().sum(1).mean()


def build(input_shape, num_classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(input_shape)), num_classes))


def test_losses_and_models_of_the_user(tmp_path, capsys):
    losses = {"mine": SquaredError(), "half": "0.5*ce", "ce": "ce"}
    study = compare("digits", losses=losses, noise=0.2, model=build, output=tmp_path, **QUICK)
    assert list(study.results.loss.unique()) == ["mine", "half", "ce"]
    assert study.results.accuracy.min() > 0.5
    assert main(["resume", str(tmp_path)]) == 2
    what = "a model of its own and losses of its own"
    expected = f"lossmith: {tmp_path} was begun in Python with {what}; resume it there, by the same call of compare.\n"
    assert capsys.readouterr().err == expected


def test_data_of_the_user(tmp_path):
    generator = np.random.default_rng(0)
    features = generator.normal(size=(300, 4))
    labels = np.where(features[:, 0] > 0, "yes", "no")
    study = compare((features, labels), losses=["ce", "mae"], noise=0, output=tmp_path, **QUICK)
    assert study.classes == ("no", "yes")
    assert study.results.accuracy.mean() > 0.8


COMMAND = shlex.split("--losses 'ce,gce(q=0.5)' --noise 0,0.4 --seeds 2 --epochs 3 --rates 0.03,0.3 --no-references")


def test_the_command_prints_a_table_and_a_recommendation(tmp_path, capsys):
    assert main(["compare", "digits", *COMMAND, "--no-report", "--output", str(tmp_path / "one")]) == 0
    printed = capsys.readouterr().out
    assert "gce(q=0.5)" in printed
    assert "symmetric(0.4)" in printed
    assert f"Study: {tmp_path / 'one'}" in printed
    assert main(["status", str(tmp_path / "one")]) == 0
    assert "8 of 8 results are there" in capsys.readouterr().out


def test_a_study_written_down(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text('data = "wine"\nlosses = ["ce", "mae"]\nnoise = [0, "pair(0.2)"]\nseeds = 2\nepochs = 2\nrates = [0.1]\n')
    assert main(["compare", str(file), "--seeds", "1", "--output", str(tmp_path / "wine"), "--no-report"]) == 0
    study = open_study(tmp_path / "wine")
    assert set(study.results.seed) == {0}
    assert list(study.results.noise.unique()) == ["none", "pair(0.2)"]


def test_schedules_are_checked_before_training_and_do_not_hinder_a_dry_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scheduled = "scheduled(ce-el, focus=piecewise([0, 0.5], at=[3]))"
    options = ["compare", "--losses", scheduled, "--noise", "0", "--workers", "1", "--dry-run"]
    assert main([*options, "--epochs", "40"]) == 0
    assert main([*options, "--epochs", "3"]) != 0
    assert "phase 2 is missing, for it starts at 3 and total is 3" in capsys.readouterr().err


def test_a_dry_run_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "--dry-run", "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    assert "studies/digits/study.sqlite" in printed
    assert "time      about" in printed
    assert list(tmp_path.iterdir()) == []


WAITS = """
import sys
from lossmith.command_line import main
from lossmith.studies.storage.store import Store

add = Store.add

def add_and_wait(*runs, **kept):
    added = add(*runs, **kept)
    print("stored", flush=True)
    sys.stdin.readline()  # which never comes: the test stops the process here
    return added

Store.add = add_and_wait
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_study_that_was_stopped_is_resumed_without_loss(how, tmp_path, capsys):
    folder = tmp_path / "stopped"
    words = ["compare", "digits", *COMMAND, "--workers", "1", "--output", str(folder)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen([sys.executable, "-c", WAITS, *words], **pipes, text=True)  # noqa: S603
    assert process.stdout.readline() == "stored\n"
    process.send_signal(how)
    _, said = process.communicate()
    before = open_study(folder).store.finished()
    assert len(before) == 8
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert f"8 runs and 0 of 8 results are stored. Go on with: lossmith resume {folder}" in said
    assert main(["resume", str(folder), "--workers", "1"]) == 0
    capsys.readouterr()
    after = open_study(folder)
    assert before < after.store.finished()
    assert after.progress() == (8, 8)


def test_a_worker_that_dies_is_one_line_that_says_what_is_stored(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "died"

    def killed(*_args, **_options):
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(
        "lossmith.studies.prepared_comparison.measured_cost", lambda *_, **__: Cost(0.0, 1.0, 0.0, (1, 1, 1), (), 1)
    )
    monkeypatch.setattr("lossmith.training.workers.train_stack", killed)
    options = ["--losses", "ce,dropout", "--noise", "0", "--rates", "0.1", "--seeds", "1", "--no-references", "--epochs", "1"]
    assert main(["compare", "digits", *options, "--workers", "2", "--output", str(folder)]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("lossmith: compare: a worker process died with exit code -9 in task ")
    assert last.endswith(f"0 runs and 0 of 2 results are stored. Go on with: lossmith resume {folder}")


def test_two_processes_on_one_study(tmp_path):
    words = [
        sys.executable,
        "-m",
        "lossmith",
        "compare",
        "digits",
        *COMMAND,
        "--workers",
        "1",
        "--output",
        str(tmp_path / "both"),
    ]
    processes = [subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)]  # noqa: S603
    for process in processes:
        _, said = process.communicate()
        assert process.returncode == 0, said
    assert open_study(tmp_path / "both").progress() == (8, 8)


def test_a_run_that_diverged_at_once_is_measured_by_what_it_predicts(tmp_path):
    study = compare("digits", losses=["squared-error"], noise=0, output=tmp_path, **{**QUICK, "rates": [1e30]})
    assert study.results.diverged.all()
    assert study.results.validation_accuracy.isna().all()
    assert study.results.accuracy.between(0, 1).all()
    assert "2 trainings diverged" in study.status()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epoch": 3}, "compare: unknown setting 'epoch'; did you mean 'epochs'?"),
        ({"noise": []}, "compare: noise must name at least one, got none."),
        ({"losses": ["ce", "ce"]}, "compare: losses must differ, got 'ce' twice."),
        ({"seeds": 0}, "compare: seeds must be a whole number >= 1, got 0."),
        ({"tune_on": "all"}, "compare: tune_on must be one of own, clean, got 'all'."),
        ({"tune_on": "clean", "noise": [0.2]}, "compare: tune_on 'clean' needs noise 0 among the noises, got symmetric(0.2)."),
        (
            {"metric": "acuracy"},
            f"compare: metric must be one of {', '.join(METRICS)}, got 'acuracy'; did you mean 'accuracy'?",
        ),
        ({"tune": "rates"}, "compare: tune must be one of settings, parameters, got 'rates'; did you mean 'parameters'?"),
        (
            {"class_weight": "even"},
            "compare: class_weight must be one of none, balanced, effective or effective(BETA), got 'even'.",
        ),
        ({"decays": -1}, "compare: decays must be >= 0, got -1.0."),
        ({"minutes": 0}, "compare: minutes must be a number > 0, got 0."),
        ({"trials": 0}, "compare: trials must be a whole number >= 1, got 0."),
        ({"rates": [0.1, -1]}, "compare: rates must be > 0, got -1.0."),
        ({"noise": [1.5]}, "SymmetricNoise: rate must be in [0, 1], got 1.5."),
    ],
)
def test_bad_settings(given, message):
    with pytest.raises(ValueError) as caught:
        settings_from(given)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["digits", "--losses", "ce,gec"], "did you mean 'gce'?"),
        (["digitz"], "did you mean 'digits'?"),
        (["digits", "--noise", "1.2"], "got 1.2."),
        (["digits", "--model", "resnet21"], "did you mean 'resnet"),
        (["digits", "--optimizer", "sdg"], "did you mean 'sgd'?"),
        (["missing.csv"], "missing.csv"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["compare", *words]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
