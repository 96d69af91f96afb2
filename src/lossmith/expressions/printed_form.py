"""How a loss is written: the form that ``lossmith.make_loss`` reads back."""

from collections.abc import Mapping

import numpy
import torch
from torch import Tensor, nn

__all__ = ["printed_call", "printed_value"]


def printed_call(name: str, arguments: Mapping[str, object]) -> str:
    """Write a loss with its arguments; a loss among them stands without its keyword.

    Args:
        name: The name of the loss.
        arguments: Its arguments by keyword; those that are None are left out.

    Returns:
        The expression.

    >>> printed_call("gce", {"q": 0.7, "reduction": "sum"})
    'gce(q=0.7, reduction=sum)'
    """
    written = [
        printed_value(value) if isinstance(value, nn.Module) else f"{key}={printed_value(value)}"
        for key, value in arguments.items()
        if value is not None
    ]
    return f"{name}({', '.join(written)})" if written else name


def printed_value(value: object) -> str:
    """Write one argument so that it reads back to the same value.

    Args:
        value: A number, a word, a truth value, a tensor or a loss.

    Returns:
        The text.

    >>> printed_value(torch.tensor([1.0, 0.1]))
    '[1.0, 0.1]'
    """
    if isinstance(value, Tensor):
        return _printed_tensor(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _printed_tensor(tensor: Tensor) -> str:
    """Single precision is the form of a plain list, written with the fewest digits that read back to it."""
    values = tensor.detach().cpu()
    if values.dtype == torch.float32:
        return f"[{', '.join(str(number) for number in values.numpy().astype(numpy.float32))}]"
    return f"{str(values.dtype).removeprefix('torch.')}[{', '.join(map(str, values.tolist()))}]"
