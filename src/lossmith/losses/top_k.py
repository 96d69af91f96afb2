"""Losses for predictions of k classes: the smooth top-k loss and the support-vector loss that it is the smooth form of."""

from collections.abc import Callable
from typing import Unpack

import torch
from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.kernels import Formula, Rows
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.options import Options
from lossmith.losses.contract.top_k_prediction import check_k, topk_probabilities
from lossmith.numerics.elementary import softplus
from lossmith.numerics.softmax import zero_unless_diverged
from lossmith.numerics.subsets.marginals import log_odds_of_absence

__all__ = ["HardTopKLoss", "SmoothTopKLoss"]


def smooth_topk(logits: Tensor, target: Tensor, *, k: int, tau: float, margin: float) -> Tensor:
    """Return ``tau softplus(u)``, u being the log-odds that the target is not among k classes, and ``margin / tau``.

    Args:
        logits: Scores ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.
        k: How many guesses the model has, 1 <= k < C.
        tau: Temperature, > 0.
        margin: How far ahead the target has to be, in units of ``score / k``.

    Returns:
        Losses ``(N, ...)``.
    """
    if logits.dim() > 2:
        return _of_rows(smooth_topk, logits, target, k=k, tau=tau, margin=margin)
    odds = log_odds_of_absence(logits, k, k * tau)
    if target.is_floating_point():
        odds = torch.where(target == 0, 0.0, odds)
        return (target * tau * softplus(odds + margin / tau)).sum(1).to(logits.dtype)
    own = odds.gather(1, target.unsqueeze(1)).squeeze(1)
    return (tau * softplus(own + margin / tau)).to(logits.dtype)


def hard_topk(logits: Tensor, target: Tensor, *, k: int, margin: float) -> Tensor:
    """Return ``max(0, margin + (s_[k] - s_y) / k)``, ``s_[k]`` being the k-th largest score of the other classes.

    Args:
        logits: Scores ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.
        k: How many guesses the model has, 1 <= k < C.
        margin: How far ahead the target has to be, in units of ``score / k``.

    Returns:
        Losses ``(N, ...)``.
    """
    if logits.dim() > 2:
        return _of_rows(hard_topk, logits, target, k=k, margin=margin)
    top, index = logits.topk(k + 1, 1)
    # Without one of the k largest, the k-th largest is the next one.
    rivals = top[:, -2:-1].expand_as(logits).scatter(1, index[:, :-1], top[:, -1:].expand(-1, k))
    kth = top[:, -2:-1].detach()
    # NaN where any logit has diverged, as in every other loss, and where fewer than k classes are possible.
    one = 1 + zero_unless_diverged(top[:, :1].detach()) + (kth - kth)
    leads = rivals - logits
    if target.is_floating_point():
        leads = one * torch.where(target == 0, 0.0, leads)
        return (target * _hinge(margin + leads / k)).sum(1)
    lead = one * leads.gather(1, target.unsqueeze(1))
    return _hinge(margin + lead / k).squeeze(1)


def _of_rows(function: Callable[..., Tensor], logits: Tensor, target: Tensor, **parameters: float) -> Tensor:
    """Apply a function of logits ``(N, C)`` to ``(N, C, d1, ...)``."""
    rows = _rows(logits), _rows(target) if target.dim() == logits.dim() else target.flatten()
    return function(*rows, **parameters).view(logits.shape[:1] + logits.shape[2:])


def _rows(tensor: Tensor) -> Tensor:
    return tensor.movedim(1, -1).flatten(0, -2)


def _hinge(excess: Tensor) -> Tensor:
    """Return ``max(0, excess)``; unlike relu's, the result may be modified in place."""
    return torch.where(excess <= 0, 0.0, excess)


class _TopKLoss(ClassificationLoss):
    """What both losses have in common: the number of classes."""

    k: int

    def check_call(self, logits: Tensor, target: Tensor) -> None:
        """Raise an error where there are not enough classes."""
        check_k(type(self).__name__, logits, self.k)


class SmoothTopKLoss(_TopKLoss):
    """Smooth top-k loss: trains a model to have the right class among its k best guesses; for confusable or noisy classes.

    ``tau log(1 + exp(margin / tau) (1 - pi) / pi)``, where pi is the probability that the target is in a random set of k
    classes, a set being as likely as ``exp(sum of its scores / (k tau))``; 1 <= k < number of classes. The larger the
    temperature tau > 0, the more classes the gradient reaches; below what ``theory.sensible_tau`` computes, training stalls.
    ``margin`` >= 0 is how far the target has to be ahead, in units of ``score / k``. All three can be changed between steps.
    Cross-entropy when (k, tau, margin) = (1, 1, 0), and ``hard-topk`` in the limit tau = 0.

    Loss and gradient are exact in single precision for every k, tau and range of scores. ``-inf`` is the score of an impossible
    class; where fewer than k are possible the loss is NaN, as cross-entropy is where none is.

    >>> import torch
    >>> loss = SmoothTopKLoss(k=2, tau=0.5)
    >>> logits = torch.tensor([3.0, 2.0, 0.0, -1.0])
    >>> loss(logits, torch.tensor(1)), loss(logits, torch.tensor(3))
    (tensor(0.4160), tensor(2.4144))

    Args:
        k: How many guesses the model has, from 1 to the number of classes less one.
        tau: Temperature, > 0; the larger, the more classes the gradient reaches.
        margin: How far ahead the target has to be, >= 0, in units of ``score / k``.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

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
        """Return ``pi / k`` of every class: the top-k probabilities of the scores over k tau, normalised.

        Args:
            logits: Scores ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``.

        Returns:
            Probabilities of the same shape.

        Raises:
            ValueError: If there are no more than k classes.
        """
        return topk_probabilities(logits, self.k, scale=self.k * self.tau)

    def kind_of_probabilities(self) -> tuple[str | float, ...]:
        """Return k and the scale."""
        return ("top-k", self.k, self.k * self.tau)

    def formula(self) -> Formula:
        """Return the smooth hinge loss."""
        return Rows(smooth_topk, {"k": self.k, "tau": self.tau, "margin": self.margin})


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

    Args:
        k: How many guesses the model has, from 1 to the number of classes less one.
        margin: How far ahead the target has to be, >= 0, in units of ``score / k``.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Lapin, Hein and Schiele 2015; Berrada, Zisserman and Kumar 2018, equation 8.
    """

    name = "hard-topk"
    limits = {"k": Limits(1, whole=True), "margin": Limits(0.0)}
    margin: float

    def __init__(self, k: int = 5, margin: float = 1.0, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.k = k
        self.margin = margin

    def formula(self) -> Formula:
        """Return the hinge loss."""
        return Rows(hard_topk, {"k": self.k, "margin": self.margin})
