"""The smooth top-k loss."""

import sys
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lossmith.kernels.cpu.evaluation import Evaluation, Kernel, in_blocks
from lossmith.kernels.cpu.subsets.expected import expected_topk
from lossmith.kernels.cpu.subsets.smooth_kth import smooth_kth_without
from lossmith.kernels.cpu.subsets.weight_powers import doubles
from lossmith.numerics.subsets.marginals import MOST_POWER_SUMS
from lossmith.numerics.subsets.sums import Doubles

__all__ = ["smooth_topk"]


def smooth_topk(target: Tensor, *, k: int, tau: float, margin: float) -> Kernel | None:
    """Return the kernel; with a factor for every class a large k has none."""
    if target.is_floating_point():
        return _of_rows(partial(_expected, k=k, tau=tau, margin=margin)) if k <= MOST_POWER_SUMS else None

    def kernel(logits: Tensor, target: Tensor, share: float) -> Evaluation:
        evaluate = partial(_evaluate, k=k, tau=tau, margin=margin, share=share)
        # Power sums are walked over in blocks by themselves.
        return evaluate(logits, target) if k <= MOST_POWER_SUMS else in_blocks(evaluate, logits, target)

    return _of_rows(kernel)


def _of_rows(kernel: Kernel) -> Kernel:
    """Return the kernel for logits ``(N, C, ...)``, given one for ``(N, C)``."""

    def of_rows(logits: Tensor, target: Tensor, share: float) -> Evaluation:
        if logits.dim() == 2:
            return kernel(logits, target, share)
        rows = logits.movedim(1, -1)
        labels = target.movedim(1, -1).flatten(0, -2) if target.is_floating_point() else target.flatten()
        found = kernel(rows.flatten(0, -2), labels, share)
        direction = found.direction.view(rows.shape).movedim(-1, 1)
        return found._replace(losses=found.losses.view(rows.shape[:-1]), direction=direction)

    return of_rows


def _expected(logits: Tensor, target: Tensor, _: float, **parameters: Any) -> Evaluation:
    def evaluate(logits: Tensor, factors: Tensor, _: Tensor | None) -> Evaluation:
        with np.errstate(all="ignore"):  # what is not a number is handed on
            return expected_topk(logits, factors, **parameters)

    return in_blocks(evaluate, logits, target)


def _evaluate(
    logits: Tensor, target: Tensor, _: Tensor | None = None, *, k: int, tau: float, margin: float, share: float
) -> Evaluation:
    """The loss is ``tau softplus(u)``, u the lead over the target of the smooth k-th largest of the other scores, over tau."""
    index, scale = target.unsqueeze(1), k * tau
    own = doubles(logits.gather(1, index)[:, 0])
    with np.errstate(all="ignore"):  # what is not a number is handed on
        kth = smooth_kth_without(logits, index, k, scale)
        excess = (kth.reference - own + _zero_unless_diverged(own) + k * margin) / scale + kth.excess
        losses = tau * (np.maximum(excess, 0) + np.log1p(np.exp(-np.abs(excess))))
        factor = share / k / (1 + np.exp(-excess))
        gradient = kth.gradient(factor)
    own_gradient = torch.from_numpy(-factor).to(logits.dtype).unsqueeze(1)
    return Evaluation(torch.from_numpy(losses).to(logits.dtype), gradient.scatter_(1, index, own_gradient), has_share=True)


def _zero_unless_diverged(own: Doubles) -> Doubles:
    """Return 0 for finite numbers and -inf, which is the score of an impossible class, else NaN."""
    bounded: Doubles = np.maximum(own, -sys.float_info.max)
    return bounded - bounded
