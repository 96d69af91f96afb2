"""Wide residual networks for small images."""

from torch import Tensor, nn
from torch.nn import functional as F

from lossmith.training.models.initialisation import initialise_layers, kaiming_normal_by_outputs
from lossmith.training.models.resnet import convolution, steps_of_stages

__all__ = ["WideResidualNetwork"]


class _Block(nn.Module):
    """Normalisation and activation before each of two convolutions, and a way around that learns where the shape changes."""

    def __init__(self, channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.first_norm = nn.BatchNorm2d(channels)
        self.first = convolution(channels, out_channels, stride)
        self.second_norm = nn.BatchNorm2d(out_channels)
        self.second = convolution(out_channels, out_channels)
        self.around = None if channels == out_channels else convolution(channels, out_channels, stride, kernel=1)

    def forward(self, images: Tensor) -> Tensor:
        active = F.relu(self.first_norm(images))
        through = self.second(F.relu(self.second_norm(self.first(active))))
        around = images if self.around is None else self.around(active)
        return through + around  # type: ignore[no-any-return]


class WideResidualNetwork(nn.Module):
    """Three stages of blocks that are ``factor`` times as wide as those of a residual network.

    With n blocks a stage it is WRN-d-k of Zagoruyko and Komodakis 2016, with ``d = 6 n + 4`` layers and ``k = factor``.

    Args:
        channels: Of the images.
        blocks: How many each stage has.
        factor: The channels of the stages are 16, 32 and 64 times this.
    """

    initialise = staticmethod(kaiming_normal_by_outputs)

    def __init__(self, channels: int, blocks: int, factor: int) -> None:
        super().__init__()
        widths = [16 * factor, 32 * factor, 64 * factor]
        self.out_features = widths[-1]
        self.stem = convolution(channels, 16)
        self.stages = nn.Sequential(*(_Block(*step) for step in steps_of_stages(16, widths, [blocks] * 3)))
        self.norm = nn.BatchNorm2d(self.out_features)
        initialise_layers(self, self.initialise)

    def forward(self, images: Tensor) -> Tensor:
        """Return features ``(n, out_features)`` of images ``(n, channels, height, width)``.

        Args:
            images: The images.

        Returns:
            The features.
        """
        return F.relu(self.norm(self.stages(self.stem(images)))).mean((2, 3))
