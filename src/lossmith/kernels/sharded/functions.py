"""Functions that formulas keep whole, where classes are spread over processes: with few sums over these."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from lossmith.kernels.sharded.along_classes import top_of
from lossmith.kernels.sharded.collectives import added_up, shared
from lossmith.numerics.class_shares import tail_places
from lossmith.numerics.known_slope import with_slope
from lossmith.numerics.normalizer import normalize
from lossmith.numerics.precision import has_double
from lossmith.numerics.softmax import log_odds, odds_of_sums, surprises
from lossmith.numerics.subsets.marginals import MOST_POWER_SUMS, absence_of_each, log_odds_of_absence
from lossmith.numerics.tempered import TemperedProbs, escort_pullback, power, probs_and_logs, tempered_probs

__all__ = ["WHOLE_FUNCTIONS"]

Rows = Any
"""A :class:`lossmith.kernels.sharded.rows.ShardedRows`, which is made of what is here."""


def _log_odds(rows: Rows, index: Tensor) -> Tensor:
    """Two sums over processes: the largest of the others, and then their exponentials beside the logit of the class."""
    place, is_here = rows.shard.local(index)
    if rows.shard.here:
        own = torch.where(is_here, rows.local.gather(1, place), 0.0)
        others = rows.local.masked_fill(_is_at(rows.local, place, is_here), -torch.inf)
    else:
        own, others = torch.zeros_like(index, dtype=rows.dtype), rows.local
    shift = top_of(rows.like(others))
    shift = torch.where(shift == -torch.inf, 0.0, shift)
    total = torch.exp(others - shift).sum(1, keepdim=True)
    own, total = torch.split(added_up(torch.cat([own, total], 1), rows.shard), 1, 1)
    return odds_of_sums(own, shift, total)


def _is_at(local: Tensor, place: Tensor, is_here: Tensor) -> Tensor:
    """Return a mask that is true for one entry of each row, if that is here."""
    return torch.zeros_like(local, dtype=torch.bool).scatter(1, place, is_here)


def _surprises(rows: Rows) -> Rows:
    """``-log p`` of every class; only the largest probability can be close to 1, and is taken from the sum of the others.

    Where two processes have a class with the largest logit, no probability is above 1/2, and none needs to be.
    """
    top, local = top_of(rows), rows.local
    gaps = local - top
    exponentials = gaps.exp()
    is_top = _is_first_top(gaps.detach())
    sums = [exponentials.masked_fill(is_top, 0.0), exponentials, is_top.to(local.dtype)]
    both = torch.cat([each.sum(1, keepdim=True) for each in sums], 1)
    others, total, number = torch.split(added_up(both, rows.shard), 1, 1)
    is_alone = (number == 1) & is_top
    plain = shared(total, rows.shard).log() - gaps
    # The gap is 0 there, but its derivative counts.
    exact = torch.log1p(shared(others, rows.shard) * torch.exp(-torch.where(is_alone, gaps, 0.0)))
    return rows.like(torch.where(is_alone, exact, plain))


def _is_first_top(gaps: Tensor) -> Tensor:
    if not gaps.shape[1]:
        return torch.zeros_like(gaps, dtype=torch.bool)
    place = gaps.argmax(1, keepdim=True)
    return _is_at(gaps, place, gaps.gather(1, place) == 0)


def _with_slope(x: Rows, value: Rows, slope: Any) -> Rows:
    return x.like(with_slope(x.local, value.local, slope if isinstance(slope, float | int) else slope.local))


def _tempered_probs(rows: Rows, t: float) -> TemperedProbs:
    probs, log_probs = _Tempered.apply(rows.local, rows, t)  # type: ignore[no-untyped-call]
    return TemperedProbs(rows.like(probs), rows.like(log_probs))


class _Tempered(torch.autograd.Function):
    """Newton's method adds up two numbers of each row over the processes for every step."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, rows: Rows, t: float) -> tuple[Tensor, Tensor]:
        rows = rows.like(local.detach())
        wide = rows.double() if t < 1 and has_double(local) else rows
        found: Any = probs_and_logs(normalize(wide, t), local.dtype)
        ctx.like, ctx.t = rows.like, t
        ctx.save_for_backward(found.log_probs.local)
        ctx.set_materialize_grads(False)
        return found.probs.local, found.log_probs.local

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, log_grad: Tensor | None) -> tuple[Tensor, None, None]:
        log_probs = ctx.like(ctx.saved_tensors[0])
        pairs = ((grad, ctx.t), (log_grad, ctx.t - 1))
        pulls = [ctx.like(each) * power(log_probs, exponent) for each, exponent in pairs if each is not None]
        pull: Any = sum(pulls[1:], start=pulls[0])
        gradient: Any = escort_pullback(pull, log_probs, ctx.t)
        return gradient.local, None, None


def _log_odds_of_absence(rows: Rows, k: int, scale: float) -> Rows:
    if k > MOST_POWER_SUMS:
        raise NotImplementedError(f"k must be <= {MOST_POWER_SUMS} where classes are spread over processes, got {k}.")
    return absence_of_each(rows, k, scale)


def _tail_places(rows: Rows) -> Tensor:
    """Return the places of all classes, which every process knows."""
    return tail_places(torch.empty(1, *rows.shape[1:2], *[1] * (rows.dim() - 2), dtype=rows.dtype, device=rows.device))


WHOLE_FUNCTIONS: Mapping[Callable[..., Any], Callable[..., Any]] = {
    log_odds: _log_odds,
    log_odds_of_absence: _log_odds_of_absence,
    surprises: _surprises,
    tail_places: _tail_places,
    tempered_probs: _tempered_probs,
    with_slope: _with_slope,
}
