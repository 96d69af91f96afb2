"""Models of texts by name."""

from collections.abc import Callable

from torch import nn

from lossmith.training.models.backbone import Backbone
from lossmith.training.models.lstm import LastState
from lossmith.training.models.model import Inputs, Model, model
from lossmith.training.models.sparse_layers import SparseLinear

__all__ = ["TEXT_MODELS"]


def _bag(inputs: Inputs) -> nn.Module:
    """A hidden layer of 64 with dropout over all words and n-grams of a text, of which it reads those that occur."""
    return Backbone(SparseLinear(inputs.shape[0], 64), nn.ReLU(), nn.Dropout(0.3), out_features=64)


def _lstm(width: int, layers: int = 1, source: str = "") -> Callable[[Inputs], nn.Module]:
    def make(inputs: Inputs) -> nn.Module:
        return LastState(inputs.vocabulary, width, layers)

    make.__doc__ = f"Words of {width} numbers and an LSTM of the same width in {layers} layer{'s' * (layers > 1)}{source}."
    return make


_PAPER = ", as Battash, Hazan and Wolf have it"

TEXT_MODELS: dict[str, Model] = {
    "bag": model(_bag, "sparse rows"),
    "lstm": model(_lstm(64), "words"),
    **{f"lstm{width}": model(_lstm(width, source=_PAPER), "words") for width in (50, 75, 100)},
    **{f"lstm{width}x2": model(_lstm(width, layers=2, source=_PAPER), "words") for width in (50, 100)},
}
"""Those for n-grams, and those that read word by word."""
