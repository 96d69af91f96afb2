"""Final layers, and the weight decay that they get."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lossmith.expressions.limits import Limits
from lossmith.numerics.norms import inverse_norm

__all__ = ["CosineLinear", "DropoutLinear", "final_layer_groups"]


class CosineLinear(nn.Linear):
    """The final layer of cosine softmax: ``cos(w_k, x) / tau + b_k``, with cross-entropy on top.

    Neither the length of the features nor that of a class's weights counts, only the angle between them; tau > 0 sets how
    confident the model can become. Features that are all 0 have no angle: their logits are the biases.

    Args:
        in_features: The width of the features.
        num_classes: How many logits there are.
        tau: The temperature that cosines are divided by, > 0.
        bias: Whether each class has a bias.

    Raises:
        ValueError: If tau is not above 0.

    >>> head = CosineLinear(3, 10, tau=0.1)
    >>> head(torch.ones(2, 3)).shape, torch.equal(head(torch.zeros(2, 3)), head.bias.expand(2, 10))
    (torch.Size([2, 10]), True)

    Reference: equation 7 of Kornblith et al., "What's in a loss function for image classification?"
    """

    def __init__(self, in_features: int, num_classes: int, tau: float = 0.05, bias: bool = True) -> None:
        super().__init__(in_features, num_classes, bias)
        checked = Limits(0.0, low_open=True).check("tau", tau, owner="CosineLinear")
        assert checked is not None
        self.tau = checked

    def reset_parameters(self) -> None:
        """Draw the weights as ``nn.Linear`` does, and start without a preference for any class."""
        super().reset_parameters()
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, features: Tensor) -> Tensor:
        """Return the logits of features ``(..., in_features)``.

        Args:
            features: What the backbone puts out, ``(..., in_features)``.

        Returns:
            The logits, ``(..., num_classes)``.
        """
        return F.linear(_unit_length(features) / self.tau, _unit_length(self.weight), self.bias)

    def extra_repr(self) -> str:
        """Return what ``print`` shows between the brackets."""
        return f"{super().extra_repr()}, tau={self.tau}"


class DropoutLinear(nn.Linear):
    """A linear final layer whose inputs are kept with probability ``keep`` while training, and scaled by ``1 / keep``.

    0 < keep <= 1; ``nn.Linear`` when keep = 1, or after ``.eval()``.

    Args:
        in_features: The width of the features.
        num_classes: How many logits there are.
        keep: The probability with which a feature is kept, in (0, 1].
        bias: Whether each class has a bias.

    Raises:
        ValueError: If ``keep`` is out of its range.

    >>> DropoutLinear(3, 10, keep=0.7)
    DropoutLinear(in_features=3, out_features=10, bias=True, keep=0.7)

    Reference: equation 4 of Kornblith et al., "What's in a loss function for image classification?"
    """

    def __init__(self, in_features: int, num_classes: int, keep: float = 0.7, bias: bool = True) -> None:
        super().__init__(in_features, num_classes, bias)
        checked = Limits(0.0, 1.0, low_open=True).check("keep", keep, owner="DropoutLinear")
        assert checked is not None
        self.keep = checked

    def forward(self, features: Tensor) -> Tensor:
        """Return the logits of features ``(..., in_features)``.

        Args:
            features: What the backbone puts out, ``(..., in_features)``.

        Returns:
            The logits, ``(..., num_classes)``.
        """
        return super().forward(F.dropout(features, 1 - self.keep, self.training))

    def extra_repr(self) -> str:
        """Return what ``print`` shows between the brackets."""
        return f"{super().extra_repr()}, keep={self.keep}"


def final_layer_groups(
    model: nn.Module,
    head: nn.Module,
    weight_decay: float,
    final_weight_decay: float,
    *,
    learning_rate: float | None = None,
    decay_vectors: bool = True,
) -> list[dict[str, Any]]:
    """Return an optimiser's parameter groups for more weight decay on the final layer than elsewhere.

    The weights of ``head``, a part of ``model``, get ``final_weight_decay`` on top of ``weight_decay``; all other parameters
    get ``weight_decay``. Both are what torch's optimisers take, the factor of ``||w||**2 / 2`` in the loss. With
    ``learning_rate`` given, ``weight_decay`` is instead the product of learning rate and weight decay, as in table A.2, where
    the penalty is ``weight_decay / (2 learning_rate) * ||w||**2``. ``decay_vectors=False`` exempts biases and the scales of
    normalisation layers.

    Args:
        model: The whole model.
        head: Its final layer.
        weight_decay: What every parameter gets, >= 0.
        final_weight_decay: What the head's weights get on top of it, >= 0.
        learning_rate: Divides ``weight_decay``, where that is a product with it.
        decay_vectors: Whether biases and scales get weight decay.

    Returns:
        Groups of parameters that any optimiser of torch takes.

    Raises:
        TypeError: If ``head`` is not a module.
        ValueError: If ``head`` is not part of the model or has no weights to decay, or a number is out of its range.

    >>> model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> groups = final_layer_groups(model, model[-1], weight_decay=0.5, final_weight_decay=1.0)
    >>> [(len(group["params"]), group["weight_decay"]) for group in groups]
    [(3, 0.5), (1, 1.5)]
    >>> optimizer = torch.optim.SGD(groups, lr=0.1)

    Reference: Kornblith et al., "What's in a loss function for image classification?", section 2 and tables A.1 and A.2. The
    paper does not say whether its final-layer decay includes the other one; only on top of it is it greater in each table.
    """
    if not isinstance(head, nn.Module):
        raise TypeError(f"final_layer_groups: head must be the final layer, a part of the model, got {head!r}.")
    everywhere = _decay("weight_decay", weight_decay)
    if learning_rate is not None:
        everywhere /= _positive("learning_rate", learning_rate)
    of_head = everywhere + _decay("final_weight_decay", final_weight_decay)
    head_weights = [weight for weight in head.parameters() if weight.dim() > 1]
    if final_weight_decay and not head_weights:
        raise ValueError(f"final_layer_groups: head must have weights for final_weight_decay, got a {type(head).__name__}.")
    apart = set(map(id, head_weights))
    if not apart <= set(map(id, model.parameters())):
        raise ValueError(f"final_layer_groups: head must be a part of the model, got a {type(head).__name__} outside of it.")
    others = [parameter for parameter in model.parameters() if id(parameter) not in apart]
    exempt = [] if decay_vectors else [parameter for parameter in others if parameter.dim() <= 1]
    decayed = [parameter for parameter in others if decay_vectors or parameter.dim() > 1]
    groups = [(decayed, everywhere), (exempt, 0.0), (head_weights, of_head)]
    return [{"params": parameters, "weight_decay": decay} for parameters, decay in groups if parameters]


def _unit_length(vectors: Tensor) -> Tensor:
    """Divide by the length, which half precision could not hold."""
    wide = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
    return (wide * inverse_norm(wide, -1)).to(vectors.dtype)


def _decay(name: str, value: float) -> float:
    return Limits(0.0).check(name, value, owner="final_layer_groups") or 0.0


def _positive(name: str, value: float) -> float:
    return Limits(0.0, low_open=True).check(name, value, owner="final_layer_groups") or math.nan
