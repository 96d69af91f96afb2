"""The expectation loss, its double the mean absolute error, and the mix with cross-entropy."""

from typing import Unpack

from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.kernels import Term, cross_entropy
from lossmith.losses.contract.options import Options
from lossmith.losses.contract.target_probability import TargetProbabilityLoss
from lossmith.numerics.probability import Probability

__all__ = ["CrossEntropyExpectationLoss", "ExpectationLoss", "MAELoss"]


def expectation(p: Probability) -> tuple[Tensor, Tensor]:
    """Return ``1 - p`` and its pull ``p``.

    Args:
        p: The probability.

    Returns:
        The value and its pull.
    """
    return p.rest, p.p


class ExpectationLoss(TargetProbabilityLoss):
    """Expectation loss, ``1 - p``: the probability of predicting another class than the target.

    Bounded and symmetric, hence robust to label noise, but slow to learn with many classes: see ``logit-bias``. Half of
    ``mae``. For a network that knows much already it is dynamic fine-tuning, and may be written ``dft``: the loss
    ``-sg[p] log p`` of that method, p without a gradient, has the gradient of ``1 - p``.

    >>> import torch
    >>> ExpectationLoss()(torch.zeros(4), torch.tensor(0))
    tensor(0.7500)

    Args:
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Battash, Hazan and Wolf, "Mixing between the cross entropy and the expectation loss terms", equation 9; for
    fine-tuning Wu et al. 2025, "On the generalization of SFT: a reinforcement learning perspective with reward rectification".
    """

    name = "el"

    def terms(self) -> tuple[Term, ...]:
        """Return ``1 - p``."""
        return (Term(1.0, expectation),)


class MAELoss(TargetProbabilityLoss):
    """Mean absolute error, ``2 (1 - p)``, for labels with much noise and few classes.

    Bounded by 2 and symmetric: the losses of one example under all labels add up to a constant. With more than a few
    classes a fresh network hardly learns from it: wrap it in ``logit-bias``. Twice ``el``.

    >>> import torch
    >>> MAELoss()(torch.zeros(4), torch.tensor(0))
    tensor(1.5000)

    Args:
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Staats, Thamm and Rosenow, "Noise-robust loss functions", table 1; Ghosh, Kumar and Sastry 2017.
    """

    name = "mae"

    def terms(self) -> tuple[Term, ...]:
        """Return ``2 (1 - p)``."""
        return (Term(2.0, expectation),)


class CrossEntropyExpectationLoss(TargetProbabilityLoss):
    """Cross-entropy mixed with the expectation loss, ``-alpha log p + beta (1 - p)``.

    Use it to turn from the hardest examples to those near the decision, most often towards the end of training. The focus
    F in [0, 0.5] is the probability of the examples that pull most: alpha = 1 and beta = 1 / (1 - 2F), and alpha = 0 and
    beta = 1 at F = 0.5. Give either ``focus`` or both of ``alpha`` and ``beta``, each >= 0.
    It is cross-entropy when alpha = 1 and beta = 0, and the expectation loss when focus = 0.5.

    >>> import torch
    >>> CrossEntropyExpectationLoss(focus=0.25)(torch.zeros(2), torch.tensor(0))
    tensor(1.6931)
    >>> CrossEntropyExpectationLoss(alpha=1.0, beta=2.0)(torch.zeros(2), torch.tensor(0))
    tensor(1.6931)

    Args:
        focus: Probability of the examples that pull most, in [0, 0.5]; 0 if nothing else is given.
        alpha: Factor of cross-entropy, >= 0; only together with ``beta``, in place of ``focus``.
        beta: Factor of the expectation loss, >= 0; only together with ``alpha``.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Battash, Hazan and Wolf, "Mixing between the cross entropy and the expectation loss terms", equations 12, 14.
    """

    name = "ce-el"
    limits = {"focus": Limits(0.0, 0.5, optional=True), "alpha": Limits(0.0, optional=True), "beta": Limits(0.0, optional=True)}

    def __init__(
        self,
        focus: float | None = None,
        *,
        alpha: float | None = None,
        beta: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(**options)
        if (alpha is None) != (beta is None) or (focus is not None and alpha is not None):
            raise ValueError(
                "CrossEntropyExpectationLoss: give either focus or both of alpha and beta,"
                f" got focus={focus}, alpha={alpha}, beta={beta}."
            )
        self.focus = 0.0 if focus is None and alpha is None else focus
        self.alpha = alpha
        self.beta = beta

    def mix(self) -> tuple[float, float]:
        """Return alpha and beta as they are now.

        Returns:
            The factor of cross-entropy and that of the expectation loss.

        >>> CrossEntropyExpectationLoss(focus=0.4).mix()
        (1.0, 5.000000000000001)
        """
        if self.focus is None:
            assert self.alpha is not None
            assert self.beta is not None
            return self.alpha, self.beta
        return (0.0, 1.0) if self.focus == 0.5 else (1.0, 1 / (1 - 2 * self.focus))

    def terms(self) -> tuple[Term, ...]:
        """Return ``-alpha log p`` and ``beta (1 - p)``."""
        alpha, beta = self.mix()
        return Term(alpha, cross_entropy), Term(beta, expectation)
