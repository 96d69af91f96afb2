"""Complement objective training: cross-entropy, and a flat distribution over the classes that are not the target."""

from typing import Unpack

import torch
from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.kernels import Formula, Rows, Sum, Term, Terms, cross_entropy
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.options import Options
from lossmith.losses.cross_entropy import CrossEntropyLoss
from lossmith.numerics.softmax import surprises, zero_unless_diverged

__all__ = ["ComplementEntropyLoss", "ComplementObjective"]


def complement_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Return the sum over ``j != y`` of ``r_j log r_j``, r being the softmax without y.

    Args:
        logits: ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.

    Returns:
        Losses ``(N, ...)``.
    """
    if not target.is_floating_point():
        return _without(logits, target.unsqueeze(1)).squeeze(1)
    top = logits.detach().argmax(1, keepdim=True)
    return (target * _without_each(logits, top).scatter(1, top, _without(logits, top))).sum(1)


def _without(logits: Tensor, index: Tensor) -> Tensor:
    """Return the negative entropy of what is left without one class of each row, ``(N, 1, ...)``."""
    # The lowest finite number rather than -inf, so that a row with nothing left does not become NaN.
    cost = surprises(logits.scatter(1, index, torch.finfo(logits.dtype).min)).scatter(1, index, 0.0)
    shares = torch.exp(-cost).scatter(1, index, 0.0)
    one = 1 + zero_unless_diverged(logits.detach().gather(1, index))  # NaN if the logit left out has diverged, as in every loss
    return -one * (shares * cost).sum(1, keepdim=True)


def _without_each(logits: Tensor, top: Tensor) -> Tensor:
    """Return the same without each class in turn: ``(sum over j != c of p_j log p_j) / (1 - p_c) - log(1 - p_c)``.

    All classes but the most probable one, whose entry means nothing, leave ``1 - p_c >= 1/2``.
    """
    cost = surprises(logits)
    probs = torch.exp(-cost)
    terms = -probs * cost
    others = probs.scatter(1, top, 0.0)
    return (terms.sum(1, keepdim=True) - terms) / (1 - others) - torch.log1p(-others)


class ComplementEntropyLoss(ClassificationLoss):
    """Negative complement entropy, ``sum over j != y of r_j log r_j`` with ``r_j = p_j / (1 - p_y)``.

    Smallest, ``-log(K - 1)``, where all classes but the target are equally probable; it says nothing about the target, so
    use it beside another loss, as ``cot`` does. The equation below is the entropy itself, which training maximises: this is
    its negative, to be minimised. 0 with two classes or one.

    >>> import torch
    >>> loss = ComplementEntropyLoss()
    >>> loss(torch.tensor([9.0, 1.0, 1.0]), torch.tensor(0)), loss(torch.tensor([0.0, 9.0, 1.0]), torch.tensor(0))
    (tensor(-0.6931), tensor(-0.0030))

    Args:
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Chen et al. 2019; equation 6 of Battash, Hazan and Wolf.
    """

    name = "complement-entropy"

    def formula(self) -> Formula:
        """Return the negative entropy of the classes that are not the target."""
        return Rows(complement_entropy, {})


class ComplementObjective(ClassificationLoss):
    """Complement objective training, cross-entropy plus ``gamma`` times the negative complement entropy.

    Flattens the probabilities of the wrong classes while the target's grows; it helps large models on small data. As a loss
    it is the sum, for one pass. As published, each batch is passed twice, first for one part and then for the other:

    >>> import torch
    >>> model = torch.nn.Linear(2, 3)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> inputs, target = torch.randn(4, 2), torch.tensor([0, 1, 2, 0])
    >>> for loss in ComplementObjective().passes():
    ...     optimizer.zero_grad()
    ...     loss(model(inputs), target).backward()
    ...     optimizer.step()

    gamma >= 0; cross-entropy when gamma = 0. The published code divides the second part by the number of classes K:
    that is gamma = 1/K, which the presets have.

    Args:
        gamma: Factor of the complement entropy, >= 0.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Chen et al. 2019; equation 6 of Battash, Hazan and Wolf, who train it in two passes.
    """

    name = "cot"
    limits = {"gamma": Limits(0.0)}
    presets = {10: {"gamma": 0.1}, 100: {"gamma": 0.01}, 1000: {"gamma": 0.001}}

    gamma: float

    def __init__(self, gamma: float = 1.0, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.gamma = gamma

    def formula(self) -> Formula:
        """Return ``-log p`` and gamma times the negative complement entropy."""
        return Sum([(1.0, Terms((Term(1.0, cross_entropy),))), (self.gamma, Rows(complement_entropy, {}))])

    def passes(self) -> tuple[ClassificationLoss, ClassificationLoss]:
        """Return the losses of the first and of the second pass.

        Returns:
            Cross-entropy, and gamma times the negative complement entropy, both with the options of this loss.
        """
        options = {name: getattr(self, name) for name in Options.__annotations__}
        return CrossEntropyLoss(**options), self.gamma * ComplementEntropyLoss(**options)
