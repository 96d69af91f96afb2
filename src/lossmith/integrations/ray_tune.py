"""Parameters of losses in searches by Ray Tune."""

from typing import TYPE_CHECKING

from lossmith import objectives
from lossmith.objectives.ranges import Range

if TYPE_CHECKING:
    from ray.tune.search.sample import Domain

__all__ = ["search_space"]


def search_space(loss: str) -> "dict[str, Domain]":
    """Return where to look for every number of a loss, as Ray Tune's domains.

    Args:
        loss: The expression of a loss or of an objective.

    Returns:
        Domains by the names that :func:`lossmith.objectives.with_parameters` takes, for the ``param_space`` of a ``Tuner``;
        empty where there is nothing to tune.

    Raises:
        ValueError: If the expression cannot be read.
    """
    return {name: _domain(range_) for name, range_ in objectives.search_space(loss).items()}


def _domain(range_: Range) -> "Domain":
    from ray import tune

    if range_.whole:  # Tune leaves out the upper end of whole numbers
        return (tune.lograndint if range_.log else tune.randint)(int(range_.low), int(range_.high) + 1)
    return (tune.loguniform if range_.log else tune.uniform)(float(range_.low), float(range_.high))
