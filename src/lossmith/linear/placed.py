"""All logits at the place where the gradient of the weights will be: products of whole matrices, and no memory for it.

The gradient of ``(C, d)`` weights has room for the logits of d rows. They are kept there as ``(C, N)``, so that the gradient of
a block of classes needs nothing but the logits of these classes, and takes their place. With 512 rows and 128,000 classes that
takes two thirds of the time of chunks that are as small in memory.
"""

import torch
from torch import Tensor

from lossmith.linear.call import Call
from lossmith.linear.chunks import Gradients, Layer, Wanted, class_blocks, write_slopes

__all__ = ["fits", "walk_in_place"]

# So many rows and classes change places at a time: whole lines of the cache, which stay in it. With half as many rows the step
# takes an eighth longer.
TURNED_ROWS = 32
TURNED_CLASSES = 2048


def fits(layer: Layer, given: Layer, wanted: Wanted, size: int) -> bool:
    """Return whether the logits fit into the gradient of the weights, and are worth it.

    Args:
        layer: The layer, as it is multiplied.
        given: The layer as it was given.
        wanted: Which gradients are wanted.
        size: How many rows would have logits at a time otherwise.

    Returns:
        Whether :func:`walk_in_place` may be used.
    """
    rows, width = layer.features.shape
    is_single = layer.weight.dtype == given.weight.dtype and layer.weight.dtype in (torch.float32, torch.float64)
    return wanted[1] and layer.weight.is_cpu and is_single and size < rows <= width


def walk_in_place(call: Call, layer: Layer, size: int, wanted: Wanted) -> tuple[list[Tensor], Gradients]:
    """Return the losses of all rows, by chunks of so many, and their gradients.

    Args:
        call: The loss and all targets.
        layer: The layer, as it is multiplied.
        size: How many rows have a second copy of their logits at a time.
        wanted: Which gradients are wanted, that of the weights among them.

    Returns:
        The losses of parts of the rows, and the gradients.
    """
    place = torch.empty_like(layer.weight, memory_format=torch.contiguous_format)
    rest = Gradients.zeros(layer, layer.features.shape[0], (wanted[0], False, wanted[2]))
    gradients = rest._replace(weight=place)
    columns = place[:, : layer.features.shape[0]]
    _write_logits(columns, layer)
    size = min(size, TURNED_ROWS)
    values = []
    for rows in (slice(start, start + size) for start in range(0, columns.shape[1], size)):
        values += _write_slopes(call.of_rows(rows), columns[:, rows])
    for block in class_blocks(columns.shape[0]):
        _write_gradients(gradients, block, columns[block].clone(), layer)
    return values, gradients


def _write_logits(columns: Tensor, layer: Layer) -> None:
    for block in class_blocks(columns.shape[0]):
        torch.mm(layer.weight[block], layer.features.T, out=columns[block])
        if layer.bias is not None:
            columns[block] += layer.bias[block].unsqueeze(1)


def _transposed(columns: Tensor) -> Tensor:
    """Return a copy of ``(C, R)`` as ``(R, C)``."""
    rows = columns.new_empty(columns.shape[::-1])
    for part, place in zip(torch.split(columns, TURNED_CLASSES), torch.split(rows, TURNED_CLASSES, 1), strict=True):
        place.copy_(part.T)
    return rows


def _write_slopes(call: Call, columns: Tensor) -> list[Tensor]:
    """Return losses of some rows, and write their gradient where the logits ``(C, R)`` are."""
    rows = _transposed(columns)
    values = write_slopes(call, rows)
    for part, place in zip(torch.split(rows, TURNED_CLASSES, 1), torch.split(columns, TURNED_CLASSES), strict=True):
        place.copy_(part.T)
    return values


def _write_gradients(gradients: Gradients, block: slice, slope: Tensor, layer: Layer) -> None:
    """Write the gradients of the layer for a block of classes, that of the weights where the gradient by the logits was."""
    assert gradients.weight is not None
    torch.mm(slope, layer.features, out=gradients.weight[block])
    if gradients.features is not None:
        gradients.features.addmm_(slope.T, layer.weight[block])
    if gradients.bias is not None:
        gradients.bias[block] = slope.sum(1)
