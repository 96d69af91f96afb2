"""Which models can be trained as one."""

import torch
from torch import nn

from lossmith.data.prepared import PreparedData
from lossmith.encoders.encoder import Encoder
from lossmith.objectives.objective import Classifier
from lossmith.training.stacks.built_model import Built
from lossmith.training.stacks.stacked_layers import hides_dropout
from lossmith.training.stacks.stacked_model import StackedModel

__all__ = ["can_be_stacked"]


def can_be_stacked(built: Built, data: PreparedData) -> bool:
    """Return whether models like this one can be trained as one, and gain by it.

    Batch normalisation, recurrent layers and dropout layers that are not in a sequence keep or draw something that is not a
    parameter; convolutions of one model fill a processor already. Whatever else ``torch.func`` can map is tried on two rows.

    Args:
        built: A model of the kind.
        data: What it is trained on.

    Returns:
        True if it can.
    """
    alone = (nn.modules.batchnorm._NormBase, nn.RNNBase, nn.modules.conv._ConvNd, Encoder)
    if any(isinstance(module, alone) for module in built.model.modules()) or any(True for _ in built.model.buffers()):
        return False
    if any(map(hides_dropout, _parts(built.model))):
        return False
    model = StackedModel([built, built], [0, 0])
    rows = data.train[:2]
    inputs = data.inputs[rows]
    try:
        model.template.train()
        model.gradient(model.logits(model.for_all(inputs, 2)).sum((1, 2)))
        together = model.predict(data.inputs, rows, model.weights)
    except (RuntimeError, ValueError, TypeError):  # what torch.func raises where it cannot map a module
        return False
    (apart,) = StackedModel([built], [0]).predict(data.inputs, rows, model.weights[:1])
    return torch.allclose(together, apart.expand_as(together), rtol=1e-4, atol=1e-5)


def _parts(model: nn.Module) -> tuple[nn.Module, ...]:
    """Return what :class:`StackedModel` calls one after the other."""
    return (model.backbone, model.head) if isinstance(model, Classifier) else (model,)
