"""How a formula is run: ``reference`` in plain torch everywhere, ``cpu`` and ``triton`` where that is faster.

``LOSSMITH_KERNELS=reference`` selects the reference for everything, ``LOSSMITH_KERNELS=triton`` the kernels of Triton. Without
the folders ``cpu`` and ``triton`` this is still a correct library.
"""

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from torch import Tensor

from lossmith.kernels import formula
from lossmith.kernels.formula import Biased, Curve, Formula, Reduction, Rows, Shifted, Sum, Term, Terms, biased
from lossmith.kernels.reference import cross_entropy
from lossmith.torch_compat import has_triton

__all__ = [
    "Biased",
    "Curve",
    "Formula",
    "Reduction",
    "Rows",
    "Shifted",
    "Sum",
    "Term",
    "Terms",
    "biased",
    "cross_entropy",
    "losses",
    "mean",
    "reduced",
    "reduces",
]

ENGINES = ("auto", "reference", "triton")


def _engine() -> Any:
    """Return what runs formulas: the engine that is wanted, or one for each device."""
    wanted = os.environ.get("LOSSMITH_KERNELS", "auto")
    if wanted not in ENGINES:
        raise ValueError(f"LOSSMITH_KERNELS must be one of {', '.join(ENGINES)}, got {wanted!r}.")
    if wanted == "triton" and not has_triton():
        raise ImportError("LOSSMITH_KERNELS=triton needs the package triton, which is not installed.")
    name = {"auto": "by_device", "reference": "formula", "triton": "triton.engine"}[wanted]
    return formula if name == "formula" else import_module(f"lossmith.kernels.{name}")


losses: Callable[[Formula, Tensor, Tensor], Tensor] = _engine().losses
"""From a formula, logits ``(N, C, ...)`` and target to the loss of each row ``(N, ...)``."""
mean: Callable[[Formula, Tensor, Tensor, float | Tensor | None], Tensor] = _engine().mean
"""The mean of the losses of all rows ``(N, C)``, or their sum over a denominator; where that is faster, as one operation."""
reduces: Callable[[object], bool] = _engine().reduces
"""Whether ``reduced`` may be asked about these logits."""
reduced: Callable[[Formula, Tensor, Tensor, Reduction], Tensor | None] = _engine().reduced
"""Losses of logits in any precision with all that becomes of them as one operation, or None where that is not possible."""
