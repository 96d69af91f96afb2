"""Residual networks for small images."""

from collections.abc import Callable, Iterator, Sequence

from torch import Tensor, nn
from torch.nn import functional as F

from lossmith.training.models.initialisation import initialise_layers, kaiming_normal

__all__ = ["ResidualNetwork", "convolution", "steps_of_stages"]


def convolution(channels: int, out_channels: int, stride: int = 1, *, kernel: int = 3) -> nn.Conv2d:
    """Return a convolution without a bias that keeps height and width, or divides them by the stride.

    Args:
        channels: That come in.
        out_channels: That go out.
        stride: 1 or 2.
        kernel: The pixels a side that it sees, an odd number.

    Returns:
        The layer.
    """
    return nn.Conv2d(channels, out_channels, kernel, stride, padding=kernel // 2, bias=False)


def steps_of_stages(first: int, widths: Sequence[int], blocks: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield channels before and after, and the stride, of every block: all stages but the first begin with a stride of 2.

    Args:
        first: The channels before the first stage.
        widths: The channels of each stage.
        blocks: How many blocks each stage has.

    Yields:
        What each block is made with.

    >>> list(steps_of_stages(16, [16, 32], [2, 2]))
    [(16, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1)]
    """
    before = first
    for stage, (width, count) in enumerate(zip(widths, blocks, strict=True)):
        for number in range(count):
            yield before, width, 2 if stage and not number else 1
            before = width


class _EverySecondPixel(nn.Module):
    """A way around without parameters: every ``stride``-th pixel, and new channels of zeros."""

    def __init__(self, channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.new_channels = out_channels - channels

    def forward(self, images: Tensor) -> Tensor:
        return F.pad(images[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.new_channels))


def _projection(channels: int, out_channels: int, stride: int) -> nn.Module:
    """Return a way around that learns: a convolution of single pixels where the shape changes."""
    if stride == 1 and channels == out_channels:
        return nn.Identity()
    return nn.Sequential(convolution(channels, out_channels, stride, kernel=1), nn.BatchNorm2d(out_channels))


WayAround = Callable[[int, int, int], nn.Module]


class _Block(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, channels: int, out_channels: int, stride: int, around: WayAround) -> None:
        super().__init__()
        self.first = convolution(channels, out_channels, stride)
        self.first_norm = nn.BatchNorm2d(out_channels)
        self.second = convolution(out_channels, out_channels)
        self.second_norm = nn.BatchNorm2d(out_channels)
        self.around = around(channels, out_channels, stride)

    def forward(self, images: Tensor) -> Tensor:
        through = self.second_norm(self.second(F.relu(self.first_norm(self.first(images)))))
        return F.relu(through + self.around(images))


class ResidualNetwork(nn.Module):
    """Stages of blocks with more and more channels, the mean over the pixels of the last as features.

    With three stages of n blocks and a final layer it is the network of ``6 n + 2`` layers of He et al. 2016, section 4.2. With
    four stages that learn their ways around, on small images without the pooling at the beginning, it is the network of 18 or
    34 layers that Staats, Thamm and Rosenow train on CIFAR-100.

    Args:
        channels: Of the images.
        blocks: How many each stage has.
        widths: The channels of each stage.
        projected: Whether ways around learn where the shape changes; otherwise new channels are zeros.
    """

    initialise = staticmethod(kaiming_normal)

    def __init__(
        self, channels: int, blocks: Sequence[int], widths: Sequence[int] = (16, 32, 64), *, projected: bool = False
    ) -> None:
        super().__init__()
        around: WayAround = _projection if projected else _EverySecondPixel
        self.out_features = widths[-1]
        self.stem = nn.Sequential(convolution(channels, widths[0]), nn.BatchNorm2d(widths[0]), nn.ReLU())
        self.stages = nn.Sequential(*(_Block(*step, around) for step in steps_of_stages(widths[0], widths, blocks)))
        initialise_layers(self, self.initialise)

    def forward(self, images: Tensor) -> Tensor:
        """Return features ``(n, out_features)`` of images ``(n, channels, height, width)``.

        Args:
            images: The images.

        Returns:
            The features.
        """
        features: Tensor = self.stages(self.stem(images))
        return features.mean((2, 3))
