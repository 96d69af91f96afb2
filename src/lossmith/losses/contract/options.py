"""The options of ``torch.nn.CrossEntropyLoss``, which every loss has, and what they may be."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypedDict

import torch
from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.expressions.nearest import nearest

__all__ = ["OPTION_CHECKS", "Options", "Reduction", "as_class_weights", "check_option_names"]

Reduction = Literal["mean", "sum", "none"]


class Options(TypedDict, total=False):
    """What every loss takes beside its own parameters, with the meaning it has in ``torch.nn.CrossEntropyLoss``."""

    weight: Tensor | Sequence[float] | None
    ignore_index: int
    reduction: Reduction
    label_smoothing: float


_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def as_class_weights(weight: Tensor | Sequence[float] | None, owner: str) -> Tensor | None:
    """Return class weights as a tensor, or raise an error that names what came.

    Args:
        weight: One number per class, or None.
        owner: Whom the error names.

    Returns:
        A floating-point tensor ``(C)``, or None.

    Raises:
        ValueError: If it is not one number per class.
    """
    if weight is None:
        return None
    if not isinstance(weight, Tensor) or weight.dtype in _WHOLE:
        weight = torch.as_tensor(weight, dtype=torch.get_default_dtype())
    if weight.dim() != 1 or not weight.is_floating_point():
        raise ValueError(f"{owner}: weight must be one number per class, got {weight.dtype} of shape {tuple(weight.shape)}.")
    return weight


def _check_reduction(value: object, owner: str) -> object:
    if value not in ("mean", "sum", "none"):
        raise ValueError(f"{owner}: reduction must be 'mean', 'sum' or 'none', got {value!r}.")
    return value


def _check_ignore_index(value: object, owner: str) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{owner}: ignore_index must be an integer, got {value!r}.")
    return value


def _check_smoothing(value: object, owner: str) -> object:
    return Limits(0.0, 1.0).check("label_smoothing", value, owner=owner)


OPTION_CHECKS: dict[str, Callable[[object, str], object]] = {
    "reduction": _check_reduction,
    "ignore_index": _check_ignore_index,
    "label_smoothing": _check_smoothing,
}
"""From the value of an option and the name of the loss to the value, or to an error."""


def check_option_names(owner: type, options: Iterable[str]) -> None:
    """Raise an error for the first of the ``options`` that not every loss has; it names their ``owner``.

    Raises:
        TypeError: If there is one.
    """
    for name in options:
        if name not in Options.__annotations__:
            known = [*inspect.signature(owner).parameters, *Options.__annotations__]
            raise TypeError(f"{owner.__name__}: unknown parameter {name!r}{nearest(name, known)}")
