"""Which precision the few numbers of a row are kept in."""

import torch
from torch import Tensor

__all__ = ["in_double", "rounded"]


def rounded(tensor: Tensor, like: Tensor) -> Tensor:
    """Return the tensor in the precision of another; a conversion of what has it already would cost as much as an addition."""
    return tensor if tensor.dtype == like.dtype else tensor.to(like.dtype)


def in_double(tensor: Tensor) -> Tensor:
    """Return the tensor in double precision, or as it is on a device that has none."""
    return tensor if tensor.device.type == "mps" else tensor.to(torch.float64)
