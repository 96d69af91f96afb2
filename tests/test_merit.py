"""Which of several trials is taken, by what validation rows say of them."""

import math

from hypothesis import given
from hypothesis import strategies as some

from lossmith.training.merit import NO_MERIT, Merit, best_first, may_be_best, ranks

SHARES = some.integers(0, 10).map(lambda tenths: tenths / 10)
GAPS = some.sampled_from((0.0, 0.5, 20.0))
MERITS = some.builds(Merit, SHARES, some.just(0.15), some.integers(-8, 0).map(float), GAPS)


@given(some.lists(MERITS, min_size=1, max_size=8))
def test_the_first_is_near_the_highest_score_and_worth_most_of_those(merits):
    best = merits[best_first(merits)[0]]
    near = [merit for merit in merits if merit.score >= max(merits).score - 0.15]
    assert best in near
    assert best.worth == max(merit.worth for merit in near)


@given(some.lists(MERITS, min_size=1, max_size=6), some.lists(MERITS, max_size=4))
def test_what_is_let_go_is_never_the_best_whatever_comes(merits, further):
    everything = [*merits, *further]
    best, kept = best_first(everything)[0], may_be_best(merits)
    assert best in kept or best >= len(merits)


@given(some.lists(MERITS, min_size=1, max_size=6), some.lists(SHARES.map(Merit), min_size=1, max_size=3))
def test_nor_where_trials_without_a_likelihood_come(merits, further):
    everything = [*merits, *further]
    best, kept = best_first(everything)[0], may_be_best(merits)
    assert best in kept or best >= len(merits)


@given(some.lists(MERITS, max_size=8))
def test_ranks_are_in_order_and_equal_for_equals(merits):
    order, numbers = best_first(merits), ranks(merits)
    assert sorted(order) == list(range(len(merits)))
    assert [numbers[place] for place in order] == sorted(numbers)
    assert set(numbers) == set(range(len(set(numbers))))


def test_without_a_likelihood_the_score_counts_and_trials_that_diverged_are_last():
    merits = [NO_MERIT, Merit(0.7, 0.2, -0.1), Merit(0.8), Merit(math.nan, 0.1, 0.0)]
    assert best_first(merits) == [2, 1, 0, 3]
    assert may_be_best(merits) == [2]
    assert best_first([NO_MERIT, NO_MERIT]) == [0, 1]
    assert best_first([]) == []


def test_of_equally_likely_trials_the_one_that_learnt_less_by_heart_is_taken():
    alike = Merit(0.8, 0.04, -0.7)
    assert best_first([alike.beside(1.0, 0.8), alike.beside(0.85, 0.8)]) == [1, 0]
    assert alike.beside(0.7, 0.8) == alike == alike.beside(math.nan, 0.8)  # nothing by heart, or nobody knows
    likelier = Merit(0.8, 0.04, -0.6)
    assert best_first([alike.beside(0.8, 0.8), likelier.beside(1.0, 0.8)]) == [1, 0]
