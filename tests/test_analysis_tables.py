"""Tables of a study from the outputs of its runs."""

import numpy as np
import pytest
from scipy.special import softmax

from lossmith.analysis.prediction_agreement import ensemble_accuracy
from lossmith.analysis.run_tables import (
    RunOutputs,
    agreement_tables,
    by_loss,
    calibration_table,
    ensemble_table,
    finite_runs,
    pair_averages,
    separation_table,
)
from lossmith.analysis.separation import class_separation
from lossmith.analysis.temperature import temperature_scaling

LABELS = np.random.default_rng(7).integers(4, size=120)
LOSSES = {"ce": 3, "gce": 3, "mae": 1}


def outputs(rows_seed=0):
    random = np.random.default_rng(rows_seed)
    runs = {}
    for number, (loss, seeds) in enumerate(LOSSES.items()):
        for seed in range(seeds):
            logits = 2.0 * (number + 1) * (np.eye(4)[LABELS] + random.normal(size=(120, 4)))
            runs[f"{loss}-{seed}"] = RunOutputs(loss, seed, logits, logits @ random.normal(size=(4, 6)))
    return runs


def test_calibration_table_is_mean_and_standard_error_of_its_runs():
    runs = outputs()
    table = calibration_table(runs, LABELS)
    assert list(table.index) == ["ce", "gce", "mae"]
    scaled = [temperature_scaling(runs[f"gce-{seed}"].logits, LABELS) for seed in range(3)]
    for column in ("nll", "ece", "scaled_nll", "scaled_ece", "temperature"):
        values = [getattr(one, column) for one in scaled]
        assert table.loc["gce", (column, "mean")] == pytest.approx(np.mean(values))
        assert table.loc["gce", (column, "se")] == pytest.approx(np.std(values, ddof=1) / np.sqrt(3))
    assert table["runs", "count"].tolist() == [3, 3, 1]
    assert np.isnan(table.loc["mae", ("nll", "se")])
    assert (table["scaled_nll", "mean"] <= table["nll", "mean"]).all()


def test_probabilities_of_the_loss_are_what_is_calibrated():
    logits = outputs()["ce-0"].logits
    plain = calibration_table({"a": RunOutputs("ce", 0, logits)}, LABELS)
    same = calibration_table({"a": RunOutputs("ce", 0, 5.0 * logits, probabilities=softmax(logits, 1))}, LABELS)
    np.testing.assert_allclose(same, plain, rtol=1e-9)


def test_temperatures_from_validation_examples():
    runs, validation = outputs(), outputs(rows_seed=1)
    table = calibration_table(runs, LABELS, fit_on=(validation, LABELS))
    expected = temperature_scaling(runs["mae-0"].logits, LABELS, fit_on=(validation["mae-0"].logits, LABELS))
    assert table.loc["mae", ("scaled_nll", "mean")] == expected.scaled_nll


def test_separation_table():
    runs = outputs()
    table = separation_table(runs, LABELS)
    values = [class_separation(runs[f"ce-{seed}"].features, LABELS, "euclidean").r_squared for seed in range(3)]
    assert table.loc["ce", ("euclidean", "mean")] == pytest.approx(np.mean(values))
    with pytest.raises(ValueError, match=r"^separation_table: runs must have features, got none for 'a'\.$"):
        separation_table({"a": RunOutputs("ce", 0, np.eye(4))}, range(4))


def test_agreement_by_pairs_of_losses():
    runs = outputs()
    tables = agreement_tables(runs, LABELS)
    predicted = {name: run.logits.argmax(1) for name, run in runs.items()}

    def share(a, b):
        return np.mean(predicted[a] == predicted[b])

    same = tables.losses["same_prediction"]
    within = np.mean([share("ce-0", "ce-1"), share("ce-0", "ce-2"), share("ce-1", "ce-2")])
    between = np.mean([share(f"ce-{i}", f"gce-{j}") for i in range(3) for j in range(3)])
    assert same.loc["ce", "ce"] == pytest.approx(within)
    assert same.loc["ce", "gce"] == same.loc["gce", "ce"] == pytest.approx(between)
    assert np.isnan(same.loc["mae", "mae"])
    assert list(tables.runs.index) == [list(runs)[run] for run in tables.dendrogram.order]
    assert tables.runs.loc["ce-0", "mae-0"] == share("ce-0", "mae-0")
    assert set(tables.losses) == {"same_prediction", "both_right_or_wrong", "same_mistake"}


def test_ensembles_leave_out_losses_with_one_run():
    runs = outputs()
    table = ensemble_table(runs, LABELS)
    assert list(table.index) == list(table.columns) == ["ce", "gce"]
    assert table.loc["ce", "ce"] == ensemble_accuracy([runs["ce-0"].logits, runs["ce-1"].logits], LABELS)


def test_diverged_runs_are_told_apart():
    runs = outputs()
    runs["bad"] = RunOutputs("ce", 9, np.full((120, 4), np.inf))
    finite, diverged = finite_runs(runs)
    assert (len(finite), diverged) == (7, ("bad",))


def test_no_runs():
    with pytest.raises(ValueError, match=r"^by_loss: measured must have at least one run, got none\.$"):
        by_loss([])


def test_infinite_measurements():
    table = by_loss([("ce", {"nll": np.inf}), ("ce", {"nll": 1.0}), ("gce", {"nll": 2.0})])
    assert table["nll", "mean"].tolist() == [np.inf, 2.0]
    assert np.isnan(table["nll", "se"]).all()


def test_pairs_of_runs_with_different_seeds():
    matrix = np.random.default_rng(0).random((6, 6))  # not symmetric, so that rows and columns are told apart
    losses, seeds = ["a", "b", "a", "b", "a", "c"], [0, 0, 1, 1, 2, 0]
    found = pair_averages(matrix, losses, seeds)
    for first in "abc":
        for second in "abc":
            pairs = [
                matrix[i, j]
                for i in range(6)
                for j in range(6)
                if losses[i] == first and losses[j] == second and seeds[i] != seeds[j]
            ]
            np.testing.assert_allclose(found.loc[first, second], np.mean(pairs) if pairs else np.nan, rtol=1e-12)
