"""The smooth top-k loss."""

import torch
from torch import Tensor

from lossmith.kernels.cpu.evaluation import Evaluation, Kernel, in_blocks
from lossmith.kernels.cpu.smooth_kth import smooth_kth_without
from lossmith.numerics.elementary import softplus
from lossmith.numerics.precision import in_double
from lossmith.numerics.softmax import zero_unless_diverged
from lossmith.numerics.subsets.marginals import MOST_POWER_SUMS

__all__ = ["smooth_topk"]


def smooth_topk(target: Tensor, *, k: int, tau: float, margin: float) -> Kernel | None:
    """Return the kernel for class indices; a factor per class has none."""
    if target.is_floating_point():
        return None

    def kernel(logits: Tensor, target: Tensor, share: float) -> Evaluation:
        if logits.dim() > 2:
            moved = logits.movedim(1, -1)
            found = kernel(moved.flatten(0, -2), target.flatten(), share)
            return Evaluation(found.losses.view(target.shape), found.direction.view(moved.shape).movedim(-1, 1))
        if k <= MOST_POWER_SUMS:  # walks in blocks by itself
            return _evaluate(k, tau, margin, logits, target, None)
        return in_blocks(lambda *rows: _evaluate(k, tau, margin, *rows), logits, target)

    return kernel


def _evaluate(k: int, tau: float, margin: float, logits: Tensor, target: Tensor, _: Tensor | None) -> Evaluation:
    """The loss is ``tau softplus(u)``, u the lead over the target of the smooth k-th largest of the other scores, over tau."""
    index, scale, logits = target.unsqueeze(1), k * tau, _where_possible(k, logits)
    kth = smooth_kth_without(logits, index, k, scale)
    own = in_double(logits.gather(1, index))
    lead = kth.reference - own + zero_unless_diverged(own) + k * margin
    excess = lead / scale + kth.excess
    factor = torch.sigmoid(excess) / k
    gradient = kth.gradient(factor).scatter_(1, index, -factor.to(logits.dtype))
    return Evaluation((tau * softplus(excess)).squeeze(1).to(logits.dtype), gradient)


def _where_possible(k: int, logits: Tensor) -> Tensor:
    """Return the logits, and NaN in rows of which fewer than k are above -inf; most often a look at the smallest is enough."""
    if logits.numel() == 0 or logits.amin().item() > -torch.inf:
        return logits
    kth = logits.topk(k, 1).values[:, -1:]
    return torch.where(kth == -torch.inf, torch.nan, logits)
