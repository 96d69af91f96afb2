"""The loss of a linear layer, whose logits are made and used a few rows at a time."""

import torch
from torch import Tensor, distributed

from lossmith.linear.call import Call, Precision
from lossmith.linear.checks import Arguments, check_arguments
from lossmith.linear.chunks import Layer
from lossmith.linear.compiled import compiled_linear_loss
from lossmith.linear.of_this_process import of_this_process
from lossmith.linear.operation import as_one_operation, loss_and_gradients, plain
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.reduction import output_dtype
from lossmith.torch_compat import are_transforms_active, is_exporting, is_in_forward_mode, is_traced

__all__ = ["linear_loss"]


def linear_loss(
    features: Tensor,
    weight: Tensor,
    target: Tensor,
    loss: ClassificationLoss,
    *,
    bias: Tensor | None = None,
    sample_weight: Tensor | None = None,
    denominator: float | Tensor | None = None,
    chunk: int | None = None,
    num_classes: int | None = None,
    group: distributed.ProcessGroup | None = None,
) -> Tensor:
    """Return ``loss(features @ weight.T + bias, target)`` without ever holding the logits of all rows.

    Logits of a few rows are made, turned into a loss and a gradient, and forgotten: with many classes they are most of what a
    training step needs memory for. Gradients of features, weight and bias are made together with the loss, added up in single
    precision at least, and multiplied by what comes back. Rows whose target is ignored are not computed at all. Where
    ``reduction`` is ``"none"``, backward makes the logits once more.

    Classes may be spread over processes, each of which has the features of all rows and the weights of its classes: a
    ``DTensor`` with ``Shard(0)``, or a plain tensor and ``num_classes``. See :func:`lossmith.distributed.sharded_loss`.

    All logits are held at once where more is wanted than gradients of features, weight and bias: under ``torch.func``, in forward
    mode, for gradients of gradients, of targets and of weights of classes and examples.

    Args:
        features: What the layer gets, ``(..., in_features)``; each of the leading places is an example.
        weight: The weights of the layer, ``(C, in_features)``.
        target: Class indices ``(...)``, or class probabilities ``(..., C)``.
        loss: Any loss, with its options.
        bias: The biases of the layer, ``(C,)``; none by default.
        sample_weight: A factor for each example, ``(...)``, as in a call of the loss.
        denominator: What the sum of the losses is divided by, as in a call of the loss.
        chunk: How many rows have logits at a time; by default so many that logits and their gradient take about a tenth of the
            memory of all logits.
        num_classes: How many classes there are, where ``weight`` and ``bias`` hold those of this process.
        group: The processes that share these classes; all of them by default.

    Returns:
        One number, or a loss for each example ``(...)`` where ``reduction`` is ``"none"``.

    Raises:
        TypeError: If an argument has a type that it cannot have.
        ValueError: If shapes do not fit, or the target has no value under the loss.
        IndexError: If a class index is out of range.

    >>> from lossmith import GeneralizedCrossEntropyLoss
    >>> features, weight = torch.tensor([[1.0, 2.0], [0.0, 1.0]]), torch.eye(2)
    >>> linear_loss(features, weight, torch.tensor([1, 0]), GeneralizedCrossEntropyLoss())
    tensor(0.5701)
    """
    weight, bias, shard = of_this_process(weight, bias, num_classes, group)
    check_arguments(Arguments(features, weight, target, loss, bias, sample_weight, chunk, shard))
    leading, dtype = features.shape[:-1], output_dtype(features, target)
    rows = features.reshape(-1, features.shape[-1])
    labels = target.reshape(rows.shape[0], *target.shape[len(leading) :])
    weights = None if sample_weight is None else sample_weight.reshape(-1)
    call = Call(loss, labels, weights, denominator, shard)
    found = _chosen(call, Layer(rows, weight, bias, Precision.of(features)), chunk)
    found = found if found.dtype == dtype else found.to(dtype)
    return found.reshape(leading) if loss.reduction == "none" else found


def _chosen(call: Call, layer: Layer, chunk: int | None) -> Tensor:
    """Return the loss by the way that this call can go."""
    if _wants_more(call) or is_exporting() or are_transforms_active() or is_in_forward_mode():
        return plain(call, layer)
    if torch.compiler.is_compiling() and call.shard is None:
        return compiled_linear_loss(call, layer, chunk)
    if is_traced():
        return plain(call, layer)
    if not torch.is_grad_enabled():
        return loss_and_gradients(call, layer, chunk, (False, False, False)).value
    return as_one_operation(call, layer, chunk)


def _wants_more(call: Call) -> bool:
    """Return whether gradients of something else than the layer are wanted."""
    others = [call.target, call.sample_weight, call.denominator, call.loss.weight, *call.loss.parameters()]
    return torch.is_grad_enabled() and any(isinstance(each, Tensor) and each.requires_grad for each in others)
