"""The average error over two parameters, with the line of those that suit another number of classes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.losses import ClassificationLoss
from lossmith.theory.fresh_network.average_error import FEWEST_SAMPLES, default_samples
from lossmith.theory.fresh_network.kept_error import KeptError, Place, Ranges, Samples, Sampling, axis
from lossmith.theory.per_example import check_classes

__all__ = ["SolutionMap", "solution_map"]

POINTS = 25


@dataclass(frozen=True)
class SolutionMap:
    """``<delta_k>(0)`` over a grid of two parameters, and the line on which it has the value that is wanted."""

    loss: str
    names: tuple[str, str]
    first: Tensor
    second: Tensor
    errors: Tensor
    """Of shape ``(len(first), len(second))``; NaN where the loss takes no such parameters."""
    target: float
    line: Tensor
    """Solutions ``(n, 2)``, in the order of the first parameter."""


def solution_map(
    loss: str | ClassificationLoss,
    from_classes: int,
    to_classes: int,
    solve: tuple[str, str],
    *,
    reference: str | ClassificationLoss | None = None,
    ranges: Ranges | None = None,
    points: int = POINTS,
    sigma: float = 1.0,
    samples: Samples = None,
    seed: int = 0,
) -> SolutionMap:
    """Return ``<delta_k>(0)`` over a grid of two parameters, with the line on which it is what the loss has at ``from_classes``.

    ``lossmith figure solution-map`` draws it. The wanted value is that of ``reference``, if another loss is given as one. Without
    ``ranges``, a parameter is looked for within its limits, or within a factor of 1000 of its value if it has none.

    Args:
        loss: A loss that works, or its expression.
        from_classes: The number of classes it works for, at least 2.
        to_classes: The number of classes it is wanted for, at least 2.
        solve: The two parameters of the grid.
        reference: Another loss whose average error is wanted.
        ranges: The ends of the grid for each parameter.
        points: The points of the grid along each parameter, at least 2.
        sigma: The standard deviation of a fresh network's logits, > 0.
        samples: How many rows of logits are drawn.
        seed: Draws them.

    Returns:
        The grid, the average error on it, and the points of the line.

    Raises:
        TypeError: If the loss is neither text nor a loss of the library.
        ValueError: If ``solve`` does not name two parameters of the loss, or a number is out of its range.

    >>> found = solution_map("nce-agce@100", 100, 1000, ("q", "b"), points=5, samples=64)
    >>> found.errors.shape, round(found.target, 3)
    (torch.Size([5, 5]), -0.021)

    Reference: appendix figure 4 of Staats, Thamm and Rosenow, "Noise-robust loss functions".
    """
    owner = "solution_map"
    if isinstance(solve, str) or len(solve) != 2 or solve[0] == solve[1]:
        raise ValueError(f"{owner}: solve must name two parameters, got {solve!r}.")
    check_classes("from_classes", from_classes, owner)
    check_classes("to_classes", to_classes, owner)
    Limits(2, whole=True).check("points", points, owner=owner)
    sampling = Sampling(sigma, _quarter_of_default_samples if samples is None else samples, seed)
    kept = KeptError(owner, loss, from_classes, to_classes, solve, sampling=sampling, reference=reference)
    written = str(kept.loss)
    first, second = (axis(number, points, (ranges or {}).get(name)) for number, name in zip(kept.numbers, solve, strict=True))
    excesses = [[kept.excess(x, y) for y in second] for x in first]
    return SolutionMap(
        written,
        (solve[0], solve[1]),
        _double(first),
        _double(second),
        _double(excesses) + kept.target,
        kept.target,
        _line(kept, first, second, excesses),
    )


def _quarter_of_default_samples(num_classes: int) -> int:
    """A map has many points, which are looked at rather than read as numbers."""
    return max(FEWEST_SAMPLES, default_samples(num_classes) // 4)


def _line(kept: KeptError, first: list[float], second: list[float], excesses: list[list[float]]) -> Tensor:
    """Return the solutions on all lines of the grid, along and across, so that no part of a curve is missed."""
    columns = zip(*excesses, strict=True)
    along = [root for x, row in zip(first, excesses, strict=True) for root in kept.roots(second, row, _with_first(x))]
    across = [root for y, column in zip(second, columns, strict=True) for root in kept.roots(first, column, _with_second(y))]
    return _double(sorted([*along, *across])).view(-1, 2)


def _with_first(x: float) -> Callable[[float], Place]:
    return lambda y: (x, y)


def _with_second(y: float) -> Callable[[float], Place]:
    return lambda x: (x, y)


def _double(numbers: Sequence[object]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)
