"""What is done along the classes where they are spread over processes, from torch's arguments."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lossmith.kernels.sharded.collectives import added_up, gathered, largest, shared

__all__ = ["ALONG_CLASSES", "top_of"]

Rows = Any
"""A :class:`lossmith.kernels.sharded.rows.ShardedRows`, which is made of what is here."""


def _check(name: str, rows: Rows, dim: object) -> None:
    if dim not in (1, 1 - rows.dim()):
        raise NotImplementedError(f"{name} along dim={dim!r} is not known for logits whose classes are spread over processes.")


def _sum(rows: Rows, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    _check("sum", rows, dim)
    return added_up(rows.local.sum(1, keepdim=keepdim, dtype=dtype), rows.shard)


def _mean(rows: Rows, dim: Any = None, keepdim: bool = False) -> Tensor:
    mean: Tensor = _sum(rows, dim, keepdim) / rows.shard.classes
    return mean


def top_of(rows: Rows) -> Tensor:
    """Return the largest of each row, ``(N, 1, ...)``, without gradient.

    Args:
        rows: Rows, of which this process may have no class.

    Returns:
        Numbers that all processes have.
    """
    local = rows.local.detach()
    here = local.amax(1, keepdim=True) if local.shape[1] else torch.full_like(local.sum(1, keepdim=True), -torch.inf)
    return largest(here, rows.shard)


def _amax(rows: Rows, dim: Any = None, keepdim: bool = False) -> Tensor:
    if dim is None:
        return _amax(rows, 1).amax()
    _check("amax", rows, dim)
    top = top_of(rows)
    if rows.local.requires_grad and torch.is_grad_enabled():  # equal ones share the gradient, as in torch
        is_top = rows.local.detach() == top
        sums = [each.sum(1, keepdim=True) for each in (torch.where(is_top, rows.local, 0.0), is_top.to(top.dtype))]
        total, number = torch.split(added_up(torch.cat(sums, 1), rows.shard), 1, 1)
        top = total / number
    return top if keepdim else top.squeeze(1)


def _amin(rows: Rows, dim: Any = None, keepdim: bool = False) -> Tensor:
    return -_amax(-rows, dim, keepdim)


def _argmax(rows: Rows, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return the first class of each row that has the largest number."""
    _check("argmax", rows, dim)
    local, top = rows.local.detach(), top_of(rows)
    none = torch.full_like(top, rows.shard.classes, dtype=torch.int64)
    if local.shape[1]:
        place = local.argmax(1, keepdim=True)
        here = (local.gather(1, place) == top) | torch.isnan(top)
        none = torch.where(here, place + rows.shard.first, none)
    first = -largest(-none, rows.shard)
    return first if keepdim else first.squeeze(1)


def _argmin(rows: Rows, dim: Any = None, keepdim: bool = False) -> Tensor:
    return _argmax(-rows, dim, keepdim)


def _logsumexp(rows: Rows, dim: Any = None, keepdim: bool = False) -> Tensor:
    _check("logsumexp", rows, dim)
    top = top_of(rows)
    top = torch.where(top.isinf(), 0.0, top)
    total = added_up((rows.local - top).exp().sum(1, keepdim=True), rows.shard).log() + top
    return total if keepdim else total.squeeze(1)


def _log_softmax(rows: Rows, dim: Any = None) -> Rows:
    return rows - _logsumexp(rows, dim, keepdim=True)


def _softmax(rows: Rows, dim: Any = None) -> Rows:
    return _log_softmax(rows, dim).exp()


def _gather(rows: Rows, dim: int, index: Tensor) -> Tensor:
    """Return entries of each row; each of them is with one process."""
    _check("gather", rows, dim)
    place, is_here = rows.shard.local(index)
    if not rows.shard.here:
        return added_up(torch.zeros_like(index, dtype=rows.dtype), rows.shard)
    return added_up(torch.where(is_here, rows.local.gather(1, place), 0.0), rows.shard)


def _scatter(rows: Rows, dim: int, index: Tensor, src: Any = None, value: Any = None) -> Rows:
    """Return rows with other entries; those of other processes go to a column that is left out."""
    _check("scatter", rows, dim)
    place, is_here = rows.shard.local(index)
    place = torch.where(is_here, place, rows.shard.here)
    new = value if src is None else src
    new = shared(new, rows.shard) if isinstance(new, Tensor) else new
    room = [0, 0] * (rows.dim() - 2) + [0, 1]
    return rows.like(F.pad(rows.local, room).scatter(1, place, new).narrow(1, 0, rows.shard.here))


def _scatter_add(rows: Rows, dim: int, index: Tensor, src: Tensor) -> Rows:
    _check("scatter_add", rows, dim)
    place, is_here = rows.shard.local(index)
    if not rows.shard.here:
        return rows
    return rows.like(rows.local.scatter_add(1, place, torch.where(is_here, shared(src, rows.shard), 0.0)))


def _topk(rows: Rows, k: int, dim: int = -1) -> tuple[Tensor, Tensor]:
    """Return the k largest of each row and their classes: each process hands out its own k largest."""
    _check("topk", rows, dim)
    if rows.dim() > 2:
        raise NotImplementedError("topk of (N, C, d1, ...) is not known where classes are spread over processes: use (N, C).")
    here = min(k, rows.shard.here)
    values, places = rows.local.topk(here, 1)
    values = F.pad(values, (0, k - here), value=-torch.inf)
    classes = F.pad(places + rows.shard.first, (0, k - here), value=rows.shard.classes)
    top, order = gathered(values, rows.shard).topk(k, 1)
    return top, gathered(classes, rows.shard).gather(1, order)


def _expand_as(numbers: Tensor, rows: Rows) -> Rows:
    return rows.like(shared(numbers, rows.shard).expand(rows.local.shape))


ALONG_CLASSES: Mapping[str, Callable[..., Any]] = {
    "amax": _amax,
    "amin": _amin,
    "argmax": _argmax,
    "argmin": _argmin,
    "expand_as": _expand_as,
    "gather": _gather,
    "log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "mean": _mean,
    "scatter": _scatter,
    "scatter_add": _scatter_add,
    "softmax": _softmax,
    "sum": _sum,
    "topk": _topk,
}
