"""Lengths of the rows of eager tensors, in one pass where they are moderate."""

import torch
from torch import Tensor

from lossmith.numerics.norms import inverse_norm
from lossmith.torch_compat import weight_norm_backward

__all__ = ["Directions", "sum_of_squares"]

# For a norm torch adds up squares one after another, in at least 8 sums where they are adjacent: not too many at a time.
_LONGEST_NORM = 128
# So does the gradient of normalised weights with products, whose sum may then be off by 2**-17 of its largest terms.
_LONGEST_PULL = 1024
# The third power of norms up to this and down to its reciprocal is a number in single precision, with room for what it divides.
_MODERATE = 1e6
# So many squares find room in the cache, where they are added up at no cost.
_CACHED = 1 << 19


def _norm(vectors: Tensor, dim: int) -> Tensor:
    """Return the norm, as that of the norms of equal pieces if there are such."""
    dim %= vectors.dim()
    length = vectors.shape[dim]
    pieces = -(-length // _LONGEST_NORM)
    if length % pieces:
        return sum_of_squares(vectors, dim).sqrt_().unsqueeze(dim)
    shape = vectors.shape
    parts = vectors.view(*shape[:dim], pieces, length // pieces, *shape[dim + 1 :])
    norms = vectors if pieces == 1 else torch.linalg.vector_norm(parts, 2, dim + 1)
    norm: Tensor = torch.linalg.vector_norm(norms, 2, dim, keepdim=True)
    return norm


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
        self._norm = norm = self._moderate_norm()
        if norm is None:
            self._inverse = inverse_norm(vectors, 1)
            self.scaled = vectors * (self._inverse * length)
        else:
            self.scaled = vectors * (torch.scalar_tensor(length, dtype=norm.dtype, device=norm.device) / norm)

    @property
    def are_moderate(self) -> bool:
        """Whether all vectors have such lengths that ``pull_back`` takes numbers up to 1e16 and factors down to 1e-22."""
        return self._norm is not None

    def _moderate_norm(self) -> Tensor | None:
        """Return the norms, unless some are so large or so small that their powers are out of range."""
        vectors = self._vectors
        if vectors.dim() != 2 or not (vectors.numel() and vectors.is_contiguous()):
            return None
        norm = _norm(vectors, 1)
        return norm if _are_between(1 / _MODERATE, norm, _MODERATE) else None

    def pull_back(self, grad: Tensor, factor: Tensor | float) -> Tensor:
        """Return ``factor / ||v||`` times the part of ``grad`` that is orthogonal to ``v``; the factor may be one for each row.

        That is ``g - v (v . g) / ||v||**2``, and the gradient with respect to the vectors, if ``grad`` is that with respect to
        the scaled ones and the factor their length. Where ``v`` is 0, ``||v||`` stands for the constant 1, and the same
        formula holds.
        """
        vectors = self._vectors
        if self._norm is not None and vectors.shape[1] <= _LONGEST_PULL and weight_norm_backward is not None:
            # Networks with normalised weights have one operation for all of this, in place of four: a tenth of logit-norm's time.
            lengths = factor if isinstance(factor, Tensor) else torch.full_like(self._norm, factor)
            return weight_norm_backward(grad.contiguous(), vectors, lengths, self._norm, 0)[0]
        inverse = self._inverse if self._norm is None else self._norm.reciprocal()
        along = inverse * (vectors * grad).sum(1, keepdim=True)
        return torch.addcmul(grad, vectors, -inverse * along) * (inverse * factor)


def sum_of_squares(vectors: Tensor, dim: int) -> Tensor:
    """Return ``||v||**2`` along a dimension, in one pass.

    >>> sum_of_squares(torch.tensor([3.0, 4.0]), 0)
    tensor(25.)
    """
    is_long = vectors.shape[dim] > _LONGEST_NORM
    if vectors.stride(dim) != 1 or (is_long and vectors.numel() <= _CACHED):
        return vectors.square().sum(dim)
    count, left = divmod(vectors.shape[dim], _LONGEST_NORM)
    total: Tensor = torch.linalg.vector_norm(vectors.narrow(dim, -left, left), 2, dim).square_()
    if count:
        pieces = torch.unflatten(vectors.narrow(dim, 0, count * _LONGEST_NORM), dim, (count, _LONGEST_NORM))
        total += torch.linalg.vector_norm(pieces, 2, dim + 1).square_().sum(dim)
    return total
