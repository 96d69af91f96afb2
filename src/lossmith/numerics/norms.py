"""Lengths of vectors that neither overflow nor divide by zero."""

import math

import torch
from torch import Tensor

__all__ = ["inverse_norm"]


def inverse_norm(vectors: Tensor, dim: int) -> Tensor:
    """Return ``1 / ||v||`` along a dimension, which is kept with size 1; a vector of zeros counts as one of length 1.

    Such a vector has no direction. Dividing it by 1 rather than by some tiny number keeps its gradient about as large as that of
    other vectors, so that a layer that starts at zero can get away from it.

    Args:
        vectors: Vectors along a dimension.
        dim: That dimension.

    Returns:
        Reciprocal lengths.

    >>> inverse_norm(torch.tensor([[3e30, 4e30], [0.0, 0.0]]), 1)
    tensor([[2.0000e-31],
            [1.0000e+00]])
    """
    # Squares of vectors whose largest entry is 1 never overflow. The scale cancels, and so has no gradient.
    largest = vectors.detach().abs().amax(dim, keepdim=True)
    has_no_direction = largest < math.sqrt(torch.finfo(vectors.dtype).tiny)
    inverse_scale = 1 / torch.where(has_no_direction, 1.0, largest)
    square = (vectors * inverse_scale).square().sum(dim, keepdim=True)
    return inverse_scale * torch.where(has_no_direction, 1.0, square).rsqrt()
