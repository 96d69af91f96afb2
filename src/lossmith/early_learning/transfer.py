"""Parameters for another number of classes, without training."""

from dataclasses import dataclass
from typing import overload

from lossmith.early_learning.kept_error import KeptError, NoSolutionError, Ranges, Samples, Sampling, axis
from lossmith.early_learning.per_example import named_loss
from lossmith.early_learning.solution_map import solution_map
from lossmith.losses import ClassificationLoss

__all__ = ["NoSolutionError", "Transfer", "transfer_parameters"]

POINTS = 33


@dataclass(frozen=True)
class Transfer:
    """A loss for another number of classes."""

    loss: ClassificationLoss
    """The loss, with the parameters that were solved for."""
    parameters: dict[str, float]
    standard_error: float
    """Standard error, due to sampling, of the last parameter that was solved for."""
    target: float
    """The ``<delta_k>(0)`` that is kept: that of the reference, at the first number of classes."""
    shape_change: float
    """How much the curve changes otherwise: the root mean square difference of the average errors, from a fresh network to one
    that has learnt the class, over the largest error of the reference."""


@overload
def transfer_parameters(
    loss: str | ClassificationLoss,
    from_classes: int,
    to_classes: int,
    solve: str,
    *,
    reference: str | ClassificationLoss | None = ...,
    ranges: Ranges | None = ...,
    sigma: float = ...,
    samples: Samples = ...,
    seed: int = ...,
) -> Transfer: ...


@overload
def transfer_parameters(
    loss: str | ClassificationLoss,
    from_classes: int,
    to_classes: int,
    solve: tuple[str, str],
    *,
    reference: str | ClassificationLoss | None = ...,
    ranges: Ranges | None = ...,
    sigma: float = ...,
    samples: Samples = ...,
    seed: int = ...,
) -> list[Transfer]: ...


def transfer_parameters(
    loss: str | ClassificationLoss,
    from_classes: int,
    to_classes: int,
    solve: str | tuple[str, str],
    *,
    reference: str | ClassificationLoss | None = None,
    ranges: Ranges | None = None,
    sigma: float = 1.0,
    samples: Samples = None,
    seed: int = 0,
) -> Transfer | list[Transfer]:
    """Change a parameter of a loss that works for one number of classes so that it starts as well with another.

    The parameter is solved for such that the average error ``<delta_k>(0)`` of a fresh network stays what it is. Where there are
    several solutions, it is the one nearest to the value at hand; where there is none, ``NoSolutionError`` says so.

    >>> found = transfer_parameters("gce(q=0.7)", from_classes=100, to_classes=1000, solve="q")
    >>> f"{found.parameters['q']:.2f} +- {found.standard_error:.4f}"
    '0.48 +- 0.0002'

    With two parameters to solve for there is a line of solutions, see :func:`lossmith.solution_map`. They are returned as a
    list, that with the least change of the curve's shape first. Paths name the parameters of parts, as for
    ``lossmith.LossScheduler``; ``ranges`` says where to look for them. ``reference`` is the loss whose average error is to be
    kept, if it is not that of the loss itself. ``samples`` is a number, or a function of the number of classes.

    Reference: section 3.3 and appendix 4 of Staats, Thamm and Rosenow, "Noise-robust loss functions".
    """
    owner = "transfer_parameters"
    sampling = Sampling(sigma, samples, seed)
    if isinstance(solve, str):
        kept = KeptError(owner, loss, from_classes, to_classes, [solve], sampling=sampling, reference=reference)
        return _solved(kept, _nearest_root(kept, solve, ranges or {}))
    found = solution_map(
        loss, from_classes, to_classes, solve, reference=reference, ranges=ranges, sigma=sigma, samples=samples, seed=seed
    )
    kept = KeptError(owner, loss, from_classes, to_classes, solve, sampling=sampling, reference=reference)
    if not len(found.line):
        raise kept.no_solution(dict(zip(solve, (found.first.tolist(), found.second.tolist()), strict=True)))
    return sorted((_solved(kept, *point) for point in found.line.tolist()), key=lambda transfer: transfer.shape_change)


def _nearest_root(kept: KeptError, name: str, ranges: Ranges) -> float:
    number = kept.numbers[0]
    now, places = number.get(), axis(number, POINTS, ranges.get(name))
    roots = [root for (root,) in kept.roots(places, [kept.excess(place) for place in places], lambda value: (value,))]
    if not roots:
        raise kept.no_solution({name: places})
    return min(roots, key=lambda root: abs(root - now))


def _solved(kept: KeptError, *values: float) -> Transfer:
    error = kept.standard_error(*values)
    kept.set(*values)
    parameters = dict(zip(kept.names, values, strict=True))
    return Transfer(named_loss(kept.loss, "transfer_parameters"), parameters, error, kept.target, kept.shape_change())
