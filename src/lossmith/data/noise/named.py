"""Label noise by name: ``make_noise("symmetric(0.4)")``."""

import re
from collections.abc import Callable

import numpy as np

from lossmith.data.noise.class_noise import (
    AsymmetricNoise,
    MatrixNoise,
    NoNoise,
    PairNoise,
    SymmetricNoise,
    UniformNoise,
    UniformWithinGroupsNoise,
    WithinGroupsNoise,
)
from lossmith.data.noise.feature_noise import InstanceNoise, LargeMarginNoise, SmallMarginNoise
from lossmith.data.noise.label_noise import LabelNoise, RealisedNoise, realised
from lossmith.expressions.reader import ExpressionReader

__all__ = ["NOISES", "LabelNoise", "RealisedNoise", "make_noise", "realised"]

NOISES: dict[str, Callable[..., LabelNoise]] = {
    noise.name: noise
    for noise in (
        NoNoise,
        SymmetricNoise,
        UniformNoise,
        PairNoise,
        AsymmetricNoise,
        MatrixNoise,
        WithinGroupsNoise,
        UniformWithinGroupsNoise,
        SmallMarginNoise,
        LargeMarginNoise,
        InstanceNoise,
    )
}
"""Every kind of label noise by name."""

_MATRIX_FILE = re.compile(r"matrix\((?P<path>[^\[\]]+\.(?:csv|txt|npy))\)")


def make_noise(noise: str | float | LabelNoise) -> LabelNoise:
    """Read label noise from text; a number alone is the rate of symmetric noise.

    Args:
        noise: An expression, a rate, or label noise, which is returned as it is.

    Returns:
        The noise.

    Raises:
        TypeError: If it is none of these.
        ValueError: If an expression cannot be read, or a rate is out of range.

    >>> make_noise("pair(0.2)"), make_noise(0.4), make_noise("0.4"), make_noise(0)
    (pair(0.2), symmetric(0.4), symmetric(0.4), none)
    >>> make_noise("asymmetric(0.4, [9, 1], [2, 0])")
    asymmetric(0.4, [9, 1], [2, 0])
    """
    if isinstance(noise, LabelNoise):
        return noise
    if isinstance(noise, int | float | np.number) and not isinstance(noise, bool):
        return SymmetricNoise(float(noise)) if noise else NoNoise()
    if not isinstance(noise, str):
        raise TypeError(f"make_noise: noise must be text or a rate, got {type(noise).__name__}.")
    rate, file = _number(noise), _MATRIX_FILE.fullmatch(noise.strip())
    if rate is not None:
        return make_noise(rate)
    if file:
        return MatrixNoise.from_file(file["path"].strip("'\""))
    made = ExpressionReader(noise, NOISES, caller="make_noise", kind="noise").read()
    assert isinstance(made, LabelNoise)
    return made


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
