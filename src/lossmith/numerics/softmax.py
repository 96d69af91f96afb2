"""Softmax probabilities that keep every digit where one class has nearly all of the mass.

``1 - p`` and ``log p`` of the dominating class are lost to rounding when computed from ``p`` itself. They are exact when
computed from the *other* classes: with the log-odds ``z = x_y - logsumexp(others)``, ``p`` is the sigmoid of z, ``1 - p`` that
of -z, and the gradient of ``-log p`` is ``1 - p`` times the softmax of the others, and ``-(1 - p)`` at the class itself.
"""

from typing import Any, cast

import torch
from torch import Tensor

from lossmith.numerics.elementary import softplus
from lossmith.numerics.entries import entry, with_entry
from lossmith.numerics.one_operation import as_one_operation, is_stand_in
from lossmith.numerics.precision import in_double
from lossmith.numerics.probability import Probability

__all__ = [
    "log_odds",
    "log_odds_slope",
    "odds_against",
    "odds_of_sums",
    "surprises",
    "target_probability",
    "unless_diverged",
    "zero_unless_diverged",
]


def target_probability(logits: Tensor, index: Tensor) -> Probability:
    """Return the probability of the class ``index`` ``(N, 1, ...)`` of each row, in double precision where the device has it.

    Args:
        logits: ``(N, C, ...)``.
        index: The class of each row, ``(N, 1, ...)``.

    Returns:
        The probability, ``(N, 1, ...)``.

    >>> target_probability(torch.tensor([[40.0, 0.0, 0.0]]), torch.tensor([[0]])).rest
    tensor([[8.4967e-18]], dtype=torch.float64)
    """
    return Probability.from_log_odds(log_odds(logits, index))


def log_odds(logits: Tensor, index: Tensor) -> Tensor:
    """Return the log-odds of one class of each row, ``(N, 1, ...)``, in double precision where the device has it.

    Their absolute error becomes the relative error of their exponential.

    Args:
        logits: ``(N, C, ...)``.
        index: The class of each row, ``(N, 1, ...)``.

    Returns:
        ``log(p / (1 - p))``.
    """
    if is_stand_in(logits):
        return as_one_operation(log_odds, logits, index)
    if torch.compiler.is_compiling():
        return cast("Tensor", _LogOdds.apply(logits, index)[0])  # type: ignore[no-untyped-call]
    return odds_against(entry(logits, index), with_entry(logits, index, -torch.inf))[0]


def log_odds_slope(logits: Tensor, index: Tensor) -> Tensor:
    """Return the gradient of :func:`log_odds` in a compiled graph, ``(N, C, ...)``: 1 at the class, negative or 0 elsewhere."""
    return cast("Tensor", _LogOdds.apply(logits, index)[1])  # type: ignore[no-untyped-call]


def odds_against(own: Tensor, others: Tensor, *, overwrite: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Return the log-odds of a class against others, the exponentials of those less their largest, and their sum.

    Args:
        own: The logit of the class, ``(N, 1, ...)``.
        others: The logits of the others, ``(N, C, ...)``, with -inf at the class itself.
        overwrite: Whether the exponentials may take the place of the logits, where nothing is differentiated.

    Returns:
        ``(N, 1, ...)``, in double precision where the device has it, ``(N, C, ...)`` and ``(N, 1, ...)``.
    """
    shift = others.amax(1, keepdim=True).detach()
    shift = torch.where(shift == -torch.inf, 0.0, shift)
    exponentials = others.sub_(shift).exp_() if overwrite else torch.exp(others - shift)
    total = exponentials.sum(1, keepdim=True)
    return odds_of_sums(own, shift, total), exponentials, torch.where(total == 0, 1.0, total)


def odds_of_sums(own: Tensor, shift: Tensor, total: Tensor) -> Tensor:
    """Return the log-odds of a class from the sum of the exponentials of the others.

    Args:
        own: The logit of the class.
        shift: What was subtracted from the others, a constant.
        total: The sum of their exponentials.

    Returns:
        ``own - shift - log(total)``, in double precision where the device has it.
    """
    alone = total == 0  # no other class, or none with a finite logit
    total = torch.where(alone, 1.0, total)
    own, shift = in_double(own), in_double(shift)
    nothing = zero_unless_diverged(own)  # a class with an infinite logit must not pass for a certain one
    odds = own - shift - torch.log(total) + nothing
    return torch.where(alone, torch.inf + own + nothing, odds)  # NaN where no class is possible


class _LogOdds(torch.autograd.Function):
    """For torch.compile: what the derivative needs is kept, where a compiler would compute all exponentials once more."""

    @staticmethod
    def forward(logits: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        odds, exponentials, total = odds_against(logits.gather(1, index), logits.scatter(1, index, -torch.inf))
        return odds, (exponentials / -total).scatter(1, index, 1.0)

    @staticmethod
    def setup_context(ctx: Any, _: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.save_for_backward(output[1])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: None) -> tuple[Tensor, None]:
        slope: Tensor = ctx.saved_tensors[0]
        return grad.to(slope.dtype) * slope, None


def zero_unless_diverged(logits: Tensor) -> Tensor:
    """Return 0 for every logit that is finite or -inf, and NaN for the others, as cross-entropy does.

    Args:
        logits: Any logits.

    Returns:
        A tensor of the same shape.

    >>> zero_unless_diverged(torch.tensor([1.0, -torch.inf, torch.inf]))
    tensor([0., 0., nan])
    """
    logits = logits.clamp_min(torch.finfo(logits.dtype).min)  # -inf is the logit of an impossible class
    return logits - logits


def unless_diverged(logits: Tensor) -> Tensor:
    """Return the logits, of which infinite ones are NaN, and so is every gradient that goes through them.

    Args:
        logits: Any logits.

    Returns:
        A tensor of the same shape.

    >>> unless_diverged(torch.tensor([1.0, -torch.inf, torch.inf]))
    tensor([1., -inf, nan])
    """
    return logits + zero_unless_diverged(logits.detach())


def surprises(logits: Tensor) -> Tensor:
    """Return ``-log p`` of every class, to the last digit for the most probable one, too.

    Args:
        logits: ``(N, C, ...)``.

    Returns:
        Numbers of the same shape.

    >>> surprises(torch.tensor([[40.0, 0.0]]))
    tensor([[4.2484e-18, 4.0000e+01]])
    """
    if is_stand_in(logits):
        return as_one_operation(surprises, logits)
    top = logits.detach().argmax(1, keepdim=True)
    gaps = logits - entry(logits, top)  # a large number common to all logits is gone before anything is rounded
    if logits.shape[1] == 1:
        return gaps
    # Only the largest probability can be close to 1; it is taken from the others.
    others = with_entry(gaps, top, -torch.inf).logsumexp(1, keepdim=True)
    return with_entry(-torch.log_softmax(gaps, 1), top, softplus(others))
