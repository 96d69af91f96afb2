"""The kernel that adds up what blocks of rows found."""

import triton
import triton.language as tl

__all__ = ["sum_of_blocks"]


@triton.jit
def sum_of_blocks(losses, shares, result, divisor, COUNT, MEAN: tl.constexpr, BLOCK: tl.constexpr):
    """The sum of the losses, divided by that of the shares if the mean is wanted; what it was divided by comes after it."""
    total = tl.zeros([BLOCK], tl.float64)
    whole = tl.zeros([BLOCK], tl.float64)
    for start in range(0, COUNT, BLOCK):
        place = start + tl.arange(0, BLOCK)
        total += tl.load(losses + place, mask=place < COUNT, other=0.0).to(tl.float64)
        whole += tl.load(shares + place, mask=place < COUNT, other=0.0).to(tl.float64)
    parts = tl.sum(total)
    if MEAN:
        parts = parts / tl.sum(whole)
        tl.store(divisor, tl.sum(whole))
    else:
        tl.store(divisor, 1.0)
    if result.dtype.element_ty == tl.float64:
        tl.store(result, parts)
    else:
        tl.store(result, parts.to(tl.float32).to(result.dtype.element_ty))
