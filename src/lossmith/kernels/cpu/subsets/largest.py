"""The k largest values of rows."""

import math

import torch
from torch import Tensor

__all__ = ["largest", "largest_others"]

# What torch.topk does depends on every comparison, and a processor guesses many of them wrong: on values that it has not seen
# before it takes three times as long as k times the maximum at (256, 100), and 1.4 times as long at (256, 1000).
FEW = 8
# Of more values, the maxima of groups are looked at first: at (256, 10000) that takes half the time.
MOST_AT_ONCE = 2048
GROUP = 32
# A number in double precision that comes from single precision has so many bits to spare, which take its place in the row.
PLACE = (1 << 29) - 1


def largest_others(values: Tensor, index: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest values of each row other than the one at ``index``, and where they are.

    Args:
        values: Scores ``(N, C)``, C > k.
        index: What is left out, ``(N, 1)``.
        k: How many are wanted.

    Returns:
        Values ``(N, k)``, descending, as low as a number can be where classes are impossible, and NaN in rows with fewer than k
        possible classes or with one that has diverged; and their indices ``(N, k)``.
    """
    top, top_index = _largest(values, k, index)
    if _are_finite(top):
        return top, top_index
    return _where_possible(top, torch.cat([values.gather(1, index), top], 1)), top_index


def largest(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest values of each row, and where they are.

    Args:
        values: Scores ``(N, C)``, C >= k.
        k: How many are wanted.

    Returns:
        The same for all values, with NaN in rows with fewer than k - 1 possible classes.
    """
    top, top_index = _largest(values, k)
    return (top if _are_finite(top) else _where_possible(top, top)), top_index


def _are_finite(top: Tensor) -> bool:
    if top.numel() == 0:
        return True
    low, high = torch.aminmax(top)
    return low.item() > -torch.inf and high.item() < torch.inf


def _where_possible(top: Tensor, considered: Tensor) -> Tensor:
    """Of the classes that are considered at most one may be impossible, and none may have diverged."""
    too_few = (considered == -torch.inf).sum(1, keepdim=True) > 1
    nothing = too_few | (top[:, :1] == torch.inf)
    return torch.where(nothing, torch.nan, top.clamp(min=torch.finfo(top.dtype).min))


def _largest(values: Tensor, k: int, without: Tensor | None = None) -> tuple[Tensor, Tensor]:
    places = _by_keys(values, k, without) if k <= FEW and values.dtype is torch.float32 else None
    if places is not None:
        return values.gather(1, places), places
    others = values if without is None else values.scatter(1, without, -torch.inf)
    top, places = others.topk(k, 1)
    return top, places


def _by_keys(values: Tensor, k: int, without: Tensor | None) -> Tensor | None:
    """Return where the largest are, or None where some values are not finite."""
    if values.shape[1] <= MOST_AT_ONCE:
        keys = _keys(values)
        return _by_maxima(keys if without is None else keys.scatter_(1, without, -torch.inf), k)
    groups, count = values.shape[1] // GROUP, k + (without is not None)
    firsts = _by_maxima(_keys(values[:, : groups * GROUP].view(len(values), groups, GROUP).amax(2)), count)
    if firsts is None:
        return None
    of_groups = (firsts.unsqueeze(2) * GROUP + torch.arange(GROUP)).flatten(1)
    left = torch.arange(groups * GROUP, values.shape[1]).expand(values.shape[0], -1)
    places = torch.cat([of_groups, left], 1)
    keys = _keys(values.gather(1, places))
    found = _by_maxima(keys if without is None else keys.masked_fill_(places == without, -torch.inf), k)
    return None if found is None else places.gather(1, found)


def _keys(values: Tensor) -> Tensor:
    """Return values in double precision that carry their place in the row; what is not finite becomes NaN, but for the first."""
    return values.double().view(torch.int64).bitwise_or_(torch.arange(values.shape[1])).view(torch.float64)


def _by_maxima(keys: Tensor, k: int) -> Tensor | None:
    """Return where the k largest are, one after the other, or None where some are not finite; keys are overwritten."""
    places: list[Tensor] = []
    while len(places) < k:
        largest = keys.amax(1, keepdim=True)
        if not places and not math.isfinite(largest.sum().item()):
            return None
        places.append(largest.view(torch.int64).bitwise_and_(PLACE))
        keys.scatter_(1, places[-1], -torch.inf)
    return torch.cat(places, 1)
