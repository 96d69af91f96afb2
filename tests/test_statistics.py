"""Statistics over losses, against scipy, statsmodels, scikit-posthocs and counting by hand."""

from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from lossmith.statistics.differences.paired_tests import (
    Difference,
    benjamini_hochberg,
    holm,
    paired_difference,
    replicates_needed,
)
from lossmith.statistics.ranking import conover, friedman, groups_not_told_apart, performance_profile, rank_losses
from lossmith.statistics.several_studies import rank
from lossmith.statistics.summary import best_loss, block_means, compare_to, summarise, usable_results
from study_frames import results_frame

P_VALUES = arrays(np.float64, st.integers(1, 12), elements=st.floats(0, 1))
SCORES = arrays(np.float64, st.tuples(st.integers(2, 9), st.integers(3, 6)), elements=st.integers(0, 8).map(float))


def values(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.8, 0.05, shape)


class TestPairedDifference:
    @pytest.mark.parametrize("seeds", [2, 3, 5, 25])
    def test_is_scipys_paired_t_test(self, seeds):
        first, second = values(seeds, 2, seeds)
        ours, theirs = paired_difference(first, second, 0.9), stats.ttest_rel(first, second)
        interval = theirs.confidence_interval(0.9)
        np.testing.assert_allclose([ours.p, ours.low, ours.high], [theirs.pvalue, *interval], rtol=1e-12)
        assert ours.mean == pytest.approx((first - second).mean())
        assert ours.pairs == seeds

    @pytest.mark.parametrize("pairs", [0, 1])
    def test_says_nothing_from_fewer_than_two_pairs(self, pairs):
        difference = paired_difference(np.full(pairs, 0.9), np.full(pairs, 0.8))
        assert difference.pairs == pairs
        assert np.isnan([difference.p, difference.low, difference.high, difference.spread]).all()
        assert np.isnan(difference.mean) == (pairs == 0)

    def test_equal_runs_do_not_differ(self):
        assert paired_difference(np.array([0.7, 0.8]), np.array([0.7, 0.8])) == Difference(2, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)

    @pytest.mark.parametrize("seeds", [2, 5, 10])
    def test_the_same_difference_in_every_seed_is_as_likely_as_equal_signs(self, seeds):
        # Subtraction rounds: 0.9 - 0.6 and 0.8 - 0.5 are not the same double, though the same difference.
        second = np.resize([0.6, 0.5, 0.1], seeds)
        difference = paired_difference(second + 0.3, second)
        assert difference.p == pytest.approx(2.0 ** (1 - seeds))
        assert difference.mean == pytest.approx(0.3)
        assert (difference.low > 0) == (difference.p < 0.05)
        assert difference.low + difference.high == pytest.approx(0.6)

    def test_leaves_out_pairs_that_miss_a_run(self):
        first, second = np.array([0.9, np.nan, 0.8, 0.7]), np.array([0.8, 0.8, 0.75, np.inf])
        assert paired_difference(first, second) == paired_difference(first[[0, 2]], second[[0, 2]])

    @given(arrays(np.float64, (2, 4), elements=st.floats(0, 1)))
    def test_has_no_nan_and_is_antisymmetric(self, pair):
        there, back = paired_difference(*pair), paired_difference(*pair[::-1])
        assert not np.isnan([there.p, there.low, there.high]).any()
        assert 0 <= there.p <= 1
        assert (there.p, there.mean, there.low) == (back.p, -back.mean, -back.high)


class TestCorrections:
    @given(P_VALUES)
    def test_holm_is_its_definition(self, p):
        expected = [max(min(1.0, (p >= q).sum() * q) for q in p if q <= one) for one in p]
        np.testing.assert_allclose(holm(p), expected, rtol=1e-12)

    def test_holm_is_statsmodels(self):
        p = np.array([0.01, 0.2, 0.04, 0.012, 0.04, 0.9])
        np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], rtol=1e-12)

    @given(P_VALUES)
    def test_benjamini_hochberg(self, p):
        np.testing.assert_allclose(benjamini_hochberg(p), stats.false_discovery_control(p), rtol=1e-12)

    @pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
    def test_what_cannot_be_said_does_not_count(self, correct):
        corrected = correct(np.array([0.01, np.nan, 0.02]))
        np.testing.assert_array_equal(corrected[[0, 2]], correct(np.array([0.01, 0.02])))
        assert np.isnan(corrected[1])
        assert correct(np.array([])).shape == (0,)


class TestReplicatesNeeded:
    @pytest.mark.parametrize("effect", [0.3, 0.8, 1.5, 4.0])
    def test_reaches_the_power_and_no_fewer_do(self, effect):
        needed = replicates_needed(Difference(5, effect, 0, 0, 1.0, 0.1))
        power = [TTestPower().power(effect, pairs, 0.05) for pairs in (needed - 1, needed)]
        assert power[1] >= 0.8 - 1e-3
        assert needed == 2 or power[0] < 0.8

    @pytest.mark.parametrize(("mean", "spread"), [(0.0, 1.0), (1.0, 0.0), (1.0, np.nan), (1e-4, 1.0)])
    def test_none_where_it_cannot_be_told_or_reached(self, mean, spread):
        assert replicates_needed(Difference(5, mean, 0, 0, spread, 0.5)) is None


class TestRanks:
    @given(SCORES)
    def test_friedman_is_scipys(self, scores):
        ours = friedman(pd.DataFrame(scores))
        if (scores == scores[:, :1]).all():  # scipy divides zero by zero
            assert (ours.statistic, ours.p) == (0, 1)
        else:
            np.testing.assert_allclose([ours.statistic, ours.p], stats.friedmanchisquare(*scores.T), rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize(
        ("seed", "blocks", "losses", "ties"), [(0, 10, 4, False), (1, 4, 6, True), (2, 121, 6, False), (3, 3, 3, True)]
    )
    def test_conover_is_scikit_posthocs(self, seed, blocks, losses, ties):
        scores = pd.DataFrame(values(seed, blocks, losses).round(2 if ties else 9), columns=list("abcdef")[:losses])
        theirs = scikit_posthocs.posthoc_conover_friedman(scores, p_adjust="fdr_bh")
        np.testing.assert_allclose(conover(scores), theirs.loc[scores.columns, scores.columns], rtol=1e-9)

    def test_the_direction_changes_no_p_value(self):
        scores = pd.DataFrame(values(4, 6, 4))
        np.testing.assert_allclose(conover(scores), conover(scores, higher_is_better=False), rtol=1e-12)

    def test_blocks_that_all_agree_say_no_more_than_their_number(self):
        scores = pd.DataFrame([[1.0, 2, 3]] * 4, columns=list("abc"))
        off_diagonal = conover(scores).to_numpy()[~np.eye(3, dtype=bool)]
        np.testing.assert_array_equal(off_diagonal, 2.0**-3)
        assert friedman(scores).p == pytest.approx(stats.friedmanchisquare(*scores.to_numpy().T).pvalue)

    def test_all_tied(self):
        assert (conover(pd.DataFrame(np.ones((3, 4)))).to_numpy() == 1).all()

    def test_one_block_says_nothing(self):
        one = pd.DataFrame([[0.8, 0.9]], columns=["ce", "gce"])
        assert np.isnan(friedman(one).p)
        assert np.isnan(conover(one).loc["ce", "gce"])

    def test_ranking_counts_like_the_paper(self):
        scores = pd.DataFrame(
            {"ce": [0.5, 0.7, 0.9, 0.4], "el": [0.4, 0.7, 0.8, 0.3], "mix": [0.6, 0.7, 0.9, np.nan]}, index=list("wxyz")
        )
        ranking = rank_losses(scores, "ce")
        assert ranking.left_out == ("z",)
        assert ranking.summary["wins"].to_dict() == {"mix": 3, "ce": 2, "el": 1}
        np.testing.assert_allclose(ranking.summary.loc["mix", ["mean_difference", "mean_rank"]], [0.1 / 3, (1 + 2 + 1.5) / 3])
        np.testing.assert_allclose(ranking.summary.loc["el", ["mean_difference", "mean_rank"]], [-0.2 / 3, (3 + 2 + 3) / 3])
        assert ranking.friedman.blocks == 3

    def test_lower_is_better(self):
        ranking = rank_losses(pd.DataFrame({"ce": [1.0, 2.0], "gce": [0.5, 2.5]}), "ce", higher_is_better=False)
        assert ranking.summary["wins"].to_dict() == {"ce": 1, "gce": 1}

    @given(st.integers(2, 7), st.randoms(use_true_random=False))
    def test_groups_are_the_maximal_runs(self, losses, random):
        p = np.ones((losses, losses))
        for i, j in combinations(range(losses), 2):
            p[i, j] = p[j, i] = random.choice([0.01, 0.6])
        order = list("abcdefg"[:losses])
        groups = groups_not_told_apart(order, pd.DataFrame(p, order, order))
        runs = [(i, j) for i, j in combinations(range(losses + 1), 2) if j - i > 1 and (p[i:j, i:j] > 0.05).all()]
        largest = [(i, j) for i, j in runs if not any((a <= i and j <= b) and (a, b) != (i, j) for a, b in runs)]
        assert groups == tuple(tuple(order[i:j]) for i, j in largest)


class TestProfile:
    def test_counts(self):
        scores = pd.DataFrame(values(7, 20, 3), columns=list("abc"))
        profile = performance_profile(scores)
        ratios = scores.to_numpy() / scores.to_numpy().max(1, keepdims=True)
        for threshold in (0.9, 0.97, 1.0):
            at = profile.loc[profile.index >= threshold].iloc[0]
            np.testing.assert_allclose(at, (ratios >= threshold).mean(0))
        assert all((later <= earlier).all() for (_, earlier), (_, later) in pairwise(profile.iterrows()))

    def test_missing_results_and_zeros(self):
        profile = performance_profile(pd.DataFrame({"ce": [0.0, np.nan, 1.0], "gce": [0.0, 0.5, 0.25]}), np.array([0.5, 1.0]))
        np.testing.assert_allclose(profile["ce"], [2 / 3, 2 / 3])
        np.testing.assert_allclose(profile["gce"], [2 / 3, 2 / 3])

    def test_lower_is_better(self):
        profile = performance_profile(
            pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 2.0]}), np.array([0.4, 0.6]), higher_is_better=False
        )
        np.testing.assert_allclose(profile.loc[0.6], [1.0, 0.5])
        np.testing.assert_allclose(profile.loc[0.4], [1.0, 1.0])


class TestSummary:
    def test_means_errors_and_bold(self):
        results = results_frame({"ce": [0.80, 0.60], "gce": [0.81, 0.70], "mae": [0.50, 0.701]}, spread=0.002)
        summary = summarise(results).set_index(["noise", "loss"])
        for (noise, loss), row in summary.iterrows():
            runs = results.query("noise == @noise and loss == @loss")["accuracy"]
            assert row["mean"] == pytest.approx(runs.mean())
            assert row["standard_error"] == pytest.approx(stats.sem(runs))
            best = summary.loc[noise].query("best").index.item()
            p = stats.ttest_rel(runs, results.query("noise == @noise and loss == @best")["accuracy"]).pvalue
            assert row["bold"] == (loss == best or p > 0.05)
        assert list(summary.query("bold").index) == [("none", "gce"), ("symmetric(0.4)", "gce"), ("symmetric(0.4)", "mae")]

    def test_one_seed_makes_nothing_bold(self):
        summary = summarise(results_frame({"ce": [0.8, 0.6], "gce": [0.9, 0.7]}, seeds=1))
        assert not summary["bold"].any()
        assert summary["standard_error"].isna().all()
        assert summary["best"].sum() == 2

    def test_equal_losses_are_both_bold(self):
        results = results_frame({"ce": [0.8, 0.6]}, seeds=2)
        both = pd.concat([results, results.assign(loss="copy")], ignore_index=True)
        assert summarise(both)["bold"].all()
        assert summarise(both)["best"].sum() == 2

    def test_a_lucky_single_run_is_not_the_best(self):
        results = results_frame({"ce": [0.8, 0.6], "gce": [0.9, 0.7]})
        results = results[(results["loss"] == "ce") | (results["seed"] == 0)]
        assert best_loss(results) == "ce"

    def test_lower_is_better_for_calibration(self):
        results = results_frame({"ce": [0.8, 0.6], "gce": [0.8, 0.6]}, ece={"ce": 0.02, "gce": 0.2})
        assert set(summarise(results, "ece").query("bold")["loss"]) == {"ce"}

    def test_a_diverged_run_counts_as_wrong(self):
        results = results_frame({"ce": [0.8, 0.6], "gce": [0.9, 0.7]})
        failed = (results["loss"] == "gce") & (results["seed"] == 2)
        results.loc[failed, ["accuracy", "nll"]] = np.nan
        results.loc[failed, "diverged"] = True
        assert usable_results(results).query("loss == 'gce' and seed == 2")["value"].tolist() == [0.0, 0.0]
        assert summarise(results).query("loss == 'gce'")["runs"].tolist() == [5, 5]
        assert summarise(results, "nll").query("loss == 'gce'")["runs"].tolist() == [4, 4]


class TestCompareTo:
    def test_each_noise_level_is_a_family(self):
        results = results_frame({"ce": [0.80, 0.60], "gce": [0.81, 0.70], "mae": [0.50, 0.701]})
        compared = compare_to(results, "ce")
        for noise, part in compared.groupby("noise"):
            level = results[results["noise"] == noise].pivot(index="seed", columns="loss", values="accuracy")
            p = [stats.ttest_rel(level[loss], level["ce"]).pvalue for loss in part["loss"]]
            np.testing.assert_allclose(part["p_holm"], multipletests(p, method="holm")[1])

    def test_missing_runs(self):
        results = results_frame({"ce": [0.80, 0.60], "gce": [0.81, 0.70], "mae": [0.5, 0.6]})
        results = results[~((results["loss"] == "gce") & (results["noise"] == "none") & (results["seed"] > 2))]
        results = results[~((results["loss"] == "mae") & (results["noise"] == "none") & (results["seed"] > 0))]
        compared = compare_to(results, "ce").set_index(["noise", "loss"])
        assert compared.loc[("none", "gce"), "pairs"] == 3
        assert compared.loc[("none", "mae"), "pairs"] == 1
        assert np.isnan(compared.loc[("none", "mae"), "p_holm"])
        assert compared.loc[("none", "gce"), "p_holm"] == compared.loc[("none", "gce"), "p"]

    def test_a_level_without_the_reference(self):
        results = results_frame({"ce": [0.80, 0.60], "gce": [0.81, 0.70]})
        results = results[~((results["loss"] == "ce") & (results["noise"] == "none"))]
        compared = compare_to(results, "ce")
        assert compared.set_index("noise")["pairs"].to_dict() == {"none": 0, "symmetric(0.4)": 5}

    def test_bad_input(self):
        results = results_frame({"ce": [0.80, 0.60], "gce": [0.81, 0.70]})
        with pytest.raises(ValueError, match=r"^compare_to: reference must be one of ce, gce, got mae\.$"):
            compare_to(results, "mae")
        with pytest.raises(ValueError, match=r"^statistics: results need a column 'speed', got loss, noise, "):
            summarise(results, "speed")
        with pytest.raises(ValueError, match=r"^statistics: results hold loss ce and noise none and seed 0 more than once\.$"):
            summarise(pd.concat([results, results.iloc[:1]], ignore_index=True))


class TestRank:
    def several(self, **changes):
        first = results_frame({"ce": [0.8, 0.6], "gce": [0.82, 0.7]}).assign(data="digits")
        second = first.assign(data="wine", accuracy=first["accuracy"].where(first["loss"] == "ce", 0.1))
        return pd.concat([first, second], ignore_index=True).assign(**changes)

    def test_data_sets_are_the_blocks(self):
        results = self.several()
        ranking = rank(results)
        assert ranking.friedman.blocks == 2
        assert ranking.summary["wins"].to_dict() == {"ce": 1, "gce": 1}
        digits = results.query("data == 'digits' and noise == 'none'").groupby("loss")["accuracy"].mean()
        wine = results.query("data == 'wine' and noise == 'none'").groupby("loss")["accuracy"].mean()
        expected = ((digits["gce"] - digits["ce"]) + (wine["gce"] - wine["ce"])) / 2
        assert ranking.summary.loc["gce", "mean_difference"] == pytest.approx(expected)

    def test_another_noise_level(self):
        results = self.several()
        noisy = rank(results, noise="symmetric(0.4)").summary
        pd.testing.assert_frame_equal(noisy, rank(results[results["noise"] != "none"]).summary)
        with pytest.raises(ValueError, match=r"^rank: noise of digits must be one of none, symmetric\(0.4\), got pair\(0.1\)\.$"):
            rank(results, noise="pair(0.1)")

    def test_means_without_untrained_cases(self):
        results = self.several()
        marked = (results["data"] == "wine") & (results["loss"] == "gce") & (results["seed"] < 3)
        summary = rank(results.assign(untrained=np.where(marked, "predicts one class", ""))).summary
        digits = results.query("data == 'digits' and noise == 'none'").groupby("loss")["accuracy"].mean()
        assert summary["untrained"].to_dict() == {"ce": 0, "gce": 1}
        assert summary.loc["gce", "trained_difference"] == pytest.approx(digits["gce"] - digits["ce"])
        assert summary.loc["gce", "mean_difference"] < 0 < summary.loc["gce", "trained_difference"]

    def test_an_untrained_baseline_is_no_measure(self):
        blocks = pd.DataFrame({"ce": [0.1, 0.8], "gce": [0.9, 0.9]})
        failed = pd.DataFrame({"ce": [True, False]})
        summary = rank_losses(blocks, "ce", untrained=failed).summary
        assert summary.loc["gce", "trained_difference"] == pytest.approx(0.1)

    def test_bad_input(self):
        with pytest.raises(ValueError, match=r"^rank: results need a column 'data', got loss, noise, "):
            rank(results_frame({"ce": [0.8, 0.6], "gce": [0.82, 0.7]}))
        with pytest.raises(ValueError, match="more than once"):
            rank(self.several(data="same"))
        means = block_means(self.several(), by=("data", "noise"))
        assert means.shape == (4, 2)
