"""What a linear layer with a loss may be called with, and one clear line of error for anything else."""

from typing import NamedTuple

from torch import Tensor

from lossmith.kernels.sharded.collectives import Shard
from lossmith.losses.contract.classification_loss import ClassificationLoss

__all__ = ["Arguments", "check_arguments", "check_chunk"]


class Arguments(NamedTuple):
    """What was given."""

    features: Tensor
    weight: Tensor
    target: Tensor
    loss: ClassificationLoss
    bias: Tensor | None
    sample_weight: Tensor | None
    chunk: int | None
    shard: Shard | None


def check_arguments(given: Arguments) -> None:
    """Raise an error that names the argument, what was expected and what came.

    Args:
        given: All arguments.

    Raises:
        TypeError: If one has a type that it cannot have.
        ValueError: If the shapes do not fit one another.
    """
    if not isinstance(given.loss, ClassificationLoss):
        raise TypeError(f"linear_loss: loss must be a lossmith loss, got {type(given.loss).__name__}.")
    _check_types(given)
    _check_layer(given.features, given.weight, given.bias)
    leading, classes = given.features.shape[:-1], given.weight.shape[0]
    if given.shard is not None and given.target.shape[-1:] != (classes,):
        classes = given.shard.classes
    expected = (*leading, classes) if given.target.is_floating_point() else leading
    for name, values, shape in (("target", given.target, expected), ("sample_weight", given.sample_weight, leading)):
        if values is not None and values.shape != tuple(shape):
            raise ValueError(
                f"linear_loss: {name} must have shape {tuple(shape)} for features of shape {tuple(given.features.shape)}"
                f" and {classes} classes, got {tuple(values.shape)}."
            )
    check_chunk("linear_loss", given.chunk)


def _check_types(given: Arguments) -> None:
    for name in ("features", "weight", "target", "bias", "sample_weight"):
        value = getattr(given, name)
        if not (isinstance(value, Tensor) or (value is None and name in ("bias", "sample_weight"))):
            raise TypeError(f"linear_loss: {name} must be a tensor, got {type(value).__name__}.")
    for name, tensor in (("features", given.features), ("weight", given.weight)):
        if not tensor.is_floating_point():
            raise TypeError(f"linear_loss: {name} must be floating point, got {tensor.dtype}.")


def _check_layer(features: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    if weight.dim() != 2 or weight.shape[0] == 0:
        raise ValueError(f"linear_loss: weight must be (C, in_features) with C >= 1, got shape {tuple(weight.shape)}.")
    if features.dim() == 0 or features.shape[-1] != weight.shape[1]:
        raise ValueError(f"linear_loss: features must be (..., {weight.shape[1]}), as weight is, got {tuple(features.shape)}.")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"linear_loss: bias must have shape ({weight.shape[0]},), got {tuple(bias.shape)}.")


def check_chunk(owner: str, chunk: int | None) -> None:
    """Raise an error unless a number of rows is one.

    Args:
        owner: Whom the error names.
        chunk: What was given.

    Raises:
        ValueError: If it is neither None nor an integer above 0.
    """
    if chunk is not None and (isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1):
        raise ValueError(f"{owner}: chunk must be a number of rows >= 1, got {chunk!r}.")
