"""Complement objective training: cross-entropy, and a flat distribution over the classes that are not the target."""

from typing import NamedTuple, Unpack

import torch
from torch import Tensor

from lossmith.losses.contract import ClassificationLoss, Options, check_option_names
from lossmith.losses.cross_entropy import CrossEntropyLoss
from lossmith.losses.limits import Limits
from lossmith.losses.weighted_sum import WeightedSum
from lossmith.numerics.blocks import in_blocks
from lossmith.numerics.rules import Evaluation, GradientRule, IndexRule, Rule
from lossmith.numerics.softmax import ClassProbabilities
from lossmith.numerics.temporaries import add, add_product, overwrite

__all__ = ["ComplementEntropyLoss", "ComplementObjective"]


class ComplementEntropyLoss(ClassificationLoss):
    """Negative complement entropy, ``sum over j != y of r_j log r_j`` with ``r_j = p_j / (1 - p_y)``.

    Smallest, ``-log(K - 1)``, where all classes but the target are equally probable; it says nothing about the target, so
    use it beside another loss, as ``cot`` does. The equation below is the entropy itself, which training maximises: this is
    its negative, to be minimised. 0 with two classes or one.

    >>> import torch
    >>> loss = ComplementEntropyLoss()
    >>> loss(torch.tensor([9.0, 1.0, 1.0]), torch.tensor(0)), loss(torch.tensor([0.0, 9.0, 1.0]), torch.tensor(0))
    (tensor(-0.6931), tensor(-0.0030))

    Reference: Chen et al. 2019; equation 6 of Battash, Hazan and Wolf.
    """

    name = "complement-entropy"

    def rule(self, logits: Tensor, target: Tensor) -> Rule:
        """Return the rule for class indices, or for a factor per class."""
        return _ComplementOfEach() if target.is_floating_point() else _ComplementOfTarget()


class ComplementObjective(WeightedSum):
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

    Reference: Chen et al. 2019; equation 6 of Battash, Hazan and Wolf, who train it in two passes.
    """

    name = "cot"
    limits = {"gamma": Limits(0.0)}
    presets = {10: {"gamma": 0.1}, 100: {"gamma": 0.01}, 1000: {"gamma": 0.001}}

    def __init__(self, gamma: float = 1.0, **options: Unpack[Options]) -> None:
        check_option_names(type(self), options)
        super().__init__([CrossEntropyLoss(**options), ComplementEntropyLoss(**options)], [1.0, 1.0])
        self.gamma = gamma

    @property
    def gamma(self) -> float:
        """Factor of the complement entropy."""
        return self.factors[1]

    @gamma.setter
    def gamma(self, value: float) -> None:
        self.factors[1] = value

    def passes(self) -> tuple[ClassificationLoss, ClassificationLoss]:
        """Return the losses of the first and of the second pass."""
        cross_entropy, complement = self.parts
        return cross_entropy, self.gamma * complement

    __repr__ = ClassificationLoss.__repr__


class _ComplementOfTarget(IndexRule):
    """Cut the target out, and ``r`` is the softmax of what is left; the gradient is ``r (log r - loss)``, 0 at the target."""

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        return in_blocks(self._evaluate_rows, logits, target)

    def _evaluate_rows(self, logits: Tensor, target: Tensor) -> Evaluation:
        losses, gradient = _complement_of(logits, target.unsqueeze(1))
        return losses.squeeze(1), (gradient,)


class _ComplementOfEach(GradientRule):
    """For a factor per class ``a_c``, the sum of ``a_c E_c``, where ``E_c`` is the loss with class c as the target.

    ``E_c`` pulls at class j by ``p_j / q_c (log p_j - log q_c - E_c)``, where ``q_c = 1 - p_c``. For the sum over all c but j, a
    sum of ``w_c = a_c / q_c`` and one of ``w_c (log q_c + E_c)`` are enough. The most probable class is cut out by itself: all
    others leave ``q_c >= 1/2``, so that nothing is divided by a small number.
    """

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        return in_blocks(self._evaluate_rows, logits, target)

    def _evaluate_rows(self, logits: Tensor, factors: Tensor) -> Evaluation:
        top = logits.argmax(1, keepdim=True)
        of_top, pull_of_top = _complement_of(logits, top)
        classes, log_rest, inverse, entropies = _complement_of_each(logits, top)
        losses = (factors * overwrite(entropies, top, of_top)).sum(1)
        weights = overwrite(factors * inverse, top, 0.0)
        shifts = weights * add(log_rest, entropies)
        pulls = classes.log * (weights.sum(1, keepdim=True) - weights) - (shifts.sum(1, keepdim=True) - shifts)
        return losses, (add_product(classes.p * pulls, pull_of_top, factors.gather(1, top)),)

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        top = logits.argmax(1, keepdim=True)
        entropies = _complement_of_each(logits, top).entropies
        return overwrite(entropies, top, _complement_of(logits, top)[0]) * grad


def _complement_of(logits: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """Return the loss for one class of each row as the target, ``(N, 1, ...)``, and its gradient."""
    # The lowest finite number and not -inf, for a row of which nothing is left must not become NaN.
    left = ClassProbabilities(logits.scatter(1, index, torch.finfo(logits.dtype).min))
    log_shares = overwrite(left.log, index, 0.0)
    shares = overwrite(left.p, index, 0.0)
    losses = (shares * log_shares).sum(1, keepdim=True)
    return losses, shares * (log_shares - losses)


class _Complements(NamedTuple):
    """What is left without each class but the most probable one, whose entries mean nothing."""

    classes: ClassProbabilities
    log_rest: Tensor
    """``log(1 - p)``."""
    inverse: Tensor
    """``1 / (1 - p)``."""
    entropies: Tensor
    """``(sum over j != c of p_j log p_j) / (1 - p_c) - log(1 - p_c)``."""


def _complement_of_each(logits: Tensor, top: Tensor) -> _Complements:
    classes = ClassProbabilities(logits)
    negative_entropies = classes.p * classes.log
    total = negative_entropies.sum(1, keepdim=True)
    others = classes.p.scatter(1, top, 0.0)
    log_rest, inverse = torch.log1p(-others), 1 / (1 - others)
    return _Complements(classes, log_rest, inverse, (total - negative_entropies) * inverse - log_rest)
