"""Networks of convolutions alone."""

from torch import Tensor, nn

from lossmith.training.models.initialisation import initialise_layers, kaiming_normal

__all__ = ["AllConvolutionalNetwork"]

LAYERS = ((96, 3, 1), (96, 3, 1), (96, 3, 2), (192, 3, 1), (192, 3, 1), (192, 3, 2), (192, 3, 1), (192, 1, 1))
"""Channels, pixels a side and stride of each convolution."""
UNPADDED = 6
"""The convolution that makes images smaller by its rim: from 8 to 6 pixels a side for CIFAR."""


def _layer(number: int, channels: int) -> nn.Sequential:
    out_channels, kernel, stride = LAYERS[number]
    padding = 0 if number == UNPADDED else kernel // 2
    convolution = nn.Conv2d(channels, out_channels, kernel, stride, padding, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(out_channels), nn.ReLU())


class AllConvolutionalNetwork(nn.Module):
    """Eight convolutions, of which two have a stride instead of pooling, and the mean over the pixels as features.

    It is All-CNN-C of Springenberg et al. 2015 as Kornblith et al. train it, with batch normalisation between the layers and the
    mean moved before the final one, which is linear then. Neither says how it starts: we take Kaiming normal weights.

    Args:
        channels: Of the images, which have nine pixels a side at least.
    """

    out_features = LAYERS[-1][0]
    initialise = staticmethod(kaiming_normal)

    def __init__(self, channels: int) -> None:
        super().__init__()
        before = [channels, *(width for width, _, _ in LAYERS)]
        self.layers = nn.Sequential(*(_layer(number, before[number]) for number in range(len(LAYERS))))
        initialise_layers(self, self.initialise)

    def forward(self, images: Tensor) -> Tensor:
        """Return features ``(n, 192)`` of images ``(n, channels, height, width)``.

        Args:
            images: The images.

        Returns:
            The features.
        """
        features: Tensor = self.layers(images)
        return features.mean((2, 3))
