"""Arrays as inputs of a network: features and images, standardised on training rows."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lossmith.data.prepared import Texts
from lossmith.data.sources.examples import Array
from lossmith.data.sparse_rows import Inputs

__all__ = ["Encoded", "channels_first", "check_finite", "encode_array", "standardised"]

_BLOCK = 256  # images at a time
_CONSTANT = 1e-13  # deviation of numbers up to 1 that comes from rounding


class Encoded(NamedTuple):
    """Inputs as a network takes them, and what is to be said about them."""

    inputs: Inputs
    notes: tuple[str, ...] = ()
    texts: Texts | None = None


def encode_array(array: Array, train: Tensor, *, owner: str, words: bool = False) -> Encoded:
    """Return features or images in single precision, mean 0 and deviation 1 over the training rows; words as they are.

    Args:
        array: Numbers: features ``(n,)`` or ``(n, d)``, images, or words.
        train: Row numbers of the training split.
        owner: Whom errors name.
        words: Whether whole numbers ``(n, length)`` are words.

    Returns:
        The inputs, and notes on what was dropped.

    Raises:
        ValueError: If there is anything but finite numbers, nothing varies, or the shape is none of these.
    """
    if array.dtype == object or array.dtype.kind not in "biuf":
        raise ValueError(f"{owner}: inputs must be numbers, got {array.dtype}.")
    if words and array.ndim == 2 and array.dtype.kind in "iu":
        if array.min() < 0:
            raise ValueError(f"{owner}: words must be numbers >= 0, got {array.min()}.")
        return Encoded(torch.from_numpy(array.astype(np.int64)))
    check_finite(array, owner)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim == 2:
        return _standardised_features(array.astype(np.float64), train, owner)
    return _standardised_images(channels_first(array, owner), train)


def standardised(features: Array, rows: Array) -> tuple[Array, Array]:
    """Give every column mean 0 and deviation 1 over these rows, and return which columns vary there; the others are left out.

    Args:
        features: Numbers, ``(n, d)``.
        rows: The rows that mean and deviation are taken from.

    Returns:
        The columns that vary, standardised, and a mask of which they are.
    """
    scale = np.abs(features[rows]).max(0)
    scale[scale == 0] = 1.0  # dividing by the largest number first, squares can neither overflow nor vanish
    known = features[rows] / scale
    mean, deviation = known.mean(0), known.std(0)
    varies = deviation > _CONSTANT
    return (features[:, varies] / scale[varies] - mean[varies]) / deviation[varies], varies


def channels_first(images: Array, owner: str) -> Array:
    """Return images as ``(n, channels, height, width)``.

    Args:
        images: Images with channels first, last, or none.
        owner: Whom the error names.

    Returns:
        A view of the images.

    Raises:
        ValueError: If the shape is not one of images.

    >>> [channels_first(np.zeros(shape), "images").shape for shape in [(5, 8, 9), (5, 8, 9, 3), (5, 3, 8, 9)]]
    [(5, 1, 8, 9), (5, 3, 8, 9), (5, 3, 8, 9)]
    """
    if images.ndim == 3:
        return images[:, None]
    if images.ndim == 4 and images.shape[1] in (1, 3, 4):
        return images
    if images.ndim == 4 and images.shape[3] in (1, 3, 4):
        return np.moveaxis(images, 3, 1)
    raise ValueError(f"{owner}: inputs must be features (n, d) or images with 1, 3 or 4 channels, got shape {images.shape}.")


def check_finite(array: Array, owner: str) -> None:
    """Raise an error that says how many numbers are not finite, and where the first one is.

    Args:
        array: Numbers of any shape, a row an example.
        owner: Whom the error names.

    Raises:
        ValueError: If there is NaN or infinity.
    """
    if array.dtype.kind != "f":
        return
    bad = ~np.isfinite(array)
    if bad.any():
        row, *place = (int(index) for index in np.argwhere(bad)[0])
        where = f"row {row}" + (f", column {place[0]}" if len(place) == 1 else f", place {tuple(place)}" if place else "")
        raise ValueError(f"{owner}: inputs must be finite, got {int(bad.sum())} NaN or infinite numbers, the first in {where}.")


def _standardised_features(features: Array, train: Tensor, owner: str) -> Encoded:
    scaled, varies = standardised(features, train.numpy())
    if not varies.any():
        raise ValueError(f"{owner}: every input is constant, so there is nothing to learn from.")
    dropped = int((~varies).sum())
    notes = (f"{dropped} of {len(varies)} inputs are constant in training rows: dropped",) if dropped else ()
    return Encoded(torch.from_numpy(scaled.astype(np.float32)), notes)


def _standardised_images(images: Array, train: Tensor) -> Encoded:
    """Give every channel mean 0 and deviation 1 over the training images; sums are in double precision."""
    inputs = torch.from_numpy(np.ascontiguousarray(images)).float()
    mean = _by_image(inputs, torch.Tensor.float)[train].mean(0)
    inputs -= mean.float()[:, None, None]
    square = _by_image(inputs, torch.Tensor.square)[train].mean(0)
    deviation = torch.where(square.sqrt() > 1e-6 * (1 + mean.abs()), square.sqrt(), 1.0)
    inputs /= deviation.float()[:, None, None]
    return Encoded(inputs)


def _by_image(images: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the mean of a function of the pixels for each image and channel, a few images at a time to save memory."""
    return torch.cat([function(block).mean((2, 3), dtype=torch.float64) for block in images.chunk(max(1, len(images) // _BLOCK))])
