"""How a network starts, layer by layer: a rule for each paper.

A backbone names its rule as ``initialise``; the objective applies it to the final layer that it puts on top, so that the whole
network starts as published.
"""

from collections.abc import Callable

from torch import nn

__all__ = ["Initialise", "kaiming_normal", "kaiming_normal_by_outputs", "without_bias", "xavier_uniform"]

Initialise = Callable[[nn.Module], object]
"""Draws the weights of one layer anew; layers that it does not know stay as they are."""

_WITH_WEIGHTS = (nn.Linear, nn.Conv2d)


def xavier_uniform(layer: nn.Module) -> None:
    """Draw weights evenly within ``sqrt(6 / (inputs + outputs))``, and set biases to 0 (Glorot and Bengio 2010).

    Args:
        layer: Any layer; only linear and convolutional ones change.
    """
    if isinstance(layer, _WITH_WEIGHTS):
        nn.init.xavier_uniform_(layer.weight)
        without_bias(layer)


def kaiming_normal(layer: nn.Module) -> None:
    """Draw normal weights of variance ``2 / inputs``, and set biases to 0 (He et al. 2015).

    Args:
        layer: Any layer; only linear and convolutional ones change.
    """
    if isinstance(layer, _WITH_WEIGHTS):
        nn.init.kaiming_normal_(layer.weight)
        without_bias(layer)


def kaiming_normal_by_outputs(layer: nn.Module) -> None:
    """Draw normal weights of variance ``2 / outputs`` for convolutions, and set biases to 0.

    The wide residual networks and the DenseNets of their authors start like this; their final layer has the weights that any
    linear layer has.

    Args:
        layer: Any layer; of a linear one, only the bias changes.
    """
    if isinstance(layer, nn.Conv2d):
        nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    if isinstance(layer, _WITH_WEIGHTS):
        without_bias(layer)


def initialise_layers(network: nn.Module, initialise: Initialise) -> None:
    """Apply a rule to every layer of a network.

    Args:
        network: Whose layers change in place.
        initialise: The rule.
    """
    for layer in network.modules():
        initialise(layer)


def without_bias(layer: nn.Module) -> None:
    """Set biases to 0, and leave weights as they are.

    Args:
        layer: Any layer; only linear and convolutional ones change.
    """
    if isinstance(layer, _WITH_WEIGHTS) and layer.bias is not None:
        nn.init.zeros_(layer.bias)
