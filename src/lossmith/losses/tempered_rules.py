"""Losses of tempered probabilities p with their gradients in closed form.

With ``pull = p**t2 dloss/dp`` and the escort distribution ``E = p**t2 / sum(p**t2)``, the gradient with respect to the logits
is ``pull - E sum(pull)``. The rules for probability targets work with logarithms of p and can be differentiated again; those
for class indices are fast, and hand over to the former where a gradient is recorded.
"""

from abc import abstractmethod

import torch
from torch import Tensor

from lossmith.losses.targets import one_hot
from lossmith.numerics.blocks import in_blocks
from lossmith.numerics.box_cox import box_cox
from lossmith.numerics.bregman import tempered_divergence, tempered_divergence_from_one
from lossmith.numerics.normaliser import normalise
from lossmith.numerics.rules import Evaluation, GradientRule
from lossmith.numerics.tempered import TemperedProbs, escort_pullback, power, tempered_probs
from lossmith.numerics.temporaries import overwrite

__all__ = ["Divergence", "TargetDivergence", "TargetTsallis", "Tsallis"]


class _TemperedRule(GradientRule):
    """A rule for probability targets. A subclass gives the loss and the pull."""

    def __init__(self, t1: float, t2: float, owner: str) -> None:
        self.t1 = t1
        self.t2 = t2
        self.owner = owner

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        return in_blocks(self._evaluate_rows, logits, target)

    def _evaluate_rows(self, logits: Tensor, target: Tensor) -> Evaluation:
        tempered = tempered_probs(logits, self.t2, self.owner)
        gradient = escort_pullback(self._pull(tempered, target), tempered.log_probs, self.t2)
        return self._losses(tempered, target), (gradient,)

    @abstractmethod
    def _losses(self, tempered: TemperedProbs, target: Tensor) -> Tensor: ...

    @abstractmethod
    def _pull(self, tempered: TemperedProbs, target: Tensor) -> Tensor: ...

    @abstractmethod
    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor: ...


class Divergence(_TemperedRule):
    """The divergence between a target distribution y and p: ``pull = p**(t2-t1) (p - y)``."""

    def _losses(self, tempered: TemperedProbs, target: Tensor) -> Tensor:
        return tempered_divergence(target, tempered.log_probs, self.t1).sum(1)

    def _pull(self, tempered: TemperedProbs, target: Tensor) -> Tensor:
        probs, log_probs = tempered
        top = log_probs.argmax(1, keepdim=True)
        # Where one class has most of the mass, p - y = (1 - y) - (1 - p), and 1 - p is the sum of the others.
        rest = probs.scatter(1, top, 0.0).sum(1, keepdim=True)
        error = probs - target
        top_error = torch.where(rest < 0.5, 1 - target.gather(1, top) - rest, error.gather(1, top))
        return power(log_probs, self.t2 - self.t1) * error.scatter(1, top, top_error)

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        """The derivative is ``log_t1 y - log_t1 p``; at y = 0 it is kept finite, as y = 0 times infinity would follow."""
        log_target = target.clamp(min=torch.finfo(target.dtype).tiny).log()
        log_probs = tempered_probs(logits, self.t2, self.owner).log_probs
        return grad * (box_cox(log_target, 1 - self.t1) - box_cox(log_probs, 1 - self.t1))


class Tsallis(_TemperedRule):
    """The sum of ``-y_c log_t1 p_c`` for a factor per class y: ``pull = -y p**(t2-t1)``."""

    def _losses(self, tempered: TemperedProbs, target: Tensor) -> Tensor:
        return torch.where(target == 0, 0.0, -target * box_cox(tempered.log_probs, 1 - self.t1)).sum(1)

    def _pull(self, tempered: TemperedProbs, target: Tensor) -> Tensor:
        return -target * power(tempered.log_probs, self.t2 - self.t1)

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        """The derivative is ``-log_t1 p``."""
        log_probs = tempered_probs(logits, self.t2, self.owner).log_probs
        return -grad * box_cox(log_probs, 1 - self.t1)


class TargetDivergence(Divergence):
    """The divergence from class indices: the pull is ``p**(1+t2-t1)``, less ``p**(t2-t1)`` at the target."""

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        """Return losses and gradient, by the rule for probabilities where speed is not the point."""
        if torch.is_grad_enabled() or self.t1 > 1 or self.t2 < 1:
            return super().evaluate(logits, one_hot(logits, target))
        return in_blocks(self._evaluate_target, logits, target)

    def _evaluate_target(self, logits: Tensor, target: Tensor) -> Evaluation:
        """Take ``dloss/dp`` less its value at the largest class: a constant changes nothing, and that entry cannot cancel."""
        index = target.unsqueeze(1)
        seen = _SeenFromTarget(logits, index, self.t2, self.owner)
        slopes = seen.solution.power(1 - self.t1)
        shares = (seen.other_probs * slopes).sum(1, keepdim=True)
        losses = tempered_divergence_from_one(seen.log_prob, self.t1) + shares / (2 - self.t1)
        top_slope = slopes.amax(1, keepdim=True)
        target_pull = -power(seen.log_prob, self.t2 - self.t1) * seen.rest - seen.target_weight * top_slope
        target_pull = torch.where(seen.is_top, 0.0, target_pull)
        slopes = slopes - torch.where(seen.is_top, -power(seen.log_prob, -self.t1) * seen.rest, top_slope)
        pull = (seen.other_weights * slopes).sum(1, keepdim=True) + target_pull
        mean = pull / (seen.other_weight + seen.target_weight)
        gradient = slopes.sub_(mean).mul_(seen.other_weights)
        gradient = overwrite(gradient, index, target_pull - seen.target_weight * mean)
        return losses.squeeze(1), (gradient,)


class TargetTsallis(Tsallis):
    """``-log_t1 p_y`` from class indices: the gradient is ``p_y**(t2-t1) (E - onehot)``."""

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        """Return losses and gradient, by the rule for probabilities where speed is not the point."""
        if torch.is_grad_enabled() or self.t2 < 1:
            return super().evaluate(logits, one_hot(logits, target))
        return in_blocks(self._evaluate_target, logits, target)

    def _evaluate_target(self, logits: Tensor, target: Tensor) -> Evaluation:
        index = target.unsqueeze(1)
        seen = _SeenFromTarget(logits, index, self.t2, self.owner)
        pull = power(seen.log_prob, self.t2 - self.t1) / (seen.other_weight + seen.target_weight)
        gradient = overwrite(seen.other_weights * pull, index, -pull * seen.other_weight)
        return -box_cox(seen.log_prob, 1 - self.t1).squeeze(1), (gradient,)


class _SeenFromTarget:
    """Tempered probabilities and escort weights ``p**t2``, those of the target apart from the others."""

    def __init__(self, logits: Tensor, index: Tensor, t2: float, owner: str) -> None:
        self.solution = normalise(logits, t2, owner)
        gap = self.solution.gap.gather(1, index)
        self.is_top = gap == 0
        self.other_weights = overwrite(self.solution.escort_weights(), index, 0.0)
        self.other_weight = self.other_weights.sum(1, keepdim=True)
        self.other_probs = overwrite(self.solution.probs, index, 0.0)
        self.rest = self.other_probs.sum(1, keepdim=True)
        self.log_prob = torch.where(self.rest < 0.5, torch.log1p(-self.rest), self.solution.log_probs(gap))
        self.target_weight = power(self.log_prob, t2)
