"""Penalties on logits: cross-entropy with one on large logits, and the z-loss, which keeps logits from drifting away together."""

from typing import Unpack

from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.kernels import Formula, Rows, Sum
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.options import Options
from lossmith.losses.contract.wrapper import WrapperLoss
from lossmith.losses.cross_entropy import CrossEntropyLoss
from lossmith.numerics.softmax import surprises, target_probability

__all__ = ["LogitPenaltyLoss", "ZLoss"]


def logit_penalty(logits: Tensor, target: Tensor, *, beta: float) -> Tensor:
    """Return ``-log p_y + beta * sum_c z_c**2``; for a factor per class, the penalty counts as often as they add up to.

    Args:
        logits: ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.
        beta: Factor of the penalty.

    Returns:
        Losses ``(N, ...)``.
    """
    penalty = beta * logits.square().sum(1)
    if target.is_floating_point():
        return (surprises(logits) * target).sum(1) + penalty * target.sum(1)
    own = target_probability(logits, target.unsqueeze(1)).surprise.squeeze(1)
    return (own + penalty).to(logits.dtype)


class LogitPenaltyLoss(ClassificationLoss):
    """Cross-entropy with a penalty on the logits, ``-log p_y + beta * sum_c z_c**2``: for clean labels and many classes.

    Keeps the logits small, and with them the confidence; classes end up further apart than with cross-entropy.
    beta >= 0; cross-entropy when beta = 0.

    >>> import torch
    >>> LogitPenaltyLoss(beta=0.01)(torch.tensor([3.0, -3.0]), torch.tensor(0))
    tensor(0.1825)

    Args:
        beta: Factor of the sum of the squared logits, >= 0.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: equation 5 of Kornblith et al., "What's in a loss function for image classification?"; presets of tables A.1, A.2.
    """

    name = "logit-penalty"
    limits = {"beta": Limits(0.0)}
    presets = {10: {"beta": 10**-2.83}, 100: {"beta": 10**-2.83}, 1000: {"beta": 6e-4}}
    beta: float

    def __init__(self, beta: float = 6e-4, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.beta = beta

    def formula(self) -> Formula:
        """Return cross-entropy with the penalty."""
        return Rows(logit_penalty, {"beta": self.beta})


def squared_log_partition(logits: Tensor, target: Tensor) -> Tensor:
    """Return ``(log sum_c exp z_c)**2``; for a factor per class, it counts as often as they add up to.

    Args:
        logits: ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.

    Returns:
        Losses ``(N, ...)``.
    """
    squares = logits.logsumexp(1).square()
    return squares * target.sum(1) if target.is_floating_point() else squares


class ZLoss(WrapperLoss):
    """Any loss, and ``beta (log sum_c exp z_c)**2``: keeps the logits of large vocabularies where half precision has digits.

    Losses of the softmax do not see a number that is added to all logits, so training lets it drift. The penalty holds the
    logarithm of the sum at 0, and changes little else while beta >= 0 is small: 1e-4 is what language models use. Without a
    loss it wraps cross-entropy. A probability target counts the penalty once for each class, by its probability. The wrapped
    loss itself when beta = 0.

    >>> import torch
    >>> loss, logits, target = ZLoss(CrossEntropyLoss(), beta=0.1), torch.tensor([[3.0, 3.0]]), torch.tensor([0])
    >>> loss(logits, target), loss(logits - 3, target)
    (tensor(2.0571), tensor(0.7412))

    Args:
        loss: The loss to wrap; cross-entropy by default.
        beta: Factor of the penalty, >= 0.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``;
            where a loss is given, give them to that.

    Reference: Chowdhery et al. 2022, "PaLM: Scaling language modeling with pathways", section 5.
    """

    name = "z-loss"
    limits = {"beta": Limits(0.0)}
    beta: float

    def __init__(self, loss: ClassificationLoss | None = None, beta: float = 1e-4, **options: Unpack[Options]) -> None:
        super().__init__(loss, CrossEntropyLoss, options)
        self.beta = beta

    def formula(self) -> Formula:
        """Return the wrapped loss and the penalty."""
        return Sum([(1.0, self.loss.formula()), (self.beta, Rows(squared_log_partition, {}))])

    def weighted_soft_losses(self, logits: Tensor, probabilities: Tensor, weight: Tensor | None) -> Tensor:
        """Return the wrapped loss, with its own meaning of a label distribution, and the weighted penalty."""
        factors = probabilities if weight is None else probabilities * weight
        losses = self.loss.weighted_soft_losses(logits, probabilities, weight)
        return losses + self.beta * squared_log_partition(logits, factors)
