"""Lengths of vectors that neither overflow nor divide by zero."""

import math

import torch
from torch import Tensor

from lossmith.numerics.softmax import values_are_at_hand

__all__ = ["inverse_norm", "sum_of_squares"]


_LONGEST_NORM = 128
# So many squares find room in the cache, where they are added up at no cost.
_CACHED = 1 << 19


def inverse_norm(vectors: Tensor, dim: int) -> Tensor:
    """Return ``1 / ||v||`` along a dimension, which is kept with size 1; a vector of zeros counts as one of length 1.

    Such a vector has no direction. Dividing it by 1 instead of by some tiny number keeps its gradient of the size that other
    vectors have, so that a layer that starts at zero can leave it.

    >>> inverse_norm(torch.tensor([[3e30, 4e30], [0.0, 0.0]]), 1)
    tensor([[2.0000e-31],
            [1.0000e+00]])
    """
    lowest = math.sqrt(torch.finfo(vectors.dtype).tiny)
    if values_are_at_hand(vectors) and vectors.numel():
        norm: Tensor = torch.linalg.vector_norm(vectors, 2, dim, keepdim=True)
        smallest, largest_norm = torch.aminmax(norm)
        if smallest.item() > lowest and largest_norm.item() < math.inf:
            return norm.reciprocal_()
    # Squares of vectors whose largest entry is 1 never overflow. The scale cancels, and so has no gradient.
    largest = vectors.detach().abs().amax(dim, keepdim=True)
    has_no_direction = largest < lowest
    inverse_scale = 1 / torch.where(has_no_direction, 1.0, largest)
    square = (vectors * inverse_scale).square().sum(dim, keepdim=True)
    return inverse_scale * torch.where(has_no_direction, 1.0, square).rsqrt()


def sum_of_squares(vectors: Tensor, dim: int) -> Tensor:
    """Return ``||v||**2`` along a dimension, in one pass where no gradient is recorded.

    For a norm torch adds up squares one after another, in at least 8 sums where they are adjacent: not too many at a time.

    >>> sum_of_squares(torch.tensor([3.0, 4.0]), 0)
    tensor(25.)
    """
    is_long = vectors.shape[dim] > _LONGEST_NORM
    if torch.is_grad_enabled() or vectors.stride(dim) != 1 or (is_long and vectors.numel() <= _CACHED):
        return vectors.square().sum(dim)
    count, left = divmod(vectors.shape[dim], _LONGEST_NORM)
    total: Tensor = torch.linalg.vector_norm(vectors.narrow(dim, -left, left), 2, dim).square_()
    if count:
        pieces = torch.unflatten(vectors.narrow(dim, 0, count * _LONGEST_NORM), dim, (count, _LONGEST_NORM))
        total += torch.linalg.vector_norm(pieces, 2, dim + 1).square_().sum(dim)
    return total
