"""Random subsets of many elements, by the frequencies of their size.

Let every element be chosen by itself, with probability ``q_i = sigmoid(value_i / scale - tilt)``. Given that k are chosen, that
is the random k-element subset, for every tilt. Where the tilt makes k - 1/2 the expected number, sizes k and k - 1 are both
likely (at least one third of one another), so that an absolute error of their probabilities is as good as a relative one.
Those are a Fourier sum over ``prod_i (1 - q_i + q_i w)``, w on the unit circle; O(sqrt k) frequencies suffice, because the
size has a standard deviation of at most sqrt k. No step cancels, whatever k.
"""

import math

import torch
from torch import Tensor

from lossmith.torch_compat import is_traced

__all__ = ["NEGLIGIBLE", "SubsetSizes"]

# A size as far from the expected one as there are frequencies has a probability of exp(-this), which is neglected.
NEGLIGIBLE = {torch.float32: 20.0, torch.float64: 36.0}


class SubsetSizes:
    """Probabilities of the number of chosen elements, for log-weights ``(N, C)`` of which the k-th largest is near 0."""

    def __init__(self, log_weights: Tensor, expected: float, negligible: float) -> None:
        self.tilt = _tilt(log_weights.detach().float(), expected).to(log_weights.dtype)
        self.chosen = torch.sigmoid(log_weights - self.tilt)
        self._varied = self.chosen * torch.sigmoid(self.tilt - log_weights)
        self._angles = _angles(_most_variance(self._varied, expected), log_weights.shape[1], negligible)
        self._products = [self._product(angle) for angle in self._angles]

    def _product(self, angle: float) -> tuple[Tensor, Tensor]:
        """Return the modulus and the argument of ``prod_i (1 - q_i + q_i exp(i angle))``, each ``(N, 1)``."""
        real, imaginary = _group_products(1 - self.chosen * (1 - math.cos(angle)), self.chosen * math.sin(angle))
        modulus = (0.5 * (real.square() + imaginary.square()).log().sum(1, keepdim=True)).exp()
        return modulus, torch.atan2(imaginary, real).sum(1, keepdim=True)

    def probability(self, size: int) -> Tensor:
        """Return the probability of a size, ``(N, 1)``."""
        terms = [
            modulus * torch.cos(argument - size * angle)
            for angle, (modulus, argument) in zip(self._angles, self._products, strict=True)
        ]
        return torch.stack(terms).sum(0) / len(terms)

    def probability_without_each(self, weights: dict[int, Tensor]) -> Tensor:
        """Return a weighted sum of the probabilities of sizes, for each element left out, ``(N, C)``.

        Args:
            weights: Factors ``(N, 1)`` by size.

        Returns:
            The sums.
        """
        result = torch.zeros_like(self.chosen)
        sizes = torch.tensor(list(weights), dtype=result.dtype, device=result.device)
        factors = torch.cat(list(weights.values()), 1)
        for angle, (modulus, argument) in zip(self._angles, self._products, strict=True):
            turns = argument - angle * sizes
            real = (factors * modulus * torch.cos(turns)).sum(1, keepdim=True)
            imaginary = (factors * modulus * torch.sin(turns)).sum(1, keepdim=True)
            slope = imaginary * math.sin(angle) - real * (1 - math.cos(angle))
            result = result + torch.addcmul(real, slope, self.chosen) / (1 - _squared_chord(angle) * self._varied)
        return result / len(self._angles)


def _squared_chord(angle: float) -> float:
    """Return ``c`` in ``|1 - q + q exp(i angle)|**2 = 1 - c q (1 - q)``."""
    return 4 * math.sin(angle / 2) ** 2


def _group_products(real: Tensor, imaginary: Tensor) -> tuple[Tensor, Tensor]:
    """Multiply up to 16 complex numbers of a row at a time: cheaper than the logarithm of each, and no risk of underflow."""
    for _ in range(4):
        half = real.shape[1] // 2
        (a, c, real_left), (b, d, imaginary_left) = (torch.tensor_split(part, (half, 2 * half), 1) for part in (real, imaginary))
        real = torch.cat([a * c - b * d, real_left], 1)
        imaginary = torch.cat([a * d + b * c, imaginary_left], 1)
    return real, imaginary


def _most_variance(varied: Tensor, expected: float) -> float:
    """Return the largest variance of the size in any row, or a bound on it where values cannot be read."""
    elements = varied.shape[1]
    bound = min(expected, elements - expected, elements / 4)
    if varied.device.type != "cpu" or is_traced() or torch.is_grad_enabled() or varied.numel() == 0:
        return bound
    return min(bound, float(varied.sum(1).amax()))


def _angles(variance: float, elements: int, negligible: float) -> list[float]:
    """Return the angles in the upper half plane; shifted by half a step, so that none is pi, where a factor can be 0."""
    # Bernstein's inequality for the distance from the mean that has a negligible probability.
    distance = negligible / 3 + math.sqrt((negligible / 3) ** 2 + 2 * negligible * variance)
    half = math.ceil(min(distance + 3, elements + 2) / 2)
    return [math.pi * (step + 0.5) / half for step in range(half)]


def _tilt(log_weights: Tensor, expected: float) -> Tensor:
    """Return the tilt ``(N, 1)`` for which the expected number of chosen elements is ``expected``.

    Bisection between bounds that hold for every row, where k is the expected number rounded up, and then Newton's method.
    """
    elements = log_weights.shape[1]
    low = torch.full_like(log_weights[:, :1], -math.log(2 * expected + 1))
    high = torch.full_like(low, math.log(2 * elements))
    for _ in range(8):
        middle = (low + high) / 2
        above = torch.sigmoid(log_weights - middle).sum(1, keepdim=True) > expected
        low, high = torch.where(above, middle, low), torch.where(above, high, middle)
    tilt = (low + high) / 2
    for _ in range(4):
        chosen = torch.sigmoid(log_weights - tilt)
        excess = chosen.sum(1, keepdim=True) - expected
        varied = (chosen * (1 - chosen)).sum(1, keepdim=True)
        tilt = tilt + (excess / varied.clamp(min=0.05)).clamp(-0.2, 0.2)
    return tilt
