"""Densely connected networks for small images."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lossmith.training.models.initialisation import initialise_layers, kaiming_normal_by_outputs
from lossmith.training.models.resnet import convolution

__all__ = ["DenseNetwork"]

BLOCKS = 3
BOTTLENECK = 4
"""A bottleneck has so many times the channels that its layer adds."""
COMPRESSION = 0.5
"""The share of channels that is left between two blocks."""


class _Layer(nn.Module):
    """Adds ``growth`` channels to those there are, by way of a bottleneck."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.first_norm = nn.BatchNorm2d(channels)
        self.first = convolution(channels, BOTTLENECK * growth, kernel=1)
        self.second_norm = nn.BatchNorm2d(BOTTLENECK * growth)
        self.second = convolution(BOTTLENECK * growth, growth)

    def forward(self, images: Tensor) -> Tensor:
        narrow = self.first(F.relu(self.first_norm(images)))
        return torch.cat([images, self.second(F.relu(self.second_norm(narrow)))], 1)


def _transition(channels: int, out_channels: int) -> nn.Sequential:
    """Return what leads from a block to the next: half of the channels, a quarter of the pixels; an odd one is not lost."""
    pooling = nn.AvgPool2d(2, ceil_mode=True)
    return nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(), convolution(channels, out_channels, kernel=1), pooling)


class DenseNetwork(nn.Module):
    """Three blocks of layers, each of which sees all before it, with bottlenecks and compression between blocks.

    It is DenseNet-BC of Huang et al. 2017, of ``depth`` layers with ``growth`` new channels each, as Berrada, Zisserman and
    Kumar train it: they call it DenseNet 40-40, and their program builds this one.

    Args:
        channels: Of the images.
        depth: The number of layers, the final one included: 4 more than a multiple of 6.
        growth: The channels that each layer adds.
    """

    initialise = staticmethod(kaiming_normal_by_outputs)

    def __init__(self, channels: int, depth: int, growth: int) -> None:
        super().__init__()
        width = 2 * growth
        parts: list[nn.Module] = []
        for block in range(BLOCKS):
            if block:
                parts.append(_transition(width, int(COMPRESSION * width)))
                width = int(COMPRESSION * width)
            for _ in range((depth - 4) // (2 * BLOCKS)):
                parts.append(_Layer(width, growth))
                width += growth
        self.stem = convolution(channels, 2 * growth)
        self.stages = nn.Sequential(*parts)
        self.norm = nn.BatchNorm2d(width)
        self.out_features = width
        initialise_layers(self, self.initialise)

    def forward(self, images: Tensor) -> Tensor:
        """Return features ``(n, out_features)`` of images ``(n, channels, height, width)``.

        Args:
            images: The images.

        Returns:
            The features.
        """
        return F.relu(self.norm(self.stages(self.stem(images)))).mean((2, 3))
