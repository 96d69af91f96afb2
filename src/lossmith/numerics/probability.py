"""A probability with everything about it that rounding would destroy."""

from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import softplus

__all__ = ["Probability"]

# Where more than that is left beside p, -log p / (1 - p) is as good as its parts, and so are its derivatives.
_MUCH = 2**-20


class Probability:
    """Probabilities p with ``1 - p`` and ``-log p``, each to full relative accuracy; the logarithm when first asked for."""

    least = 0.0
    """What no p is below, if that is known."""
    most = 1.0
    """What no p is above, if that is known."""

    def __init__(self, p: Tensor, rest: Tensor, surprise: Tensor | None = None, rest_surprise: Tensor | None = None) -> None:
        self.p = p
        self._rest: Tensor | None = rest
        self._surprise = surprise
        self._rest_surprise = rest_surprise

    @classmethod
    def from_log_odds(cls, log_odds: Tensor) -> Self:
        """Return the probability whose odds have these logarithms."""
        surprise, rest_surprise = (softplus(exponent, threshold=40.0) for exponent in (-log_odds, log_odds))
        return cls(torch.sigmoid(log_odds), torch.sigmoid(-log_odds), surprise, rest_surprise)

    @property
    def rest(self) -> Tensor:
        """``1 - p``."""
        assert self._rest is not None
        return self._rest

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
    def rest_surprise(self) -> Tensor:
        """``-log(1 - p)``."""
        return torch.log1p(self.p / self.rest) if self._rest_surprise is None else self._rest_surprise

    @property
    def surprise_over_rest(self) -> Tensor:
        """``-log p / (1 - p)``, which tends to 1 at p = 1."""
        if self.most < 1 - _MUCH:
            return self.surprise / self.rest
        # Where so little is left that the quotient overflows in derivatives, its series ends with the second term.
        is_little = self.rest < torch.finfo(self.rest.dtype).eps
        return torch.where(is_little, 1 + self.rest / 2, self.surprise / torch.where(is_little, 1.0, self.rest))
