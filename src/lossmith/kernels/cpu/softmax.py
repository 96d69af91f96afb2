"""Torch's softmax where it is fast, and what its rounding is."""

import torch
from torch import Tensor

__all__ = ["SHORT_SUM", "is_off", "softmax", "sums_are_long"]

# torch's softmax adds up exponentials one after another, in 8 sums where classes are adjacent and else in one. If they are many
# and one is large, its rounding at each step is an error common to all probabilities: in single precision above 2**-21 for more.
_LONGEST_SUM = 8
# So few are rounded ten times at most, however they are added up.
SHORT_SUM = 11
_ROUNDING = {dtype: 4 * torch.finfo(dtype).eps for dtype in (torch.float32, torch.float64)}
# Classes that are adjacent, but too few to fill a vector of the processor, cost torch 0.18 microseconds a row; along another
# dimension it fills vectors with rows. At (128, 10) that takes 8 microseconds instead of 23, with the copies there and back.
_FEW_CLASSES = 16 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 8
# Fewer rows are not worth the copies.
_MANY_ROWS = 48


def softmax(logits: Tensor) -> Tensor:
    """Return the softmax of logits ``(N, C, ...)`` along the classes, in a buffer of its own."""
    if _is_faster_by_columns(logits):
        return torch.softmax(logits.t(), 0).t().contiguous()
    return torch.softmax(logits, 1)


def _is_faster_by_columns(logits: Tensor) -> bool:
    """Return whether the softmax of ``(N, C)`` takes less time when the rows are columns."""
    return logits.shape[1] < _FEW_CLASSES and logits.shape[0] >= _MANY_ROWS and logits.dim() == 2


def sums_are_long(logits: Tensor) -> bool:
    """Return whether the softmax adds up so many exponentials that its rounding counts."""
    in_eight_sums = logits.dim() == 2 and not _is_faster_by_columns(logits)
    return logits.shape[1] > _LONGEST_SUM * (8 if in_eight_sums else 1)


def is_off(total: Tensor) -> bool:
    """Return whether probabilities that should add up to 1 do not."""
    smallest, largest = torch.aminmax(total)
    rounding = _ROUNDING[total.dtype]
    return not (smallest.item() > 1 - rounding and largest.item() < 1 + rounding)
