"""Generalised cross-entropy, between cross-entropy and the mean absolute error, and its relatives."""

from functools import partial
from typing import Unpack

import torch
from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.kernels import Term
from lossmith.losses.contract.options import Options
from lossmith.losses.contract.target_probability import TargetProbabilityLoss
from lossmith.numerics.elementary import as_scalar, box_cox
from lossmith.numerics.probability import Probability

__all__ = ["AsymmetricGeneralizedCrossEntropyLoss", "GeneralizedCrossEntropyLoss", "TruncatedGeneralizedCrossEntropyLoss"]


def generalized(p: Probability, q: float) -> tuple[Tensor, Tensor]:
    """Return ``(1 - p**q) / q`` and its pull ``p**q``.

    Args:
        p: The probability.
        q: Exponent, in [0, 1].

    Returns:
        The value and its pull.
    """
    return p.fall(q), p.power(q)


def truncated(p: Probability, q: float, k: float) -> tuple[Tensor, Tensor]:
    """Return generalised cross-entropy of ``max(p, k)``, which does not pull where ``p <= k``.

    Args:
        p: The probability.
        q: Exponent, in [0, 1].
        k: Probability below which the curve is flat, in [0, 1).

    Returns:
        The value and its pull.
    """
    threshold = -torch.log1p(as_scalar(k - 1, p.p))
    return -box_cox(-torch.minimum(p.surprise, threshold), q), torch.where(p.surprise < threshold, p.power(q), 0.0)


def asymmetric(p: Probability, b: float, q: float) -> tuple[Tensor, Tensor]:
    """Return ``((b + 1)**q - (b + p)**q) / q`` and its pull ``p (b + p)**(q - 1)``.

    Args:
        p: The probability.
        b: Number added to the probability, >= 0.
        q: Exponent, >= 0.

    Returns:
        The value and its pull.
    """
    log_ratio, log_top = p.log_shifted(b), torch.log1p(as_scalar(b, p.p))
    return -torch.exp(q * log_top) * p.box_cox(log_ratio, q), torch.exp(p.log + (q - 1) * (log_ratio + log_top))


class GeneralizedCrossEntropyLoss(TargetProbabilityLoss):
    """Generalised cross-entropy, ``(1 - p**q) / q``: a good first choice on noisy labels.

    Learns nearly as fast as cross-entropy and is bounded by 1/q. 0 <= q <= 1: cross-entropy when q = 0, the expectation
    loss when q = 1. With many classes use a smaller q, such as 0.48 for a thousand.

    >>> import torch
    >>> GeneralizedCrossEntropyLoss(q=0.5)(torch.zeros(4), torch.tensor(0))
    tensor(1.)

    Args:
        q: Position between cross-entropy, 0, and the expectation loss, 1.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Zhang and Sabuncu 2018; genCE of Staats, Thamm and Rosenow, "Noise-robust loss functions", table 1.
    """

    name = "gce"
    limits = {"q": Limits(0.0, 1.0)}
    presets = {10: {"q": 0.7}, 100: {"q": 0.7}, 1000: {"q": 0.48}}
    q: float

    def __init__(self, q: float = 0.7, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.q = q

    def terms(self) -> tuple[Term, ...]:
        """Return ``(1 - p**q) / q``."""
        return (Term(1.0, partial(generalized, q=self.q)),)


class TruncatedGeneralizedCrossEntropyLoss(GeneralizedCrossEntropyLoss):
    """Generalised cross-entropy that gives up on improbable targets: constant, with no gradient, where ``p <= k``.

    Use it when many labels are wrong, after some epochs of another loss: what the model still finds improbable by then is
    left alone. 0 <= q <= 1, 0 <= k < 1; ``gce`` when k = 0.

    >>> import torch
    >>> loss = TruncatedGeneralizedCrossEntropyLoss(q=1.0, k=0.5)
    >>> loss(torch.tensor([0.0, 5.0]), torch.tensor(0)), loss(torch.tensor([0.0, 9.0]), torch.tensor(0))
    (tensor(0.5000), tensor(0.5000))

    Args:
        q: Position between cross-entropy, 0, and the expectation loss, 1.
        k: Probability below which a target is given up on, 0 <= k < 1.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Zhang and Sabuncu 2018, equation 9; compared with in Battash, Hazan and Wolf.
    """

    name = "truncated-gce"
    limits = {"q": Limits(0.0, 1.0), "k": Limits(0.0, 1.0, high_open=True, usual=(0.0, 0.5))}
    presets = {}
    k: float

    def __init__(self, q: float = 0.7, k: float = 0.5, **options: Unpack[Options]) -> None:
        super().__init__(q, **options)
        self.k = k

    def terms(self) -> tuple[Term, ...]:
        """Return generalised cross-entropy of ``max(p, k)``."""
        return (Term(1.0, partial(truncated, q=self.q, k=self.k)),)


class AsymmetricGeneralizedCrossEntropyLoss(TargetProbabilityLoss):
    """Asymmetric generalised cross-entropy, ``((b + 1)**q - (b + p)**q) / q``.

    Robust while the true label is the most frequent one for each input; b >= 0 softens the pull of improbable targets,
    q >= 0. ``gce`` when b = 0, cross-entropy when b = 0 and q = 0, the expectation loss when q = 1.

    >>> import torch
    >>> AsymmetricGeneralizedCrossEntropyLoss(b=1.0, q=2.0)(torch.zeros(2), torch.tensor(0))
    tensor(0.8750)

    Args:
        b: Number added to the probability, >= 0; the larger, the softer the pull of improbable targets.
        q: Exponent, >= 0.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Zhou et al. 2021; AGCE of Staats, Thamm and Rosenow, "Noise-robust loss functions", table 1, with the
    derivative ``-p (b + p)**(q - 1)`` where the paper prints another index.
    """

    name = "agce"
    limits = {"b": Limits(0.0, usual=(0.0, 6.0)), "q": Limits(0.0, usual=(0.0, 3.0))}
    presets = {10: {"b": 0.6, "q": 0.6}, 100: {"b": 1e-5, "q": 0.5}, 1000: {"b": 1e-5, "q": 0.5}}
    b: float
    q: float

    def __init__(self, b: float = 0.6, q: float = 0.6, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.b = b
        self.q = q

    def terms(self) -> tuple[Term, ...]:
        """Return ``((b + 1)**q - (b + p)**q) / q``."""
        return (Term(1.0, partial(asymmetric, b=self.b, q=self.q)),)
