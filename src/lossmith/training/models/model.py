"""What the catalogue knows of a model."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor, nn

from lossmith.data.column_scales import ColumnScales
from lossmith.encoders.model_folder import ModelFolder

__all__ = ["Inputs", "Model", "model"]


class Inputs(NamedTuple):
    """What a model is made for."""

    shape: tuple[int, ...]
    vocabulary: int
    """Number of words, where inputs are words as numbers; else 0."""
    encoder: ModelFolder | None = None
    """The pretrained encoder, where inputs are its tokens."""
    scales: Callable[[], ColumnScales] | None = None
    """Tells what the training rows say of the columns, where there are such."""
    some_images: Callable[[], Tensor] | None = None
    """Returns some of the training images, for a layer that is computed from them."""


class Model(NamedTuple):
    """A model of the catalogue."""

    make: Callable[[Inputs], nn.Module]
    takes: str
    """``anything`` but words, ``sparse rows``, ``images``, ``words`` or ``tokens``."""
    summary: str
    smallest: int = 4
    """Pixels a side that images must have."""


def model(make: Callable[[Inputs], nn.Module], takes: str = "anything", *, smallest: int = 4) -> Model:
    """Return a model of the catalogue, whose summary is what its function says of itself.

    Args:
        make: Makes the backbone for certain inputs.
        takes: What inputs it takes.
        smallest: Pixels a side that images must have.

    Returns:
        The entry of the catalogue.
    """
    return Model(make, takes, (make.__doc__ or "").strip(), smallest)
