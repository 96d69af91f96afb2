"""Squared error between logits and targets."""

from typing import Unpack

from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.kernels import Formula, Rows
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.options import Options
from lossmith.numerics.entries import entry, with_entry
from lossmith.numerics.known_slope import with_row_slopes

__all__ = ["SquaredErrorLoss"]


def squared_error(logits: Tensor, target: Tensor, *, kappa: float, value: float, scale: float) -> Tensor:
    """Return ``scale / K`` times the squares of the logits, of which the target's is ``kappa (z_y - value)**2``.

    Args:
        logits: ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.
        kappa: Weight of the target's term.
        value: Value that the target's logit should have.
        scale: Factor for the whole.

    Returns:
        Losses ``(N, ...)``.
    """
    factor = scale / logits.shape[1]
    if target.is_floating_point():
        others = target.sum(1, keepdim=True) - target
        return factor * (kappa * target * (logits - value).square() + others * logits.square()).sum(1)
    index = target.unsqueeze(1)
    error = entry(logits, index) - value
    losses = factor * with_entry(logits.square(), index, kappa * error.square()).sum(1)
    return with_row_slopes(logits, losses, lambda: 2 * factor * with_entry(logits, index, kappa * error))


class SquaredErrorLoss(ClassificationLoss):
    """Squared error, ``scale / K * (kappa (z_y - target)**2 + sum over c != y of z_c**2)``: classification by regression.

    Nearly as accurate as cross-entropy when tuned. kappa > 0 is the weight of the target's term, ``target`` the value that
    its logit should have, scale > 0 a factor for the whole. The mean squared error to the one-hot vector when all three
    are 1. Probabilities are the softmax of the logits.

    >>> import torch
    >>> SquaredErrorLoss(kappa=2.0, target=1.0)(torch.tensor([0.5, 0.5]), torch.tensor(0))
    tensor(0.3750)

    Args:
        kappa: Weight of the target's term, > 0.
        target: Value that the target's logit should have, any finite number.
        scale: Factor for the whole loss, > 0.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Hui and Belkin 2020; equation 10 of Kornblith et al., "What's in a loss function for image classification?";
    presets of tables A.1 and A.2.
    """

    name = "squared-error"
    takes_several = True
    limits = {"kappa": Limits(0.0, low_open=True), "target": Limits(), "scale": Limits(0.0, low_open=True)}
    presets = {
        10: {"kappa": 8.0, "target": 0.83},
        100: {"kappa": 6.0, "target": 12.0},
        1000: {"kappa": 9.0, "target": 60.0, "scale": 10.0},
    }
    kappa: float
    target: float
    scale: float

    def __init__(self, kappa: float = 1.0, target: float = 1.0, scale: float = 1.0, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.kappa = kappa
        self.target = target
        self.scale = scale

    def formula(self) -> Formula:
        """Return the squared error."""
        return Rows(squared_error, {"kappa": self.kappa, "value": self.target, "scale": self.scale})
