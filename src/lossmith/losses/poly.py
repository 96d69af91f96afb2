"""Cross-entropy with another first coefficient of its series."""

from typing import Unpack

from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.kernels import Term, cross_entropy
from lossmith.losses.contract.options import Options
from lossmith.losses.contract.target_probability import TargetProbabilityLoss
from lossmith.losses.expectation import expectation
from lossmith.numerics.probability import Probability

__all__ = ["PolyLoss"]


def without_first(p: Probability) -> tuple[Tensor, Tensor]:
    """Return ``-log p - (1 - p)``, cross-entropy without the first term of its series, and its pull ``1 - p``.

    Args:
        p: The probability.

    Returns:
        The value and its pull.
    """
    return p.surprise_excess, p.rest


class PolyLoss(TargetProbabilityLoss):
    """Poly-1, ``-log p + epsilon (1 - p)``, for rare classes, and where a little more or less confidence is wanted.

    Cross-entropy is the series ``(1 - p) + (1 - p)**2 / 2 + ...``; its first coefficient, 1, becomes 1 + epsilon >= 0.
    A positive epsilon pulls harder at examples that are half learnt; a negative one suits many uneven classes, says the paper,
    which tunes it for each task. Cross-entropy when epsilon = 0; for a positive one, ``ce-el`` with alpha = 1 and beta = epsilon.

    >>> import torch
    >>> PolyLoss(epsilon=1.0)(torch.zeros(2), torch.tensor(0))
    tensor(1.1931)

    Args:
        epsilon: What is added to the first coefficient, >= -1; 1 by default.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Leng et al. 2022, "PolyLoss: a polynomial expansion perspective of classification loss functions", equation 4.
    """

    name = "poly"
    limits = {"epsilon": Limits(-1.0, usual=(-1.0, 6.0))}
    epsilon: float

    def __init__(self, epsilon: float = 1.0, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.epsilon = epsilon

    def terms(self) -> tuple[Term, ...]:
        """Return cross-entropy and what is added to it, as a sum without differences."""
        if self.epsilon < 0:
            return (Term(1 + self.epsilon, cross_entropy), Term(-self.epsilon, without_first))
        return (Term(1.0, cross_entropy), Term(self.epsilon, expectation))
