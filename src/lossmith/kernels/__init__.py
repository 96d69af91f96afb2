"""How a formula is run: ``reference`` in plain torch everywhere, ``cpu`` and ``triton`` where that is faster.

``LOSSMITH_KERNELS=reference`` selects the reference for everything, ``LOSSMITH_KERNELS=triton`` the kernels of Triton, and
``LOSSMITH_KERNELS=native`` functions for processors that the system's C compiler makes. Without the folders ``cpu``,
``native`` and ``triton`` this is still a correct library.
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
    "ENGINES",
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
    "use",
]

ENGINES = ("auto", "native", "reference", "triton")
"""What may run formulas: by default what is best without a compiler."""


def _engine(wanted: str, source: str) -> Any:
    """Return what runs formulas: the engine that is wanted, or one for each device."""
    if wanted not in ENGINES:
        raise ValueError(f"{source} must be one of {', '.join(ENGINES)}, got {wanted!r}.")
    if wanted == "reference":
        return formula
    if wanted == "triton":
        if not has_triton():
            raise ImportError(f"{source}=triton needs the package triton, which is not installed.")
        return import_module("lossmith.kernels.triton.engine")
    by_device = import_module("lossmith.kernels.by_device")
    by_device.run_on_processors(wanted)
    return by_device


def use(engine: str) -> None:
    """Choose what runs formulas from now on, as the environment variable ``LOSSMITH_KERNELS`` does from the start.

    Args:
        engine: ``"auto"``, ``"native"`` (compiled by the system's C compiler), ``"reference"`` or ``"triton"``.

    Raises:
        ValueError: If there is no such engine.
        ImportError: If Triton is not installed.
        OSError: If there is no C compiler.
    """
    global losses, mean, reduces, reduced
    chosen = _engine(engine, "engine")
    losses, mean, reduces, reduced = chosen.losses, chosen.mean, chosen.reduces, chosen.reduced


_chosen = _engine(os.environ.get("LOSSMITH_KERNELS", "auto"), "LOSSMITH_KERNELS")
losses: Callable[[Formula, Tensor, Tensor], Tensor] = _chosen.losses
"""From a formula, logits ``(N, C, ...)`` and target to the loss of each row ``(N, ...)``."""
mean: Callable[[Formula, Tensor, Tensor, float | Tensor | None], Tensor] = _chosen.mean
"""The mean of the losses of all rows ``(N, C)``, or their sum over a denominator; where that is faster, as one operation."""
reduces: Callable[[object], bool] = _chosen.reduces
"""Whether ``reduced`` may be asked about these logits."""
reduced: Callable[[Formula, Tensor, Tensor, Reduction], Tensor | None] = _chosen.reduced
"""Losses of logits in any precision with all that becomes of them as one operation, or None where that is not possible."""
