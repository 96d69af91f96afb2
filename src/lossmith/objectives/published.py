"""What objectives were trained with in a paper, by data set."""

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["DATA_SETS", "PRESETS", "Published"]


class Published(NamedTuple):
    """What a paper trained an objective with."""

    learning_rate: float
    weight_decay: float
    parameters: Mapping[str, float] = {}


def _cifar(learning_rate: float, product: float, **parameters: float) -> Published:
    """Read a cell of table A.2: powers of ten, of the learning rate and of its product with the weight decay."""
    return Published(10**learning_rate, 10 ** (product - learning_rate), parameters)


def _imagenet(**parameters: float) -> Published:
    """Read a row of table A.1; the schedule is the same for all, warming up to 1.6."""
    return Published(1.6, 8e-5, parameters)


DATA_SETS = {"cifar-10": 10, "cifar-100": 100, "imagenet": 1000}
"""The data sets of the presets, with their number of classes, by which the losses know their own."""

PRESETS: dict[str, tuple[Published, Published, Published]] = {
    "softmax": (_cifar(-0.75, -3.75), _cifar(-1, -4), _imagenet()),
    "squared-error": (_cifar(-1, -3.5), _cifar(-1, -3.75), _imagenet()),
    "logit-norm": (_cifar(-2, -4), _cifar(-2.25, -3.75), _imagenet()),
    "extra-l2": (
        _cifar(-1, -3.5, final_weight_decay=10**-1.5),
        _cifar(-1, -3.75, final_weight_decay=10**-3.33),
        _imagenet(final_weight_decay=8e-4),
    ),
    "cosine-softmax": (_cifar(-2.25, -4, tau=0.08), _cifar(-2, -3.75, tau=0.1), _imagenet(tau=0.05)),
    "dropout": (_cifar(-1, -3.75, keep=0.65), _cifar(-1.25, -3.75, keep=0.75), _imagenet(keep=0.7)),
    "sigmoid": (_cifar(0, -3.75), _cifar(-1, -3.75), _imagenet()),
    "label-smoothing": (_cifar(-1, -3.75), _cifar(-1, -3.5), _imagenet()),
    "logit-penalty": (_cifar(-0.75, -3.75), _cifar(-1.25, -3.75), _imagenet()),
}
"""Kornblith et al., "What's in a loss function for image classification?", tables A.1 and A.2, one for each data set. The
parameters of losses stand with the losses."""
