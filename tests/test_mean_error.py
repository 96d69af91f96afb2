"""The error of a mean difference of which rows tell one part and few replicates the other, against simulated studies."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from evidence.simulated import p_values, simulated
from lossmith.statistics.differences.mean_error import MeanError
from lossmith.statistics.differences.pooled_spread import Spread, pooled_spreads

VARIANCES = st.floats(1e-6, 1e3)


class TestMeanError:
    @given(VARIANCES, VARIANCES, st.integers(1, 40), st.floats(0.5, 0.9999))
    def test_is_student_t_where_only_replicates_tell(self, factor, variance, freedom, confidence):
        error, scale = MeanError(0.0, factor, variance, 0.0, freedom), np.sqrt(factor * variance)
        assert error.half_width(confidence) == pytest.approx(scale * stats.t.ppf((1 + confidence) / 2, freedom))
        # The sum over variances gives the same: a variance of rows that is next to nothing takes that way.
        summed = MeanError(1e-14 * scale**2, factor, variance, 0.0, freedom)
        assert summed.p(2 * scale) == pytest.approx(2 * stats.t.sf(2, freedom), rel=1e-5)

    @given(VARIANCES, st.floats(0.5, 0.9999))
    def test_is_normal_where_rows_tell_all(self, known, confidence):
        error = MeanError(known, 0.2, 0.0, 0.0, 4)
        assert error.half_width(confidence) == pytest.approx(np.sqrt(known) * stats.norm.ppf((1 + confidence) / 2), rel=1e-6)
        assert error.standard == pytest.approx(np.sqrt(known))

    @given(VARIANCES, VARIANCES, VARIANCES, st.floats(2.5, 40), st.floats(0.5, 0.9999))
    @example(1e-5, 7.0, 65.0, 8.0, 0.984375)  # an interval a thousandth as wide as variances could make it
    def test_its_interval_reaches_zero_where_the_p_value_is_what_is_left(self, known, variance, explained, freedom, confidence):
        error = MeanError(known, 0.45, variance, explained, freedom)
        assert error.p(error.half_width(confidence)) == pytest.approx(1 - confidence, rel=1e-6)
        assert error.deviation >= error.standard * (1 - 1e-9)

    def test_it_is_the_distribution_of_draws(self):
        rng = np.random.default_rng(0)
        error = MeanError(1.0, 0.45, 2.0, 1.5, 6)
        between = np.maximum(0, 6 * 2.0 / rng.chisquare(6, 200_000) - 1.5)
        drawn = rng.normal(0, np.sqrt(1.0 + 0.45 * between))
        assert error.p(2.5) == pytest.approx((np.abs(drawn) > 2.5).mean(), abs=0.001)
        assert error.deviation == pytest.approx(drawn.std(), rel=0.02)

    def test_no_difference_is_none(self):
        assert MeanError(0.0, 0.2, 0.0, 0.0, 4).p(0.0) == 1
        assert MeanError(0.0, 0.2, 1.0, 0.0, 2).deviation == np.inf


class TestPooling:
    def test_the_spread_of_one_loss_is_told_by_all(self):
        pooled = pooled_spreads([Spread(2.0 * scale, 4) for scale in (1, 4, 9)], [1, 4, 9])
        assert [one.variance for one in pooled] == pytest.approx([2, 8, 18])
        assert all(4 < one.freedom < 12 for one in pooled)

    def test_what_has_no_scale_stays_as_it_is(self):
        own = [Spread(2.0, 4), Spread(3.0, 4)]
        assert pooled_spreads(own, [0.0, 1.0]) == [own[0], pytest.approx(own[1])]

    @given(st.lists(st.floats(0, 100), min_size=2, max_size=7))
    def test_no_spread_is_taken_for_less_than_the_mean_of_all(self, ratios):
        pooled = pooled_spreads([Spread(ratio, 4) for ratio in ratios], [1.0] * len(ratios))
        assert all(one.variance >= np.mean(ratios) * (1 - 1e-9) for one in pooled)
        assert all(one.variance <= max(ratios) + 1e-9 for one in pooled)


class TestSimulatedStudies:
    @pytest.mark.parametrize("tuning", [0.0, 0.1])
    def test_false_alarms_are_rare_whatever_training_adds(self, tuning):
        # Of 100 studies 5 may be wrong; more than 11 would be beyond what chance makes of that (99.5 %).
        rng = np.random.default_rng(0)
        assert sum((p_values(*simulated(rng, tuning=tuning)) < 0.05).any() for _ in range(100)) <= 11

    def test_differences_are_found_that_replicates_alone_do_not_show(self):
        rng = np.random.default_rng(0)
        studies = [simulated(rng, gain=0.5) for _ in range(40)]
        with_rows = np.mean([p_values(results, luck)[-1] < 0.05 for results, luck in studies])
        without = np.mean([p_values(results, None)[-1] < 0.05 for results, _ in studies])
        assert with_rows > without + 0.25
