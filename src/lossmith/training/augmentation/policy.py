"""One change of each image, drawn anew every time: TrivialAugment."""

import torch
from torch import Tensor

from lossmith.training.augmentation.colours import COLOURS, SATURATION
from lossmith.training.augmentation.warping import WARPS, warped

__all__ = ["Policy"]

IDENTITY = "identity"


class Policy:
    """Draws a change for each image out of fourteen, and how strong it is; grey images have no saturation to change.

    A search finds hardly better policies than chance does, and this has nothing to tune. Strengths go as far as in RandAugment.

    Reference: Mueller and Hutter 2021.
    """

    def __init__(self, low: Tensor, high: Tensor) -> None:
        """Take the darkest and the brightest number of each channel, ``(channels, 1, 1)``."""
        self.low, self.range = low, (high - low).clamp_min(1e-12)
        colours = [name for name in COLOURS if name != SATURATION or len(low) == 3]
        self.changes = (IDENTITY, *WARPS, *colours)

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        """Return changed images.

        Args:
            images: The images, ``(n, channels, height, width)``.
            draws: Two numbers for each: the change, and its strength.

        Returns:
            Images of the same size.
        """
        change = (draws[:, 0] * len(self.changes)).long()
        strength = 2 * draws[:, 1] - 1
        changed = images.clone()
        for name, rows in self._by_change(change):
            changed[rows] = self._coloured(name, images[rows], strength[rows])
        rows = ((change > 0) & (change <= len(WARPS))).nonzero().squeeze(1)
        if len(rows):
            changed[rows] = warped(images[rows], change[rows] - 1, strength[rows])
        return changed

    def _by_change(self, change: Tensor) -> list[tuple[str, Tensor]]:
        """Return which images change their colours in which way."""
        first = 1 + len(WARPS)
        found = [(name, (change == place).nonzero().squeeze(1)) for place, name in enumerate(self.changes[first:], first)]
        return [(name, rows) for name, rows in found if len(rows)]

    def _coloured(self, name: str, images: Tensor, strength: Tensor) -> Tensor:
        pixels = (images - self.low) / self.range
        return torch.clamp(COLOURS[name](pixels, strength.view(-1, 1, 1, 1)), 0, 1) * self.range + self.low
