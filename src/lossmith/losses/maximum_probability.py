"""The maximum-probability cross-entropy."""

import torch
from torch import Tensor

from lossmith.losses.contract import ClassificationLoss
from lossmith.numerics.rowwise import Evaluation, IndexRule, rowwise_loss
from lossmith.numerics.softmax import target_softmax
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

    def example_losses(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the losses; for a factor per class, their sum."""
        if not target.is_floating_point():
            return rowwise_loss(_MaximumProbability(), logits, target)
        log_probs = torch.log_softmax(logits, 1)
        lead = -torch.exp(log_probs.amax(1, keepdim=True)) * torch.expm1(logits - logits.amax(1, keepdim=True))
        return -(target * lead * log_probs).sum(1)


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
