"""Logits moved by the logarithms of class frequencies, which lets rare classes count as much as frequent ones."""

from collections.abc import Sequence
from typing import Unpack

from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.kernels import Formula, Shifted, Term, Terms, cross_entropy
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.needs_data import IMBALANCE, NeedsCounts
from lossmith.losses.contract.options import Options
from lossmith.losses.contract.wrapper import WrapperLoss
from lossmith.losses.cross_entropy import CrossEntropyLoss

__all__ = ["BalancedSoftmaxLoss", "LogitAdjustedLoss"]


class LogitAdjustedLoss(NeedsCounts, WrapperLoss):
    """Any loss of ``z + tau log(n / N)``, for rare classes: in training mode only, never when predicting.

    With n rows of a class among N, a network that is trained so learns what remains of the logits when frequencies are taken
    out: its largest logit is the best guess where all classes matter alike, by balanced accuracy. ``tau`` is the strength of
    it, 1 by theory and tuned in practice. Without a loss it wraps cross-entropy, and is ``balanced-softmax`` if tau = 1.
    The wrapped loss itself when tau = 0, when all counts are equal and a constant added to all logits does not matter to it, or
    after ``.eval()``.

    ``lossmith compare`` and ``LossmithClassifier`` count the training rows themselves, ``make_loss`` takes ``counts``.

    >>> import torch
    >>> loss = LogitAdjustedLoss(counts=[90, 10])
    >>> loss(torch.zeros(2, 2), torch.tensor([0, 1])), loss.eval()(torch.zeros(2, 2), torch.tensor([0, 1]))
    (tensor(1.2040), tensor(0.6931))

    Args:
        loss: The loss to wrap; cross-entropy by default.
        tau: What logarithms are multiplied by, any finite number; 1 by default.
        counts: How many training rows each class has, or numbers in proportion to that.
        imbalance: In place of counts, for any number of classes: the last has so many times the rows of the first, in (0, 1],
            and those between them fall in equal ratios, as in long-tailed benchmarks.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``;
            where a loss is given, give them to that.

    Reference: Menon et al. 2021, "Long-tail learning via logit adjustment", equation 10.
    """

    name = "logit-adjusted"
    limits = {"tau": Limits(usual=(0.0, 2.0)), "imbalance": IMBALANCE}
    tau: float

    def __init__(
        self,
        loss: ClassificationLoss | None = None,
        tau: float = 1.0,
        *,
        counts: Tensor | Sequence[float] | None = None,
        imbalance: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(loss, CrossEntropyLoss, options)
        self.tau = tau
        self._take_counts(counts, imbalance)

    def formula(self) -> Formula:
        """Return the wrapped loss of the moved logits."""
        inner = self.loss.formula()
        return Shifted(inner, self.tau, self.counts, self.imbalance) if self._is_adjusted() else inner

    def weighted_soft_losses(self, logits: Tensor, probabilities: Tensor, weight: Tensor | None) -> Tensor:
        """Return the wrapped loss of the moved logits."""
        self.check_call(logits, probabilities)
        if self._is_adjusted():
            logits = Shifted(self.loss.formula(), self.tau, self.counts, self.imbalance).shifted(logits)
        return self.loss.weighted_soft_losses(logits, probabilities, weight)

    def _is_adjusted(self) -> bool:
        return self.training and self.tau != 0


class BalancedSoftmaxLoss(NeedsCounts):
    """Balanced softmax, ``-log(n_y exp(z_y) / sum_c n_c exp(z_c))`` with n rows of each class, for rare classes.

    Cross-entropy of a softmax in which every class is as frequent as it is in training, so that frequencies need not be learnt:
    what the logits tell without them is what matters where all classes count alike. In training mode only: predictions are
    those of the plain softmax, and after ``.eval()`` it is cross-entropy, which it also is when all counts are equal. The same
    as ``logit-adjusted`` with tau = 1.

    >>> import torch
    >>> BalancedSoftmaxLoss(counts=[90, 10])(torch.zeros(2, 2), torch.tensor([0, 1]))
    tensor(1.2040)

    Args:
        counts: How many training rows each class has, or numbers in proportion to that.
        imbalance: In place of counts, for any number of classes: the last has so many times the rows of the first, in (0, 1],
            and those between them fall in equal ratios, as in long-tailed benchmarks.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Ren et al. 2020, "Balanced meta-softmax for long-tailed visual recognition", equation 4.
    """

    name = "balanced-softmax"
    limits = {"imbalance": IMBALANCE}

    def __init__(
        self,
        *,
        counts: Tensor | Sequence[float] | None = None,
        imbalance: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(**options)
        self._take_counts(counts, imbalance)

    def formula(self) -> Formula:
        """Return cross-entropy of the moved logits."""
        plain = Terms((Term(1.0, cross_entropy),))
        return Shifted(plain, 1.0, self.counts, self.imbalance) if self.training else plain
