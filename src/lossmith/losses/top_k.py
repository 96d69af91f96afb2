"""Losses for predictions of k classes: the top-k support-vector loss and its smooth form."""

from typing import Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from lossmith.losses.contract import ClassificationLoss, Options
from lossmith.losses.limits import Limits
from lossmith.losses.top_k_prediction import check_k, check_possible, topk_probabilities
from lossmith.numerics.blocks import in_blocks
from lossmith.numerics.precision import in_double
from lossmith.numerics.rowwise import rowwise_loss
from lossmith.numerics.rules import Evaluation, IndexRule
from lossmith.numerics.smooth_kth import MOST_POWER_SUMS, smooth_kth_without
from lossmith.numerics.subset_marginals import log_odds_of_absence
from lossmith.numerics.temporaries import overwrite

__all__ = ["HardTopKLoss", "SmoothTopKLoss"]

# exp(-40) is below the rounding of 40 in double precision.
SOFTPLUS_IS_LINEAR = 40.0


class _TopKLoss(ClassificationLoss):
    """What both losses have in common: the number of classes, and rows with the classes along the last dimension."""

    k: int

    def example_losses(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the losses; for a factor per class, their sum."""
        check_k(type(self).__name__, logits, self.k)
        losses_of = self._every_class if target.is_floating_point() else self._target_class
        if logits.dim() == 2:
            return losses_of(logits, target)
        losses = losses_of(_rows(logits), _rows(target) if target.dim() == logits.dim() else target.flatten())
        return losses.view(logits.shape[:1] + logits.shape[2:])

    def _target_class(self, logits: Tensor, target: Tensor) -> Tensor:
        raise NotImplementedError

    def _every_class(self, logits: Tensor, factors: Tensor) -> Tensor:
        raise NotImplementedError


def _rows(tensor: Tensor) -> Tensor:
    return tensor.movedim(1, -1).flatten(0, -2)


class SmoothTopKLoss(_TopKLoss):
    """Smooth top-k loss: trains a model to have the right class among its k best guesses; for confusable or noisy classes.

    ``tau log(1 + exp(margin / tau) (1 - pi) / pi)``, where pi is the probability that the target is in a random set of k
    classes, a set being as likely as ``exp(sum of its scores / (k tau))``; 1 <= k < number of classes. The temperature tau > 0
    makes the gradient reach more classes the larger it is; below what ``lossmith.sensible_tau`` computes, training stalls.
    ``margin`` >= 0 is how far the target has to be ahead, in units of ``score / k``. All three can be changed between steps.
    Cross-entropy when (k, tau, margin) = (1, 1, 0), and ``hard-topk`` in the limit tau = 0.

    Loss and gradient are exact in single precision for every k, tau and range of scores. ``-inf`` is the score of a class that
    is not possible; at least k have to be.

    >>> import torch
    >>> loss = SmoothTopKLoss(k=2, tau=0.5)
    >>> logits = torch.tensor([3.0, 2.0, 0.0, -1.0])
    >>> loss(logits, torch.tensor(1)), loss(logits, torch.tensor(3))
    (tensor(0.4160), tensor(2.4144))

    Reference: Berrada, Zisserman and Kumar 2018, equation 10.
    """

    name = "smooth-topk"
    limits = {"k": Limits(1, whole=True), "tau": Limits(0.0, low_open=True), "margin": Limits(0.0)}
    tau: float
    margin: float

    def __init__(self, k: int = 5, tau: float = 1.0, margin: float = 1.0, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.k = k
        self.tau = tau
        self.margin = margin

    def predict_proba(self, logits: Tensor) -> Tensor:
        """Return ``pi / k`` of every class: the top-k probabilities of the scores over k tau, normalised."""
        return topk_probabilities(logits, self.k, scale=self.k * self.tau)

    def kind_of_probabilities(self) -> tuple[str | float, ...]:
        """Return k and the scale."""
        return ("top-k", self.k, self.k * self.tau)

    def _target_class(self, logits: Tensor, target: Tensor) -> Tensor:
        return rowwise_loss(_SmoothTopK(self.k, self.tau, self.margin), logits, target)

    def _every_class(self, logits: Tensor, factors: Tensor) -> Tensor:
        check_possible(type(self).__name__, logits, logits.detach().topk(self.k, 1).values[:, -1], self.k)
        odds = log_odds_of_absence(logits, self.k, self.k * self.tau) + self.margin / self.tau
        losses = self.tau * F.softplus(torch.where(factors == 0, 0.0, odds), threshold=SOFTPLUS_IS_LINEAR)
        return (factors * losses).sum(1).to(logits.dtype)


class _SmoothTopK(IndexRule):
    """The loss is ``tau softplus(u)``, u the lead over the target of the smooth k-th largest of the other scores, over tau."""

    def __init__(self, k: int, tau: float, margin: float) -> None:
        self.k = k
        self.tau = tau
        self.margin = margin

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        if self.k <= MOST_POWER_SUMS:
            return self._evaluate_rows(logits, target)  # walks in blocks by itself
        return in_blocks(self._evaluate_rows, logits, target)

    def _evaluate_rows(self, logits: Tensor, target: Tensor) -> Evaluation:
        index = target.unsqueeze(1)
        scale = self.k * self.tau
        kth = smooth_kth_without(logits, index, self.k, scale)
        check_possible(SmoothTopKLoss.__name__, logits, kth.reference, self.k)
        lead = kth.reference - in_double(logits.gather(1, index)) + self.k * self.margin
        excess = lead / scale + kth.excess
        factor = torch.sigmoid(excess) / self.k
        gradient = overwrite(kth.gradient(factor), index, -factor.to(logits.dtype))
        losses = self.tau * F.softplus(excess, threshold=SOFTPLUS_IS_LINEAR)
        return losses.squeeze(1).to(logits.dtype), (gradient,)


class HardTopKLoss(_TopKLoss):
    """Top-k support-vector loss: nothing to learn once the target leads the k-th best of the others; for comparison.

    ``max(0, margin + (s_[k] - s_y) / k)``, where ``s_[k]`` is the k-th largest score of the other classes; 1 <= k < number of
    classes, margin >= 0. It moves two scores at a time, which makes deep networks hard to train: ``smooth-topk`` is its smooth
    form, and this is the limit tau = 0 of that. For k = 1 it is the multi-class support-vector loss of Crammer and Singer.

    >>> import torch
    >>> loss = HardTopKLoss(k=2)
    >>> logits = torch.tensor([3.0, 2.0, 0.0, -1.0])
    >>> loss(logits, torch.tensor(1)), loss(logits, torch.tensor(3))
    (tensor(0.), tensor(2.5000))

    Reference: Lapin, Hein and Schiele 2015; Berrada, Zisserman and Kumar 2018, equation 8.
    """

    name = "hard-topk"
    limits = {"k": Limits(1, whole=True), "margin": Limits(0.0)}
    margin: float

    def __init__(self, k: int = 5, margin: float = 1.0, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.k = k
        self.margin = margin

    def _target_class(self, logits: Tensor, target: Tensor) -> Tensor:
        index = target.unsqueeze(1)
        others = logits.scatter(1, index, -torch.inf)
        rival = others.topk(self.k, 1).values[:, -1:]
        check_possible(type(self).__name__, logits, rival, self.k)
        return self._hinge(rival - logits.gather(1, index)).squeeze(1)

    def _every_class(self, logits: Tensor, factors: Tensor) -> Tensor:
        top, index = logits.topk(self.k + 1, 1)
        check_possible(type(self).__name__, logits, top[:, -2], self.k)
        # Without one of the k largest, the k-th largest is the next one.
        rivals = top[:, -2:-1].expand_as(logits).scatter(1, index[:, :-1], top[:, -1:].expand(-1, self.k))
        losses = self._hinge(torch.where(factors == 0, 0.0, rivals - logits))
        return (factors * losses).sum(1)

    def _hinge(self, lead: Tensor) -> Tensor:
        excess = self.margin + lead / self.k
        return torch.where(excess > 0, excess, 0.0)  # unlike relu, may be modified in place
