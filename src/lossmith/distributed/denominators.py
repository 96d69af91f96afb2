"""What the mean over a batch divides by where the batch is spread over processes."""

from torch import Tensor, distributed

from lossmith.losses.contract.reduction import sum_of_shares

__all__ = ["global_denominator"]


def global_denominator(
    target: Tensor,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    sample_weight: Tensor | None = None,
    group: distributed.ProcessGroup | None = None,
    averaged: bool = True,
) -> Tensor:
    """Return the ``denominator`` that gives every process its part of the gradient of the whole batch.

    How many examples count, each with its class weight, is summed over the processes. ``DistributedDataParallel``, FSDP and
    DeepSpeed then average gradients over the processes, so that the sum is divided by the number of processes, too; the mean of
    the losses that processes return is the loss of the whole batch. Every process of the group has to call it. Where batches are
    accumulated, the denominators of the pieces add up; without processes it is ``loss.denominator(target)``.

    Args:
        target: The targets of this process: class indices or class probabilities, as in a call of a loss.
        weight: The class weights of the loss, or None.
        ignore_index: Target of examples that do not count.
        sample_weight: A factor for each example, or None.
        group: The processes that share the batch; all of them by default.
        averaged: Whether gradients are averaged over the processes; False where they are added up.

    Returns:
        A tensor of one number on the device of the target.

    Raises:
        ValueError: If the weights of the examples have another shape than they.
        IndexError: If a class index is out of range, where there are class weights.

    >>> import torch
    >>> global_denominator(torch.tensor([0, 2, -100]), weight=torch.tensor([1.0, 1.0, 0.5]))
    tensor(1.5000)
    """
    whole = sum_of_shares("global_denominator", target, weight, ignore_index, sample_weight)
    if not (distributed.is_available() and distributed.is_initialized()):
        return whole
    distributed.all_reduce(whole, group=group)
    return whole / distributed.get_world_size(group) if averaged else whole
