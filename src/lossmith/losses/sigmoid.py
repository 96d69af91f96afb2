"""Cross-entropy of one sigmoid per class."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lossmith.losses.contract import ClassificationLoss
from lossmith.numerics.blocks import FEW_PASSES, in_blocks, in_blocks_of
from lossmith.numerics.rowwise import rowwise_loss
from lossmith.numerics.rules import Evaluation, GradientRule, IndexRule, Rule
from lossmith.numerics.sigmoid import losses_and_slopes, softplus
from lossmith.numerics.softmax import values_are_at_hand

__all__ = ["SigmoidCrossEntropyLoss"]


class SigmoidCrossEntropyLoss(ClassificationLoss):
    """Sigmoid cross-entropy, ``-log sigmoid(z_y) - sum over c != y of log sigmoid(-z_c)``: one yes or no for every class.

    Use it for many classes, and where several labels can be true at once: a floating-point target may then hold a number
    in [0, 1] for each class, whatever their sum. Call ``init_bias_`` on the final layer before training, or the first
    steps only teach that most classes are absent. With class weights, a class that is present counts with its own weight,
    an absent one with the mean weight of those that are present. ``torch.nn.BCEWithLogitsLoss``, summed over the classes,
    when the target is multi-label and there are no weights.

    >>> import torch
    >>> loss, logits = SigmoidCrossEntropyLoss(), torch.tensor([[0.0, 2.0, -1.0]])
    >>> loss(logits, torch.tensor([1])), loss(logits, torch.tensor([[1.0, 1.0, 0.0]]))
    (tensor(1.1333), tensor(1.1333))
    >>> loss.predict_proba(logits)
    tensor([[0.3031, 0.5339, 0.1630]])

    Reference: equation 9 of Kornblith et al., "What's in a loss function for image classification?"
    """

    name = "sigmoid"

    def rule(self, logits: Tensor, target: Tensor) -> Rule:
        """Return the rule for class indices, or for a factor per class."""
        return _Presence(adds_up=True) if target.is_floating_point() else _SigmoidTarget()

    def weighted_soft_losses(self, logits: Tensor, probabilities: Tensor, weight: Tensor | None) -> Tensor:
        """Return equation 9 for any targets in [0, 1]; for a distribution, that is the expected class-weighted loss."""
        if weight is None:
            return rowwise_loss(_Presence(adds_up=False), logits, probabilities)
        present = probabilities * weight
        absent = (1 - probabilities) * _mean_weight_of_others(probabilities, present, weight)
        return (present * softplus(-logits) + absent * softplus(logits)).sum(1)

    def predict_proba(self, logits: Tensor) -> Tensor:
        """Return the sigmoids, divided by their sum."""
        # In logarithms, so that classes that are all improbable keep their proportions.
        return torch.softmax(F.logsigmoid(logits), min(1, logits.dim() - 1))

    def kind_of_probabilities(self) -> tuple[str | float, ...]:
        """Return that they are sigmoids."""
        return ("sigmoids",)

    @staticmethod
    def init_bias_(head: nn.Module) -> None:
        """Set the biases of a final layer to ``-log K``, so that every class starts at a probability of about 1/K.

        >>> head = nn.Linear(8, 4)
        >>> SigmoidCrossEntropyLoss.init_bias_(head)
        >>> head.bias.detach()
        tensor([-1.3863, -1.3863, -1.3863, -1.3863])
        """
        bias = getattr(head, "bias", None)
        if not isinstance(bias, Tensor):
            raise TypeError(f"SigmoidCrossEntropyLoss: head must be a layer with biases, got {type(head).__name__}.")
        with torch.no_grad():
            bias.fill_(-math.log(bias.numel()))


class _SigmoidTarget(IndexRule):
    """The gradient is ``sigmoid(z)``, and ``-sigmoid(-z)`` at the target."""

    takes_share = True

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        return in_blocks_of(self._evaluate_rows, logits, target, FEW_PASSES)

    def _evaluate_rows(self, logits: Tensor, target: Tensor, place: Tensor | None) -> Evaluation:
        losses, slopes = losses_and_slopes(logits, target.unsqueeze(1), self.share, place)
        return losses, (slopes,)


class _Presence(GradientRule):
    """Classes that are present to extents t and absent to what is left of their sum, if they add up to that, and else of 1.

    The loss is the sum of ``t softplus(-z) + (total - t) softplus(z)``, its gradient ``(total - t) sigmoid(z) - t sigmoid(-z)``.
    """

    def __init__(self, *, adds_up: bool) -> None:
        self.adds_up = adds_up

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        return in_blocks(self._evaluate_rows, logits, target)

    def _evaluate_rows(self, logits: Tensor, present: Tensor) -> Evaluation:
        total = present.sum(1, keepdim=True) if self.adds_up else torch.ones_like(present[:, :1])
        absent = total - present
        if not values_are_at_hand(logits):
            losses = (present * softplus(-logits) + absent * softplus(logits)).sum(1)
            return losses, (absent * torch.sigmoid(logits) - present * torch.sigmoid(-logits),)
        # softplus(z) = log(1 + exp(-|z|)) + max(z, 0): the logarithm is the same on both sides.
        above, below = logits.clamp_min(0.0), logits.neg().clamp_min_(0.0)
        outside = (absent * above).addcmul_(present, below).sum(1, keepdim=True)
        small = above.add_(below).neg_().exp_()
        losses = torch.addcmul(outside, total, small.log1p_().sum(1, keepdim=True))
        slope = absent.mul_(torch.sigmoid(logits)).addcmul_(present, torch.sigmoid(-logits), value=-1)
        return losses.squeeze(1), (slope,)

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        slope = softplus(logits).sum(1, keepdim=True) - logits if self.adds_up else -logits
        return slope * grad


def _mean_weight_of_others(probabilities: Tensor, weighted: Tensor, weight: Tensor) -> Tensor:
    others = probabilities.sum(1, keepdim=True) - probabilities
    weighted_others = weighted.sum(1, keepdim=True) - weighted
    has_others = others > 0
    return torch.where(has_others, weighted_others / torch.where(has_others, others, 1.0), weight.mean())
