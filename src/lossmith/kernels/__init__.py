"""How a formula is run: ``reference`` in plain torch everywhere, ``cpu`` where that is faster.

``LOSSMITH_KERNELS=reference`` selects the reference for everything; so does removing the folder ``cpu``.
"""

import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from torch import Tensor

from lossmith.kernels import formula
from lossmith.kernels.formula import Biased, Curve, Formula, Rows, Sum, Term, Terms, biased
from lossmith.kernels.reference import cross_entropy

__all__ = ["Biased", "Curve", "Formula", "Rows", "Sum", "Term", "Terms", "biased", "cross_entropy", "losses", "mean"]

ENGINES = ("auto", "reference")


def _engine() -> Any:
    """Return what runs formulas: the engine for eager tensors on a CPU, or the reference if that is wanted or all there is."""
    wanted = os.environ.get("LOSSMITH_KERNELS", "auto")
    if wanted not in ENGINES:
        raise ValueError(f"LOSSMITH_KERNELS must be one of {', '.join(ENGINES)}, got {wanted!r}.")
    is_plain = wanted == "reference" or find_spec("lossmith.kernels.cpu") is None
    return formula if is_plain else import_module("lossmith.kernels.cpu.engine")


Run = Callable[[Formula, Tensor, Tensor], Tensor]

losses: Run = _engine().losses
"""From a formula, logits ``(N, C, ...)`` and target to the loss of each row ``(N, ...)``."""
mean: Run = _engine().mean
"""The mean of the losses of all rows ``(N, C)``; where that is faster, as one operation."""
