"""Images sheared, moved and turned, each in its own way, in one pass for all."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["WARPS", "warped"]

WARPS = ("shear-x", "shear-y", "move-x", "move-y", "turn")
SHEAR = 0.3
MOVE = 2 * 10 / 32  # 10 pixels of 32, where the sides of an image are 2 long
TURN = math.radians(30)


def warped(images: Tensor, warp: Tensor, strength: Tensor) -> Tensor:
    """Return each image warped in one of the ways of ``WARPS``; what is missing then is mirrored at the border.

    Args:
        images: The images, ``(n, channels, height, width)``.
        warp: A place in ``WARPS`` for each image.
        strength: A number in [-1, 1] for each.

    Returns:
        Images of the same size.
    """
    height, width = images.shape[2:]
    shear_x, shear_y, move_x, move_y, turn = (
        torch.where(warp == place, most * strength, 0.0) for place, most in enumerate((SHEAR, SHEAR, MOVE, MOVE, TURN))
    )
    across, down = height / width, width / height  # a turn is one of pixels, not of sides
    rows = (
        torch.stack([turn.cos(), shear_x - turn.sin() * across, move_x], 1),
        torch.stack([shear_y + turn.sin() * down, turn.cos(), move_y], 1),
    )
    grid = F.affine_grid(torch.stack(rows, 1), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="reflection", align_corners=False)
