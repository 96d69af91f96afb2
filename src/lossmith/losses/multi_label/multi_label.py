"""The loss of any function of a probability, for every class by itself."""

from typing import Unpack

from torch import Tensor

from lossmith.kernels import Formula, Rows, Term, Terms, cross_entropy
from lossmith.kernels.reference import terms_of_one
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.options import Options
from lossmith.losses.contract.wrapper import WrapperLoss
from lossmith.losses.cross_entropy import CrossEntropyLoss
from lossmith.losses.multi_label.presence import PresenceLoss, sum_over_classes
from lossmith.losses.multi_label.sigmoid import sigmoid_cross_entropy
from lossmith.numerics.probability import Probability

__all__ = ["MultiLabelLoss"]


def multi_label(logits: Tensor, target: Tensor, *, terms: tuple[Term, ...]) -> Tensor:
    """Return the sum of ``f(sigmoid(z))`` for classes that are present and ``f(sigmoid(-z))`` for those that are absent.

    Args:
        logits: ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or a number in [0, 1] for every class ``(N, C, ...)``.
        terms: The functions f of a probability with their factors, whose sum it is.

    Returns:
        Losses ``(N, ...)``.
    """
    return sum_over_classes(lambda z: present(z, terms), lambda z: present(-z, terms), logits, target)


def present(z: Tensor, terms: tuple[Term, ...]) -> Tensor:
    """Return what classes cost that are present, ``f(sigmoid(z))``; what absent ones cost is that of ``-z``.

    Args:
        z: Logits.
        terms: The functions f with their factors.

    Returns:
        Losses of the same shape.
    """
    return terms_of_one(terms, Probability.from_log_odds(z))


class MultiLabelLoss(PresenceLoss, WrapperLoss):
    """Any loss f of a probability for every class, ``sum_c t_c f(sigmoid(z_c)) + (1 - t_c) f(sigmoid(-z_c))``.

    For targets of which several classes can be true at once, with whatever a loss of one class is good for: noisy labels
    (``multi-label(gce)``), easy majorities (``multi-label(focal)``). A floating-point target holds a number in [0, 1] for each
    class; class indices mean that one is present and all others are absent. With class weights, a class that is present counts
    with its own weight, an absent one with the mean weight of those that are present. Without a loss it wraps cross-entropy, and
    is ``sigmoid``. One logit for two classes is :class:`BinaryLoss`.

    >>> import torch
    >>> from lossmith import FocalLoss
    >>> MultiLabelLoss(FocalLoss())(torch.tensor([[0.0, 2.0, -1.0]]), torch.tensor([[1.0, 1.0, 0.0]]))
    tensor(0.1977)

    Args:
        loss: The loss to wrap, a function of the target's probability or a sum of such; cross-entropy by default.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``;
            where a loss is given, give them to that.

    Reference: for the focal loss, Lin et al. 2017, "Focal loss for dense object detection", equation 5.
    """

    name = "multi-label"

    def __init__(self, loss: ClassificationLoss | None = None, **options: Unpack[Options]) -> None:
        super().__init__(loss, CrossEntropyLoss, options)
        self._terms()

    def formula(self) -> Formula:
        """Return the sum over the classes."""
        terms = self._terms()
        return Rows(sigmoid_cross_entropy, {}) if terms == _PLAIN else Rows(multi_label, {"terms": terms})

    def of_classes(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss of each class, if it is present and if it is absent."""
        terms = self._terms()
        return present(logits, terms), present(-logits, terms)

    def _terms(self) -> tuple[Term, ...]:
        found = self.loss.formula()
        if not isinstance(found, Terms) or any(term.normalized for term in found.terms):
            expected = "a function of the target's probability, such as focal or gce"
            raise ValueError(f"{type(self).__name__}: loss must be {expected}, got {self.loss}.")
        return found.terms


_PLAIN = (Term(1.0, cross_entropy),)
