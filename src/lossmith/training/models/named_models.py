"""Models by name. Each is a backbone that turns inputs into features; the objective puts the final layer on top."""

import math
from collections.abc import Callable

from torch import Tensor, nn

from lossmith.data.column_scales import ColumnScales
from lossmith.data.prepared import PreparedData
from lossmith.data.sparse_rows import SparseRows
from lossmith.encoders.encoder import load_encoder
from lossmith.encoders.model_folder import ModelFolder
from lossmith.expressions.nearest import nearest
from lossmith.training.models.backbone import Backbone
from lossmith.training.models.image_models import PUBLISHED_IMAGE_MODELS
from lossmith.training.models.initialisation import Initialise, xavier_uniform
from lossmith.training.models.model import Inputs, Model, model
from lossmith.training.models.sparse_layers import Spread
from lossmith.training.models.tabular import tabular
from lossmith.training.models.text_models import TEXT_MODELS

__all__ = ["MODELS", "make_backbone"]


def _linear(inputs: Inputs) -> nn.Module:
    """No layer but the final one."""
    return Backbone(nn.Flatten(), out_features=math.prod(inputs.shape))


def _perceptron(shape: tuple[int, ...], *widths: int, initialise: Initialise | None = None) -> Backbone:
    layers: list[nn.Module] = [nn.Flatten()]
    before = math.prod(shape)
    for width in widths:
        layers += [nn.Linear(before, width), nn.ReLU()]
        before = width
    return Backbone(*layers, out_features=before, initialise=initialise)


def _mlp(inputs: Inputs) -> nn.Module:
    """Two hidden layers of 128."""
    return _perceptron(inputs.shape, 128, 128)


def _hidden(inputs: Inputs) -> nn.Module:
    """One hidden layer of 256 with dropout, which suits the vectors of a pretrained encoder."""
    return Backbone(nn.Flatten(), nn.Linear(math.prod(inputs.shape), 256), nn.ReLU(), nn.Dropout(0.3), out_features=256)


def _mlp1024(inputs: Inputs) -> nn.Module:
    """Three hidden layers of 1024, 512 and 512, as Staats, Thamm and Rosenow have them."""
    return _perceptron(inputs.shape, 1024, 512, 512, initialise=xavier_uniform)


def _as_wide_as_inputs(inputs: Inputs) -> nn.Module:
    """One hidden layer as wide as the input, as Battash, Hazan and Wolf have it for tables."""
    return _perceptron(inputs.shape, math.prod(inputs.shape))


def _two_convolutions(inputs: Inputs, first: int, second: int, *, kernel: int, width: int) -> list[nn.Module]:
    """Return convolutions of ``first`` and ``second`` channels, each with pooling, and a layer on top.

    Pooling before the ReLU gives the same, with the same gradient, as the largest number decides either way, and leaves it less.
    """
    channels, *size = inputs.shape
    return [
        nn.Conv2d(channels, first, kernel, padding="same"),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(first, second, kernel, padding="same"),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(second * (size[0] // 4) * (size[1] // 4), width),
        nn.ReLU(),
    ]


def _cnn(inputs: Inputs) -> nn.Module:
    """Two convolutions with pooling and a layer of 1024 with dropout, as Amid et al. have them for MNIST."""
    return Backbone(*_two_convolutions(inputs, 32, 64, kernel=5, width=1024), nn.Dropout(0.25), out_features=1024)


def _small_cnn(inputs: Inputs) -> nn.Module:
    """Two convolutions of 16 and 32 channels with pooling and a layer of 128, for processors without much patience."""
    return Backbone(*_two_convolutions(inputs, 16, 32, kernel=3, width=128), out_features=128)


def _encoder(inputs: Inputs) -> nn.Module:
    """The pretrained encoder of the data, trained further."""
    assert inputs.encoder is not None
    return load_encoder(inputs.encoder)


MODELS: dict[str, Model] = {
    "linear": model(_linear),
    "mlp": model(_mlp),
    "hidden": model(_hidden),
    "mlp1024": model(_mlp1024),
    "ixi": model(_as_wide_as_inputs),
    "tabular": model(tabular),
    "small-cnn": model(_small_cnn, "images"),
    "cnn": model(_cnn, "images"),
    **PUBLISHED_IMAGE_MODELS,
    **TEXT_MODELS,
    "encoder": model(_encoder, "tokens"),
}
"""Every model by name."""


def backbone_for(name: str, data: PreparedData) -> nn.Module:
    """Return the model of that name for the inputs of some data.

    Args:
        name: A model of the catalogue.
        data: What it is to take.

    Returns:
        The backbone, as :func:`make_backbone` makes it.

    Raises:
        ValueError: If the model is unknown or does not take such inputs.
    """
    return make_backbone(
        name,
        data.input_shape,
        vocabulary=vocabulary_of(data.inputs),
        encoder=data.encoder,
        sparse=data.is_sparse,
        scales=None if data.is_sparse else data.column_scales,
        some_images=data.some_images if data.kind == "image" else None,
    )


def make_backbone(
    name: str,
    input_shape: tuple[int, ...],
    *,
    vocabulary: int = 0,
    encoder: ModelFolder | None = None,
    sparse: bool = False,
    scales: Callable[[], ColumnScales] | None = None,
    some_images: Callable[[], Tensor] | None = None,
) -> nn.Module:
    """Return the model of that name without its final layer: features, ``out_features`` of them, of each input.

    Args:
        name: A model of the catalogue.
        input_shape: The shape of one input.
        vocabulary: The number of words, where inputs are words as numbers, and 0 where they are not.
        encoder: The pretrained encoder, where inputs are its tokens.
        sparse: Whether inputs are sparse rows. A model that has no layer for them gets them written out.
        scales: ``PreparedData.column_scales`` of the data, for a model that scales columns by its training rows.
        some_images: ``PreparedData.some_images`` of the data, for a model that computes a layer from training images.

    Returns:
        The backbone, with random weights; an encoder with its own.

    Raises:
        ValueError: If the model is unknown or does not take such inputs.

    >>> make_backbone("mlp", (64,)).out_features
    128
    >>> make_backbone("cnn", (64,))
    Traceback (most recent call last):
    ValueError: make_backbone: cnn takes images (channels, height, width) of at least 4 x 4, got inputs of shape (64,).
    """
    if name not in MODELS:
        raise ValueError(f"make_backbone: unknown model {name!r}{nearest(name, MODELS)}")
    make, takes, _, smallest = MODELS[name]
    got = f"words in texts of length {input_shape[0]}" if vocabulary else f"inputs of shape {tuple(input_shape)}"
    if (takes == "tokens") != (encoder is not None):
        what = "takes tokens of a pretrained encoder" if encoder is None else "does not take tokens of an encoder"
        raise ValueError(f"make_backbone: {name} {what}, got {got}; an encoder and fine_tune go with the model encoder.")
    if takes == "words" and not vocabulary:
        raise ValueError(f"make_backbone: {name} takes texts as numbers of words, got {got}.")
    if takes == "images" and (vocabulary or len(input_shape) != 3 or min(input_shape[1:]) < smallest):
        least = f"{smallest} x {smallest}"
        raise ValueError(f"make_backbone: {name} takes images (channels, height, width) of at least {least}, got {got}.")
    if takes == "anything" and vocabulary:
        raise ValueError(f"make_backbone: {name} takes numbers, got {got}; only an lstm takes words.")
    if takes == "sparse rows" and not sparse:
        raise ValueError(f"make_backbone: {name} takes texts as weighted n-grams, got {got}.")
    made = make(Inputs(tuple(input_shape), vocabulary, encoder, scales, some_images))
    return made.insert(0, Spread()) if sparse and takes == "anything" and isinstance(made, nn.Sequential) else made


def vocabulary_of(inputs: Tensor | SparseRows) -> int:
    """Return the number of words that inputs are numbered by, or 0 where they are not words.

    Args:
        inputs: Inputs as a network takes them.

    Returns:
        One more than the largest number, or 0.
    """
    return 0 if isinstance(inputs, SparseRows) or inputs.is_floating_point() else int(inputs.max()) + 1
