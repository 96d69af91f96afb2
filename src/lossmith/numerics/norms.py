"""Lengths of vectors that neither overflow nor divide by zero."""

import math

import torch
from torch import Tensor

from lossmith.numerics.softmax import values_are_at_hand

__all__ = ["Directions", "inverse_norm", "sum_of_squares"]

# For a norm torch adds up squares one after another, in at least 8 sums where they are adjacent: not too many at a time.
_LONGEST_NORM = 128
# So does the gradient of normalised weights with products, whose sum may then be off by 2**-18 of its largest terms.
_LONGEST_PULL = 1024
# The third power of norms up to this and down to its reciprocal is a number in single precision.
_MODERATE = 1e10
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
    if values_are_at_hand(vectors) and vectors.numel():
        norm = _norm(vectors, dim)
        if _have_direction(norm):
            return norm.reciprocal_()
    # Squares of vectors whose largest entry is 1 never overflow. The scale cancels, and so has no gradient.
    largest = vectors.detach().abs().amax(dim, keepdim=True)
    has_no_direction = largest < math.sqrt(torch.finfo(vectors.dtype).tiny)
    inverse_scale = 1 / torch.where(has_no_direction, 1.0, largest)
    square = (vectors * inverse_scale).square().sum(dim, keepdim=True)
    return inverse_scale * torch.where(has_no_direction, 1.0, square).rsqrt()


def _norm(vectors: Tensor, dim: int) -> Tensor:
    if vectors.shape[dim] > _LONGEST_NORM:
        return sum_of_squares(vectors, dim).sqrt_().unsqueeze(dim)
    norm: Tensor = torch.linalg.vector_norm(vectors, 2, dim, keepdim=True)
    return norm


def _have_direction(norm: Tensor) -> bool:
    """Whether no square was too large, or so small that the others cannot be exact."""
    return _are_between(math.sqrt(torch.finfo(norm.dtype).tiny), norm, math.inf)


def _are_between(low: float, tensor: Tensor, high: float) -> bool:
    smallest, largest = torch.aminmax(tensor)
    return smallest.item() > low and largest.item() < high


class Directions:
    """Vectors of one length that point where the rows of ``vectors``, ``(N, C, ...)``, do.

    >>> Directions(torch.tensor([[3.0, 4.0]]), length=10.0).scaled
    tensor([[6., 8.]])
    """

    def __init__(self, vectors: Tensor, length: float) -> None:
        self._vectors = vectors
        self._length = length
        self._inverse = inverse_norm(vectors, 1)
        self.scaled = vectors * (self._inverse * length)

    def pull_back(self, grad: Tensor, share: float) -> Tensor:
        """Return ``share`` times the gradient with respect to the vectors, from that with respect to the scaled ones.

        It is ``length / ||v||`` times what of ``grad`` is at right angles to ``v``: ``g - v (v . g) / ||v||**2``. Where ``v`` is
        0, ``||v||`` stands for 1, a constant, so that the same formula holds.
        """
        vectors, inverse, length = self._vectors, self._inverse, self._length * share
        if self._has_one_operation():
            lengths = vectors.new_full((len(vectors), 1), length)
            backward = torch.ops.aten._weight_norm_interface_backward.default
            across: Tensor = backward(grad.contiguous(), vectors, lengths, inverse.reciprocal(), 0)[0]
            return across
        along = inverse * (vectors * grad).sum(1, keepdim=True)
        return torch.addcmul(grad, vectors, -inverse * along) * (inverse * length)

    def _has_one_operation(self) -> bool:
        """Whether the gradient of normalised weights, which torch has, is that of these vectors to the last digits."""
        vectors = self._vectors
        if vectors.dim() != 2 or vectors.shape[1] > _LONGEST_PULL or not vectors.is_contiguous():
            return False
        return values_are_at_hand(vectors) and vectors.numel() > 0 and _are_between(1 / _MODERATE, self._inverse, _MODERATE)


def sum_of_squares(vectors: Tensor, dim: int) -> Tensor:
    """Return ``||v||**2`` along a dimension, in one pass where no gradient is recorded.

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
