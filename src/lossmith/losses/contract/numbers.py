"""The numbers of a loss: checked whenever they are set, and inputs of compiled graphs, so that a change compiles nothing anew.

torch.compile takes a float that it finds in a module for a constant, until it has seen it change and compiled everything once
more. A tensor without dimensions is an input from the start, and so is the number that is read from it. So a number is kept
twice: as the float that everybody sees, and as a tensor that compiled graphs alone read.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lossmith.expressions.limits import Limits
from lossmith.torch_compat import forget_constants_of_graphs, input_of_graph, is_exporting, is_traced, makes_inputs_of_numbers

__all__ = ["HasNumbers", "number"]

_TENSORS = "_number_tensors"


def _tensor_of(value: object, before: Tensor | None) -> Tensor | None:
    """Return a number as a tensor, the one before with its new value; None where there is no number, or none has to be read."""
    if not isinstance(value, float) or not makes_inputs_of_numbers or is_traced():
        return None
    forget_constants_of_graphs()  # such as a q of 0, for which the graph is another one
    if before is not None:
        return before.fill_(value)
    with torch.inference_mode(mode=False):  # where a number is set must not decide where it can be used
        return torch.tensor(value, dtype=torch.float64, device="cpu")


def number(name: str) -> Any:
    """Return a property that holds a number of a module that :class:`HasNumbers`.

    Args:
        name: Its name.

    Returns:
        The property.
    """

    def get(self: "HasNumbers") -> Any:
        if torch.compiler.is_dynamo_compiling() and self._has_tensor(name):
            return self._input_of_graph(name)
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}") from None

    def set_(self: "HasNumbers", value: Any) -> None:
        self.__dict__[name] = value
        self._keep_tensor(name, value)

    return property(get, set_)


class HasNumbers(nn.Module):
    """Base of modules with numbers, which are checked against their ``limits`` whenever they are set."""

    limits: ClassVar[Mapping[str, Limits]] = {}
    constants: ClassVar[Mapping[str, float]] = {}
    """Values of numbers that stay constants in compiled graphs, because something is left out where a number has that value."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Make every number of a subclass an input of compiled graphs, but those that are whole."""
        super().__init_subclass__(**options)
        for name, limits in cls.limits.items():
            if not limits.whole and not isinstance(getattr(cls, name, None), property):
                setattr(cls, name, number(name))

    def __setattr__(self, name: str, value: Any) -> None:
        """Check numbers whenever they are set, so that a schedule cannot leave their range unnoticed."""
        if name in self.limits:
            value = self.limits[name].check(name, value, owner=type(self).__name__)
        super().__setattr__(name, value)

    def _has_tensor(self, name: str) -> bool:
        return name in self.__dict__[_TENSORS] and not is_exporting()  # a program that is written down has constants

    def _input_of_graph(self, name: str) -> float:
        return input_of_graph(self.__dict__[_TENSORS][name])

    def _keep_tensor(self, name: str, value: object) -> None:
        kept: dict[str, Tensor] = self.__dict__.setdefault(_TENSORS, {})
        tensor = None if value == self.constants.get(name) else _tensor_of(value, kept.get(name))
        if tensor is None:
            kept.pop(name, None)
        else:
            kept[name] = tensor

    def __getstate__(self) -> dict[str, Any]:
        """Return everything but the tensors of numbers, which are made from them."""
        return {name: value for name, value in self.__dict__.items() if name != _TENSORS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the tensors of numbers anew, so that a copy has its own."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        for name in (*self.limits, *self.constants):
            if isinstance(getattr(type(self), name, None), property) and name in state:
                self._keep_tensor(name, state[name])
