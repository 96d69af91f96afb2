"""Calls with what an expression gives, and one kind of error for whatever is wrong with it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from lossmith.expressions.quotes import quote, shortened

__all__ = ["made_by", "tensor_of", "without_list"]

_LONGEST_ERROR = 1000


def made_by(factory: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return what the factory makes; whatever it finds wrong is one kind of error, and short.

    Args:
        factory: What is called.
        arguments: What it is given by position.
        keywords: What it is given by name.

    Returns:
        What it returns.

    Raises:
        ValueError: If it raises an error about what it was given.
    """
    try:
        return factory(*arguments, **keywords)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, ValueError) and len(str(error)) <= _LONGEST_ERROR:
            raise
        raise ValueError(shortened(str(error), _LONGEST_ERROR)) from error


def without_list(value: Any, owner: str) -> Any:
    """Return a list of numbers as a tensor of single precision, and anything else as it is.

    Args:
        value: What was read.
        owner: Whom errors name.

    Returns:
        The tensor or the value.

    Raises:
        ValueError: If a number does not fit.
    """
    return tensor_of(value, torch.float32, owner) if isinstance(value, list) else value


def tensor_of(numbers: list[float], dtype: torch.dtype, owner: str) -> torch.Tensor:
    """Return a list of numbers as a tensor.

    Args:
        numbers: The numbers.
        dtype: The type of the tensor.
        owner: Whom errors name.

    Returns:
        The tensor.

    Raises:
        ValueError: If a number does not fit.
    """
    try:
        return torch.tensor(numbers, dtype=dtype)
    except (RuntimeError, OverflowError, TypeError, ValueError):
        name = str(dtype).removeprefix("torch.")
        raise ValueError(f"{owner}: every number of a list must fit {name}, got {quote(numbers)}.") from None
