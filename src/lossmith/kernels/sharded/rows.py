"""Rows of logits of which every process has some classes: they stand for tensors in any formula.

Operations on each element are done where the element is. Sums along the classes become sums over the processes, and so does
everything that follows from sums: a formula does not know. What would need the logits of all classes in one place is refused.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from lossmith.kernels.sharded.along_classes import ALONG_CLASSES
from lossmith.kernels.sharded.collectives import Shard, shared
from lossmith.kernels.sharded.functions import WHOLE_FUNCTIONS

__all__ = ["ShardedRows"]

# By their names in torch; those that overwrite what they are given have an underscore more.
_NAMES = """
abs add addcmul bitwise_and bitwise_not bitwise_or clamp clamp_max clamp_min clone contiguous detach div double eq exp exp2 expm1
float ge gt isfinite isinf isnan le lerp log log1p log2 log_sigmoid logical_and logical_not logical_or logsigmoid lt masked_fill
maximum minimum mul ne neg ones_like pow reciprocal relu rsqrt rsub sigmoid sign softplus sqrt square sub tanh to true_divide
truediv where xlogy zeros_like
"""
ELEMENTWISE = frozenset(_NAMES.split())


class ShardedRows:
    """Rows ``(N, C, ...)`` of which this process has the classes of a shard.

    Args:
        local: The part of this process, ``(N, c, ...)``.
        shard: Which classes these are.
    """

    is_cpu = is_cuda = False
    """No kernel is for them."""
    __hash__ = object.__hash__

    def __init__(self, local: Tensor, shard: Shard) -> None:
        self.local = local
        self.shard = shard

    @property
    def shape(self) -> torch.Size:
        """The shape of the whole."""
        return torch.Size((*self.local.shape[:1], self.shard.classes, *self.local.shape[2:]))

    @property
    def dtype(self) -> torch.dtype:
        """The precision."""
        return self.local.dtype

    @property
    def device(self) -> torch.device:
        """Where the part of this process is."""
        return self.local.device

    @property
    def requires_grad(self) -> bool:
        """Whether gradients go through the part of this process."""
        return self.local.requires_grad

    def dim(self) -> int:
        """Return the number of dimensions."""
        return self.local.dim()

    def numel(self) -> int:
        """Return the number of elements of the whole."""
        return self.shape.numel()

    def is_floating_point(self) -> bool:
        """Return whether these are no whole numbers."""
        return self.local.is_floating_point()

    def is_complex(self) -> bool:
        """Return whether these are complex numbers."""
        return self.local.is_complex()

    def new_zeros(self, *shape: Any, **options: Any) -> Tensor:
        """Return zeros that all processes have."""
        return self.local.new_zeros(*shape, **options)

    def like(self, local: Tensor) -> "ShardedRows":
        """Return other rows of the same classes."""
        return ShardedRows(local, self.shard)

    @classmethod
    def __torch_function__(cls, function: Callable[..., Any], _: object, arguments: Any = (), options: Any = None) -> Any:
        """Run one of torch's functions, or one of those that a formula keeps whole."""
        named: Mapping[str, Any] = options or {}
        if function in WHOLE_FUNCTIONS:
            return WHOLE_FUNCTIONS[function](*arguments, **named)
        name = function.__name__.strip("_")
        if name in ALONG_CLASSES:
            return ALONG_CLASSES[name](*arguments, **named)
        if name not in ELEMENTWISE:
            raise NotImplementedError(f"{name} is not known for logits whose classes are spread over processes.")
        rows = next(each for each in (*arguments, *named.values()) if isinstance(each, ShardedRows))
        here = [rows._here(each) for each in arguments]
        return rows.like(function(*here, **{key: rows._here(each) for key, each in named.items()}))

    def _here(self, argument: Any) -> Any:
        """Return the part of an argument that belongs to the classes of this process."""
        if isinstance(argument, ShardedRows):
            return argument.local
        if not isinstance(argument, Tensor):
            return argument
        classes = argument.dim() - self.dim() + 1
        used = shared(argument, self.shard)
        if classes >= 0 and argument.shape[classes] == self.shard.classes > 1:
            return used.narrow(classes, self.shard.first, self.shard.here)
        return used

    def __getattr__(self, name: str) -> Any:
        """Return a method of a tensor."""
        method = getattr(Tensor, name, None)
        if name.startswith("__") or not callable(method):
            raise AttributeError(f"{name} is not known for logits whose classes are spread over processes.")
        return lambda *arguments, **options: self.__torch_function__(method, (), (self, *arguments), options)


def _operator(name: str) -> Callable[..., ShardedRows]:
    function = getattr(torch, name)
    return lambda self, *others: ShardedRows.__torch_function__(function, (), (self, *others))


def _reflected(name: str) -> Callable[..., ShardedRows]:
    function = getattr(torch, name)

    def operate(self: ShardedRows, other: Any) -> ShardedRows:
        other = other if isinstance(other, Tensor) else torch.as_tensor(other, dtype=self.dtype, device=self.device)
        found: ShardedRows = ShardedRows.__torch_function__(function, (), (other, self))
        return found

    return operate


for _name, _function in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow"}.items():
    setattr(ShardedRows, f"__{_name}__", _operator(_function))
    setattr(ShardedRows, f"__r{_name}__", _reflected(_function))
for _name, _function in {"neg": "neg", "abs": "abs", "invert": "logical_not", "and": "logical_and", "or": "logical_or"}.items():
    setattr(ShardedRows, f"__{_name}__", _operator(_function))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(ShardedRows, f"__{_name}__", _operator(_name))
