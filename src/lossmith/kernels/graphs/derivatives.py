"""The gradient of a recorded formula with respect to the logits, as more operations in the same recording.

Rules are those of autograd. What a formula says about its own slope (``with_slope``) is taken from it.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch

from lossmith.kernels.graphs.subsets import call_in, parts_of_all, slope_of_absence
from lossmith.kernels.row_operations import is_row, seen_through
from lossmith.kernels.symbols import Input, Operation, Recording, Symbol, UntraceableError, inputs_of
from lossmith.kernels.traced import LOGITS
from lossmith.numerics.tempered import escort_pullback, power

__all__ = ["gradient_of"]

Node = Input | Operation


def gradient_of(recording: Recording, loss: Node) -> Any:
    """Return the gradient with respect to the logits, a row.

    Args:
        recording: Where the loss is recorded, and the gradient will be.
        loss: The loss of a row.

    Returns:
        The gradient.

    Raises:
        UntraceableError: If an operation has no rule.
    """
    root = seen_through(loss)
    logits = _logits_in(root)
    if logits is None:
        raise UntraceableError("does not depend on the logits")
    (found,) = _pulled_back(recording, root, 1.0, [logits])
    return recording.symbol_of("mul", 0.0, Symbol(recording, logits)) if found is None else found


def _logits_in(root: Node) -> Node | None:
    seen, waiting = set(), [root]
    while waiting:
        node = seen_through(waiting.pop())
        if node in seen or not isinstance(node, Input | Operation):
            continue
        seen.add(node)
        if isinstance(node, Input) and node.name == LOGITS:
            return node
        waiting += inputs_of(node)
    return None


def _pulled_back(recording: Recording, root: Node, pull: Any, leaves: list[Any]) -> list[Any]:
    """Return the pulls on leaves, given that on a root; None where there is none."""
    order = _depending_on(root, leaves)
    pulls: dict[Node, Any] = dict.fromkeys(order)
    pulls[order[-1]] = pull
    for node in reversed(order):
        if pulls[node] is None or node in leaves:
            continue
        assert isinstance(node, Operation)
        for argument, own in _pulled(recording, node, pulls[node]):
            seen = seen_through(argument)
            if own is not None and isinstance(seen, Input | Operation) and seen in pulls:
                _add(recording, pulls, seen, own)
    return [pulls.get(leaf) for leaf in leaves]


def _depending_on(root: Node, leaves: list[Any]) -> list[Node]:
    """Return everything in a root that is made of leaves, each after what it is made of itself."""
    depends: dict[Node, bool] = {}

    def visit(node: Any) -> bool:
        if not isinstance(node, Input | Operation):
            return False
        if node not in depends:
            is_leaf = node in leaves
            parts = [] if is_leaf else [visit(seen_through(each)) for each in inputs_of(node)]
            depends[node] = (any(parts) and node.name != "tail_places") or is_leaf
        return depends[node]

    visit(root)
    return [node for node, is_one in depends.items() if is_one]


def _add(recording: Recording, pulls: dict[Node, Any], node: Node, pull: Any) -> None:
    """Add a pull on a node; on one number of a row, all of the row pulls together."""
    pulls_at_row = isinstance(pull, Symbol) and is_row(pull.node)
    if pulls_at_row and not is_row(node):
        pull = pull.sum(1, keepdim=True)
    if is_row(node) and not pulls_at_row:
        pull = recording.symbol_of("spread", pull, Symbol(recording, node))
    pulls[node] = pull if pulls[node] is None else pulls[node] + pull


def _pulled(recording: Recording, node: Operation, pull: Any) -> Iterator[tuple[Any, Any]]:
    """Return what is pulled at, and by how much."""
    name, arguments = call_in(recording, node)
    if name in ("detach", "ones_like", "zeros_like", "argmax", "argmin", "isfinite", "isnan"):
        return
    if name not in RULES:
        raise UntraceableError(f"uses {name}, whose derivative is not known")
    symbols = [
        Symbol(recording, seen) if isinstance(seen := seen_through(each), Operation | Input) else seen for each in arguments
    ]
    pulled = RULES[name](pull, Symbol(recording, node), *symbols)
    yield from zip(arguments, pulled if isinstance(pulled, tuple) else (pulled,), strict=False)


def _where(pull: Any, _: Any, condition: Any, *__: Any) -> tuple[Any, ...]:
    return None, torch.where(condition, pull, 0.0), torch.where(condition, 0.0, pull)


def _scatter(pull: Any, _: Any, __: Any, index: Any, value: Any) -> tuple[Any, ...]:
    return pull.scatter(1, index, 0.0), None, pull.gather(1, index)


def _maximum(pull: Any, _: Any, first: Any, second: Any) -> tuple[Any, Any]:
    is_first = first >= second
    return torch.where(is_first, pull, 0.0), torch.where(is_first, 0.0, pull)


def _minimum(pull: Any, _: Any, first: Any, second: Any) -> tuple[Any, Any]:
    is_first = first <= second
    return torch.where(is_first, pull, 0.0), torch.where(is_first, 0.0, pull)


def _amax(pull: Any, largest: Any, row: Any) -> Any:
    """All that are largest share the pull, as in torch."""
    share = torch.where(row == largest, 1.0, row * 0.0)
    return pull * share / share.sum(1, keepdim=True)


def _surprises(pull: Any, cost: Any, logits: Any) -> Any:
    """``p_j sum(pull) - pull_j``, and at the most probable class what the others leave, as all entries add up to 0."""
    probs = torch.exp(-cost)
    gradient = probs * pull.sum(1, keepdim=True) - pull
    top = logits.argmax(1, keepdim=True)
    others = gradient.scatter(1, top, 0.0).sum(1, keepdim=True)
    entry = torch.where(probs.gather(1, top) > 0.5, -others, gradient.gather(1, top))
    return gradient.scatter(1, top, entry)


def _log_odds(pull: Any, _: Any, logits: Any, index: Any) -> Any:
    """The pull at the class itself; the softmax of the others shares the opposite."""
    others = torch.softmax(logits.scatter(1, index, -torch.inf), 1)
    return (others * -pull).scatter(1, index, pull)


def _tempered_log_probs(pull: Any, log_probs: Any, _: Any, t: Any) -> Any:
    return escort_pullback(pull * power(log_probs, t - 1), log_probs, t)


def _tempered_probs(pull: Any, probs: Any, logits: Any, t: Any) -> Any:
    log_probs = probs._recording.symbol_of("tempered_probs", logits, t).log_probs
    return escort_pullback(pull * power(log_probs, t), log_probs, t)


def _absence(pull: Any, _: Any, values: Any, index: Any, k: int, scale: Any) -> Any:
    return slope_of_absence(values, index, k, scale, pull)


def _absence_of_all(pull: Any, _: Any, values: Any, k: int, scale: Any) -> Any:
    """The k largest are numbers of their own, so that each has one entry in the end."""
    parts, recording = parts_of_all(values, k, scale), values._recording
    leaves = [part.node for part in (parts.rest, *parts.tops)]
    slope, *entries = _pulled_back(recording, parts.odds.node, pull, leaves)
    for place, entry in zip(parts.places, entries, strict=True):
        slope = slope.scatter(1, place, entry)
    return slope


def _sign(x: Any) -> Any:
    return torch.where(x < 0, -1.0, torch.where(x > 0, 1.0, x * 0.0))


RULES: dict[str, Callable[..., Any]] = {
    "abs": lambda pull, _, x: pull * _sign(x),
    "add": lambda pull, *_: (pull, pull),
    "amax": _amax,
    "clamp_max": lambda pull, _, x, high: torch.where(x <= high, pull, 0.0),
    "clamp_min": lambda pull, _, x, low: torch.where(x >= low, pull, 0.0),
    "cos": lambda pull, _, x: -pull * torch.sin(x),
    "div": lambda pull, value, x, y: (pull / y, -pull * value / y),
    "exp": lambda pull, value, x: pull * value,
    "expm1": lambda pull, value, x: pull * torch.exp(x),
    "gather": lambda pull, _, row, index: ((row * 0.0).scatter(1, index, pull), None),
    "log": lambda pull, _, x: pull / x,
    "log1p": lambda pull, _, x: pull / (1 + x),
    "log_odds": _log_odds,
    "log_odds_of_absence": _absence,
    "log_odds_of_all_absences": _absence_of_all,
    "log_softmax": lambda pull, value, x: pull - torch.exp(value) * pull.sum(1, keepdim=True),
    "logsumexp": lambda pull, _, x: pull * torch.softmax(x, 1),
    "maximum": _maximum,
    "mean": lambda pull, _, row: pull / row._recording.symbol_of("classes"),
    "minimum": _minimum,
    "mul": lambda pull, _, x, y: (pull * y, pull * x),
    "neg": lambda pull, _, x: -pull,
    "pow": lambda pull, value, x, exponent: pull * exponent * torch.pow(x, exponent - 1),
    "relu": lambda pull, _, x: torch.where(x > 0, pull, 0.0),
    "rsqrt": lambda pull, value, x: -0.5 * pull * value * value * value,
    "scatter": _scatter,
    "scatter_add": lambda pull, _, row, index, value: (pull, None, pull.gather(1, index)),
    "sigmoid": lambda pull, value, x: pull * value * torch.sigmoid(-x),
    "sin": lambda pull, _, x: pull * torch.cos(x),
    "softmax": lambda pull, value, x: value * (pull - (pull * value).sum(1, keepdim=True)),
    "softplus": lambda pull, _, x: pull * torch.sigmoid(x),
    "sqrt": lambda pull, value, x: 0.5 * pull / value,
    "square": lambda pull, _, x: 2 * pull * x,
    "sub": lambda pull, *_: (pull, -pull),
    "sum": lambda pull, _, row: pull,
    "surprises": _surprises,
    "tanh": lambda pull, value, x: pull * (1 - value * value),
    "tempered_log_probs": _tempered_log_probs,
    "tempered_probs": _tempered_probs,
    "where": _where,
    "with_slope": lambda pull, _, x, value, slope: (pull * slope, None, None),
}
"""From the pull on an operation, its value and its arguments to the pulls on these."""
