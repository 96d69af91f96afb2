"""Losses divided by their sum over all classes, which makes any loss robust to noise, and their sums with a bounded loss."""

from functools import partial
from typing import Unpack

import torch
from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.kernels import Formula, Rows, Term, cross_entropy
from lossmith.losses.contract.options import Options
from lossmith.losses.contract.target_probability import TargetProbabilityLoss
from lossmith.losses.expectation import expectation
from lossmith.losses.focal import focal
from lossmith.losses.generalized import asymmetric

__all__ = [
    "NormalizedCrossEntropyAGCELoss",
    "NormalizedCrossEntropyLoss",
    "NormalizedCrossEntropyMAELoss",
    "NormalizedFocalLoss",
    "NormalizedFocalMAELoss",
]

_FOCAL_GAMMA = 0.5


def printed_focal(logits: Tensor, target: Tensor, *, gamma: float) -> Tensor:
    """Return ``log((1 - p_y)**gamma p_y)`` divided by its sum over the classes.

    Args:
        logits: ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.
        gamma: Exponent, >= 0.

    Returns:
        Losses ``(N, ...)``.
    """
    log_probs = torch.log_softmax(logits, 1)
    costs = -gamma * log_complement(logits, log_probs) - log_probs
    if target.is_floating_point():
        cost = (costs * target).sum(1)
    else:
        cost = costs.gather(1, target.unsqueeze(1)).squeeze(1)
    total = costs.sum(1)
    return cost / torch.where(total == 0, 1.0, total)


class NormalizedCrossEntropyLoss(TargetProbabilityLoss):
    """Normalised cross-entropy, ``log p / sum_c log p_c``.

    In [0, 1] and symmetric, hence robust to label noise, but underfits alone: use it as the active part of a sum such as
    ``nce-mae`` or ``nce-agce``.

    >>> import torch
    >>> NormalizedCrossEntropyLoss()(torch.zeros(4), torch.tensor(0))
    tensor(0.2500)

    Args:
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Ma et al. 2020; NCE of Staats, Thamm and Rosenow, "Noise-robust loss functions", table 1.
    """

    name = "nce"

    def terms(self) -> tuple[Term, ...]:
        """Return cross-entropy, normalised."""
        return (Term(1.0, cross_entropy, normalized=True),)


class NormalizedFocalLoss(TargetProbabilityLoss):
    """Normalised focal loss, ``(1 - p)**gamma log p / sum_c (1 - p_c)**gamma log p_c``.

    In [0, 1] and robust to label noise; the active part of ``nf-mae``. gamma >= 0; ``nce`` when gamma = 0.
    ``printed=True`` is the form printed by Staats, Thamm and Rosenow, with ``log((1 - p)**gamma p)`` in both places, which
    also pushes probabilities away from 1.

    >>> import torch
    >>> NormalizedFocalLoss()(torch.zeros(4), torch.tensor(0))
    tensor(0.2500)

    Args:
        gamma: How much less well predicted examples count, >= 0.
        printed: Whether to take the form that is printed in the paper by Staats, Thamm and Rosenow.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Ma et al. 2020; NF of Staats, Thamm and Rosenow, "Noise-robust loss functions", table 1.
    """

    name = "nf"
    limits = {"gamma": Limits(0.0, usual=(0.0, 5.0))}
    gamma: float

    def __init__(self, gamma: float = _FOCAL_GAMMA, printed: bool = False, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        if not isinstance(printed, bool):
            raise TypeError(f"NormalizedFocalLoss: printed must be True or False, got {printed!r}.")
        self.gamma = gamma
        self.printed = printed

    def terms(self) -> tuple[Term, ...]:
        """Return the focal loss, normalised."""
        return (Term(1.0, partial(focal, gamma=self.gamma), normalized=True),)

    def formula(self) -> Formula:
        """Return the formula of either form; the printed one is not a function of the target's probability alone."""
        return Rows(printed_focal, {"gamma": self.gamma}) if self.printed else super().formula()


class NormalizedCrossEntropyMAELoss(TargetProbabilityLoss):
    """Normalised cross-entropy and mean absolute error, ``alpha NCE + beta MAE``, for noisy labels.

    The active first part learns, the passive second resists. alpha, beta >= 0. MAE is ``2 (1 - p)`` here, as in the
    paper whose weights these are; gradients are large, so the learning rate must be small.

    >>> NormalizedCrossEntropyMAELoss.for_classes(100)
    nce-mae(alpha=1.0, beta=20.0)

    Args:
        alpha: Factor of the active part, >= 0.
        beta: Factor of the passive part, >= 0.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Ma et al. 2020; NCE-MAE of Staats, Thamm and Rosenow, "Noise-robust loss functions", appendix table 1.
    """

    name = "nce-mae"
    limits = {"alpha": Limits(0.0), "beta": Limits(0.0)}
    presets = {10: {"alpha": 1.0, "beta": 20.0}, 100: {"alpha": 1.0, "beta": 20.0}, 1000: {"alpha": 1.0, "beta": 20.0}}
    alpha: float
    beta: float

    def __init__(self, alpha: float = 1.0, beta: float = 20.0, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.alpha = alpha
        self.beta = beta

    def terms(self) -> tuple[Term, ...]:
        """Return ``alpha NCE`` and ``2 beta (1 - p)``."""
        return Term(self.alpha, cross_entropy, normalized=True), Term(2 * self.beta, expectation)


class NormalizedFocalMAELoss(NormalizedCrossEntropyMAELoss):
    """Normalised focal loss and mean absolute error, ``alpha NF + beta MAE``, for noisy labels.

    alpha, beta >= 0; see ``nce-mae``. With a hundred classes and more the published beta is 0.2.

    >>> NormalizedFocalMAELoss.for_classes(100)
    nf-mae(alpha=1.0, beta=0.2)

    Args:
        alpha: Factor of the active part, >= 0.
        beta: Factor of the passive part, >= 0.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Ma et al. 2020; NF-MAE of Staats, Thamm and Rosenow, "Noise-robust loss functions", appendix table 1.
    """

    name = "nf-mae"
    presets = {10: {"alpha": 1.0, "beta": 20.0}, 100: {"alpha": 1.0, "beta": 0.2}, 1000: {"alpha": 1.0, "beta": 0.2}}

    def terms(self) -> tuple[Term, ...]:
        """Return ``alpha NF`` and ``2 beta (1 - p)``."""
        active = partial(focal, gamma=_FOCAL_GAMMA)
        return Term(self.alpha, active, normalized=True), Term(2 * self.beta, expectation)


class NormalizedCrossEntropyAGCELoss(TargetProbabilityLoss):
    """Normalised and asymmetric generalised cross-entropy, ``alpha NCE + beta AGCE``, for noisy labels.

    alpha, beta, b, q >= 0. The preset for a thousand classes is the one computed without training.

    >>> NormalizedCrossEntropyAGCELoss.for_classes(1000)
    nce-agce(alpha=100.0, beta=0.7, b=0.05, q=0.05)

    Args:
        alpha: Factor of normalised cross-entropy, >= 0.
        beta: Factor of asymmetric generalised cross-entropy, >= 0.
        b: Number added to the probability in the second part, >= 0.
        q: Exponent of the second part, >= 0.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Zhou et al. 2021; NCE-AGCE of Staats, Thamm and Rosenow, "Noise-robust loss functions", appendix 1 and 4.
    """

    name = "nce-agce"
    limits = {"alpha": Limits(0.0), "beta": Limits(0.0), "b": Limits(0.0, usual=(0.0, 6.0)), "q": Limits(0.0, usual=(0.0, 3.0))}
    presets = {
        10: {"alpha": 1.0, "beta": 4.0, "b": 6.0, "q": 1.5},
        100: {"alpha": 10.0, "beta": 0.1, "b": 1.8, "q": 3.0},
        1000: {"alpha": 100.0, "beta": 0.7, "b": 0.05, "q": 0.05},
    }
    alpha: float
    beta: float
    b: float
    q: float

    def __init__(self, alpha: float = 1.0, beta: float = 4.0, b: float = 6.0, q: float = 1.5, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.alpha = alpha
        self.beta = beta
        self.b = b
        self.q = q

    def terms(self) -> tuple[Term, ...]:
        """Return ``alpha NCE`` and ``beta AGCE``."""
        passive = partial(asymmetric, b=self.b, q=self.q)
        return Term(self.alpha, cross_entropy, normalized=True), Term(self.beta, passive)


def log_complement(logits: Tensor, log_probs: Tensor) -> Tensor:
    """Return ``log(1 - p)`` of every class: finite, as the mass of the others never vanishes for finite logits.

    Args:
        logits: ``(N, C, ...)``.
        log_probs: Their log-softmax.

    Returns:
        Numbers of the same shape.

    >>> logits = torch.tensor([[1000.0, 0.0]])
    >>> log_complement(logits, torch.log_softmax(logits, 1))
    tensor([[-1000.,    -0.]])
    """
    if logits.shape[1] == 1:
        return torch.zeros_like(logits)
    top = logits.argmax(1, keepdim=True)
    # Only the largest probability can be close to 1; it is taken from the sum of the others.
    others = log_probs.scatter(1, top, -torch.inf).logsumexp(1, keepdim=True)
    return torch.log1p(-log_probs.scatter(1, top, -torch.inf).exp()).scatter(1, top, others)
