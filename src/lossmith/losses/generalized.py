"""Generalised cross-entropy, between cross-entropy and the mean absolute error, and its relatives."""

from typing import Unpack

import torch
from torch import Tensor

from lossmith.losses.contract import Options
from lossmith.losses.limits import Limits
from lossmith.losses.target_probability import TargetProbabilityLoss
from lossmith.numerics.box_cox import box_cox_and_power, fall_and_power
from lossmith.numerics.probability import Probability
from lossmith.numerics.scalars import as_scalar

__all__ = ["AsymmetricGeneralizedCrossEntropyLoss", "GeneralizedCrossEntropyLoss", "TruncatedGeneralizedCrossEntropyLoss"]


class GeneralizedCrossEntropyLoss(TargetProbabilityLoss):
    """Generalised cross-entropy, ``(1 - p**q) / q``: a good first choice on noisy labels.

    Learns nearly as fast as cross-entropy and is bounded by 1/q. 0 <= q <= 1: cross-entropy when q = 0, the expectation
    loss when q = 1. With many classes use a smaller q, such as 0.48 for a thousand.

    >>> import torch
    >>> GeneralizedCrossEntropyLoss(q=0.5)(torch.zeros(4), torch.tensor(0))
    tensor(1.)

    Reference: Zhang and Sabuncu 2018; genCE of Staats, Thamm and Rosenow, "Noise-robust loss functions", table 1.
    """

    name = "gce"
    limits = {"q": Limits(0.0, 1.0)}
    presets = {10: {"q": 0.7}, 100: {"q": 0.7}, 1000: {"q": 0.48}}
    q: float

    def __init__(self, q: float = 0.7, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.q = q

    def value_and_pull(self, target: Probability) -> tuple[Tensor, Tensor]:
        """Return ``(1 - p**q) / q`` and ``p**q``."""
        return fall_and_power(target, self.q)


class TruncatedGeneralizedCrossEntropyLoss(GeneralizedCrossEntropyLoss):
    """Generalised cross-entropy that gives up on improbable targets: constant, with no gradient, where ``p <= k``.

    Use it when many labels are wrong, after some epochs of another loss: what the model still finds improbable by then is
    left alone. 0 <= q <= 1, 0 <= k < 1; ``gce`` when k = 0.

    >>> import torch
    >>> loss = TruncatedGeneralizedCrossEntropyLoss(q=1.0, k=0.5)
    >>> loss(torch.tensor([0.0, 5.0]), torch.tensor(0)), loss(torch.tensor([0.0, 9.0]), torch.tensor(0))
    (tensor(0.5000), tensor(0.5000))

    Reference: Zhang and Sabuncu 2018, equation 9; compared with in Battash, Hazan and Wolf.
    """

    name = "truncated-gce"
    limits = {"q": Limits(0.0, 1.0), "k": Limits(0.0, 1.0, high_open=True)}
    presets = {}
    k: float

    def __init__(self, q: float = 0.7, k: float = 0.5, **options: Unpack[Options]) -> None:
        super().__init__(q, **options)
        self.k = k

    def value_and_pull(self, target: Probability) -> tuple[Tensor, Tensor]:
        """Return those of generalised cross-entropy for ``max(p, k)``."""
        threshold = -torch.log1p(as_scalar(self.k - 1, target.p))
        value, pull = super().value_and_pull(Probability(target.p, target.rest, torch.minimum(target.surprise, threshold)))
        return value, torch.where(target.surprise < threshold, pull, 0.0)


class AsymmetricGeneralizedCrossEntropyLoss(TargetProbabilityLoss):
    """Asymmetric generalised cross-entropy, ``((b + 1)**q - (b + p)**q) / q``.

    Robust while the true label is the most frequent one for each input; b >= 0 softens the pull of improbable targets,
    q >= 0. ``gce`` when b = 0, cross-entropy when b = 0 and q = 0, the expectation loss when q = 1.

    >>> import torch
    >>> AsymmetricGeneralizedCrossEntropyLoss(b=1.0, q=2.0)(torch.zeros(2), torch.tensor(0))
    tensor(0.8750)

    Reference: Zhou et al. 2021; AGCE of Staats, Thamm and Rosenow, "Noise-robust loss functions", table 1, with the
    derivative ``-p (b + p)**(q - 1)`` where the paper prints another index.
    """

    name = "agce"
    limits = {"b": Limits(0.0), "q": Limits(0.0)}
    presets = {10: {"b": 0.6, "q": 0.6}, 100: {"b": 1e-5, "q": 0.5}, 1000: {"b": 1e-5, "q": 0.5}}
    b: float
    q: float

    def __init__(self, b: float = 0.6, q: float = 0.6, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.b = b
        self.q = q

    def value_and_pull(self, target: Probability) -> tuple[Tensor, Tensor]:
        """Return the value by way of ``(b + p) / (b + 1)``, whose logarithm is exact on both ends."""
        b = as_scalar(self.b, target.p)
        log_ratio = self._log_ratio(target, b)
        change, _ = box_cox_and_power(log_ratio, self.q)
        log_shifted = log_ratio + torch.log1p(b)
        if self.b > 0:
            pull = target.p * torch.exp((self.q - 1) * log_shifted)
        else:  # of which the first factor may vanish and the second be infinite
            pull = torch.exp(target.log + (self.q - 1) * log_shifted)
        return change * -torch.exp(self.q * torch.log1p(b)), pull

    def _log_ratio(self, target: Probability, b: Tensor) -> Tensor:
        """Return ``log((b + p) / (b + 1))``, from the difference of the two where they differ little."""
        if 0 < self.b < 1 and target.most < (1 - self.b) / 2:
            return torch.log(target.p + b) - torch.log1p(b)
        if self.b >= 1:
            return torch.log1p(-target.rest / (1 + self.b))
        is_near = target.rest < (1 + self.b) / 2
        near = torch.log1p(torch.where(is_near, -target.rest, 0.0) / (1 + self.b))  # where it is not, the slope may be infinite
        return torch.where(is_near, near, torch.logaddexp(target.log, torch.log(b)) - torch.log1p(b))
