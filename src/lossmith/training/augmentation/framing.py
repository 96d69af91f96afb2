"""What part of an image is seen, and from which side: crops, flips and cutouts.

Like all augmentations these are functions of images ``(n, channels, height, width)`` and of numbers in [0, 1) that were drawn for
each image, ``(n, k)``; they draw nothing themselves.
"""

import torch
from torch import Tensor

__all__ = ["crop", "cutout", "flip"]

MARGIN = 1 / 8
"""How far a crop moves at most, as a share of a side: 4 pixels of 32."""
HOLE = 1 / 2
"""The side of a cutout as a share of the image's: 16 pixels of 32."""


def crop(images: Tensor, draws: Tensor) -> Tensor:
    """Move each image up to an eighth of its sides, and mirror at the border what is missing then.

    Args:
        images: The images.
        draws: Two numbers for each: how far down, and how far to the right.

    Returns:
        Images of the same size.
    """
    height, width = images.shape[2:]
    rows, columns = _moved(draws[:, :1], height), _moved(draws[:, 1:], width)
    places = (rows[:, :, None] * width + columns[:, None, :]).flatten(1)
    pixels = images.flatten(2).gather(2, places[:, None].expand(-1, images.shape[1], -1))
    return pixels.view(images.shape)


def _moved(draws: Tensor, side: int) -> Tensor:
    """Return which pixel of a side comes to which place, ``(n, side)``."""
    most = min(round(MARGIN * side), side - 1)
    places = (torch.arange(side, device=draws.device) + (draws * (2 * most + 1)).long() - most).abs()
    return side - 1 - (side - 1 - places).abs()


def flip(images: Tensor, draws: Tensor) -> Tensor:
    """Turn left into right in every second image.

    Args:
        images: The images.
        draws: A number for each.

    Returns:
        Images of the same size.
    """
    return torch.where(draws[:, :, None, None] < 0.5, images.flip(3), images)


def cutout(images: Tensor, draws: Tensor) -> Tensor:
    """Hide a square of half the side around any pixel, with the mean of the training images, which is 0.

    Reference: DeVries and Taylor 2017.

    Args:
        images: The images.
        draws: Two numbers for each: the middle of the square.

    Returns:
        Images of the same size.
    """
    height, width = images.shape[2:]
    hidden = _near(draws[:, :1], height)[:, :, None] & _near(draws[:, 1:], width)[:, None, :]
    return images.masked_fill(hidden[:, None], 0.0)


def _near(draws: Tensor, side: int) -> Tensor:
    """Return which places of a side are within half a hole of the one drawn, ``(n, side)``."""
    first = (draws * side).long() - round(HOLE * side) // 2
    places = torch.arange(side, device=draws.device)
    return (first <= places) & (places < first + round(HOLE * side))
