"""The bi-tempered logistic loss, for many classes and for one logit, and the Tsallis loss that it is compared with."""

from collections.abc import Sequence
from typing import Unpack

import torch
from torch import Tensor

from lossmith import kernels
from lossmith.expressions.limits import Limits
from lossmith.kernels import Formula, Rows
from lossmith.losses.contract.binary_options import OneLogitLoss
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.options import Options, Reduction
from lossmith.numerics.bregman import tempered_divergence, tempered_divergence_from_one
from lossmith.numerics.elementary import box_cox
from lossmith.numerics.entries import entry, with_entry
from lossmith.numerics.tempered import power, tempered_probs, tempered_sigmoid, tempered_softmax
from lossmith.torch_compat import is_traced

__all__ = ["BiTemperedLoss", "BinaryBiTemperedLoss", "TsallisLoss"]

_LIMITS = {"t1": Limits(0.0, usual=(0.2, 1.0)), "t2": Limits(0.0, usual=(1.0, 4.0))}


def bi_tempered(logits: Tensor, target: Tensor, *, t1: float, t2: float) -> Tensor:
    """Return the divergence of temperature t1 between the target and the tempered softmax of temperature t2.

    Args:
        logits: ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or probabilities ``(N, C, ...)``.
        t1: Temperature of the logarithm.
        t2: Temperature of the softmax.

    Returns:
        Losses ``(N, ...)``.
    """
    log_probs = tempered_probs(logits, t2).log_probs
    if target.is_floating_point():
        return tempered_divergence(target, log_probs, t1).sum(1)
    index = target.unsqueeze(1)
    others = with_entry(power(log_probs, 2 - t1), index, 0.0).sum(1) / (2 - t1) if t1 < 2 else torch.inf
    return tempered_divergence_from_one(entry(log_probs, index).squeeze(1), t1) + others


def tsallis(logits: Tensor, target: Tensor, *, t1: float, t2: float) -> Tensor:
    """Return ``-log_t1 p_y``, p being the tempered softmax of temperature t2.

    Args:
        logits: ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.
        t1: Temperature of the logarithm.
        t2: Temperature of the softmax.

    Returns:
        Losses ``(N, ...)``.
    """
    log_probs = tempered_probs(logits, t2).log_probs
    if not target.is_floating_point():
        return -box_cox(entry(log_probs, target.unsqueeze(1)), 1 - t1).squeeze(1)
    # What costs nothing has no derivative either, even where that of its logarithm is infinite.
    return (-target * box_cox(torch.where(target == 0, 0.0, log_probs), 1 - t1)).sum(1)


class _TwoTemperatures(ClassificationLoss):
    """Base of the losses with a temperature t1 of the logarithm and t2 of the softmax."""

    limits = _LIMITS
    t1: float
    t2: float

    def __init__(self, t1: float = 0.8, t2: float = 1.2, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.t1 = t1
        self.t2 = t2

    def predict_proba(self, logits: Tensor) -> Tensor:
        """Return the tempered softmax of temperature t2."""
        return tempered_softmax(logits, self.t2, min(1, logits.dim() - 1))

    def kind_of_probabilities(self) -> tuple[str | float, ...]:
        """Return the temperature t2; at 1 it is the softmax."""
        return super().kind_of_probabilities() if self.t2 == 1 else ("tempered softmax", self.t2)


class BiTemperedLoss(_TwoTemperatures):
    """Bi-tempered logistic loss, ``-log_t1 p_y - (1 - sum_c p_c**(2-t1)) / (2-t1)``: for labels with noise of any kind.

    p is the tempered softmax of temperature t2. t1 < 1 bounds the loss, against outliers far from the decision; t2 > 1 gives
    p a heavy tail, against wrong labels near it. t1, t2 >= 0; the paper uses (0.8, 1.2) with much noise, (0.9, 1.05) with
    little, and (0.5, 4.0), found by search, on MNIST. t1 = t2 is convex in the logits (for t < 1 while no probability is 0),
    and cross-entropy at t1 = t2 = 1. Both may be changed at any time, for a schedule.

    A target of probabilities y, as made by label smoothing or mixup, costs the divergence
    ``sum_c y_c (log_t1 y_c - log_t1 p_c) - (y_c**(2-t1) - p_c**(2-t1)) / (2-t1)``, which is 0 at p = y. At t1 = t2 = 1 that is
    the Kullback-Leibler divergence: cross-entropy less the entropy of y, with the same gradient. Its class weight is the mean
    of ``weight`` under y. t1 must be < 2 where some y_c is 0, as it is for class indices. Where t2 < 1, a target may have
    probability 0: its loss is finite for t1 < 1 only.

    >>> import torch
    >>> loss = BiTemperedLoss(t1=0.8, t2=1.2)
    >>> logits = torch.tensor([4.0, 0.0, 0.0])
    >>> loss(logits, torch.tensor(0)), loss(logits, torch.tensor(1))
    (tensor(0.0509), tensor(2.2015))
    >>> loss.predict_proba(logits)
    tensor([0.9002, 0.0499, 0.0499])

    Args:
        t1: Temperature of the logarithm, >= 0, and < 2 for class indices; below 1 it bounds the loss.
        t2: Temperature of the softmax, >= 0; above 1 it gives the probabilities a heavy tail.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Amid et al. 2019, "Robust bi-tempered logistic loss based on Bregman divergences", equations 5 and 8.
    """

    name = "bi-tempered"
    presets = {10: {"t1": 0.8, "t2": 1.2}, 100: {"t1": 0.8, "t2": 1.2}, 1000: {"t1": 0.9, "t2": 1.05}}

    def formula(self) -> Formula:
        """Return the divergence between the target, class indices or probabilities, and the tempered softmax."""
        return Rows(bi_tempered, {"t1": self.t1, "t2": self.t2})

    def check_call(self, logits: Tensor, target: Tensor) -> None:
        """Raise an error for targets that have no divergence.

        Args:
            logits: The logits, which may be anything.
            target: Class indices or probabilities.

        Raises:
            ValueError: If a probability is negative, or t1 >= 2 where one is 0, as with class indices.
        """
        if target.is_floating_point():
            _check_target(type(self).__name__, target, self.t1)
        elif self.t1 >= 2:
            raise ValueError(f"{type(self).__name__}: t1 must be < 2 where target holds class indices, got {self.t1}.")

    def weighted_soft_losses(self, logits: Tensor, probabilities: Tensor, weight: Tensor | None) -> Tensor:
        """Return the divergences, each times the mean class weight under its target."""
        losses = self.example_losses(logits, probabilities)
        return losses if weight is None else losses * (probabilities * weight).sum(1)


class TsallisLoss(_TwoTemperatures):
    """Tsallis loss, ``-log_t1 p_y`` with the tempered softmax p of temperature t2: to compare ``bi-tempered`` with.

    Bounded by ``1/(1-t1)`` for t1 < 1, heavy-tailed for t2 > 1, but not proper: the expected loss is not smallest where p is
    the distribution of labels. t1, t2 >= 0. ``gce`` with q = 1 - t1 when t2 = 1, cross-entropy when t1 = t2 = 1. A target of
    probabilities costs the expected loss.

    >>> import torch
    >>> TsallisLoss(t1=0.5, t2=1.0)(torch.zeros(4), torch.tensor(0))
    tensor(1.)

    Args:
        t1: Temperature of the logarithm, >= 0; below 1 it bounds the loss.
        t2: Temperature of the softmax, >= 0; above 1 it gives the probabilities a heavy tail.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Amid, Warmuth and Srinivasan 2019, "Two-temperature logistic regression based on the Tsallis divergence";
    section 4.1 of Amid et al. 2019, "Robust bi-tempered logistic loss based on Bregman divergences".
    """

    name = "tsallis"

    def formula(self) -> Formula:
        """Return the tempered logarithm of the tempered probability."""
        return Rows(tsallis, {"t1": self.t1, "t2": self.t2})


class BinaryBiTemperedLoss(OneLogitLoss):
    """Bi-tempered logistic loss of one logit per label, for two classes and for multi-label targets with noise.

    The divergence of :class:`BiTemperedLoss` between ``(y, 1-y)`` and ``(p, 1-p)``, where p is ``tempered_sigmoid(logits, t2)``
    and the target y, of the logits' shape, is 0, 1 or a probability. t1, t2 >= 0, and t1 < 2 unless 0 < y < 1. At t1 = t2 = 1
    it is ``torch.nn.BCEWithLogitsLoss``, less the entropy of y where that is not 0 or 1. ``weight`` multiplies the losses of
    all elements that it broadcasts to; ``pos_weight`` multiplies those of positive labels.

    >>> import torch
    >>> loss = BinaryBiTemperedLoss(t1=1.0, t2=1.0)
    >>> logits, target = torch.tensor([2.0, -1.0]), torch.tensor([1.0, 1.0])
    >>> loss(logits, target), torch.nn.BCEWithLogitsLoss()(logits, target)
    (tensor(0.7201), tensor(0.7201))

    Args:
        t1: Temperature of the logarithm, >= 0, and < 2 unless every target lies strictly between 0 and 1.
        t2: Temperature of the sigmoid, >= 0.
        weight: Factors for the losses of the elements that they broadcast to; none by default.
        pos_weight: Factors for the losses of positive labels; none by default.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Reference: Amid et al. 2019, "Robust bi-tempered logistic loss based on Bregman divergences", figure 1.
    """

    limits = _LIMITS
    t1: float
    t2: float

    def __init__(
        self,
        t1: float = 0.8,
        t2: float = 1.2,
        *,
        weight: Tensor | Sequence[float] | None = None,
        pos_weight: Tensor | Sequence[float] | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight, pos_weight, reduction)
        self.t1 = t1
        self.t2 = t2

    def forward(self, logits: Tensor, target: Tensor, *, denominator: float | Tensor | None = None) -> Tensor:
        """Return the loss of all elements, reduced.

        Args:
            logits: One number per label, of any shape.
            target: Labels or probabilities in [0, 1], of the same shape.
            denominator: What the sum of the losses is divided by, a number > 0 or a tensor of one, if not by their count.

        Returns:
            The mean or the sum of the losses, or all of them where ``reduction`` is ``"none"``.

        Raises:
            TypeError: If the logits are not floating point, or the target is complex.
            ValueError: If the shapes differ, the target is out of range, or t1 does not suit it.
        """
        rows, labels = self._rows(logits, target)
        both = torch.stack((labels, 1 - labels), 1)
        _check_target("BinaryBiTemperedLoss", both, self.t1)
        pairs = torch.stack((rows, torch.zeros_like(rows)), 1)
        formula = Rows(bi_tempered, {"t1": self.t1, "t2": self.t2})
        losses = kernels.losses(formula, pairs, both).reshape(logits.shape)
        if self.pos_weight is not None:
            losses = losses * (1 + (self.pos_weight.to(losses.dtype) - 1) * labels.reshape(logits.shape))
        return self._reduced(losses, logits, denominator)

    def predict_proba(self, logits: Tensor) -> Tensor:
        """Return the probability of the label 1 for each logit.

        Args:
            logits: One number per label, of any shape.

        Returns:
            Probabilities of the same shape.
        """
        return tempered_sigmoid(logits, self.t2)

    def extra_repr(self) -> str:
        """Return the temperatures."""
        return f"t1={self.t1}, t2={self.t2}"


def _check_target(owner: str, target: Tensor, t1: float) -> None:
    """Raise an error for probabilities that have no divergence, where looking at values is possible and free."""
    if target.device.type != "cpu" or is_traced() or target.numel() == 0:
        return
    try:
        lowest = float(target.detach().amin())
    except RuntimeError:  # inside torch.vmap values cannot be read
        return
    if lowest < 0:
        raise ValueError(f"{owner}: target must be in [0, 1], got {_outside(target):g}.")
    if lowest == 0 and t1 >= 2:
        raise ValueError(f"{owner}: t1 must be < 2 where a target probability is 0, got {t1}.")


def _outside(target: Tensor) -> float:
    """Return the given value that is not a probability; a binary target has its complement beside it."""
    lowest, largest = target.detach().aminmax()
    return float(lowest if largest <= 1 else largest)
