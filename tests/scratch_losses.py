"""Two losses as somebody might add them: nothing outside of this file knows them."""

from functools import partial

import torch

from lossmith.expressions.limits import Limits
from lossmith.kernels import Rows, Term
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.target_probability import TargetProbabilityLoss

__all__ = ["FadingLoss", "MarginLoss"]


def fading(p, rate):
    """Return ``log(1 - rate log p) / rate`` and its pull."""
    if rate == 0:
        return p.surprise, 1.0
    return torch.log1p(rate * p.surprise) / rate, 1 / (1 + rate * p.surprise)


class FadingLoss(TargetProbabilityLoss):
    """Fading cross-entropy, ``log(1 - rate log p) / rate``: improbable targets pull less. rate >= 0."""

    name = "fading2"
    limits = {"rate": Limits(0.0)}

    def __init__(self, rate=0.5, **options):
        super().__init__(**options)
        self.rate = rate

    def terms(self):
        return (Term(1.0, partial(fading, rate=self.rate)),)


def margin_cross_entropy(logits, target, *, margin, hard):
    """Return the cross-entropy of logits less a margin at the target, and the mean square of the others if wanted."""
    if target.is_floating_point():
        every = [
            margin_cross_entropy(logits, torch.full_like(target[:, 0], c, dtype=torch.long), margin=margin, hard=hard)
            for c in range(logits.shape[1])
        ]
        return (torch.stack(every, 1) * target).sum(1)
    index = target.unsqueeze(1)
    own = logits.gather(1, index) - margin
    others = logits.scatter(1, index, -torch.inf).logsumexp(1, keepdim=True)
    loss = torch.where(others.isfinite(), torch.nn.functional.softplus(others - own, threshold=40.0), 0.0)
    if hard:
        loss = loss + logits.scatter(1, index, 0.0).square().sum(1, keepdim=True) / logits.shape[1]
    return loss.squeeze(1)


class MarginLoss(ClassificationLoss):
    """Cross-entropy with a margin, and a penalty on the logits of other classes if ``hard``."""

    name = "margin-ce"
    limits = {"margin": Limits(0.0)}

    def __init__(self, margin=1.0, hard=False, **options):
        super().__init__(**options)
        self.margin = margin
        self.hard = hard

    def formula(self):
        return Rows(margin_cross_entropy, {"margin": self.margin, "hard": self.hard})
