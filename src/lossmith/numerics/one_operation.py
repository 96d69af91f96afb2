"""Functions that a recorded formula keeps whole, since an engine in another language brings its own."""

from collections.abc import Callable
from typing import Any, TypeVar

from torch import Tensor
from torch.overrides import handle_torch_function

__all__ = ["as_one_operation", "is_stand_in"]

Result = TypeVar("Result")


def is_stand_in(values: object) -> bool:
    """Return whether this is not a tensor but stands for one, as the symbols that record a formula do.

    >>> import torch
    >>> is_stand_in(torch.zeros(2))
    False
    """
    return not isinstance(values, Tensor)


def as_one_operation(function: Callable[..., Result], values: Any, *arguments: Any) -> Result:
    """Hand the call of a function to the stand-in that it was called with, as torch's own functions do.

    Args:
        function: The function that was called.
        values: Its first argument, which has a ``__torch_function__``.
        *arguments: All other arguments.

    Returns:
        What the stand-in makes of it, another stand-in.
    """
    result: Result = handle_torch_function(function, (values,), values, *arguments)
    return result
