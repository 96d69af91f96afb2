"""Networks for small images, as the papers have them."""

from torch import nn

from lossmith.training.models.all_cnn import AllConvolutionalNetwork
from lossmith.training.models.densenet import DenseNetwork
from lossmith.training.models.model import Inputs, Model, model
from lossmith.training.models.pooled_cnn import PooledConvolutionalNetwork
from lossmith.training.models.resnet import ResidualNetwork
from lossmith.training.models.wide_resnet import WideResidualNetwork

__all__ = ["PUBLISHED_IMAGE_MODELS"]


def _resnet20(inputs: Inputs) -> nn.Module:
    """The residual network of 20 layers for small images."""
    return ResidualNetwork(inputs.shape[0], (3, 3, 3))


def _resnet32(inputs: Inputs) -> nn.Module:
    """The residual network of 32 layers for small images, as Staats, Thamm and Rosenow have it for ten classes."""
    return ResidualNetwork(inputs.shape[0], (5, 5, 5))


def _resnet44(inputs: Inputs) -> nn.Module:
    """The residual network of 44 layers for small images."""
    return ResidualNetwork(inputs.shape[0], (7, 7, 7))


def _resnet56(inputs: Inputs) -> nn.Module:
    """The residual network of 56 layers for small images."""
    return ResidualNetwork(inputs.shape[0], (9, 9, 9))


def _resnet110(inputs: Inputs) -> nn.Module:
    """The residual network of 110 layers for small images."""
    return ResidualNetwork(inputs.shape[0], (18, 18, 18))


def _resnet18(inputs: Inputs) -> nn.Module:
    """The residual network of 18 layers and up to 512 channels, without the pooling at the beginning."""
    return ResidualNetwork(inputs.shape[0], (2, 2, 2, 2), (64, 128, 256, 512), projected=True)


def _resnet34(inputs: Inputs) -> nn.Module:
    """The same of 34 layers, as Staats, Thamm and Rosenow have it for CIFAR-100."""
    return ResidualNetwork(inputs.shape[0], (3, 4, 6, 3), (64, 128, 256, 512), projected=True)


def _all_cnn_c(inputs: Inputs) -> nn.Module:
    """Eight convolutions with batch normalisation, as Kornblith et al. have them for CIFAR-10."""
    return AllConvolutionalNetwork(inputs.shape[0])


def _pooled_cnn(inputs: Inputs) -> nn.Module:
    """Seven convolutions, made for few epochs of photographs, of Jordan 2024."""
    return PooledConvolutionalNetwork(inputs.shape[0], inputs.some_images() if inputs.some_images else None)


def _wrn_16_8(inputs: Inputs) -> nn.Module:
    """The wide residual network of 16 layers, eight times as wide, as Kornblith et al. have it for CIFAR-100."""
    return WideResidualNetwork(inputs.shape[0], blocks=2, factor=8)


def _densenet_40_12(inputs: Inputs) -> nn.Module:
    """The densely connected network of 40 layers that add 12 channels each."""
    return DenseNetwork(inputs.shape[0], depth=40, growth=12)


def _densenet_40_40(inputs: Inputs) -> nn.Module:
    """The same with 40 channels each, as Berrada, Zisserman and Kumar have it for CIFAR-100."""
    return DenseNetwork(inputs.shape[0], depth=40, growth=40)


PUBLISHED_IMAGE_MODELS: dict[str, Model] = {
    "resnet20": model(_resnet20, "images"),
    "resnet32": model(_resnet32, "images"),
    "resnet44": model(_resnet44, "images"),
    "resnet56": model(_resnet56, "images"),
    "resnet110": model(_resnet110, "images"),
    "resnet18": model(_resnet18, "images"),
    "resnet34": model(_resnet34, "images"),
    "all-cnn-c": model(_all_cnn_c, "images", smallest=9),
    "pooled-cnn": model(_pooled_cnn, "images", smallest=9),
    "wrn-16-8": model(_wrn_16_8, "images"),
    "densenet-40-12": model(_densenet_40_12, "images"),
    "densenet-40-40": model(_densenet_40_40, "images"),
}
"""By name."""
