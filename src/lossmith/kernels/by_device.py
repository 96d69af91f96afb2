"""Which engine runs a formula, by the device: ``cpu`` or ``native`` for processors, ``triton`` for GPUs if Triton is there."""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from torch import Tensor

from lossmith.kernels import formula as plain
from lossmith.kernels.formula import Formula, Reduction
from lossmith.torch_compat import has_triton, is_traced

__all__ = ["losses", "mean", "reduced", "reduces", "run_on_processors"]

_HAS_TRITON = has_triton() and find_spec("lossmith.kernels.triton") is not None
_on_processors: Any = plain


def run_on_processors(engine: str) -> None:
    """Choose what runs on processors from now on.

    Args:
        engine: ``"auto"``, or ``"native"`` for what a C compiler makes.

    Raises:
        CompilerError: If there is no compiler.
    """
    global _on_processors  # noqa: PLW0603 (there is one for all)
    if engine == "native":
        import_module("lossmith.kernels.native.building").compiler()
    folder = "native" if engine == "native" else "cpu"
    name = f"lossmith.kernels.{folder}"
    _on_processors = plain if find_spec(name) is None else import_module(f"{name}.engine")


@cache
def _on_gpus() -> Any:
    return import_module("lossmith.kernels.triton.engine") if _HAS_TRITON else plain


def losses(formula: Formula, logits: Tensor, target: Tensor) -> Tensor:
    """Return the loss of each row.

    Args:
        formula: The loss.
        logits: ``(N, C, ...)``, in single or double precision.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.

    Returns:
        Losses ``(N, ...)``.
    """
    engine = _on_gpus() if reduces(logits) else _on_processors
    found: Tensor = engine.losses(formula, logits, target)
    return found


def mean(formula: Formula, logits: Tensor, target: Tensor, denominator: float | Tensor | None = None) -> Tensor:
    """Return the mean of the losses of all rows.

    Args:
        formula: The loss.
        logits: ``(N, C)``, in single or double precision.
        target: Class indices ``(N,)``, or a factor for every class ``(N, C)``.
        denominator: What their sum is divided by, instead of N.

    Returns:
        One number.
    """
    engine = _on_gpus() if reduces(logits) else _on_processors
    found: Tensor = engine.mean(formula, logits, target, denominator)
    return found


def reduces(logits: object) -> bool:
    """Return whether these are logits for Triton: on a GPU, and with values.

    Args:
        logits: What was given as logits.

    Returns:
        Whether kernels may run.
    """
    return _HAS_TRITON and isinstance(logits, Tensor) and logits.is_cuda and not is_traced()


def reduced(formula: Formula, logits: Tensor, target: Tensor, reduction: Reduction) -> Tensor | None:
    """Return the reduced losses of class indices by kernels, or None where there are none for this call.

    Args:
        formula: The loss.
        logits: ``(N, C, ...)``, in floating point.
        target: Class indices ``(N, ...)``.
        reduction: What becomes of the losses.

    Returns:
        Losses ``(N, ...)``, or one number.
    """
    found: Tensor | None = _on_gpus().reduced(formula, logits, target, reduction)
    return found
