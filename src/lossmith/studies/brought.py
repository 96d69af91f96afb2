"""What a user brings to a study from Python, as far as a file can know it again."""

import hashlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from lossmith.objectives.objective import Objective

__all__ = ["identity_of"]


def identity_of(losses: Mapping[str, Any], code: Callable[..., Any] | None, kind: str = "model") -> dict[str, str]:
    """Return a digest for each loss of the user's own, and for a model or training: it changes when code or numbers do."""
    brought = {name: loss for name, loss in losses.items() if not isinstance(loss, Objective)}
    expressions = {name: repr((loss.name, loss.loss)) for name, loss in losses.items() if isinstance(loss, Objective)}
    own = {name: _digest(type(loss), _numbers(loss)) for name, loss in brought.items()}
    return {**expressions, **own, **({kind: _digest(code, "")} if code else {})}


def _digest(code: Any, numbers: str) -> str:
    try:
        source = inspect.getsource(code)
    except (OSError, TypeError):  # typed at a prompt, or not Python at all: its name will have to do
        source = repr(getattr(code, "__qualname__", type(code).__qualname__))
    return hashlib.sha256(f"{source}\n{numbers}".encode()).hexdigest()[:16]


def _numbers(loss: nn.Module) -> str:
    """Return the settings of a module in words: what it has for attributes, and the values of its parameters and buffers."""
    private = set(vars(nn.Module()))
    attributes = {name: repr(value) for name, value in vars(loss).items() if name not in private}
    state = {name: value.tolist() for name, value in loss.state_dict().items()}
    return repr((attributes, state))
