"""Losses divided by their sum over all classes, which makes any loss robust to noise."""

from typing import Unpack, cast

import torch
from torch import Tensor

from lossmith.losses.contract import Options
from lossmith.losses.cross_entropy import CrossEntropyLoss
from lossmith.losses.focal import FocalLoss
from lossmith.losses.limits import Limits
from lossmith.losses.target_probability import TermLoss
from lossmith.losses.term_rules import Term

__all__ = ["NormalizedCrossEntropyLoss", "NormalizedFocalLoss"]


_NORMALIZED_CROSS_ENTROPY = (Term(1.0, CrossEntropyLoss(), normalized=True),)


class NormalizedCrossEntropyLoss(TermLoss):
    """Normalised cross-entropy, ``log p / sum_c log p_c``.

    In [0, 1] and symmetric, hence robust to label noise, but underfits alone: use it as the active part of a sum such as
    ``nce-mae`` or ``nce-agce``.

    >>> import torch
    >>> NormalizedCrossEntropyLoss()(torch.zeros(4), torch.tensor(0))
    tensor(0.2500)

    Reference: Ma et al. 2020; NCE of Staats, Thamm and Rosenow, "Noise-robust loss functions", table 1.
    """

    name = "nce"

    def terms(self) -> tuple[Term, ...]:
        """Return cross-entropy, normalised."""
        return _NORMALIZED_CROSS_ENTROPY


class NormalizedFocalLoss(TermLoss):
    """Normalised focal loss, ``(1 - p)**gamma log p / sum_c (1 - p_c)**gamma log p_c``.

    In [0, 1] and robust to label noise; the active part of ``nf-mae``. gamma >= 0; ``nce`` when gamma = 0.
    ``printed=True`` is the form printed by Staats, Thamm and Rosenow, with ``log((1 - p)**gamma p)`` in both places, which
    also pushes probabilities away from 1.

    >>> import torch
    >>> NormalizedFocalLoss()(torch.zeros(4), torch.tensor(0))
    tensor(0.2500)

    Reference: Ma et al. 2020; NF of Staats, Thamm and Rosenow, "Noise-robust loss functions", table 1.
    """

    name = "nf"
    limits = {"gamma": Limits(0.0)}

    def __init__(self, gamma: float = 0.5, printed: bool = False, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        if not isinstance(printed, bool):
            raise TypeError(f"NormalizedFocalLoss: printed must be True or False, got {printed!r}.")
        # In a tuple, so that it is no submodule with options of its own; made here, since torch.compile cannot make it.
        self._terms = (Term(1.0, FocalLoss(), normalized=True),)
        self.gamma = gamma
        self.printed = printed

    @property
    def gamma(self) -> float:
        """How much less examples count that are predicted well."""
        return cast("FocalLoss", self._terms[0].curve).gamma

    @gamma.setter
    def gamma(self, value: float) -> None:
        cast("FocalLoss", self._terms[0].curve).gamma = value

    def terms(self) -> tuple[Term, ...] | None:
        """Return the focal loss, normalised; the printed form is not a function of the target's probability alone."""
        return None if self.printed else self._terms

    def example_losses(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the losses of either form."""
        if not self.printed:
            return super().example_losses(logits, target)
        log_probs = torch.log_softmax(logits, 1)
        costs = -self.gamma * log_complement(logits, log_probs) - log_probs
        if target.is_floating_point():
            cost = (costs * target).sum(1)
        else:
            cost = costs.gather(1, target.unsqueeze(1)).squeeze(1)
        total = costs.sum(1)
        return cost / torch.where(total == 0, 1.0, total)


def log_complement(logits: Tensor, log_probs: Tensor) -> Tensor:
    """Return ``log(1 - p)`` of every class: finite, as the mass of the others never vanishes for finite logits.

    >>> logits = torch.tensor([[1000.0, 0.0]])
    >>> log_complement(logits, torch.log_softmax(logits, 1))
    tensor([[-1000.,    -0.]])
    """
    if logits.shape[1] == 1:
        return torch.zeros_like(logits)
    top = logits.argmax(1, keepdim=True)
    # Only the largest probability can be close to 1; it is taken from the sum of the others.
    others = log_probs.scatter(1, top, -torch.inf).logsumexp(1, keepdim=True)
    return torch.log1p(-log_probs.scatter(1, top, -torch.inf).exp()).scatter(1, top, others)
