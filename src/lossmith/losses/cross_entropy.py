"""Cross-entropy, the loss that all others are measured against, and the two that bend it: symmetric and tamed."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

import torch
from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.kernels import Term, cross_entropy
from lossmith.losses.contract.options import Options
from lossmith.losses.contract.target_probability import TargetProbabilityLoss
from lossmith.losses.expectation import expectation
from lossmith.numerics.probability import Probability

__all__ = ["CrossEntropyLoss", "SymmetricCrossEntropyLoss", "TamedCrossEntropyLoss"]


def tamed(p: Probability, alpha: float) -> tuple[Tensor, Tensor]:
    """Return ``((1 - log p)**(1 - alpha) - 1) / (1 - alpha)`` and its pull ``(1 - log p)**-alpha``.

    Args:
        p: The probability.
        alpha: How fast the pull fades, >= 0.

    Returns:
        The value and its pull.
    """
    log_tamed = torch.log1p(p.surprise)
    return p.box_cox(log_tamed, 1 - alpha), torch.exp(-alpha * log_tamed)


class CrossEntropyLoss(TargetProbabilityLoss):
    """Cross-entropy, ``-log p``. Use it on clean labels, and as the baseline on any.

    The same function as ``torch.nn.CrossEntropyLoss``, and exact where torch's is not: when the target has nearly all
    of the probability, the loss and its gradient keep their digits instead of rounding to 0.

    >>> import torch
    >>> loss = CrossEntropyLoss()
    >>> logits, target = torch.tensor([[2.0, 0.0, -1.0], [0.0, 0.0, 0.0]]), torch.tensor([0, 2])
    >>> loss(logits, target), torch.nn.CrossEntropyLoss()(logits, target)
    (tensor(0.6342), tensor(0.6342))
    >>> loss(torch.tensor([30.0, 0.0]), torch.tensor(0))
    tensor(9.3576e-14)

    Args:
        weight: One factor per class; none by default.
        **options: ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.
    """

    name = "ce"

    def __init__(self, weight: Tensor | Sequence[float] | None = None, **options: Any) -> None:
        super().__init__(weight=weight, **options)

    def terms(self) -> tuple[Term, ...]:
        """Return ``-log p``."""
        return _CROSS_ENTROPY


_CROSS_ENTROPY = (Term(1.0, cross_entropy),)


class SymmetricCrossEntropyLoss(TargetProbabilityLoss):
    """Symmetric cross-entropy, ``-alpha log p - beta log_zero (1 - p)``: cross-entropy in both directions.

    The reverse cross-entropy is ``-sum_c p_c log t_c`` for the one-hot target t, with ``log_zero`` < 0 in the place of the
    logarithm of 0. Fits fast through the first part and resists noise through the second; alpha, beta >= 0.
    Cross-entropy when alpha = 1 and beta = 0.

    >>> import torch
    >>> SymmetricCrossEntropyLoss(alpha=0.0)(torch.zeros(4), torch.tensor(0))
    tensor(3.)

    Args:
        alpha: Factor of cross-entropy, >= 0.
        beta: Factor of the reverse cross-entropy, >= 0.
        log_zero: Stands for the logarithm of 0, < 0.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Wang et al. 2019; symCE of Staats, Thamm and Rosenow, "Noise-robust loss functions", appendix table 3.
    """

    name = "sce"
    limits = {"alpha": Limits(0.0), "beta": Limits(0.0), "log_zero": Limits(high=0.0, high_open=True, usual=(-8.0, -1.0))}
    alpha: float
    beta: float
    log_zero: float

    def __init__(self, alpha: float = 0.1, beta: float = 1.0, log_zero: float = -4.0, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.alpha = alpha
        self.beta = beta
        self.log_zero = log_zero

    def terms(self) -> tuple[Term, ...]:
        """Return ``-alpha log p`` and ``-beta log_zero (1 - p)``."""
        return Term(self.alpha, cross_entropy), Term(-self.beta * self.log_zero, expectation)


class TamedCrossEntropyLoss(TargetProbabilityLoss):
    """Tamed cross-entropy, ``((1 - log p)**(1 - alpha) - 1) / (1 - alpha)``.

    Like cross-entropy on well predicted examples, but the pull of improbable targets fades slowly: a mild remedy for a few
    wrong labels. alpha >= 0; cross-entropy when alpha = 0, ``log(1 - log p)`` when alpha = 1.

    >>> import torch
    >>> TamedCrossEntropyLoss(alpha=0.5)(torch.zeros(2), torch.tensor(0))
    tensor(0.6024)

    Args:
        alpha: How fast the pull of improbable targets fades, >= 0.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Martinez and Stiefelhagen 2018; equation 4 of Battash, Hazan and Wolf, with the bracket put right so that the
    loss is 0 at p = 1.
    """

    name = "tamed-ce"
    limits = {"alpha": Limits(0.0, usual=(0.0, 2.0))}
    alpha: float

    def __init__(self, alpha: float = 0.5, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.alpha = alpha

    def terms(self) -> tuple[Term, ...]:
        """Return the tamed logarithm."""
        return (Term(1.0, partial(tamed, alpha=self.alpha)),)
