"""The smooth top-k loss of a factor for every class: what is as large as the logits.

All of it has double precision: what a class loses as itself and gains as a rival of others can be nearly equal.
"""

import math

import numpy as np
import torch
from torch import Tensor

from lossmith.kernels.cpu.evaluation import Evaluation
from lossmith.kernels.cpu.subsets.largest import largest
from lossmith.kernels.cpu.subsets.odds import OddsOfRows, Slopes
from lossmith.kernels.cpu.subsets.weight_powers import doubles, power_sums
from lossmith.numerics.elementary import softplus
from lossmith.numerics.subsets.sums import Doubles

__all__ = ["expected_topk"]

# Far from the largest exponent of double precision, which sums over subsets may add to.
_HIGHEST_MODERATE = 300.0


def expected_topk(logits: Tensor, factors: Tensor, *, k: int, tau: float, margin: float) -> Evaluation:
    """Return the losses ``sum_c factor_c tau softplus(odds_c + margin / tau)`` and their gradient.

    Args:
        logits: Scores ``(N, C)``.
        factors: A factor for every class ``(N, C)``.
        k: How many guesses the model has.
        tau: Temperature.
        margin: How far ahead a class has to be.

    Returns:
        Losses and gradients.
    """
    rows = _Rows(logits, k, k * tau)
    ratio = rows.moderate_ratios(margin / tau)
    if ratio is None:
        losses, chances = _by_log_odds(rows.odds(), factors, margin / tau)
    else:
        losses, chances = torch.log1p(ratio), ratio.div_(ratio + 1)
    losses = losses.mul_(factors).sum(1).mul_(tau)
    gradient = rows.gradient(chances.mul_(factors), tau)
    return Evaluation(losses.to(logits.dtype), gradient.to(logits.dtype))


def _by_log_odds(odds: Tensor, factors: Tensor, lead: float) -> tuple[Tensor, Tensor]:
    """Return softplus and sigmoid of log-odds plus a lead; log-odds are overwritten."""
    # Infinite are the log-odds of a class that is not possible; a row that is not a number must not hide it.
    if odds.numel() and not odds.amax().item() < math.inf:
        odds = torch.where(factors == 0, 0.0, odds)
    excess = odds.add_(lead)
    return softplus(excess), excess.sigmoid_()


class _Rows:
    """Rows of logits, of which the k largest are split off."""

    def __init__(self, logits: Tensor, k: int, scale: float) -> None:
        self._scale = scale
        top, index = largest(logits, k + 1)
        self._top_index = index[:, :k]
        top_values = doubles(top.T)
        reference = top_values[-1]
        self._logits, self._reference = logits, _column(reference)
        self._weights = self._gaps(math.log2(math.e)).exp2_().scatter_(1, self._top_index, 0.0)
        self._step = _column((reference - top_values[-2]) / scale)
        sums = power_sums(self._weights, k, self._weights.sum(1))
        self._numbers = OddsOfRows(top_values[:-1], reference, sums, scale)
        self._present = _horner(self._numbers.coefficients, self._weights)
        self._occupied = self._weights * self._present
        self._absent = (self._occupied * _column(-self._numbers.ratio)).add_(_column(self._numbers.total))

    def _gaps(self, factor: float = 1.0) -> Tensor:
        return (self._logits - self._reference).mul_(factor / self._scale)

    def odds(self) -> Tensor:
        """Return the log-odds of every class to be absent."""
        odds = (self._absent / self._present).log_().sub_(self._gaps()).sub_(self._step)
        return odds.scatter_(1, self._top_index, torch.from_numpy(self._numbers.of_top).T)

    def moderate_ratios(self, lead: float) -> Tensor | None:
        """Return ``exp(odds + lead)``, without logarithms and exponentials of all, or None where that may overflow."""
        if self._logits.numel() == 0:
            return None
        of_top, rise = self._numbers.of_top + lead, lead - self._step
        deepest = (self._reference - self._logits.amin(1, keepdim=True)) / self._scale
        highest = of_top.max(), (rise + deepest).amax().item()
        if not (highest[0] < _HIGHEST_MODERATE and highest[1] < _HIGHEST_MODERATE):  # also where something is not a number
            return None
        ratio = (self._absent / self._occupied).mul_(rise.exp())
        return ratio.scatter_(1, self._top_index, torch.from_numpy(np.exp(of_top)).T)

    def gradient(self, slopes: Tensor, factor: float) -> Tensor:
        """Return the derivatives with respect to the logits, given those with respect to the log-odds over a factor.

        The latter are overwritten.
        """
        numbers, weights, present = self._numbers, self._weights, self._present
        of_top = doubles(slopes.gather(1, self._top_index).T)
        slopes.scatter_(1, self._top_index, 0.0)
        of_absent = slopes / self._absent
        of_present = (of_absent * _column(numbers.total)).div_(present)
        known = of_absent * present
        top_slopes, sum_slopes = numbers.slopes(
            Slopes(
                total=doubles(of_absent.sum(1)),
                coefficients=-_moments(of_present, weights, len(numbers.coefficients)),
                ratio=-doubles((known * weights).sum(1)),
                top=of_top,
                kth=doubles(slopes.sum(1)) / self._scale,
            )
        )
        of_weights = _horner(_derivative(numbers.coefficients), weights).mul_(of_present).add_(known.mul_(_column(numbers.ratio)))
        degrees = np.arange(1.0, len(sum_slopes) + 1)[:, None]
        of_weights = _horner(degrees * sum_slopes, weights).sub_(of_weights)
        gradient = of_weights.mul_(weights).sub_(slopes).mul_(factor / self._scale)
        return gradient.scatter_(1, self._top_index, torch.from_numpy(factor * top_slopes).T)


def _column(numbers: Doubles) -> Tensor:
    return torch.from_numpy(numbers).unsqueeze(1)


def _horner(coefficients: Doubles, x: Tensor) -> Tensor:
    """Return ``sum_i c_i x**i`` of every x, for coefficients ``(k, N)``."""
    *lower, value = torch.from_numpy(coefficients).unsqueeze(2).unbind(0)
    if not lower:
        return value.expand_as(x).clone()
    value = (x * value).add_(lower.pop())
    for coefficient in reversed(lower):
        torch.addcmul(coefficient, value, x, out=value)
    return value


def _derivative(coefficients: Doubles) -> Doubles:
    """Return the coefficients of the derivative of a polynomial, at least one."""
    degrees = np.arange(float(len(coefficients)))[:, None]
    return (degrees * coefficients)[1:] if len(coefficients) > 1 else np.zeros_like(coefficients)


def _moments(values: Tensor, weights: Tensor, count: int) -> Doubles:
    """Return ``sum_j values_j weights_j**i`` for i = 0 .. count - 1, ``(count, N)``."""
    values, sums = values.clone(), [values.sum(1)]
    while len(sums) < count:
        sums.append(values.mul_(weights).sum(1))
    return doubles(torch.stack(sums))
