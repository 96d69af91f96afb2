"""The analysis of studies whose replicates all have the same test rows, or share too few to be compared."""

from itertools import product

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from analysis_checks import each_run, predictions, shared_rows, similarity
from lossmith.analysis.prediction_agreement import ensembles
from lossmith.report import write_report
from lossmith.studies import compare
from lossmith.studies.study_analysis import analyse
from lossmith.studies.study_analysis.analysis_text import analysis_text
from lossmith.studies.study_analysis.features import some_rows
from lossmith.studies.study_analysis.trained_models import compared_layers

LOSSES = ["ce", "bi-tempered"]
QUICK = {"epochs": 2, "seeds": 2, "rates": [0.1], "references": False, "progress": False, "workers": 1}
KEPT = {"keep": ["features", "weights"]}
ROWS = 130
NOISE = "symmetric(0.4)"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """One whose test split is the user's, and the same for all replicates."""
    folder = tmp_path_factory.mktemp("studies")
    inputs, labels = load_digits(return_X_y=True)
    for name, rows in {"train": slice(0, 600), "test": slice(600, 800)}.items():
        np.savez(folder / f"{name}.npz", X=inputs[rows].astype(np.float32), y=labels[rows])
    how = {"test": str(folder / "test.npz"), "output": folder / "fixed", "model": "mlp"}
    return compare(str(folder / "train.npz"), losses=LOSSES, noise=[0.4], **how, **KEPT, **QUICK)


@pytest.fixture(scope="module")
def analysis(study):
    return analyse(study, rows=ROWS)[NOISE]


@pytest.fixture(scope="module")
def small_study(tmp_path_factory):
    """One whose replicates share too few test rows to be compared."""
    folder = tmp_path_factory.mktemp("studies") / "iris"
    return compare("iris", losses=["ce", "gce", "mae"], noise=[0], model="mlp", output=folder, **KEPT, **QUICK)


@pytest.fixture(scope="module")
def small_analysis(small_study):
    return analyse(small_study, rows=ROWS)["none"]


class TestTheSameTestRows:
    """Where the user brings the test split, runs of all replicates are compared on it."""

    def test_agreement_pairs_runs_of_different_seeds(self, study, analysis):
        labels, predicted = study.test_labels(1), predictions(study)
        assert np.array_equal(labels, study.test_labels(0))
        for first, second in product(LOSSES, repeat=2):
            pairs = [(predicted[first, a], predicted[second, 1 - a]) for a in (0, 1)]
            same = np.mean([np.mean(a == b) for a, b in pairs])
            alike = np.mean([np.mean((a == labels) == (b == labels)) for a, b in pairs])
            assert analysis.agreement["same_prediction"].loc[first, second] == pytest.approx(same)
            assert analysis.agreement["both_right_or_wrong"].loc[first, second] == pytest.approx(alike)
        votes = {loss: [predicted[loss, seed] for seed in (0, 1)] for loss in LOSSES}
        np.testing.assert_allclose(analysis.ensembles.to_numpy(), ensembles(votes, labels).accuracy)
        assert analysis.notes == ()

    def test_layers(self, study, analysis):
        inputs = []
        for seed in (0, 1):
            data = study.load(seed)
            inputs.append(data.inputs[data.test[some_rows(len(data.test), ROWS)]])
        models = {(row.loss, row.seed): study.model(row.run) for row in each_run(study)}
        layers = compared_layers(models["ce", 0])
        maps = [
            similarity(models["ce", 0], models["bi-tempered", 1], *inputs, layers),
            similarity(models["ce", 1], models["bi-tempered", 0], *inputs[::-1], layers),
        ]
        np.testing.assert_allclose(analysis.layers.between("ce", "bi-tempered"), np.mean(maps, 0), rtol=1e-6, atol=1e-9)


class TestTooFewSharedRows:
    """Then runs of the same replicate are compared, and no others."""

    LOSSES = ("ce", "gce", "mae")

    def test_agreement_within_replicates(self, small_study, small_analysis):
        predicted = predictions(small_study)
        for first, second in product(self.LOSSES, repeat=2):
            same = np.mean([predicted[first, seed] == predicted[second, seed] for seed in (0, 1)])
            expected = np.nan if first == second else same
            assert small_analysis.agreement["same_prediction"].loc[first, second] == pytest.approx(expected, nan_ok=True)
        assert sorted(small_analysis.run_agreement.index) == sorted(
            self.LOSSES
        )  # losses, since runs are not compared with all others
        assert (np.diag(small_analysis.run_agreement) == 1).all()
        assert len(small_analysis.brackets) == 2
        assert small_analysis.ensembles is None

    def test_it_is_said(self, small_study, small_analysis):
        assert len(shared_rows(small_study)[0]) == 0
        own_rows = "Every replicate has test rows of its own, so that there are no ensembles"
        few = "and two have none in common"
        within = "only runs of the same replicate are compared, and no loss with itself."
        assert small_analysis.notes == (f"{own_rows}, {few}: {within}",)
        assert small_analysis.notes[0] in analysis_text(small_analysis)

    def test_layers_within_replicates(self, small_study, small_analysis):
        maps = []
        for seed in (0, 1):
            models = {row.loss: small_study.model(row.run) for row in each_run(small_study) if row.seed == seed}
            data = small_study.load(seed)
            inputs = data.inputs[data.test]
            maps.append(similarity(models["ce"], models["gce"], inputs, inputs, compared_layers(models["ce"])))
        np.testing.assert_allclose(small_analysis.layers.between("ce", "gce"), np.mean(maps, 0), rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(small_analysis.layers.between("gce", "ce"), np.mean(maps, 0).T, rtol=1e-6, atol=1e-9)
        assert np.isnan(small_analysis.layers.between("ce", "ce")).all()

    def test_the_page_has_it(self, small_study, small_analysis, page, observed):
        page.goto(write_report(small_study).as_uri())
        tree = page.locator("#figure-agreement svg", has_text="same prediction")
        assert tree.locator("circle").count() == 3
        assert page.locator("#figure-layers").bounding_box()["height"] > 100
        assert "only runs of the same replicate are compared" in page.inner_text("main")
        assert observed.errors == []

    def test_losses_that_are_never_in_the_same_replicate(self, small_study, monkeypatch):
        """There is nothing to compare them by, and no tree."""
        bad = {row.run for row in each_run(small_study) if (row.loss, row.seed) in {("ce", 0), ("gce", 1)}}
        logits = small_study.test_logits
        monkeypatch.setattr(small_study, "test_logits", lambda run: logits(run) * (np.nan if run in bad else 1.0))
        monkeypatch.setattr(small_study, "store_analysis", lambda _: None)
        found = analyse(small_study, rows=20)["none"]
        assert np.isnan(found.agreement["same_prediction"].loc["ce", "gce"])
        assert np.isfinite(found.agreement["same_prediction"].loc["ce", "mae"])
        assert found.brackets == ()


def test_models_have_the_parameters_that_were_tuned(tmp_path):
    """The temperature of a cosine softmax is part of the final layer, and another one in each replicate."""
    how = {**QUICK, "epochs": 3, "trials": 4, "tune": ["settings", "parameters"], "keep": ["weights"], "output": tmp_path}
    del how["rates"]
    study = compare("iris", losses=["cosine-softmax"], noise=[0], model="linear", **how)
    assert study.results.parameters.nunique() == 2
    for row in each_run(study):
        data = study.load(row.seed)
        with torch.no_grad():
            again = study.model(row.run)(data.inputs[data.test]).numpy()
        np.testing.assert_allclose(again, study.test_logits(row.run), rtol=1e-4, atol=1e-4)
