"""Damaged inputs, in five severities.

Strengths are relative to the inputs, so that it does not matter how they were scaled: noise to the range of a channel or, in
tables, where single values may be far off, to the range that a uniform distribution with the column's standard deviation has;
blur to the size of the image. Noise and contrast have the strengths of Hendrycks and Dietterich 2019, whose images lie between 0
and 1.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.ndimage import gaussian_filter

from lossmith.data.sparse_rows import Inputs, SparseRows

__all__ = ["CORRUPTIONS", "SEVERITIES", "Corruption", "corruptions_for"]

SEVERITIES = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Corruption:
    """A way to damage inputs, ``(n, channels, height, width)`` or ``(n, columns)``."""

    name: str
    strengths: tuple[float, ...]
    """One for each severity."""
    damage: Callable[[np.ndarray, float, np.random.Generator], np.ndarray]
    images: bool
    """Whether it makes sense for images."""
    tables: bool
    """Whether it makes sense for tables."""
    sparse: bool = False
    """Whether it makes sense for sparse rows, whose entries are words and n-grams of a text."""

    def __call__(self, inputs: Inputs, severity: int, *, seed: int = 0) -> Inputs:
        """Return damaged inputs; the same seed damages in the same way.

        >>> CORRUPTIONS["contrast"](torch.tensor([[[[0.0, 1.0]]]]), severity=1)
        tensor([[[[0.3000, 0.7000]]]])
        """
        if severity not in SEVERITIES:
            raise ValueError(f"Corruption: severity must be one of 1, 2, 3, 4, 5, got {severity!r}.")
        kind = _kind(inputs)
        if kind is None or not getattr(self, kind) or not inputs.is_floating_point():
            raise ValueError(f"Corruption: {self.name} cannot damage {inputs.dtype} of shape {tuple(inputs.shape)}.")
        strength, random = self.strengths[severity - 1], np.random.default_rng((seed, severity))
        if isinstance(inputs, SparseRows):
            left = torch.from_numpy(random.random(len(inputs.values)) >= strength)
            return SparseRows(inputs.starts, inputs.columns, inputs.values * left.to(inputs.values), inputs.width)
        return torch.from_numpy(self.damage(inputs.detach().cpu().double().numpy(), strength, random)).to(inputs)


def _kind(inputs: Inputs) -> str | None:
    if isinstance(inputs, SparseRows):
        return "sparse"
    return {4: "images", 2: "tables"}.get(inputs.dim())


def corruptions_for(inputs: Inputs) -> tuple[Corruption, ...]:
    """Return the corruptions that make sense for images ``(n, c, h, w)`` or for tables ``(n, d)``.

    Args:
        inputs: What a model takes.

    Returns:
        The entries of ``CORRUPTIONS`` that suit the inputs.

    >>> [corruption.name for corruption in corruptions_for(torch.zeros(5, 3))]
    ['gaussian-noise', 'impulse-noise', 'missing']
    """
    kind = _kind(inputs)
    return tuple(corruption for corruption in CORRUPTIONS.values() if kind and getattr(corruption, kind))


def _gaussian_noise(values: np.ndarray, strength: float, random: np.random.Generator) -> np.ndarray:
    return values + strength * _span(values) * random.normal(size=values.shape)


def _impulse_noise(values: np.ndarray, strength: float, random: np.random.Generator) -> np.ndarray:
    """Replace a share of the values by the smallest or the largest of their channel or column."""
    low, high = _extremes(values)
    extreme = np.where(random.random(values.shape) < 0.5, low, high)
    return np.where(random.random(values.shape) < strength, extreme, values)


def _missing(values: np.ndarray, strength: float, random: np.random.Generator) -> np.ndarray:
    """Replace a share of the values by the mean of their column, as an imputer would; that of an n-gram is nearly 0."""
    return np.where(random.random(values.shape) < strength, values.mean(0, keepdims=True), values)


def _blur(values: np.ndarray, strength: float, _: np.random.Generator) -> np.ndarray:
    sigma = strength * min(values.shape[2:])
    return np.asarray(gaussian_filter(values, (0.0, 0.0, sigma, sigma), mode="nearest"))


def _contrast(values: np.ndarray, strength: float, _: np.random.Generator) -> np.ndarray:
    mean = values.mean((2, 3), keepdims=True)
    return np.asarray(mean + strength * (values - mean))


def _extremes(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    axes = tuple(axis for axis in range(values.ndim) if axis != 1)
    return values.min(axes, keepdims=True), values.max(axes, keepdims=True)


def _span(values: np.ndarray) -> np.ndarray:
    if values.ndim == 2:
        return np.asarray(np.sqrt(12.0) * values.std(0, keepdims=True))
    low, high = _extremes(values)
    return np.asarray(high - low)


CORRUPTIONS = {
    corruption.name: corruption
    for corruption in (
        Corruption("gaussian-noise", (0.08, 0.12, 0.18, 0.26, 0.38), _gaussian_noise, images=True, tables=True),
        Corruption("impulse-noise", (0.03, 0.06, 0.09, 0.17, 0.27), _impulse_noise, images=True, tables=True),
        Corruption("blur", (0.0125, 0.019, 0.025, 0.031, 0.047), _blur, images=True, tables=False),
        Corruption("contrast", (0.4, 0.3, 0.2, 0.1, 0.05), _contrast, images=True, tables=False),
        Corruption("missing", (0.05, 0.1, 0.2, 0.35, 0.5), _missing, images=False, tables=True, sparse=True),
    )
}
