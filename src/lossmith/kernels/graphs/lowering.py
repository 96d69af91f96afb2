"""Operations of formulas in terms of the few that kernels have for a whole row.

Those are ``sum``, ``gather``, the largest number and its place (``top_height``, ``top_place``), and ``peak``: the largest number,
its place, and the sum of the exponentials of all others relative to it, which one walk over a row finds together.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch

from lossmith.kernels.graphs.reductions import is_row
from lossmith.kernels.graphs.subsets import absence, absence_of_all, call_in
from lossmith.kernels.row_operations import seen_through
from lossmith.kernels.symbols import Input, Operation, Recording, Symbol, UntraceableError
from lossmith.kernels.traced import LOGITS, TARGET
from lossmith.numerics.normalizer import MARGIN

__all__ = ["lowered", "softmax_of"]

# Without a dimension, since there is one: other names than torch has for them.
RENAMED = {"gather": "take", "scatter": "put", "sum": "total"}
# An entry at one place is that of one of two rows, by which place it is, or the place itself.
OF_SEVERAL_ENTRIES = ("put", "tail_places")


def lowered(recording: Recording, value: Any, known: dict[Any, Any]) -> Any:
    """Return a value in terms of what kernels have.

    Args:
        recording: Where it is recorded.
        value: A node of a graph, or a constant.
        known: What has been lowered so far; it is added to.

    Returns:
        The node of an equal value.
    """
    value = seen_through(value)
    if not isinstance(value, Operation) or value.is_number:
        return value
    if value not in known:
        name, arguments = call_in(recording, value)
        parts = [_symbol(recording, lowered(recording, each, known)) for each in arguments]
        if name in LOWERED:
            found = LOWERED[name](*parts)
            known[value] = lowered(recording, found.node, known) if isinstance(found, Symbol) else found
        elif name == "gather" and _is_target(parts[1]):
            known[value] = _entry(recording, parts[0].node, parts[1].node)
        else:
            known[value] = recording.symbol_of(RENAMED.get(name, name), *parts).node
        known[known[value]] = known[value]
    return known[value]


def _entry(recording: Recording, row: Any, index: Any) -> Any:
    """Return the entry of a row at the target, from the target's own logit where each entry is a function of its logit."""
    if not is_row(row):
        return row
    if isinstance(row, Input):
        return recording.symbol_of("own" if row.name == LOGITS else "take", *_symbols(recording, (row, index))).node
    if row.name == "put" and row.arguments[1] is index:
        return row.arguments[2]
    if row.name in OF_SEVERAL_ENTRIES:
        return recording.symbol_of("take", *_symbols(recording, (row, index))).node
    parts = [_entry(recording, seen_through(each), index) for each in row.arguments]
    return recording.symbol_of(row.name, *_symbols(recording, parts)).node


def _symbols(recording: Recording, parts: Iterable[Any]) -> list[Any]:
    return [_symbol(recording, part) for part in parts]


def _is_target(index: Any) -> bool:
    return isinstance(index.node, Input) and index.node.name == TARGET


def _symbol(recording: Recording, part: Any) -> Any:
    return Symbol(recording, part) if isinstance(part, Input | Operation) else part


def _peak(row: Any) -> tuple[Any, Any, Any]:
    """Return the largest number, its place, and the sum of the exponentials of all others relative to it."""
    height, place, rest = (row._recording.symbol_of(f"peak_{part}", row) for part in ("height", "place", "rest"))
    return height, place, rest


def softmax_of(row: Any) -> Any:
    """Return the softmax of a row; one with nothing but -inf has no mass.

    Args:
        row: The row.

    Returns:
        The probabilities.
    """
    height, _, rest = _peak(row)
    total = 1 + rest
    return torch.exp(row - height) / torch.where(total == 0, 1.0, total)


def _log_odds(logits: Any, index: Any) -> Any:
    height, _, rest = _peak(logits.scatter(1, index, -torch.inf))
    own = logits.gather(1, index)
    # -inf is the logit of an impossible class; what is infinite or no number must not pass for a certain one.
    diverged = torch.where(own == -torch.inf, 0.0, own - own)
    return logits._recording.symbol_of("two_difference", own + diverged, height, torch.log1p(rest))


def _surprises(logits: Any) -> Any:
    height, place, rest = _peak(logits)
    log_total = torch.log1p(rest)
    return (height - logits + log_total).scatter(1, place, log_total)


def _logsumexp(row: Any) -> Any:
    height, _, rest = _peak(row)
    return height + torch.log1p(rest)


def _log_softmax(row: Any) -> Any:
    height, _, rest = _peak(row)
    return (row - height) - torch.log1p(rest)


def _tempered_log_probs(logits: Any, t: Any) -> Any:
    if t == 1:
        return -_surprises(logits)
    if t < 1:
        raise UntraceableError("has a tempered softmax of a temperature below 1, which needs double precision")
    recording = logits._recording
    height, place = (recording.symbol_of(f"top_{part}", logits) for part in ("height", "place"))
    gap = height - logits
    log_peak = recording.symbol_of("tempered_peak", gap, _start(gap, t), t)
    log_terms = torch.log1p(gap * ((t - 1) * torch.exp((t - 1) * log_peak))) * (1 / (1 - t))
    log_probs = log_terms - torch.log(torch.exp(log_terms).sum(1, keepdim=True))
    rest = torch.exp(log_probs).scatter(1, place, 0.0).sum(1, keepdim=True)
    # Near probability 1 the logarithm is exact from the sum of the others.
    own = torch.where(rest < 0.5, torch.log1p(-rest), log_probs.gather(1, place))
    return log_probs.scatter(1, place, own)


def _start(gap: Any, t: Any) -> Any:
    """Return where Newton's method starts, see :mod:`lossmith.numerics.normalizer`."""
    recording = gap._recording
    log_classes = torch.log(recording.symbol_of("classes"))
    excess = (t - 1) * torch.exp((1 - t) * log_classes) * gap.mean(1, keepdim=True)
    log_peak = torch.log1p(-excess) / (1 - t) - log_classes
    log_peak = log_peak + MARGIN * torch.finfo(recording.dtype).eps * (1 + log_peak.abs())
    return torch.where((excess < 1) & (log_peak < 0), log_peak, 0.0)


LOWERED: dict[str, Callable[..., Any]] = {
    "amax": lambda row: row._recording.symbol_of("top_height", row),
    "amin": lambda row: -row._recording.symbol_of("top_height", -row),
    "argmax": lambda row: row._recording.symbol_of("top_place", row),
    "argmin": lambda row: row._recording.symbol_of("top_place", -row),
    "clamp": lambda x, low, high: torch.where(x < low, low, torch.where(x > high, high, x)),
    "clamp_max": lambda x, high: torch.where(x > high, high, x),
    "clamp_min": lambda x, low: torch.where(x < low, low, x),
    "detach": lambda x: x,
    "log_odds": _log_odds,
    "log_odds_of_absence": absence,
    "log_odds_of_all_absences": absence_of_all,
    "log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "maximum": lambda x, y: torch.where(x < y, y, x),
    "mean": lambda row: row.sum(1, keepdim=True) / row._recording.symbol_of("classes"),
    "minimum": lambda x, y: torch.where(x > y, y, x),
    "ones_like": lambda x: 1.0,
    "relu": lambda x: torch.where(x < 0, 0.0, x),
    "rsqrt": lambda x: 1 / torch.sqrt(x),
    "scatter_add": lambda row, index, value: row.scatter(1, index, row.gather(1, index) + value),
    "softmax": softmax_of,
    "square": lambda x: x * x,
    "surprises": _surprises,
    "tempered_log_probs": _tempered_log_probs,
    "tempered_probs": lambda logits, t: torch.exp(_tempered_log_probs(logits, t)),
    "with_slope": lambda x, value, slope: value,
    "zeros_like": lambda x: 0.0,
}
"""From the arguments of an operation to what it is made of."""
