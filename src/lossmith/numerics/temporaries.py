"""Operations on temporaries: in place where no gradient is recorded.

A fresh buffer costs more than the arithmetic that fills it, because the system hands out its pages one by one.
"""

import torch
from torch import Tensor
from torch.autograd import forward_ad

from lossmith.numerics.tracing import is_traced

__all__ = [
    "add",
    "add_multiple",
    "add_product",
    "add_scaled",
    "affine",
    "affine_in_place",
    "is_in_forward_mode",
    "multiply",
    "overwrite",
    "scale_kept",
]

# Whether the graph that is being differentiated will be wanted again; where torch does not tell, it may be.
_graph_is_kept = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", lambda: True)


def add(tensor: Tensor, term: Tensor | float) -> Tensor:
    """Add to a temporary."""
    return tensor + term if torch.is_grad_enabled() else tensor.add_(term)


def add_multiple(tensor: Tensor, term: Tensor, factor: float) -> Tensor:
    """Add ``factor * term`` to a temporary."""
    if torch.is_grad_enabled() or torch.compiler.is_compiling():
        return add_scaled(tensor, term, factor)
    return tensor.add_(term, alpha=factor)


def add_scaled(first: Tensor, second: Tensor, factor: float) -> Tensor:
    """Return ``first + factor * second``, in one operation but where it would make the factor a constant of a graph."""
    if torch.compiler.is_compiling():
        return first + factor * second
    return torch.add(first, second, alpha=factor)


def affine_in_place(x: Tensor, factor: float, offset: float) -> Tensor:
    """Return the same as :func:`affine` in the place of a temporary."""
    if torch.is_grad_enabled() or torch.compiler.is_compiling():
        return affine(x, factor, offset)
    return torch.add(torch.scalar_tensor(offset, dtype=x.dtype, device=x.device), x, alpha=factor, out=x)


def affine(x: Tensor, factor: float, offset: float) -> Tensor:
    """Return ``offset + factor * x``, in one operation but where it would make the numbers constants of a graph."""
    if torch.compiler.is_compiling():
        return offset + factor * x
    return torch.rsub(x, offset, alpha=-factor)


def multiply(tensor: Tensor, factor: Tensor | float) -> Tensor:
    """Multiply a temporary."""
    return tensor * factor if torch.is_grad_enabled() else tensor.mul_(factor)


def add_product(tensor: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Add ``first * second`` to a temporary."""
    if torch.is_grad_enabled():
        return torch.addcmul(tensor, first, second)
    return tensor.addcmul_(first, second)


def overwrite(tensor: Tensor, index: Tensor, value: Tensor | float) -> Tensor:
    """Write ``value`` at one class of each row of a temporary."""
    if torch.is_grad_enabled():
        return tensor.scatter(1, index, value)
    return tensor.scatter_(1, index, value)


def scale_kept(kept: Tensor, factor: Tensor) -> Tensor:
    """Multiply what an operation kept for its gradient: in place if the graph ends with this gradient."""
    if torch.is_grad_enabled() or _may_be_wanted_again(factor):
        return kept * factor
    is_one = factor.is_cpu and factor.numel() == 1 and not is_traced() and factor.item() == 1
    return kept if is_one else kept.mul_(factor)


def is_in_forward_mode() -> bool:
    """Whether tensors may have tangents, which gradients then inherit although no gradient is recorded."""
    return forward_ad._current_level >= 0


def _may_be_wanted_again(factor: Tensor) -> bool:
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active() or _graph_is_kept() or is_in_forward_mode():
        return True
    # One gradient for each of many factors, as autograd.grad(is_grads_batched=True) asks for.
    return torch._C._functorch.is_legacy_batchedtensor(factor)
