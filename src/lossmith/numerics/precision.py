"""Which precision the few numbers of a row are kept in."""

import torch
from torch import Tensor

__all__ = ["in_double"]


def in_double(tensor: Tensor) -> Tensor:
    """Return the tensor in double precision, or as it is on a device that has none."""
    return tensor if tensor.device.type == "mps" else tensor.to(torch.float64)
