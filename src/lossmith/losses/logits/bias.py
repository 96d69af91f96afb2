"""The logit bias, which lets bounded losses learn with many classes."""

from typing import Unpack

from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.kernels import Biased, Formula, biased
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.options import Options
from lossmith.losses.contract.wrapper import WrapperLoss
from lossmith.losses.expectation import MAELoss
from lossmith.numerics.mean_activation import bias_for_mean_activation

__all__ = ["DEFAULT_EPSILON", "MEAN_ACTIVATION", "LogitBias"]

DEFAULT_EPSILON = 0.5
MEAN_ACTIVATION = 0.15
"""The mean probability of the target in a fresh network with the bias, of the paper's equation 4."""


class LogitBias(WrapperLoss):
    """Any loss, with ``epsilon`` added to the logit of the target: in training mode only, never when predicting.

    A bounded loss has no gradient where the target is improbable, and with many classes every target is, at first. The
    bias moves a fresh network to where the loss learns. Give ``num_classes`` to have it computed so that the target starts
    with a mean probability of 0.15, see ``lossmith.theory.solve_logit_bias``; or give ``epsilon``, which is 0.5 by default.
    The presets are what the paper trains with, 0.5, 3.0 and 5.2; its equation gives 0.525, 3.034 and 5.358 for 10, 100 and
    1000 classes. Without a loss it wraps the mean absolute error. A probability target adds epsilon times the probability to
    each logit.
    The wrapped loss itself when epsilon = 0, or after ``.eval()``.

    >>> import torch
    >>> loss = LogitBias(MAELoss(), epsilon=1.0)
    >>> loss(torch.zeros(2), torch.tensor(0))
    tensor(0.5379)
    >>> loss.eval()(torch.zeros(2), torch.tensor(0))
    tensor(1.)
    >>> round(LogitBias(MAELoss(), num_classes=1000).epsilon, 3)
    5.358

    Args:
        loss: The loss to wrap; the mean absolute error by default.
        epsilon: What is added to the target's logit, any finite number; 0.5 by default.
        num_classes: Number of classes, at least 2, that the bias is computed for, in place of ``epsilon``.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``;
            where a loss is given, give them to that.

    Reference: Staats, Thamm and Rosenow, "Noise-robust loss functions", section 3.2 (there marked with an asterisk).
    """

    name = "logit-bias"
    limits = {"epsilon": Limits()}
    presets = {10: {"epsilon": 0.5}, 100: {"epsilon": 3.0}, 1000: {"epsilon": 5.2}}
    epsilon: float

    def __init__(
        self,
        loss: ClassificationLoss | None = None,
        epsilon: float | None = None,
        *,
        num_classes: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(loss, MAELoss, options)
        self.epsilon = _epsilon(epsilon, num_classes)

    def formula(self) -> Formula:
        """Return the wrapped loss of the biased logits."""
        inner = self.loss.formula()
        return Biased(inner, self.epsilon) if self._has_bias() else inner

    def weighted_soft_losses(self, logits: Tensor, probabilities: Tensor, weight: Tensor | None) -> Tensor:
        """Return the wrapped loss of the biased logits."""
        logits = biased(logits, probabilities, self.epsilon) if self._has_bias() else logits
        return self.loss.weighted_soft_losses(logits, probabilities, weight)

    def parameters_in_order(self) -> dict[str, object]:
        """Return the loss and its bias; the number of classes was only a way to say which bias."""
        return {"loss": self.loss, "epsilon": self.epsilon}

    def _has_bias(self) -> bool:
        return self.training and self.epsilon != 0


def _epsilon(epsilon: float | None, num_classes: int | None) -> float:
    if num_classes is None:
        return DEFAULT_EPSILON if epsilon is None else epsilon
    if epsilon is not None:
        raise ValueError(f"LogitBias: give either epsilon or num_classes, got epsilon={epsilon} and num_classes={num_classes}.")
    Limits(2, whole=True).check("num_classes", num_classes, owner="LogitBias")
    return bias_for_mean_activation(MEAN_ACTIVATION, num_classes).epsilon
