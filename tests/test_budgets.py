"""What a loss gives after few trials and many, against counting every draw and against simulated tuning."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lossmith.statistics.budgets import expected_best, expected_results, plateaus, tuning_curves, tuning_differences
from lossmith.statistics.differences.overlapping import Overlap
from lossmith.statistics.trial_frames import score_error, usable_trials
from study_frames import trials_frame

MEANS = {"ce": [0.9, 0.8], "gce": [0.9, 0.8]}
CELLS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=5)


class TestExpectedBest:
    @given(CELLS, st.integers(1, 4))
    def test_is_the_mean_over_all_choices(self, trials, budget):
        scores, values, weights = np.array(trials, float).T
        everyone = np.repeat(np.arange(len(scores)), weights.astype(int))
        found = []
        for choice in map(list, combinations(everyone, budget)):
            best = [trial for trial in choice if scores[trial] == scores[choice].max()]
            found.append(values[best].mean())
        expected = np.mean(found) if found else np.nan
        assert expected_best(scores, values, weights, budget) == pytest.approx(expected, nan_ok=True)

    def test_one_trial_is_the_mean_and_all_of_them_find_the_best(self):
        scores, values = np.array([0.1, 0.5, 0.3]), np.array([1.0, 2.0, 9.0])
        assert expected_best(scores, values, np.ones(3), 1) == pytest.approx(4)
        assert expected_best(scores, values, np.ones(3), 3) == 2

    def test_is_right_on_average_for_fresh_trials(self):
        # The best of k independent uniform numbers is k / (k + 1) on average; samples of eight tell it without bias.
        samples = np.random.default_rng(0).random((4000, 8))
        for budget in (1, 2, 4, 8):
            estimates = [expected_best(sample, sample, np.ones(8), budget) for sample in samples]
            assert np.mean(estimates) == pytest.approx(budget / (budget + 1), abs=4 * stats.sem(estimates))


def halved(trials: pd.DataFrame, kept: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return trials of which all but the best and one other were stopped, with weights as a study gives them."""
    parts = []
    for _, cell in trials.groupby(["loss", "noise", "seed"]):
        best = cell["validation_score"].nlargest(kept).index
        others = cell.index.difference(best)
        one = rng.choice(others)
        weight = pd.Series(0.0, cell.index)
        weight[best], weight[one] = 1.0, float(len(others))
        parts.append(cell.assign(weight=weight, stopped=~cell.index.isin([*best, one])))
    return pd.concat(parts)


class TestCurves:
    def test_means_and_bands_over_replicates(self):
        trials = trials_frame(MEANS)
        curves = tuning_curves(trials, overlap=Overlap(0.2)).set_index(["loss", "noise", "trials"])
        expected = expected_results(trials)
        assert set(expected["trials"]) == {1, 2, 4, 8}  # cells have eight trials
        of_one = expected.query("loss == 'ce' and noise == 'none' and trials == 2")["accuracy"]
        row = curves.loc[("ce", "none", 2)]
        half = stats.t.ppf(0.975, 4) * of_one.std() * np.sqrt(1 / 5 + 0.2)
        np.testing.assert_allclose(row[["mean", "low", "high"]], [of_one.mean(), of_one.mean() - half, of_one.mean() + half])
        assert row["replicates"] == 5
        assert curves.loc["ce"].loc["none", "mean"].is_monotonic_increasing

    def test_is_what_simulated_tuning_finds(self):
        trials = trials_frame({"ce": [0.9]}, seeds=1)
        drawn = np.random.default_rng(0).permuted(np.tile(np.arange(len(trials)), (4000, 1)), axis=1)[:, :4]
        best = trials["validation_score"].to_numpy()[drawn].argmax(1)
        found = trials["accuracy"].to_numpy()[drawn[np.arange(4000), best]]
        expected = expected_results(trials, budgets=[4])["accuracy"].item()
        assert expected == pytest.approx(np.mean(found), abs=5 * stats.sem(found))

    def test_halving_leaves_the_first_trial_as_it_is_and_later_ones_no_better(self):
        trials = trials_frame({"ce": [0.9]}, seeds=2000, spread=0.0, noise=["none"])
        whole = tuning_curves(trials).set_index("trials")["mean"]
        after = tuning_curves(halved(trials, 3, np.random.default_rng(0))).set_index("trials")["mean"]
        assert after[1] == pytest.approx(whole[1], abs=0.002)
        assert ((after - whole)[1:] <= 0.001).all()  # one trial stands for all that were stopped, and is not their best
        assert ((after - whole)[1:] > -0.01).all()

    def test_all_trials_are_what_the_study_found(self):
        trials = trials_frame(MEANS)
        found = tuning_curves(trials).query("trials == 8").set_index(["loss", "noise"])["mean"]
        pd.testing.assert_series_equal(
            found, trials[trials["counts"]].groupby(["loss", "noise"])["accuracy"].mean(), check_names=False
        )

    def test_the_validation_rows_choose_and_the_test_rows_judge(self):
        trials = trials_frame({"ce": [0.9]}, seeds=2)
        trials["accuracy"] = 1 - trials["validation_score"]
        assert tuning_curves(trials)["mean"].is_monotonic_decreasing

    def test_stopped_and_added_trials_do_not_count(self):
        trials = trials_frame({"ce": [0.9]}, seeds=1)
        more = trials.assign(accuracy=0.0, validation_score=2.0, weight=0.0)
        both = pd.concat([trials, more], ignore_index=True)
        pd.testing.assert_frame_equal(tuning_curves(both), tuning_curves(trials))

    def test_with_all_trials_it_is_what_the_study_found_though_trials_were_stopped_or_added(self):
        """The likelihood decided; a stopped trial had no likelihood, and one at the edge of the range a higher score."""
        scores = {"validation_score": [0.80, 0.77, 0.9, 0.85], "validation_likelihood": [-0.6, -0.5, np.nan, -0.9]}
        more = {"stopped": [False, False, True, False], "weight": [1.0, 1.0, 0.0, 0.0], "accuracy": [0.5, 0.9, 0.1, 0.2]}
        trials = pd.DataFrame({"loss": "ce", "noise": "none", "seed": 0, "validation_error": 0.05, **scores, **more})
        assert expected_results(trials, budgets=[2])["accuracy"].item() == 0.9

    def test_one_replicate_has_no_band(self):
        assert tuning_curves(trials_frame(MEANS, seeds=1))[["low", "high"]].isna().all(axis=None)

    def test_studies_of_the_first_format_have_none(self):
        old = trials_frame(MEANS).drop(columns=["weight", "stopped", "counts", "validation_score", "weight_decay"])
        assert tuning_curves(old).empty
        assert tuning_differences(old, "ce").empty
        assert plateaus(old, 100).empty

    def test_bad_input(self):
        with pytest.raises(ValueError, match=r"^budgets must be at least 1, got 0\.$"):
            tuning_curves(trials_frame(MEANS), budgets=[0, 1])
        with pytest.raises(ValueError, match=r"^statistics: trials need a column 'speed', got loss, noise, "):
            tuning_curves(trials_frame(MEANS), "speed")
        with pytest.raises(ValueError, match=r"^score_error: rows must be at least 1, got 0\.$"):
            plateaus(trials_frame(MEANS), 0)


class TestDivergedTrials:
    def test_are_the_worst(self):
        trials = trials_frame(MEANS, seeds=1)
        failed = trials["learning_rate"] > 5
        trials.loc[failed, ["accuracy", "validation_score"]] = np.nan
        trials["nll"] = 1 - trials["accuracy"]
        trials["diverged"] = failed
        frame = usable_trials(trials)
        assert (frame.loc[failed, "value"] == 0).all()
        assert np.isneginf(frame.loc[failed, "score"]).all()
        assert np.isfinite(tuning_curves(trials)["mean"]).all()
        worst = usable_trials(trials, "nll")
        assert (worst.loc[failed, "value"] == worst.groupby("noise")["value"].transform("max")[failed]).all()


class TestDifferences:
    def test_a_loss_that_needs_no_tuning_is_ahead_until_the_other_is_tuned(self):
        trials = trials_frame(MEANS, needs_tuning={"ce": 0.1, "gce": 0.01}, spread=0.002)
        found = tuning_differences(trials, "ce").query("noise == 'none'").set_index("trials")
        assert found["p_holm"][1] < 0.01
        assert found["difference"][1] > 0.05
        assert found["difference"].is_monotonic_decreasing
        assert abs(found.loc[8, "difference"]) < 0.01
        assert found.loc[8, "p_holm"] > 0.05

    def test_intervals_are_those_of_the_verdict(self):
        trials = trials_frame({"ce": [0.9], "a": [0.905], "b": [0.91], "c": [0.9]}, needs_tuning={"a": 0.03}, spread=0.02)
        found = tuning_differences(trials, "ce", overlap=Overlap(0.1))
        excludes = (found["low"] > 0) | (found["high"] < 0)
        np.testing.assert_array_equal(excludes, found["p_holm"] < 0.05)
        assert list(found.columns[:3]) == ["loss", "noise", "trials"]


class TestPlateaus:
    def test_counts_trials_within_a_standard_error(self):
        trials = trials_frame(MEANS, needs_tuning={"ce": 0.2, "gce": 0.005}, spread=0.001)
        found = plateaus(trials, 200).set_index(["noise", "loss"])["share"]
        cell = trials.query("loss == 'ce' and noise == 'none'")
        by_hand = [
            (part["validation_score"] >= part["validation_score"].max() - score_error(part["validation_score"].max(), 200)).mean()
            for _, part in cell.groupby("seed")
        ]
        assert found["none", "ce"] == pytest.approx(np.mean(by_hand))
        assert found["none", "gce"] == 1
        assert found["none", "ce"] < 0.3

    def test_trials_count_by_their_weights(self):
        trials = trials_frame({"ce": [0.9]}, seeds=1, needs_tuning={"ce": 0.5})
        best = trials["validation_score"].idxmax()
        trials["weight"] = np.where(trials.index == best, 1.0, 2.0)
        assert plateaus(trials, 100)["share"].item() == pytest.approx(1 / 15)

    @pytest.mark.parametrize(("metric", "score"), [("brier", -0.3), ("nll", -0.4)])
    def test_errors_of_other_metrics_are_no_smaller_than_those_of_a_trained_model(self, metric, score):
        rng = np.random.default_rng(0)
        logits = rng.normal(0, 1, (5000, 4))
        logits[:, 0] += 2.5
        probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        costs = -np.log(probabilities[:, 0]) if metric == "nll" else ((probabilities - np.eye(4)[0]) ** 2).sum(1)
        assert score_error(-costs.mean(), 5000, metric) >= 0.7 * stats.sem(costs)
        assert score_error(score, 400, metric) == pytest.approx(score_error(score, 100, metric) / 2)
