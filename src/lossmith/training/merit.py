"""How good a trial looks on validation rows, and which of several is taken.

A share of right predictions on a few hundred rows, some of them labelled wrongly, tells good settings from bad ones only roughly:
the best of nine is often the luckiest. How likely the same labels are tells more of networks that learn wrong labels by heart,
since these are sure of what is wrong. But a loss need not make probabilities that mean something. So the score has the first
word, and the likelihood decides between trials that the score cannot tell apart. It, too, has luck in it: of trials that are
about as likely the one is taken that has learnt less by heart.

Reference: Breiman et al. 1984, for the rule of one standard error.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["NO_MERIT", "Merit", "best_first", "may_be_best", "ranks"]


GAP = 0.1
"""Nats that a training accuracy costs which is 1 above that of validation rows (``python -m evidence.choice``)."""


class Merit(NamedTuple):
    """What validation rows say of a trial."""

    score: float
    """What is to be as high as possible; NaN for a trial that diverged."""
    error: float = 0.0
    """The standard error of the score."""
    likelihood: float = math.nan
    """How likely the labels are, which decides between trials whose scores are an error apart at most; NaN where nobody knows."""
    by_heart: float = 0.0
    """By how much more of the training rows than of the validation rows the trial predicts as they are labelled."""

    @property
    def worth(self) -> float:
        """What decides between trials whose scores are near: the likelihood, less what was learnt by heart."""
        return self.likelihood - GAP * self.by_heart

    def beside(self, train_accuracy: float, validation_accuracy: float) -> "Merit":
        """Return the merit of a trial of which also the training rows are known.

        Args:
            train_accuracy: The share of training labels that it predicts, right or wrong as they are; NaN where nobody knows.
            validation_accuracy: The same of validation rows.

        Returns:
            The same merit, with what was learnt by heart.

        >>> round(Merit(0.8, 0.04, -0.7).beside(1.0, 0.8).worth, 4)
        -0.72
        """
        more = train_accuracy - validation_accuracy
        return self._replace(by_heart=max(more, 0.0) if math.isfinite(more) else 0.0)


NO_MERIT = Merit(math.nan)
"""Of a trial that diverged."""


def ranks(merits: Sequence[Merit]) -> list[int]:
    """Return how many better kinds of trials there are for each: 0 for the best, and the same number for equals.

    First come those whose score is within one standard error of the highest, by their worth, then all others by their score,
    and those without a score last. Where a likelihood is not known the score alone counts.

    Args:
        merits: One for each trial.

    Returns:
        A number for each trial.

    >>> ranks([Merit(0.50, 0.05, -0.9), Merit(0.80, 0.04, -0.7), Merit(0.78, 0.04, -0.6), Merit(0.50, 0.05, -0.9)])
    [2, 1, 0, 2]
    """
    scored = [merit for merit in merits if math.isfinite(merit.score)]
    best = max(scored, default=NO_MERIT)
    tells_more = all(math.isfinite(merit.likelihood) for merit in scored)

    def key(merit: Merit) -> tuple[int, float]:
        if not math.isfinite(merit.score):
            return 2, 0.0
        is_near = tells_more and merit.score >= best.score - best.error
        return (0, -merit.worth) if is_near else (1, -merit.score)

    keys = [key(merit) for merit in merits]
    numbers = {each: number for number, each in enumerate(sorted(set(keys)))}
    return [numbers[each] for each in keys]


def best_first(merits: Sequence[Merit]) -> list[int]:
    """Return the places of trials from the best to the worst by :func:`ranks`; of equals the one that is named first comes first.

    Args:
        merits: One for each trial.

    Returns:
        Their places.

    >>> best_first([Merit(0.50, 0.05, -0.9), Merit(0.80, 0.04, -0.7), Merit(0.78, 0.04, -0.6)])
    [2, 1, 0]
    """
    return sorted(range(len(merits)), key=ranks(merits).__getitem__)


def may_be_best(merits: Sequence[Merit]) -> list[int]:
    """Return the places of trials that may be the best of all when others are added to them.

    A trial whose worth put it second may become the best when a further one raises the highest score, or has no likelihood;
    never one that is behind another in both.

    Args:
        merits: One for each trial.

    Returns:
        Some of their places, that of the best among them.

    >>> may_be_best([Merit(0.50, 0.05, -0.9), Merit(0.80, 0.04, -0.7), Merit(0.78, 0.04, -0.6)])
    [1, 2]
    """
    found: list[int] = []
    for place in best_first(merits):
        if not any(_is_behind(place, other, merits) for other in found):
            found.append(place)
    return sorted(found)


def _is_behind(place: int, other: int, merits: Sequence[Merit]) -> bool:
    """Return whether a trial is behind another by worth and score, and by the score alone, should that decide."""
    one, better = merits[place], merits[other]
    if not math.isfinite(one.score):
        return True
    by_score = one.score < better.score or (one.score == better.score and other < place)
    return by_score and not one.worth > better.worth
