"""Residual networks for small images."""

from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["ResidualNetwork"]


def _convolution(channels: int, out_channels: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(channels, out_channels, 3, stride, padding=1, bias=False)


class _Block(nn.Module):
    """Two convolutions and a way around them, without parameters: every second pixel, and new channels of zeros."""

    def __init__(self, channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.first = _convolution(channels, out_channels, stride)
        self.first_norm = nn.BatchNorm2d(out_channels)
        self.second = _convolution(out_channels, out_channels)
        self.second_norm = nn.BatchNorm2d(out_channels)
        self.stride = stride
        self.new_channels = out_channels - channels

    def forward(self, images: Tensor) -> Tensor:
        around = F.pad(images[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.new_channels))
        through = self.second_norm(self.second(F.relu(self.first_norm(self.first(images)))))
        return F.relu(through + around)


class ResidualNetwork(nn.Module):
    """Three stages of blocks with 16, 32 and 64 channels, the mean over the pixels of the last as features.

    With n blocks a stage and a final layer it is the network of ``6 n + 2`` layers of He et al. 2016, section 4.2.
    """

    out_features = 64

    def __init__(self, channels: int, blocks: int) -> None:
        super().__init__()
        widths = [(16, 16, 1), (16, 32, 2), (32, 64, 2)]
        stages = [
            _Block(before if number == 0 else width, width, stride if number == 0 else 1)
            for before, width, stride in widths
            for number in range(blocks)
        ]
        self.stem = nn.Sequential(_convolution(channels, 16), nn.BatchNorm2d(16), nn.ReLU())
        self.stages = nn.Sequential(*stages)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)

    def forward(self, images: Tensor) -> Tensor:
        """Return features ``(n, 64)`` of images ``(n, channels, height, width)``.

        Args:
            images: The images.

        Returns:
            The features.
        """
        features: Tensor = self.stages(self.stem(images))
        return features.mean((2, 3))
