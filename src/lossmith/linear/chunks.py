"""Losses and gradients of a linear layer without its logits: those of a few rows exist at a time."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from lossmith.linear.call import Call, Precision

__all__ = ["Gradients", "Layer", "Wanted", "class_blocks", "evaluated", "rows_at_a_time", "walk", "write_slopes"]

# The logits of a chunk, which become their gradient, and what a loss needs for a part of them take less than a tenth of all.
PARTS = 14
# A loss looks at so many logits at a time on a processor, and finds them in the cache.
CACHED_ELEMENTS = 1 << 19
# Below so many elements dividing rows saves nothing that matters; above so many rows a product of matrices is not faster.
LEAST_ELEMENTS = 1 << 20
MOST_ROWS = {"cpu": 256}
MOST_ROWS_ELSEWHERE = 1024
# Rows are taken by so many, as matrices are multiplied in tiles.
TILE = 16
# Where rows need not be seen as a whole, as large a part of the classes is treated at a time, and so many at least.
LEAST_CLASSES = 1024

Wanted = tuple[bool, bool, bool]
"""Which of the gradients by features, weight and bias are wanted."""


class Layer(NamedTuple):
    """Features ``(N, d)``, weights ``(C, d)`` and biases ``(C,)``, as they are given."""

    features: Tensor
    weight: Tensor
    bias: Tensor | None
    precision: Precision

    def rounded(self) -> "Layer":
        """Return the layer with its tensors as they are multiplied."""
        features, weight, bias = (None if each is None else self.precision.multiplied(each) for each in self[:3])
        assert features is not None
        assert weight is not None
        return Layer(features, weight, bias, self.precision)

    def of_rows(self, rows: slice | Tensor) -> "Layer":
        """Return the layer for some of the features."""
        return self._replace(features=self.features[rows])

    def logits(self) -> Tensor:
        """Return the logits of all features, ``(N, C)``."""
        return F.linear(self.features, self.weight, self.bias)

    def write_logits(self, place: Tensor) -> Tensor:
        """Write the logits to the first rows of a buffer, and return these rows."""
        place = place[: self.features.shape[0]]
        if self.bias is None:
            return torch.mm(self.features, self.weight.T, out=place)
        return torch.addmm(self.bias, self.features, self.weight.T, out=place)


class Gradients(NamedTuple):
    """Gradients by features, weight and bias, or None where one is not wanted; in single precision at least."""

    features: Tensor | None
    weight: Tensor | None
    bias: Tensor | None

    @classmethod
    def zeros(cls, layer: Layer, rows: int, wanted: Wanted) -> "Gradients":
        """Return gradients that others are added to.

        Args:
            layer: The layer.
            rows: How many of its features count.
            wanted: Which gradients are wanted.

        Returns:
            Zeros, in single precision at least.
        """
        given = (layer.features[:rows], *layer[1:3])
        return cls(
            *(_zeros(each) if each is not None and is_wanted else None for each, is_wanted in zip(given, wanted, strict=True))
        )

    def add(self, rows: slice, slope: Tensor, layer: Layer) -> None:
        """Add what some rows contribute.

        Args:
            rows: Which rows.
            slope: The gradient by their logits, ``(R, C)``, in the precision of the weights as they are multiplied.
            layer: The layer with all features, as it is multiplied.
        """
        if self.bias is not None:
            self.bias.add_(slope.sum(0, dtype=self.bias.dtype))
        if self.features is not None:
            self.features[rows] = slope @ layer.weight
        if self.weight is not None:
            _add_product(self.weight, slope, layer.features[rows])


def _zeros(like: Tensor) -> Tensor:
    return torch.zeros_like(like, dtype=torch.promote_types(like.dtype, torch.float32), memory_format=torch.contiguous_format)


def _add_product(total: Tensor, slope: Tensor, features: Tensor) -> None:
    """Add ``slope.T @ features``; products in half precision go through a buffer for some classes at a time."""
    if total.dtype == slope.dtype:
        total.addmm_(slope.T, features)
        return
    for block in class_blocks(total.shape[0]):
        total[block] += slope[:, block].T @ features


def class_blocks(num_classes: int) -> Iterator[slice]:
    """Return the blocks of classes."""
    size = max(LEAST_CLASSES, num_classes // PARTS)
    return (slice(start, min(start + size, num_classes)) for start in range(0, num_classes, size))


def rows_at_a_time(layer: Layer, chunk: int | None) -> int:
    """Return how many rows have logits at a time.

    Args:
        layer: The layer.
        chunk: What the user wants, or None for a size that keeps memory small and products of matrices fast.

    Returns:
        A number of rows, at least 1.
    """
    if chunk is not None:
        return chunk
    rows, classes = layer.features.shape[0], max(1, layer.weight.shape[0])
    few = min(rows // PARTS, MOST_ROWS.get(layer.precision.device, MOST_ROWS_ELSEWHERE))
    few = max(few, LEAST_ELEMENTS // classes, 1)
    return few // TILE * TILE if few > TILE else few


def write_slopes(call: Call, logits: Tensor, weights: Tensor | None = None) -> list[Tensor]:
    """Return losses of some rows, and write their gradient where the logits are.

    Args:
        call: The loss and the targets of these rows.
        logits: Their logits, ``(R, C)``.
        weights: A factor for each row, where losses are not reduced.

    Returns:
        Losses that add up to that of the rows, or of which each is that of some rows.
    """
    size = max(1, CACHED_ELEMENTS // logits.shape[1]) if logits.is_cpu else max(1, logits.shape[0])
    parts = (slice(start, start + size) for start in range(0, logits.shape[0], size))
    return [_write_slope(call.of_rows(rows), logits[rows], None if weights is None else weights[rows]) for rows in parts]


def _write_slope(call: Call, logits: Tensor, weights: Tensor | None) -> Tensor:
    leaf = _wide(logits).detach().requires_grad_()
    with torch.enable_grad():
        value = call(leaf)
    logits.copy_(torch.autograd.grad(value, leaf, weights)[0])
    return value.detach()


def _wide(logits: Tensor) -> Tensor:
    return logits if logits.dtype in (torch.float32, torch.float64) else logits.float()


def evaluated(call: Call, layer: Layer, size: int, _: Gradients) -> list[Tensor]:
    """Return the losses of all rows, by chunks of so many, without gradients."""
    with torch.no_grad():
        return [call.of_rows(rows)(_wide(layer.of_rows(rows).logits())) for rows in _chunks(layer, size)]


def walk(call: Call, layer: Layer, size: int, gradients: Gradients, weights: Tensor | None = None) -> list[Tensor]:
    """Return the losses of all rows, by chunks of so many, and add up their gradients.

    Args:
        call: The loss and all targets.
        layer: The layer, as it is multiplied.
        size: How many rows have logits at a time.
        gradients: Where gradients are added.
        weights: A factor for each row, where losses are not reduced.

    Returns:
        The losses of parts of the rows.
    """
    # One buffer for all chunks: the system would take it back after each of them, and hand out new pages for the next.
    place = layer.features.new_empty(min(size, layer.features.shape[0]), layer.weight.shape[0])
    values = []
    for rows in _chunks(layer, size):
        logits = layer.of_rows(rows).write_logits(place)
        values += write_slopes(call.of_rows(rows), logits, None if weights is None else weights[rows])
        gradients.add(rows, logits, layer)
    return values


def _chunks(layer: Layer, size: int) -> Iterator[slice]:
    rows = layer.features.shape[0]
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))
