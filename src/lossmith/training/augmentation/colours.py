"""Changes of colour: functions of images ``(n, channels, height, width)`` between 0 and 1, and of strengths ``(n, 1, 1, 1)``.

They are those of the Python Imaging Library that AutoAugment is made of, on numbers instead of bytes. Strengths are in [-1, 1];
where a change has one direction only, their size counts.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["COLOURS", "SATURATION"]

BLEND = 0.9
"""How far a blend goes at most, to either side of the image itself."""
LEVELS = 256
FEWEST_BITS, BITS = 4, 8
SATURATION = "saturation"
LUMA = (0.299, 0.587, 0.114)
"""How bright red, green and blue look."""


def _blended(without: Tensor, images: Tensor, strength: Tensor) -> Tensor:
    """Go from an image towards one that lacks something, or away from it."""
    return without + (1 + BLEND * strength) * (images - without)


def _brightness(images: Tensor, strength: Tensor) -> Tensor:
    return _blended(torch.zeros_like(images), images, strength)


def _contrast(images: Tensor, strength: Tensor) -> Tensor:
    return _blended(images.mean((1, 2, 3), keepdim=True), images, strength)


def _saturation(images: Tensor, strength: Tensor) -> Tensor:
    grey = (images * images.new_tensor(LUMA)[:, None, None]).sum(1, keepdim=True)
    return _blended(grey, images, strength)


def _sharpness(images: Tensor, strength: Tensor) -> Tensor:
    around = F.avg_pool2d(F.pad(images, (1, 1, 1, 1), mode="replicate"), 3, stride=1)
    return _blended((9 * around + 4 * images) / 13, images, strength)  # the middle of the nine counts five times


def _full_range(images: Tensor, _: Tensor) -> Tensor:
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    return torch.where(high > low, (images - low) / (high - low).clamp_min(1e-12), images)


def _equalised(images: Tensor, _: Tensor) -> Tensor:
    """Make all levels of brightness equally frequent, as far as that can be."""
    levels = (images.clamp(0, 1) * (LEVELS - 1)).round().long().flatten(2).flatten(0, 1)
    counts = levels.new_zeros(len(levels), LEVELS).scatter_add_(1, levels, torch.ones_like(levels))
    most = levels.shape[1] - counts.gather(1, levels.amax(1, keepdim=True))  # what is darker than the brightest level
    darker = (counts.cumsum(1) - counts).gather(1, levels)
    new = (darker / most.clamp_min(1)).to(images.dtype)
    return torch.where(most > 0, new, images.flatten(2).flatten(0, 1)).view(images.shape)  # one level alone stays as it is


def _solarised(images: Tensor, strength: Tensor) -> Tensor:
    return torch.where(images >= 1 - strength.abs(), 1 - images, images)


def _posterised(images: Tensor, strength: Tensor) -> Tensor:
    bits = BITS - ((BITS - FEWEST_BITS + 1) * strength.abs()).floor().clamp_max(BITS - FEWEST_BITS)
    step = 2 ** (BITS - bits)
    return (images * (LEVELS - 1) / step).floor() * step / (LEVELS - 1)


COLOURS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "brightness": _brightness,
    "contrast": _contrast,
    SATURATION: _saturation,
    "sharpness": _sharpness,
    "full-range": _full_range,
    "equalised": _equalised,
    "solarised": _solarised,
    "posterised": _posterised,
}
"""By name."""
