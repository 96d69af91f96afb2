"""Rows, a block at a time, so that the passes over a block find it in the cache."""

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["FEW_PASSES", "MANY_PASSES", "Evaluation", "in_blocks", "in_blocks_of"]

Evaluation = tuple[Tensor, tuple[Tensor, ...]]
"""The losses of rows, and what is kept for their gradient."""

# Rows are evaluated in blocks of about this many elements, so that the passes over a block find it in the cache.
BLOCK_ELEMENTS = 1 << 19
# So many elements are faster at once: with many passes two blocks; with few passes all that fits into buffers which the system
# does not hand out anew each time.
MANY_PASSES = 2 * BLOCK_ELEMENTS
FEW_PASSES = 1 << 22


def in_blocks(
    evaluate: Callable[[Tensor, Tensor], Evaluation], logits: Tensor, target: Tensor, at_once: int = MANY_PASSES
) -> Evaluation:
    """Apply ``evaluate`` to blocks of rows, unless there are ``at_once`` elements or fewer."""
    if logits.numel() <= at_once:
        return evaluate(logits, target)
    return in_blocks_of(lambda rows, labels, _: evaluate(rows, labels), logits, target, at_once)


def in_blocks_of(
    evaluate: Callable[[Tensor, Tensor, Tensor | None], Evaluation],
    logits: Tensor,
    target: Tensor,
    at_once: int = MANY_PASSES,
) -> Evaluation:
    """Do the same for an ``evaluate`` that can write the first thing to be kept to where it belongs, its third argument."""
    size = logits.numel()
    if size <= at_once or not logits.is_cpu or torch.compiler.is_compiling() or torch.is_grad_enabled():
        return evaluate(logits, target, None)
    rows = max(1, BLOCK_ELEMENTS * logits.shape[0] // size)
    losses = logits.new_empty(target.shape[:1] + logits.shape[2:])
    saved: tuple[Tensor, ...] = (torch.empty_like(logits),)
    for block in (slice(start, start + rows) for start in range(0, logits.shape[0], rows)):
        place = saved[0][block]
        losses[block], parts = evaluate(logits[block], target[block], place)
        if len(saved) < len(parts):
            saved += tuple(part.new_empty(logits.shape[:1] + part.shape[1:]) for part in parts[1:])
        for whole, part in zip(saved, parts, strict=True):
            if part is not place:
                whole[block] = part
    return losses, saved
