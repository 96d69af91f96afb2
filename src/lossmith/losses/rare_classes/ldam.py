"""Margins that are larger the rarer a class is."""

from collections.abc import Sequence
from typing import Unpack

import torch
from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.kernels import Formula, Rows
from lossmith.losses.contract.needs_data import IMBALANCE, NeedsCounts
from lossmith.losses.contract.options import Options
from lossmith.numerics.class_shares import effective_weights, log_counts, margins
from lossmith.numerics.elementary import softplus
from lossmith.numerics.softmax import log_odds, surprises

__all__ = ["LDAMLoss"]


def ldam(
    logits: Tensor,
    target: Tensor,
    *,
    max_margin: float,
    scale: float,
    beta: float,
    counts: Tensor | None,
    imbalance: float | None,
) -> Tensor:
    """Return the cross-entropy of ``scale z``, the target's logit z being less by the margin of its class.

    Args:
        logits: ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.
        max_margin: The margin of the rarest class, >= 0.
        scale: What logits are multiplied by, > 0.
        beta: In [0, 1): how much rare classes weigh more, by effective numbers.
        counts: How often each class was counted, ``(C,)``.
        imbalance: In place of counts, how much less frequent the last class of a long tail is than the first.

    Returns:
        Losses ``(N, ...)``.
    """
    logs = log_counts(logits, counts, imbalance)
    lead = torch.zeros_like(logits) + scale * margins(logs, max_margin)
    weights = None if beta == 0 else torch.zeros_like(logits) + effective_weights(logs, beta)
    # Differences are multiplied, because the rounding of a large product would be an error of every probability.
    steep = scale * (logits - logits.detach().amax(1, keepdim=True))
    if target.is_floating_point():
        losses = _behind(surprises(steep), lead)
        return (target * (losses if weights is None else weights * losses)).sum(1)
    index = target.unsqueeze(1)
    loss = softplus(lead.gather(1, index) - log_odds(steep, index))
    return (loss if weights is None else weights.gather(1, index) * loss).squeeze(1).to(logits.dtype)


def _behind(surprise: Tensor, lead: Tensor) -> Tensor:
    """Return ``log(1 + exp(lead) (1 - p) / p)`` for a lead >= 0, without a difference where p is close to 1."""
    rest = -torch.expm1(-surprise)
    is_moderate = lead < _LARGEST_LEAD
    moderate = torch.log1p(torch.expm1(torch.where(is_moderate, lead, 0.0)) * rest)
    large = lead + torch.log(rest + torch.exp(-lead - surprise))
    return surprise + torch.where(is_moderate, moderate, large)


# Exponentials of what is less have a place in single precision, with all that they are multiplied by.
_LARGEST_LEAD = 40.0


class LDAMLoss(NeedsCounts):
    """Label-distribution-aware margins, ``-log(exp(s (z_y - m_y)) / (exp(s (z_y - m_y)) + sum_c exp(s z_c)))``, for rare classes.

    The sum is over the other classes. The margin of a class of n rows is in proportion to ``n**(-1/4)``, ``max_margin`` for the
    rarest: what is rare must be told apart more clearly. Logits are meant to be cosines, which ``scale`` s makes steep: the
    objective ``ldam-drw`` brings the final layer for them, and the schedule of ``beta`` by which rare classes get their weight,
    ``(1 - beta) / (1 - beta**n)`` for a mean of 1 over the rows, late in training. In training mode only: after ``.eval()`` it is
    cross-entropy of ``scale z``, which it also is when max_margin = 0 and beta = 0.

    >>> import torch
    >>> LDAMLoss(max_margin=0.5, scale=2.0, counts=[160, 10])(torch.zeros(2, 2), torch.tensor([0, 1]))
    tensor(1.1437)

    Args:
        max_margin: The margin of the rarest class, >= 0; 0.5 by default.
        scale: What logits are multiplied by, > 0; 30 by default.
        beta: How much rare classes weigh more, in [0, 1); 0, not at all, by default.
        counts: How many training rows each class has.
        imbalance: In place of counts, for any number of classes: the last has so many times the 5000 rows of the first, in
            (0, 1], and those between them fall in equal ratios, as in long-tailed benchmarks.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Cao et al. 2019, "Learning imbalanced datasets with label-distribution-aware margin loss", equations 10 to 13 and
    algorithm 1; weights of Cui et al. 2019, "Class-balanced loss based on effective number of samples", equation 10.
    """

    name = "ldam"
    limits = {
        "max_margin": Limits(0.0, usual=(0.0, 1.0)),
        "scale": Limits(0.0, low_open=True, usual=(1.0, 64.0)),
        "beta": Limits(0.0, 1.0, high_open=True, usual=(0.0, 0.9999)),
        "imbalance": IMBALANCE,
    }
    max_margin: float
    scale: float
    beta: float

    def __init__(
        self,
        max_margin: float = 0.5,
        scale: float = 30.0,
        beta: float = 0.0,
        *,
        counts: Tensor | Sequence[float] | None = None,
        imbalance: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(**options)
        self.max_margin = max_margin
        self.scale = scale
        self.beta = beta
        self._take_counts(counts, imbalance)

    def formula(self) -> Formula:
        """Return cross-entropy behind a margin; without margin and weights after training."""
        strength = (self.max_margin, self.beta) if self.training else (0.0, 0.0)
        own = {"counts": self.counts, "imbalance": self.imbalance}
        return Rows(ldam, {"max_margin": strength[0], "scale": self.scale, "beta": strength[1], **own})

    def predict_proba(self, logits: Tensor) -> Tensor:
        """Return the softmax of the scaled logits.

        Args:
            logits: Logits ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``.

        Returns:
            Probabilities of the same shape.
        """
        return super().predict_proba(self.scale * logits)

    def kind_of_probabilities(self) -> tuple[str | float, ...]:
        """Return that they are of scaled logits."""
        return ("softmax", self.scale)
