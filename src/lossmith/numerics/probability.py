"""A probability with everything about it that rounding would destroy."""

import torch
from torch import Tensor

from lossmith.numerics.elementary import as_scalar, box_cox, softplus

__all__ = ["Probability"]

# Where the series has every digit of double precision with so many terms, and beyond which little more than one digit cancels.
_NEAR, _TERMS = 0.1, 15


class Probability:
    """Probabilities p with ``1 - p`` and ``-log p``, each to full relative accuracy.

    Formulas are written in its terms, and an engine may hand them a subclass that knows cheaper ways.

    >>> Probability.from_surprise(torch.tensor([1e-9])).rest
    tensor([1.0000e-09])

    Args:
        p: The probabilities.
        rest: ``1 - p``.
        surprise: ``-log p``; computed when first asked for if not given.
    """

    p: Tensor
    rest: Tensor
    """``1 - p``."""

    def __init__(self, p: Tensor, rest: Tensor, surprise: Tensor | None = None) -> None:
        self.p = p
        self.rest = rest
        self._surprise = surprise

    @classmethod
    def from_log_odds(cls, log_odds: Tensor) -> "Probability":
        """Return the probability whose odds have these logarithms.

        Args:
            log_odds: ``log(p / (1 - p))``.

        Returns:
            The probability.
        """
        return Probability(torch.sigmoid(log_odds), torch.sigmoid(-log_odds), softplus(-log_odds))

    @classmethod
    def from_surprise(cls, surprise: Tensor) -> "Probability":
        """Return the probability ``exp(-surprise)``.

        Args:
            surprise: ``-log p``, >= 0.

        Returns:
            The probability.
        """
        return Probability(torch.exp(-surprise), -torch.expm1(-surprise), surprise)

    @property
    def surprise(self) -> Tensor:
        """``-log p``."""
        if self._surprise is None:
            self._surprise = torch.log1p(self.rest / self.p)
        return self._surprise

    @property
    def log(self) -> Tensor:
        """``log p``."""
        return -self.surprise

    @property
    def surprise_over_rest(self) -> Tensor:
        """``-log p / (1 - p)``, which tends to 1 at p = 1."""
        # Where so little is left that the quotient overflows in derivatives, its series ends with the second term.
        is_little = self.rest < torch.finfo(self.rest.dtype).eps
        return torch.where(is_little, 1 + self.rest / 2, self.surprise / torch.where(is_little, 1.0, self.rest))

    @property
    def surprise_excess(self) -> Tensor:
        """``-log p - (1 - p)``, by its series ``(1 - p)**2 (1/2 + (1 - p)/3 + ...)`` where the two are nearly the same."""
        is_near = self.rest < _NEAR
        rest = torch.where(is_near, self.rest, 0.0)
        series = 1 / (_TERMS + 2) + 0 * rest
        for term in range(_TERMS - 1, -1, -1):
            series = series * rest + 1 / (term + 2)
        return torch.where(is_near, series * rest * rest, self.surprise - self.rest)

    def focal_growth(self, gamma: float) -> Tensor:
        """``1 - gamma p log p / (1 - p)``: how much harder than its modulation ``(1 - p)**gamma`` the focal loss pulls."""
        return 1 + gamma * self.p * self.surprise_over_rest

    def power(self, exponent: float) -> Tensor:
        """``p**exponent``."""
        return torch.exp(-exponent * self.surprise)

    def fall(self, exponent: float) -> Tensor:
        """``(1 - p**exponent) / exponent``, and its limit ``-log p`` at 0."""
        if exponent == 0:
            return self.surprise
        return -torch.expm1(-exponent * self.surprise) / exponent

    def box_cox(self, log_x: Tensor, power: float) -> Tensor:
        """``(x**power - 1) / power`` of anything made of p; here because an engine that knows p may have a cheaper way."""
        return box_cox(log_x, power)

    def rest_power(self, exponent: float) -> Tensor:
        """``(1 - p)**exponent`` for an exponent >= 0, with finite slopes where ``1 - p`` has been rounded to 0."""
        return self.rest.clamp_min(torch.finfo(self.rest.dtype).tiny) ** as_scalar(exponent, self.rest)

    def log_shifted(self, shift: float) -> Tensor:
        """``log((p + shift) / (1 + shift))`` for a shift >= 0, from ``1 - p`` where the two differ little."""
        top = 1 + as_scalar(shift, self.p)
        is_near = self.rest < top / 2
        near = torch.log1p(-torch.where(is_near, self.rest, 0.0) / top)
        far = self.log if shift == 0 else torch.log((self.p + shift) / top)
        return torch.where(is_near, near, far)
