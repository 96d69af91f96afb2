"""The maximum-probability cross-entropy."""

import torch
from torch import Tensor

from lossmith.losses.contract import ClassificationLoss
from lossmith.numerics.rowwise import Evaluation, rowwise_loss
from lossmith.numerics.softmax import overwrite, target_softmax

__all__ = ["MaximumProbabilityCrossEntropyLoss"]


class MaximumProbabilityCrossEntropyLoss(ClassificationLoss):
    r"""Maximum-probability cross-entropy, :math:`-(\max_c p_c - p_y) \log p_y`.

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
        largest = logits.amax(1, keepdim=True)
        top_log_prob = largest - logits.logsumexp(1, keepdim=True)
        lead = -torch.exp(top_log_prob) * torch.expm1(logits - largest)
        return -(target * lead * log_probs).sum(1)


class _MaximumProbability:
    """With the lead ``D = p_m - p_y`` of the largest class m and ``L = -log p_y``, the loss is ``D L`` and its gradient

    ``p_j (D - D L)`` away from m and y, ``p_m (D + L (1 - D))`` at m, and ``-(D (1 - p_y) + L p_y (1 + D))`` at y: sums of
    terms of one sign, so that nothing cancels. Where y is the largest class all of it is 0.
    """

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        index = target.unsqueeze(1)
        softmax = target_softmax(logits, index)
        rival = softmax.direction.argmax(1, keepdim=True)
        rival_prob = softmax.direction.gather(1, rival).clamp(min=0.0)
        behind = (logits.gather(1, index) - logits.gather(1, rival)).clamp(max=0.0)
        lead = -rival_prob * torch.expm1(behind)
        cost = torch.where(behind < 0, -softmax.target.log, 0.0)
        gradient = softmax.direction * (lead - lead * cost)
        gradient = overwrite(gradient, rival, rival_prob * (lead + cost * (1 - lead)))
        target_entry = -(lead * softmax.target.rest + cost * softmax.target.p * (1 + lead))
        return (lead * cost).squeeze(1), (overwrite(gradient, index, target_entry),)

    def pullback(self, grad: Tensor, target: Tensor, saved: tuple[Tensor, ...]) -> Tensor:
        return grad.unsqueeze(1) * saved[0]

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        raise NotImplementedError("class indices have no gradient")
