"""Which part of a linear layer a process has, where its classes are spread over several."""

from typing import Any

from torch import Tensor, distributed

from lossmith.kernels.sharded.collectives import Shard
from lossmith.kernels.sharded.entering import shard_of
from lossmith.torch_compat import is_dtensor

__all__ = ["of_this_process"]


def of_this_process(
    weight: Any, bias: Any, num_classes: int | None, group: distributed.ProcessGroup | None
) -> tuple[Tensor, Tensor | None, Shard | None]:
    """Return the weights and biases of this process, and which classes they belong to.

    Args:
        weight: The weights of all classes, those of this process, or a ``DTensor`` with ``Shard(0)``.
        bias: The biases in the same way, or None.
        num_classes: How many classes there are, where those of this process were given.
        group: The processes that share the classes.

    Returns:
        Plain tensors, and None in the place of a shard if nothing is spread.

    Raises:
        ValueError: If this process does not have its part of the classes.
    """
    if is_dtensor(weight):
        shard = shard_of("linear_loss", weight, 0)
        return weight.to_local(), bias.to_local() if is_dtensor(bias) else bias, shard
    if num_classes is None:
        return weight, bias, None
    shard = Shard.of(group, num_classes)
    if weight.shape[0] != shard.here:
        raise ValueError(
            f"linear_loss: weight must have {shard.here} of the {num_classes} classes in this process, got {weight.shape[0]}."
        )
    return weight, bias, shard
