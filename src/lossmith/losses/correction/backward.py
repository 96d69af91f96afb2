"""Backward correction: the sum of losses under all labels whose mean over noisy labels is the loss under the true one."""

from functools import lru_cache
from typing import Any, Unpack

import torch
from torch import Tensor

from lossmith.kernels import Formula, Rows
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.composite import CompositeLoss
from lossmith.losses.contract.options import Options
from lossmith.losses.contract.targets import one_hot
from lossmith.losses.correction.corrected import CorrectedLoss
from lossmith.losses.correction.matrices import LabelMatrix, SymmetricMatrix
from lossmith.losses.logits.bias import LogitBias
from lossmith.numerics.precision import in_double
from lossmith.torch_compat import is_traced

__all__ = ["BackwardCorrection"]

_SINGULAR = 1e-9
"""Matrices whose columns are nearer to one another than this cannot be told apart in the digits that a matrix is given with."""


def backward_correction(
    logits: Tensor, target: Tensor, *, formula: Formula, is_linear: bool, rate: float | None, matrix: LabelMatrix | None
) -> Tensor:
    """Return ``sum_c inverse(T)_yc loss_c``.

    Args:
        logits: ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.
        formula: The loss.
        is_linear: Whether the formula takes a factor for every class; otherwise it is asked for one class after the other.
        rate: The share of wrong labels, spread evenly over the other classes, where there is no matrix.
        matrix: What is taken for what.

    Returns:
        Losses ``(N, ...)``.
    """
    if logits.shape[1] == 1:
        return formula.losses(logits, target)
    factors = target if target.is_floating_point() else one_hot(logits, target)
    if matrix is None:
        assert rate is not None
        share = rate / (logits.shape[1] - 1)
        factors = (factors - share * factors.sum(1, keepdim=True)) / (1 - rate - share)
    else:
        inverse = torch.linalg.inv(matrix.of(logits.shape[1], in_double(logits.new_zeros(()))))
        factors = torch.tensordot(factors.movedim(1, -1).to(inverse.dtype), inverse, 1).movedim(-1, 1).to(logits.dtype)
    return formula.losses(logits, factors) if is_linear else _class_by_class(formula, logits, factors)


def _class_by_class(formula: Formula, logits: Tensor, factors: Tensor) -> Tensor:
    total = factors.sum(1) * 0
    label = torch.zeros_like(total, dtype=torch.int64)
    for number in range(logits.shape[1]):
        factor = factors.gather(1, (label + number).unsqueeze(1)).squeeze(1)
        total = total + factor * formula.losses(logits, label + number)
    return total


class BackwardCorrection(CorrectedLoss):
    """Any loss, corrected so that its mean over noisy labels is the loss under the true ones: ``sum_c (T**-1)_yc loss_c``.

    T has the share of each true class, a row, that carries each label, a column. Unbiased whatever the loss, but far from the
    mean: a loss without upper bound becomes one without lower bound, so that a network that fits single labels diverges;
    ``forward-correction`` is the safer choice where it is defined. Give ``rate`` for wrong labels that are spread evenly over the
    other classes, or ``matrix``: rows of shares, ``pair(0.2)`` for labels that are taken for the next class, or, in ``lossmith
    compare``, ``estimate``. Cross-entropy by default. The wrapped loss itself when rate = 0. Around tempered and top-k losses
    every class is evaluated by itself: time and memory grow with the square of the number of classes.

    >>> import torch
    >>> loss = BackwardCorrection(rate=0.2, reduction="none")
    >>> losses = loss(torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1]))
    >>> losses, 0.8 * losses[0] + 0.2 * losses[1]
    (tensor([-0.5397,  2.7936]), tensor(0.1269))

    Args:
        loss: The loss to wrap; cross-entropy by default.
        matrix: What is taken for what, ``(C, C)``, rows that add up to 1, with an inverse, in place of ``rate``.
        rate: Share of wrong labels, 0 <= rate < 1, and not (C - 1) / C, where labels tell nothing; 0.2 by default.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``;
            where a loss is given, give them to that.

    Reference: Patrini et al. 2017, "Making deep neural networks robust to label noise: a loss correction approach", theorem 1.
    """

    name = "backward-correction"

    def __init__(
        self,
        loss: ClassificationLoss | None = None,
        matrix: Any = None,
        rate: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(loss, matrix, rate, options)

    def check_call(self, logits: Tensor, target: Tensor) -> None:
        """Raise an error for logits that the matrix does not fit, or a matrix without inverse.

        Args:
            logits: Logits ``(N, C, ...)``.
            target: Class indices or probabilities.

        Raises:
            ValueError: If there is no inverse for so many classes.
        """
        super().check_call(logits, target)
        classes = logits.shape[1]
        if classes == 1 or is_traced():
            return
        least = _least_told(self.matrix or SymmetricMatrix(self.rate or 0.0), classes)
        if least < _SINGULAR:
            got = f"rate={self.rate}" if self.matrix is None else f"matrix={self.matrix}"
            raise ValueError(f"BackwardCorrection: labels of {classes} classes must tell something of the class, got {got}.")

    def formula(self) -> Formula:
        """Return the wrapped loss under all labels, with the factors of the inverse."""
        inner = self.loss.formula()
        if self.rate == 0:
            return inner
        parameters = {"formula": inner, "is_linear": _is_linear(self.loss), "rate": self.rate, "matrix": self.matrix}
        return Rows(backward_correction, parameters)


@lru_cache(maxsize=100)  # every call asks
def _least_told(matrix: LabelMatrix, num_classes: int) -> float:
    """Return how much of the least visible difference between classes is left in labels."""
    return float(torch.linalg.svdvals(matrix.of(num_classes, torch.zeros((), dtype=torch.float64)))[-1])


def _is_linear(loss: ClassificationLoss) -> bool:
    """Return whether a factor for every class means the sum of factor times loss, and not a loss of its own."""
    if isinstance(loss, LogitBias):
        return False
    if isinstance(loss, CompositeLoss):
        return all(map(_is_linear, loss.parts))
    return type(loss).weighted_soft_losses is ClassificationLoss.weighted_soft_losses
