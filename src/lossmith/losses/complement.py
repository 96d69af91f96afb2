"""Complement objective training: cross-entropy, and a flat distribution over the classes that are not the target."""

from typing import Unpack

import torch
from torch import Tensor

from lossmith.losses.contract import ClassificationLoss, Options
from lossmith.losses.cross_entropy import CrossEntropyLoss
from lossmith.losses.limits import Limits
from lossmith.losses.normalized import log_complement
from lossmith.losses.weighted_sum import WeightedSum
from lossmith.numerics.rowwise import Evaluation, IndexRule, in_blocks, rowwise_loss
from lossmith.numerics.softmax import ClassProbabilities
from lossmith.numerics.temporaries import overwrite

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

    def example_losses(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the losses; for a factor per class, their sum."""
        if not target.is_floating_point():
            return rowwise_loss(_ComplementOfTarget(), logits, target)
        top = logits.argmax(1, keepdim=True)
        of_top = rowwise_loss(_ComplementOfTarget(), logits, top.squeeze(1)).unsqueeze(1)
        return (target * _complement_of_each(logits, top).scatter(1, top, of_top)).sum(1)


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
        index = target.unsqueeze(1)
        # The lowest finite number and not -inf, for a row of which nothing is left must not become NaN.
        left = ClassProbabilities(logits.scatter(1, index, torch.finfo(logits.dtype).min))
        log_shares = overwrite(left.log, index, 0.0)
        shares = overwrite(left.p, index, 0.0)
        losses = (shares * log_shares).sum(1, keepdim=True)
        return losses.squeeze(1), (shares * (log_shares - losses),)


def _complement_of_each(logits: Tensor, top: Tensor) -> Tensor:
    """Return ``(sum over j != c of p_j log p_j) / (1 - p_c) - log(1 - p_c)`` for every class c but the most probable one.

    All other classes leave ``1 - p_c >= 1/2``, so that nothing here is divided by a small number.
    """
    classes = ClassProbabilities(logits)
    log_probs, negative_entropies = classes.log, classes.p * classes.log
    total = negative_entropies.sum(1, keepdim=True)
    log_rest = log_complement(logits, log_probs).scatter(1, top, 0.0)
    return (total - negative_entropies) * torch.exp(-log_rest) - log_rest
