"""Replicates that share rows, against the literature's formulas, scikit-learn and simulated studies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from sklearn.metrics import balanced_accuracy_score, f1_score, log_loss, top_k_accuracy_score

from lossmith.statistics.differences.luck import LuckByScores, RowLuck, RowScores, row_luck
from lossmith.statistics.differences.overlapping import Overlap, row_scores
from lossmith.statistics.differences.paired_tests import Difference, by_holm, holm, paired_difference, replicates_needed
from lossmith.statistics.summary import compare_to, summarise
from study_frames import results_frame

METRICS = ("accuracy", "balanced_accuracy", "macro_f1", "nll", "brier", "top5")


def predictions(rows: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.choice(classes, rows, p=rng.dirichlet(np.full(classes, 5.0)))
    logits = rng.normal(0, 1, (rows, classes))
    logits[np.arange(rows), labels] += 1
    return np.exp(logits) / np.exp(logits).sum(1, keepdims=True), labels


class TestCorrection:
    @pytest.mark.parametrize(("replicates", "test", "train"), [(5, 30, 100), (10, 20, 60), (25, 1, 4)])
    def test_is_the_correlated_t_test_of_benavoli_and_others(self, replicates, test, train):
        # Theirs: the posterior of the mean is Student's t around it, with variance s^2 (1/n + rho / (1 - rho)), rho = n_test / n.
        first, second = np.random.default_rng(replicates).normal(0.8, 0.05, (2, replicates))
        differences, rho = first - second, test / (test + train)
        scale = np.sqrt(differences.var(ddof=1) * (1 / replicates + rho / (1 - rho)))
        posterior = stats.t(replicates - 1, differences.mean(), scale)
        found = paired_difference(first, second, overlap_ratio=test / train)
        np.testing.assert_allclose([found.low, found.high], posterior.interval(0.95), rtol=1e-12)
        assert found.p == pytest.approx(2 * min(posterior.cdf(0), posterior.sf(0)))
        assert found.error == pytest.approx(scale)

    def test_the_luck_of_rows_adds_and_explains(self):
        first, second = np.random.default_rng(0).normal(0.8, 0.05, (2, 6))
        variance = (first - second).var(ddof=1)
        for explained in (0.0, variance / 3):
            found = paired_difference(first, second, overlap_ratio=0.1, rows=RowLuck(mean=0.0004, replicate=explained))
            assert found.error**2 == pytest.approx((1 / 6 + 0.1) * (variance - explained) + 0.0004)
        steady = paired_difference(first, second, overlap_ratio=0.1, rows=RowLuck(mean=0.0004, replicate=2 * variance))
        assert steady.error**2 == pytest.approx(0.0004)

    def test_equal_differences_are_no_surer_than_their_rows(self):
        second = np.array([0.5, 0.6, 0.7, 0.5, 0.6, 0.7, 0.5, 0.6])
        plain, with_rows = (paired_difference(second + 0.1, second, rows=RowLuck(variance)) for variance in (0.0, 0.01))
        assert plain.p == pytest.approx(2.0**-7)
        assert with_rows.p == pytest.approx(2 * stats.t.sf(1, 7))
        assert paired_difference(second + 0.1, second, rows=RowLuck(1e-9)).p == pytest.approx(2.0**-7)

    @pytest.mark.parametrize("bad", [-0.1, np.nan])
    def test_bad_input(self, bad):
        with pytest.raises(ValueError, match=r"^paired_difference: overlap_ratio must be at least 0, got "):
            paired_difference(np.ones(2), np.ones(2), overlap_ratio=bad)
        with pytest.raises(ValueError, match=r"^paired_difference: rows.mean must be at least 0, got "):
            paired_difference(np.ones(2), np.ones(2), rows=RowLuck(bad))
        with pytest.raises(ValueError, match=r"^Overlap: ratio must be at least 0 and finite, got "):
            Overlap(bad)

    def test_false_alarms_among_resampled_splits_are_rare(self):
        # Two classifiers that are right as often: the rows they get right are fixed, splits of 200 rows draw 50 of them. Without
        # correction more than a tenth of such studies would find a difference at 5 %.
        rng = np.random.default_rng(3)
        alarms = np.zeros(2)
        for _ in range(400):
            right = rng.random((2, 200)) < 0.8
            drawn = [rng.permutation(200)[:50] for _ in range(10)]
            first, second = (np.array([one[rows].mean() for rows in drawn]) for one in right)
            alarms += [paired_difference(first, second, overlap_ratio=ratio).p < 0.05 for ratio in (0.0, 50 / 150)]
        assert alarms[0] > 0.1 * 400
        assert alarms[1] <= 0.05 * 400


class TestReplicatesNeeded:
    def test_reaches_the_power_by_simulation(self):
        found = Difference(5, 0.02, 0, 0, 0.02, 0.1)
        needed = replicates_needed(found, overlap_ratio=0.05, rows=RowLuck(1e-6, shared=1.0))
        rng = np.random.default_rng(0)
        # Draws of the differences share a part, as replicates that overlap do.
        shared = rng.normal(0, np.sqrt(0.05 * 0.02**2 + 1e-6), (20_000, 1))
        means = 0.02 + shared[:, 0] + rng.normal(0, 0.02 / np.sqrt(needed), 20_000)
        spreads = 0.02 * np.sqrt(rng.chisquare(needed - 1, 20_000) / (needed - 1))
        errors = np.sqrt((1 / needed + 0.05) * spreads**2 + 1e-6)
        power = (means / errors > stats.t.ppf(0.975, needed - 1)).mean()
        assert 0.78 < power < 0.86

    def test_overlap_has_a_limit_that_no_number_of_replicates_passes(self):
        assert replicates_needed(Difference(5, 0.01, 0, 0, 0.01, 0.1), overlap_ratio=0.3) is None


DIFFERENCES = arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(2, 8)), elements=st.integers(-8, 8).map(float))


class TestOneInterval:
    @given(DIFFERENCES, st.sampled_from([0.0, 0.3]), st.sampled_from([0.0, 0.5]), st.sampled_from([0.01, 0.05, 0.2]))
    def test_leaves_out_zero_where_holm_rejects(self, differences, ratio, variance, level):
        found = [
            paired_difference(values, np.zeros(len(values)), overlap_ratio=ratio, rows=RowLuck(variance, variance / 2))
            for values in differences
        ]
        rejected = holm(np.array([one.p for one in found])) < level
        excludes = [one.low > 0 or one.high < 0 for one in by_holm(found, level)]
        np.testing.assert_array_equal(excludes, rejected)

    @given(DIFFERENCES, st.floats(0.001, 0.999))
    def test_every_interval_is_that_of_its_p_value(self, differences, confidence):
        for values in differences:
            found = paired_difference(values, np.zeros(len(values)), confidence)
            assert (found.low > 0 or found.high < 0) == (found.p < 1 - confidence) or found.p == pytest.approx(1 - confidence)

    def test_levels_are_those_of_the_step_at_which_each_was_decided(self):
        found = [Difference(10, mean, np.nan, np.nan, 1.0, 2 * stats.t.sf(mean, 9), 1.0) for mean in (0.1, 5.0, 2.6, 2.5)]
        half = [one.mean - one.low for one in by_holm(found)]
        # 5.0 is decided at 0.05/4; 2.6 is the first that fails, at 0.05/3, and the rest with it.
        expected = [stats.t.ppf(1 - level / 2, 9) for level in (0.05 / 3, 0.05 / 4, 0.05 / 3, 0.05 / 3)]
        np.testing.assert_allclose(half, expected)

    def test_comparisons_that_cannot_be_made_do_not_count(self):
        known = paired_difference(np.array([0.9, 0.8, 0.9]), np.array([0.5, 0.45, 0.52]))
        unknown = paired_difference(np.array([0.9]), np.array([0.5]))
        assert by_holm([unknown, known])[1] == known
        assert np.isnan(by_holm([unknown, known])[0].low)

    @given(st.integers(0, 200), st.sampled_from([0.0, 0.25]))
    def test_compare_to_returns_them(self, seed, ratio):
        rng = np.random.default_rng(seed)
        results = results_frame({"ce": [0.8], "a": [0.82], "b": [0.79], "c": [0.9]}, noise=["none"], spread=0.02)
        results["accuracy"] += rng.normal(0, 0.02, len(results)).round(2)
        compared = compare_to(results, "ce", overlap=Overlap(ratio))
        excludes = (compared["low"] > 0) | (compared["high"] < 0)
        np.testing.assert_array_equal(excludes, compared["p_holm"] < 0.05)

    def test_overlap_and_rows_reach_every_comparison(self):
        results = results_frame({"ce": [0.8, 0.6], "a": [0.82, 0.7]})
        asked = []

        def of_rows(loss, reference, noise):
            asked.append((loss, reference, noise))
            return RowLuck(1e-4)

        plain = compare_to(results, "ce")
        corrected = compare_to(results, "ce", overlap=Overlap(0.25), luck_of_rows=of_rows)
        assert set(asked) == {("a", "ce", "none"), ("a", "ce", "symmetric(0.4)")}
        np.testing.assert_allclose(corrected["error"] ** 2, (1 / 5 + 0.25) * plain["spread"] ** 2 + 1e-4)

    def test_what_may_be_best_is_corrected_for_overlap(self):
        results = results_frame({"ce": [0.8], "a": [0.81]}, noise=["none"])
        assert summarise(results)["bold"].tolist() == [False, True]
        assert summarise(results, overlap=Overlap(3.0))["bold"].all()


class TestRows:
    @pytest.mark.parametrize("metric", METRICS)
    def test_their_mean_is_the_metric(self, metric):
        probabilities, labels = predictions(300, 8)
        theirs = {
            "accuracy": (probabilities.argmax(1) == labels).mean(),
            "balanced_accuracy": balanced_accuracy_score(labels, probabilities.argmax(1)),
            "macro_f1": f1_score(labels, probabilities.argmax(1), average="macro"),
            "nll": log_loss(labels, probabilities, labels=range(8)),
            "brier": ((probabilities - np.eye(8)[labels]) ** 2).sum(1).mean(),
            "top5": top_k_accuracy_score(labels, probabilities, k=5, labels=range(8)),
        }
        assert row_scores(metric, probabilities, labels).mean() == pytest.approx(theirs[metric])

    @pytest.mark.parametrize("metric", METRICS)
    def test_their_variance_is_that_of_drawing_rows_again(self, metric):
        first, labels = predictions(400, 6, seed=1)
        second = np.roll(first, 1, axis=0) * 0.3 + first * 0.7
        rng = np.random.default_rng(0)
        drawn = [rng.integers(0, 400, 400) for _ in range(600)]
        again = [
            row_scores(metric, first[rows], labels[rows]).mean() - row_scores(metric, second[rows], labels[rows]).mean()
            for rows in drawn
        ]
        ours = row_luck(*([RowScores(np.arange(400), row_scores(metric, one, labels))] for one in (first, second)))
        assert ours.mean == pytest.approx(ours.replicate) == pytest.approx(np.var(again), rel=0.3)

    def test_replicates_are_averaged_within_rows(self):
        rng = np.random.default_rng(0)
        first, second = (rng.random((2, 5, 100)) < 0.8).astype(float)
        rows = [[RowScores(np.arange(100), scores) for scores in one] for one in (first, second)]
        luck = row_luck(*rows)
        assert luck.mean == pytest.approx(stats.sem((first - second).mean(0)) ** 2)
        assert luck.shared == pytest.approx(1)
        assert luck.between == pytest.approx(0, abs=1e-15)
        assert row_luck(*([RowScores(np.arange(1), np.ones(1))] for _ in range(2))) == RowLuck()

    def test_rows_that_are_tested_in_turn_are_all_there_is(self):
        # Five folds are one sample of all rows, in whatever replicates they are; three rounds of them are still the same rows.
        rng = np.random.default_rng(0)
        scores, folds = rng.normal(size=(3, 200)), [np.arange(200)[fold::5] for fold in range(5)]
        nothing = [RowScores(rows, np.zeros(40)) for _ in scores for rows in folds]
        one = row_luck([RowScores(rows, scores[0][rows]) for rows in folds], nothing[:5])
        three = row_luck([RowScores(rows, each[rows]) for each in scores for rows in folds], nothing)
        assert one.mean == pytest.approx(stats.sem(scores[0]) ** 2)
        assert one.shared == 0
        assert three.mean == pytest.approx(stats.sem(scores.mean(0)) ** 2)
        assert three.shared == pytest.approx(3 * 5 / 105)  # of the 105 pairs of replicates 15 have the same rows

    def test_are_asked_for_once_and_paired_by_replicate(self):
        rng = np.random.default_rng(0)
        right = {
            loss: {seed: RowScores(np.arange(50), (rng.random(50) < 0.8).astype(float)) for seed in range(4)}
            for loss in ("ce", "gce")
        }
        del right["gce"][2]
        asked = []

        def scores(loss, noise):
            asked.append((loss, noise))
            return right[loss]

        of_pair = LuckByScores(scores)
        expected = row_luck(*([right[loss][seed] for seed in (0, 1, 3)] for loss in ("gce", "ce")))
        assert of_pair("gce", "ce", "none") == of_pair("gce", "ce", "none") == expected
        assert asked == [("gce", "none"), ("ce", "none")]
        assert LuckByScores(lambda loss, noise: {})("gce", "ce", "none") == RowLuck()

    def test_a_class_without_rows(self):
        probabilities = np.eye(4)[[0, 1, 3, 3]]
        labels = np.array([0, 1, 1, 3])
        for metric, expected in (("balanced_accuracy", 2.5 / 3), ("macro_f1", (1 + 2 / 3 + 2 / 3) / 3)):
            assert row_scores(metric, probabilities, labels).mean() == pytest.approx(expected)

    def test_bad_input(self):
        with pytest.raises(ValueError, match=r"^row_scores: metric must be one of accuracy, .*, top5, got ece\.$"):
            row_scores("ece", np.ones((1, 1)), np.zeros(1, int))
        with pytest.raises(ValueError, match=r"^row_luck: both must have the same rows, got 2 and 3"):
            row_luck(*([RowScores(np.arange(rows), np.ones(rows))] for rows in (2, 3)))
