"""Cross-entropy with smoothed targets."""

import torch
from torch import Tensor

from lossmith.kernels.cpu.classes import sum_of_surprises
from lossmith.kernels.cpu.evaluation import Evaluation, Kernel, in_blocks
from lossmith.kernels.cpu.target import mean_gap, rounded, target_and_others

__all__ = ["label_smoothing"]


def label_smoothing(target: Tensor, *, alpha: float) -> Kernel:
    """Return the kernel for class indices, or for a factor per class."""
    if target.is_floating_point():
        return lambda logits, factors, _: in_blocks(lambda *rows: _every_class(alpha, *rows), logits, factors)
    return lambda logits, target, share: _target(alpha, logits, target, share)


def _target(alpha: float, logits: Tensor, target: Tensor, share: float) -> Evaluation:
    """The gradient is ``p - alpha / K - (1 - alpha) onehot``, divided by ``1 - alpha``."""
    num_classes, index = logits.shape[1], target.unsqueeze(1)
    prob, others = target_and_others(logits, index)
    surprise = prob.surprise
    losses = torch.add(surprise, surprise + mean_gap(logits, index, prob), alpha=alpha / (1 - alpha))
    scale = share / (1 - alpha)
    entry = torch.rsub(prob.rest, scale * alpha * (num_classes - 1) / num_classes, alpha=scale)
    offset = torch.scalar_tensor(-scale * alpha / num_classes, dtype=logits.dtype, device="cpu")
    direction = torch.add(offset, others, alpha=scale, out=others).scatter_(1, index, rounded(entry, logits))
    return Evaluation(rounded(losses, logits).squeeze(1), direction, has_share=True)


def _every_class(alpha: float, logits: Tensor, factors: Tensor, place: Tensor | None) -> Evaluation:
    """A factor per class is smoothed into one for cross-entropy."""
    smoothed = factors + alpha / (1 - alpha) * factors.mean(1, keepdim=True)
    losses, descent = sum_of_surprises(logits, smoothed, place)
    return Evaluation(losses.squeeze(1), descent, -1.0)
