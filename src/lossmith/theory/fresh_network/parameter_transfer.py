"""Parameters for another number of classes, without training."""

from dataclasses import dataclass
from typing import overload

from lossmith.losses import ClassificationLoss
from lossmith.theory.fresh_network.kept_error import KeptError, NoSolutionError, Ranges, Samples, Sampling, axis
from lossmith.theory.fresh_network.solution_map import solution_map
from lossmith.theory.per_example import named_loss

__all__ = ["NoSolutionError", "TransferredParameters", "transfer_parameters"]

POINTS = 33


@dataclass(frozen=True)
class TransferredParameters:
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
) -> TransferredParameters: ...


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
) -> list[TransferredParameters]: ...


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
) -> TransferredParameters | list[TransferredParameters]:
    """Change a parameter of a loss that works for one number of classes so that it starts as well with another.

    The parameter is chosen so that the average error ``<delta_k>(0)`` of a fresh network stays what it is. Where there are
    several solutions, it is the one nearest to the value at hand; where there is none, ``NoSolutionError`` says so.

    >>> found = transfer_parameters("gce(q=0.7)", from_classes=100, to_classes=1000, solve="q")
    >>> f"{found.parameters['q']:.2f} +- {found.standard_error:.4f}"
    '0.48 +- 0.0002'

    With two parameters to solve for there is a line of solutions, see :func:`solution_map`. They are returned as a
    list, the one that changes the curve's shape least first. Paths name the parameters of parts, as for
    ``lossmith.LossScheduler``; ``ranges`` says where to look for them. ``reference`` is the loss whose average error is to be
    kept, if it is not that of the loss itself. ``samples`` is a number, or a function of the number of classes.

    Reference: section 3.3 and appendix 4 of Staats, Thamm and Rosenow, "Noise-robust loss functions".

    Args:
        loss: A loss that works, or its expression.
        from_classes: The number of classes it works for, at least 2.
        to_classes: The number of classes it is wanted for, at least 2.
        solve: The parameter to change, or two of them.
        reference: Another loss whose average error is to be kept.
        ranges: Where to look for each parameter, as a pair.
        sigma: The standard deviation of a fresh network's logits, > 0.
        samples: How many rows of logits are drawn.
        seed: Draws them.

    Returns:
        The loss with its new parameter and how sure it is; a list of them for two parameters.

    Raises:
        NoSolutionError: If no value keeps the average error.
        TypeError: If the loss is neither text nor a loss of the library.
        ValueError: If a parameter is unknown, or a number out of its range.
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


def _solved(kept: KeptError, *values: float) -> TransferredParameters:
    error = kept.standard_error(*values)
    kept.set(*values)
    parameters = dict(zip(kept.names, values, strict=True))
    loss = named_loss(kept.loss, "transfer_parameters")
    return TransferredParameters(loss, parameters, error, kept.target, kept.shape_change())
