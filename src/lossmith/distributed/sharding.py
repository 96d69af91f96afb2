"""Losses of logits whose classes are spread over processes."""

from torch import Tensor, distributed

from lossmith.kernels.sharded.collectives import Shard
from lossmith.kernels.sharded.rows import ShardedRows
from lossmith.losses.contract.classification_loss import ClassificationLoss

__all__ = ["sharded_loss"]


def sharded_loss(
    local_logits: Tensor,
    target: Tensor,
    loss: ClassificationLoss,
    *,
    num_classes: int | None = None,
    group: distributed.ProcessGroup | None = None,
    sample_weight: Tensor | None = None,
    denominator: float | Tensor | None = None,
) -> Tensor:
    """Return the loss of logits of which each process has some classes, without sending logits around.

    Every process of the group calls it with all rows and its own classes, which are divided as ``torch.chunk`` divides them: the
    process of rank r has the r-th part. What is sent are a few numbers for each row, whatever the number of classes. The loss is
    the same everywhere; its gradient by ``local_logits`` is that of the whole, so that each process calls ``backward`` for its
    classes. Losses take a ``DTensor`` with ``Shard(1)`` in the place of logits, too, and return a ``DTensor``.

    Args:
        local_logits: The logits of this process, ``(N, c)`` or ``(N, c, d1, ...)``.
        target: Class indices among all classes, the same everywhere; or probabilities of all classes, or of this process's.
        loss: Any loss; its class weights are those of all classes.
        num_classes: How many classes there are; by default as many for every process as for this one.
        group: The processes that share the classes; all of them by default.
        sample_weight: A factor for each example, the same everywhere.
        denominator: What the sum of the losses is divided by, as in a call of the loss.

    Returns:
        One number, or a loss for each example where ``reduction`` is ``"none"``.

    Raises:
        TypeError: If an argument has a type that it cannot have.
        ValueError: If shapes do not fit, or this process does not have its part of the classes.
        NotImplementedError: If the loss does what needs the logits of all classes in one place.
        IndexError: If a class index is out of range.
    """
    if not isinstance(local_logits, Tensor) or local_logits.dim() < 2:
        got = tuple(local_logits.shape) if isinstance(local_logits, Tensor) else type(local_logits).__name__
        raise ValueError(f"sharded_loss: local_logits must be a tensor (N, c, ...), got {got}.")
    here = local_logits.shape[1]
    shard = Shard.of(group, here * distributed.get_world_size(group) if num_classes is None else num_classes)
    if shard.here != here:
        raise ValueError(
            f"sharded_loss: local_logits must have {shard.here} of the {shard.classes} classes in this process, got {here}."
        )
    found: Tensor = loss(ShardedRows(local_logits, shard), target, sample_weight=sample_weight, denominator=denominator)
    return found
