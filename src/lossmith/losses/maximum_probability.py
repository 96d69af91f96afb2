"""The maximum-probability cross-entropy."""

import torch
from torch import Tensor

from lossmith.losses.contract import ClassificationLoss
from lossmith.numerics.blocks import in_blocks
from lossmith.numerics.rules import Evaluation, GradientRule, IndexRule, Rule
from lossmith.numerics.softmax import ClassProbabilities, target_softmax
from lossmith.numerics.temporaries import overwrite

__all__ = ["MaximumProbabilityCrossEntropyLoss"]


class MaximumProbabilityCrossEntropyLoss(ClassificationLoss):
    """Maximum-probability cross-entropy, ``-(max_c p_c - p) log p``.

    Nothing to learn from examples that are predicted right; for comparison, as it starts slowly with many classes.

    >>> import torch
    >>> loss = MaximumProbabilityCrossEntropyLoss()
    >>> logits = torch.tensor([0.0, 1.0])
    >>> loss(logits, torch.tensor(0)), loss(logits, torch.tensor(1))
    (tensor(0.6069), tensor(0.))

    Reference: Zhou et al. 2019; equation 7 of Battash, Hazan and Wolf.
    """

    name = "mpce"

    def rule(self, logits: Tensor, target: Tensor) -> Rule:
        """Return the rule for class indices, or for a factor per class."""
        return _EveryClass() if target.is_floating_point() else _MaximumProbability()


class _MaximumProbability(IndexRule):
    """With the lead ``D = p_m - p_y`` of the largest class m and ``L = -log p_y``, the loss is ``D L`` and its gradient

    ``p_j D (1 - L)`` away from m and y, ``p_m (D + L (1 - D))`` at m, and ``-(D (1 - p_y) + L p_y (1 + D))`` at y. Nothing
    cancels when ``1 - D`` is taken as ``2 p_y`` and the sum of the rest. Where y is the largest class all of it is 0.
    """

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        index = target.unsqueeze(1)
        softmax = target_softmax(logits, index)
        rival = softmax.direction.argmax(1, keepdim=True)
        rival_prob = softmax.direction.gather(1, rival).clamp(min=0.0)
        behind = (logits.gather(1, index) - logits.gather(1, rival)).clamp(max=0.0)
        lead = -rival_prob * torch.expm1(behind)
        cost = torch.where(behind < 0, softmax.target.surprise.to(logits.dtype), 0.0)
        prob, rest = softmax.target.p.to(logits.dtype), softmax.target.rest.to(logits.dtype)
        bystanders = overwrite(overwrite(softmax.direction, rival, 0.0), index, 0.0)
        lag = 2 * prob + bystanders.sum(1, keepdim=True)
        gradient = overwrite(bystanders * (lead - lead * cost), rival, rival_prob * (lead + cost * lag))
        return (lead * cost).squeeze(1), (overwrite(gradient, index, -(lead * rest + cost * prob * (1 + lead))),)


class _EveryClass(GradientRule):
    """The same for a factor per class ``a_c``: the sum of ``a_c D_c L_c``, which pulls at class j by

    ``p_j sum_c(a_c D_c (1 - L_c)) - a_j (p_j L_j + D_j)``, and at m by ``p_m sum_c a_c (D_c + L_c (1 - D_c))`` over all other c.
    """

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        return in_blocks(self._evaluate_rows, logits, target)

    def _evaluate_rows(self, logits: Tensor, factors: Tensor) -> Evaluation:
        top, classes, lead = _leads(logits)
        cost = classes.surprise
        losses = (factors * lead * cost).sum(1, keepdim=True)
        prob = classes.p.gather(1, top)
        lag = classes.p + classes.p.scatter(1, top, 0.0).sum(1, keepdim=True)  # 1 - D, without a difference
        at_top = prob * (factors * torch.addcmul(lead, cost, lag)).scatter(1, top, 0.0).sum(1, keepdim=True)
        shared = (factors * lead).sum(1, keepdim=True) - losses
        gradient = classes.p * shared - factors * torch.addcmul(lead, classes.p, cost)
        return losses.squeeze(1), (overwrite(gradient, top, at_top),)

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        _, classes, lead = _leads(logits)
        return lead * classes.surprise * grad


def _leads(logits: Tensor) -> tuple[Tensor, ClassProbabilities, Tensor]:
    """Return the most probable class of each row, the probabilities, and by how much it leads each class."""
    top, classes = logits.argmax(1, keepdim=True), ClassProbabilities(logits)
    return top, classes, -classes.p.gather(1, top) * torch.expm1(logits - logits.gather(1, top))
