"""Sums, multiples and copies of losses."""

import copy
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

from lossmith.losses.contract.numbers import HasNumbers

__all__ = ["SummableLoss"]


class SummableLoss(HasNumbers):
    """Something that can be multiplied by a number, added to others of its kind, and copied."""

    _sum_of: ClassVar[Callable[[Sequence[tuple[float, Any]]], Any]]
    """Adds losses up. A sum is itself a loss, derived from this class, so it registers itself here where it is defined."""

    def summands(self) -> list[tuple[float, Any]]:
        """Return the losses that this one is a sum of, with their factors: itself, once."""
        return [(1.0, self)]

    def __mul__(self, factor: float) -> Any:
        return type(self)._sum_of([(factor * own, loss) for own, loss in self.summands()])

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, SummableLoss):
            return NotImplemented
        return type(self)._sum_of([*self.summands(), *other.summands()])

    def __sklearn_clone__(self) -> Self:
        """Return a copy, which is what scikit-learn means by a clone of something that is not fitted."""
        return copy.deepcopy(self)
