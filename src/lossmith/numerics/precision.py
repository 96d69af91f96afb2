"""Which precision the few numbers of a row are kept in."""

import torch
from torch import Tensor

__all__ = ["has_double", "in_double"]


def has_double(tensor: Tensor) -> bool:
    """Return whether the tensor's device computes in double precision."""
    return tensor.device.type != "mps"


def in_double(tensor: Tensor) -> Tensor:
    """Return the tensor in double precision, or as it is on a device that has none."""
    return tensor.to(torch.float64) if has_double(tensor) else tensor
