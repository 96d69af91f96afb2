"""A network without its final layer."""

from torch import nn

from lossmith.training.models.initialisation import Initialise, initialise_layers

__all__ = ["Backbone"]


class Backbone(nn.Sequential):
    """Layers that make ``out_features`` features of an input, for an objective to put its final layer on.

    A function that makes your own model returns one of these, instead of a module that returns logits, to leave the final layer
    to the objective: then cosine softmax, dropout and extra weight decay of that layer can be trained with it, too.

    Args:
        *layers: One after another; one module of your own will do.
        out_features: How many features come out for each row.
        initialise: Draws the weights of a layer, for every layer of the network, the final one included; by default they start
            as torch has them. A final layer that has a start of its own, as that of cosine softmax, keeps it.

    >>> from lossmith import make_objective
    >>> from lossmith.training import xavier_uniform
    >>> backbone = Backbone(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), out_features=32, initialise=xavier_uniform)
    >>> make_objective("dropout").build(backbone, num_classes=3).model.head.bias
    Parameter containing:
    tensor([0., 0., 0.], requires_grad=True)
    """

    def __init__(self, *layers: nn.Module, out_features: int, initialise: Initialise | None = None) -> None:
        super().__init__(*layers)
        self.out_features = out_features
        self.initialise = initialise
        if initialise is not None:
            initialise_layers(self, initialise)
