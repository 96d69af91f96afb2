"""What surrounds the losses of examples: smoothed targets, weights along the classes, the reduction, and its precision."""

import torch
from torch import Tensor

from lossmith.losses.contract.options import Reduction
from lossmith.torch_compat import is_autocast_enabled

__all__ = ["along_classes", "output_dtype", "reduce", "smooth"]


def reduce(losses: Tensor, share: Tensor | None, reduction: Reduction) -> Tensor:
    """Return the losses, their sum, or their mean by each example's share of it; None stands for equal shares."""
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    return losses.mean() if share is None else losses.sum() / share.sum()


def smooth(probabilities: Tensor, smoothing: float) -> Tensor:
    """Return probabilities of which a share is spread over all classes."""
    if smoothing == 0:
        return probabilities
    return probabilities * (1 - smoothing) + smoothing / probabilities.shape[1]


def along_classes(weight: Tensor | None, logits: Tensor) -> Tensor | None:
    """Return one factor per class in a shape that broadcasts to ``(N, C, ...)``."""
    return None if weight is None else weight.to(logits.dtype).view(-1, *[1] * (logits.dim() - 2))


def output_dtype(logits: Tensor, target: Tensor) -> torch.dtype:
    """Return what torch's cross-entropy returns: single precision where autocast is on, else what the inputs promote to."""
    dtype = torch.promote_types(logits.dtype, target.dtype) if target.is_floating_point() else logits.dtype
    kind = logits.device.type
    return torch.promote_types(dtype, torch.float32) if is_autocast_enabled(kind) else dtype
