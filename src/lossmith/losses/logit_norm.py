"""Cross-entropy of logits that are scaled to one length."""

import math
from typing import Unpack

import torch
from torch import Tensor

from lossmith.losses.contract import ClassificationLoss, Options
from lossmith.losses.limits import Limits
from lossmith.losses.term_rules import sum_of_surprises
from lossmith.numerics.blocks import FEW_PASSES, MANY_PASSES, in_blocks
from lossmith.numerics.norms import Directions, inverse_norm
from lossmith.numerics.precision import rounded
from lossmith.numerics.rules import Evaluation, IndexRule, Rule
from lossmith.numerics.softmax import ClassProbabilities, target_softmax, values_are_at_hand

__all__ = ["LogitNormLoss"]

_LOG2_E = math.log2(math.e)
# The exponentials of vectors that are shorter than this, their sums and their quotients are numbers in single precision.
_SHORT = 36.0


class LogitNormLoss(ClassificationLoss):
    """Cross-entropy of normalised logits, ``-log softmax(z / (tau ||z||))_y``: accurate and calibrated on clean labels.

    Only the direction of the logits counts, so that training cannot lower the loss by making them large. tau > 0 sets how
    confident the model can become: the smaller, the more. Logits that are all 0 have no direction; they are left as they
    are, and their gradient is finite. Cross-entropy of ``z`` when ``||z|| = 1 / tau``.

    >>> import torch
    >>> loss, target = LogitNormLoss(tau=0.5), torch.tensor(0)
    >>> loss(torch.tensor([3.0, 4.0]), target), loss(torch.tensor([30.0, 40.0]), target)
    (tensor(0.9130), tensor(0.9130))

    Reference: equation 6 of Kornblith et al., "What's in a loss function for image classification?"; presets of tables A.1, A.2.
    """

    name = "logit-norm"
    limits = {"tau": Limits(0.0, low_open=True)}
    presets = {10: {"tau": 0.14}, 100: {"tau": 0.11}, 1000: {"tau": 0.04}}
    tau: float

    def __init__(self, tau: float = 0.04, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.tau = tau

    def rule(self, logits: Tensor, target: Tensor) -> Rule:
        """Return the rule for class indices, or for a factor per class."""
        return (_EveryClass if target.is_floating_point() else _Target)(self.tau)

    def predict_proba(self, logits: Tensor) -> Tensor:
        """Return the softmax of the normalised logits."""
        classes = min(1, logits.dim() - 1)
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return torch.softmax(wide * (inverse_norm(wide, classes) / self.tau), classes).to(logits.dtype)

    def kind_of_probabilities(self) -> tuple[str | float, ...]:
        """Return the temperature."""
        return ("softmax of normalised logits", self.tau)


class _Target(IndexRule):
    """With ``v = z / (tau ||z||)``, the gradient with respect to v is pulled back to that with respect to the direction of z."""

    takes_share = True
    at_once = FEW_PASSES

    def __init__(self, tau: float) -> None:
        self.length = 1 / tau

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        is_short = values_are_at_hand(logits) and logits.dim() == 2 and self.length < _SHORT
        return in_blocks(self._by_powers if is_short else self._by_softmax, logits, target, self.at_once)

    def _by_powers(self, logits: Tensor, target: Tensor) -> Evaluation:
        """No exponential of v is out of range, so that none needs to be divided by the largest, or by their sum but at the end.

        ``e**v`` is ``2**(v log2(e))``, the fastest exponential of torch, whose factor costs nothing here.
        """
        index, directions = target.unsqueeze(1), Directions(logits, self.length * _LOG2_E)
        if not directions.are_moderate:
            return self._by_softmax(logits, target)
        powers = directions.scaled.exp2_()
        own, total = powers.gather(1, index), powers.sum(1, keepdim=True)
        inverse = total / own
        if inverse.amin().item() > 2:
            losses, rest = inverse.log_(), total - own
        else:  # what one class leaves to the others is lost in the sum of all
            rest = powers.scatter_(1, index, 0.0).sum(1, keepdim=True)
            losses, total = torch.log1p(rest / own), own + rest
        lengths = torch.scalar_tensor(self.length * self.share, dtype=logits.dtype, device=logits.device) / total
        return losses.squeeze(1), (directions.pull_back(powers.scatter_(1, index, -rest), lengths),)

    def _by_softmax(self, logits: Tensor, target: Tensor) -> Evaluation:
        directions = Directions(logits, self.length)
        value, gradient = self._value_and_gradient(directions.scaled, target)
        del directions.scaled  # makes room for the next buffer
        return rounded(value.squeeze(1), logits), (directions.pull_back(gradient, self.length * self.share),)

    def _value_and_gradient(self, normalized: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        softmax = target_softmax(normalized, target.unsqueeze(1))
        return softmax.target.surprise, softmax.direction


class _EveryClass(_Target):
    """The same for a factor per class; what is kept is minus the gradient."""

    factor = -1.0
    at_once = MANY_PASSES

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        return in_blocks(self._by_softmax, logits, target, self.at_once)

    def _value_and_gradient(self, normalized: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        return sum_of_surprises(normalized, target)

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        return ClassProbabilities(Directions(logits, self.length).scaled).surprise * grad
