"""Similarity of representations: linear centred kernel alignment (CKA).

CKA compares how two sets of features relate the same examples to one another, whatever their dimensions, rotation and scale.
It is a cosine between Gram matrices, ``<K, L> / sqrt(<K, K> <L, L>)``. Centred on both sides, that is the index of Kornblith et
al. 2019. Centred so that each product is an unbiased estimate (Song et al. 2012), it can be averaged over small batches (Nguyen,
Raghu and Kornblith 2021), for data that do not fit in memory.

A representation that does not vary is similar to nothing: its CKA is 0, also with itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from lossmith.analysis.arrays import Array, Numbers, as_matrix, check_same_rows
from lossmith.analysis.layers import InputBatches, LayerReader, input_batches

__all__ = ["LayerSimilarity", "MinibatchCKA", "layer_similarity", "linear_cka", "unbiased_gram"]

# Variation of this many units in the last place, relative to the size of what varies, is rounding.
_ROUNDING = 32


def linear_cka(first: Numbers, second: Numbers, *, unbiased: bool = False) -> float:
    """Return the linear CKA of two sets of features ``(n, d1)`` and ``(n, d2)`` of the same examples.

    Between 0 and 1. With ``unbiased`` the products are free of the bias that makes any two representations similar when there are
    few examples for many features; it may then be slightly negative, and needs 4 examples.

    Args:
        first: Features of the first model, ``(n, d1)``.
        second: Features of the second model for the same examples, ``(n, d2)``.
        unbiased: Whether to take the unbiased estimate.

    Returns:
        The similarity.

    Raises:
        ValueError: If numbers of examples differ, a number is not finite, or an unbiased estimate lacks its 4 examples.

    >>> features = [[1.0, 0.0], [0.0, 2.0], [3.0, 1.0], [0.0, 0.0]]
    >>> rotated_and_scaled = [[0.0, 5.0], [-10.0, 0.0], [-5.0, 15.0], [0.0, 0.0]]
    >>> round(linear_cka(features, rotated_and_scaled), 12)
    1.0

    References: Kornblith, Norouzi, Lee and Hinton 2019; Song et al. 2012 for the unbiased estimate.
    """
    x, y = (_centred(as_matrix("linear_cka", name, values)) for name, values in (("first", first), ("second", second)))
    check_same_rows("linear_cka", "second", len(y), len(x))
    products = _gram_products(x, y)
    if unbiased:
        if len(x) < 4:
            raise ValueError(f"linear_cka: the unbiased estimate needs at least 4 examples, got {len(x)}.")
        products = _without_diagonals(products, np.square(x).sum(1), np.square(y).sum(1))
    return float(_alignment(np.array(products.cross), np.array(products.first), np.array(products.second)))


class MinibatchCKA:
    """CKA of every layer of one model with every layer of another, from one batch after another, in constant memory.

    >>> random = torch.Generator().manual_seed(0)
    >>> cka = MinibatchCKA()
    >>> for _ in range(10):
    ...     features = torch.randn(50, 3, generator=random)
    ...     cka = cka.update([features, features**2], [features, 2 * features])
    >>> cka.result().round(2)
    array([[ 1.  ,  1.  ],
           [-0.01, -0.01]])

    Batches of fewer than 4 examples have no unbiased estimate and are left out. Reference: Nguyen, Raghu and Kornblith 2021.
    """

    def __init__(self) -> None:
        self._cross: Array | None = None
        self._first: Array = np.zeros(0)
        self._second: Array = np.zeros(0)

    def update(self, first: Sequence[Numbers], second: Sequence[Numbers]) -> "MinibatchCKA":
        """Add a batch: the features ``(n, ...)`` of each layer of both models, for the same examples.

        Args:
            first: The features of each layer of the first model, ``(n, ...)`` each.
            second: The same for the second model.

        Returns:
            The same object, so that calls can be chained.

        Raises:
            ValueError: If a model has no layers, numbers of examples or of layers differ, or a feature is not finite.
        """
        grams = [[unbiased_gram(_as_tensor(features)) for features in layers] for layers in (first, second)]
        return self.update_grams(*grams)

    def update_grams(self, first: Sequence[Array], second: Sequence[Array]) -> "MinibatchCKA":
        """Add a batch by the :func:`unbiased_gram` of each layer, ``(n, n)``, otherwise as :meth:`update`.

        Args:
            first: The Gram matrix of each layer of the first model.
            second: The same for the second model.

        Returns:
            The same object.
        """
        if not first or not second:
            raise ValueError("MinibatchCKA: both models must have layers, got none.")
        rows = len(first[0])
        for gram in (*first, *second):
            check_same_rows("MinibatchCKA", "each layer", len(gram), rows)
        if rows < 4:
            return self
        a, b = (np.stack([gram.ravel() for gram in grams]) for grams in (first, second))
        weight = 1.0 / (rows - 3)  # rows times the unbiased estimate, so that every example counts the same
        if self._cross is None:
            self._cross, self._first, self._second = np.zeros((len(a), len(b))), np.zeros(len(a)), np.zeros(len(b))
        self._cross += weight * (torch.from_numpy(a) @ torch.from_numpy(b).T).numpy()
        self._first += weight * np.square(a).sum(1)
        self._second += weight * np.square(b).sum(1)
        return self

    def result(self) -> Array:
        """Return the CKA of every two layers.

        Returns:
            ``(layers of the first, layers of the second)``.

        Raises:
            ValueError: If no batch had at least 4 examples.
        """
        if self._cross is None:
            raise ValueError("MinibatchCKA: no batch had at least 4 examples.")
        return _alignment(self._cross, self._first[:, None], self._second[None, :])


@dataclass(frozen=True, eq=False)
class LayerSimilarity:
    """CKA between the layers of two models."""

    first: tuple[str, ...]
    """The layers of one model, in the order in which they run."""
    second: tuple[str, ...]
    """Those of the other."""
    cka: Array
    """``(len(first), len(second))``."""


def layer_similarity(
    first: nn.Module,
    second: nn.Module,
    inputs: InputBatches,
    *,
    first_layers: Sequence[str] | None = None,
    second_layers: Sequence[str] | None = None,
    batch_size: int = 64,
) -> LayerSimilarity:
    """Return the minibatch CKA of every layer of one model with every layer of another (figure 3 of Kornblith et al. 2021).

    ``inputs`` are a tensor, or batches as a ``DataLoader`` gives them. Layers default to all that contain no others. Of each
    layer only a Gram matrix of the batch is kept.

    Args:
        first: The model of the rows.
        second: The model of the columns.
        inputs: A tensor, or batches as a ``DataLoader`` gives them.
        first_layers: Names as in ``first.named_modules()``.
        second_layers: Names as in ``second.named_modules()``.
        batch_size: The examples of a batch, where ``inputs`` is a tensor; at least 4.

    Returns:
        The similarity of each pair of layers, with their names.

    Raises:
        ValueError: If a layer is unknown or puts out nothing to compare, or no batch has at least 4 examples.

    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> similarity = layer_similarity(model, model, torch.randn(100, 4))
    >>> similarity.first
    ('0', '1', '2')
    >>> np.diag(similarity.cka).round(6)
    array([1., 1., 1.])
    """
    readers = LayerReader(first, unbiased_gram, first_layers), LayerReader(second, unbiased_gram, second_layers)
    cka = MinibatchCKA()
    names: tuple[tuple[str, ...], ...] = ((), ())
    for batch in input_batches(inputs, batch_size):
        grams = [reader(batch) for reader in readers]
        names = tuple(tuple(layers) for layers in grams)
        cka.update_grams(*(list(layers.values()) for layers in grams))
    return LayerSimilarity(names[0], names[1], cka.result())


def unbiased_gram(features: Tensor) -> Array:
    """Return the Gram matrix of features ``(n, ...)`` such that ``sum(K * L) / (n (n - 3))`` is an unbiased estimate.

    The diagonal is 0 and every row sums to 0 (the U-centring of Szekely and Rizzo 2014). It does not depend on where the origin
    of the features is; the first example is taken, which costs one pass, loses no digits to an offset, and makes features that do
    not vary exactly 0. The product is formed in the precision of the features, or in single precision if that is higher.

    Args:
        features: The output of a layer, ``(n, ...)``.

    Returns:
        The centred matrix, ``(n, n)``.

    Raises:
        ValueError: If a feature, or its square, is not finite.
    """
    precision = torch.promote_types(features.dtype, torch.float32)
    rows = features.detach().flatten(1) if features.dim() > 1 else features.detach().unsqueeze(1)
    moved = rows.to(precision) - rows[:1].to(precision)
    gram = (moved @ moved.T).cpu().double()
    if not gram.isfinite().all():
        raise ValueError("unbiased_gram: features must be finite, and their squares, too.")
    rounding = _ROUNDING * torch.finfo(precision).eps
    if len(gram) < 4 or float(gram.diagonal().max()) <= rounding**2 * float(rows[0].double().square().sum()):
        return np.zeros(gram.shape)
    return _u_centred(gram, rounding).numpy()


# In torch and not in NumPy, whose threads would keep waiting for work next to those that the model runs on.
def _u_centred(gram: Tensor, rounding: float) -> Tensor:
    rows = len(gram)
    centred = gram.fill_diagonal_(0.0)
    size = centred.norm()
    sums = centred.sum(1) / (rows - 2)
    centred = centred - (sums[:, None] + sums[None, :] - sums.sum() / (rows - 1))
    centred.fill_diagonal_(0.0)
    return centred if centred.norm() > rounding * size else torch.zeros_like(centred)


def _as_tensor(features: Numbers) -> Tensor:
    tensor = features if isinstance(features, Tensor) else torch.from_numpy(np.asarray(features))
    return tensor if tensor.is_floating_point() else tensor.double()


def _centred(values: Array) -> Array:
    """Return the values less the mean of each column; columns that vary by no more than rounding become 0."""
    moved = values - values[0]
    moved -= moved.mean(0)
    rounding = _ROUNDING * np.finfo(np.float64).eps
    varying = np.abs(moved).max(0) > rounding * np.abs(values).max(0)
    return np.where(varying, moved, 0.0)


class _Products(NamedTuple):
    """Inner products of two Gram matrices K and L."""

    cross: float
    first: float
    second: float


def _gram_products(x: Array, y: Array) -> _Products:
    """Return ``<K, L>, <K, K>, <L, L>`` for ``K = x x'`` and ``L = y y'``, in the smaller of the two spaces.

    ``<x x', y y'> = |x' y|**2``, which has as many entries as there are pairs of features, not of examples.
    """
    rows, a, b = len(x), x.shape[1], y.shape[1]
    if rows * (a + b) < a * a + a * b + b * b:
        blocks = ((x[block] @ x.T, y[block] @ y.T) for block in _blocks(rows))
        return _Products(*np.sum([((k * m).sum(), (k * k).sum(), (m * m).sum()) for k, m in blocks], axis=0).tolist())
    return _Products(_square_of_product(x, y), _square_of_product(x, x), _square_of_product(y, y))


def _blocks(length: int, size: int = 1024) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, length, size))


def _square_of_product(x: Array, y: Array) -> float:
    return float(sum(np.square(x[:, block].T @ y).sum() for block in _blocks(x.shape[1])))


def _without_diagonals(products: _Products, k: Array, m: Array) -> _Products:
    """Return n (n - 3) times the unbiased estimates, from products of centred Gram matrices with diagonals k and m.

    The rows of a centred Gram matrix sum to 0, so those of the matrix without its diagonal sum to ``-k``, and the estimate of
    Song et al. 2012 (equation 5) becomes ``<K, L> - n / (n - 2) k.m + sum(k) sum(m) / ((n - 1) (n - 2))``.
    """
    n = len(k)

    def estimate(product: float, a: Array, b: Array) -> float:
        return float(product - n / (n - 2) * (a @ b) + a.sum() * b.sum() / ((n - 1) * (n - 2)))

    first, second = estimate(products.first, k, k), estimate(products.second, m, m)
    # The estimate for a matrix and itself is a sum of squares; what is below rounding, or below 0, is 0.
    rounding = _ROUNDING * np.finfo(np.float64).eps
    return _Products(
        estimate(products.cross, k, m),
        first if first > rounding * products.first else 0.0,
        second if second > rounding * products.second else 0.0,
    )


def _alignment(cross: Array, first: Array, second: Array) -> Array:
    # Roots are taken before the product, which could overflow.
    size = np.sqrt(first) * np.sqrt(second)
    return np.asarray(np.clip(np.where(size > 0.0, cross / np.where(size > 0.0, size, 1.0), 0.0), -1.0, 1.0))
