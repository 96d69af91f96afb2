"""Layers of many models at once: inputs ``(runs, rows, ...)`` and parameters with a leading dimension of runs."""

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from lossmith.data.sparse_rows import Inputs, SparseRows, as_tensor
from lossmith.torch_compat import is_autocast_enabled
from lossmith.training.models.sparse_layers import SparseLinear, Spread, bag
from lossmith.training.models.tabular import NumberWaves
from lossmith.training.stacks.dropout_masks import DropoutMasks

__all__ = ["hides_dropout", "stacked_call", "tensors_under"]

_ELEMENTWISE = (nn.ReLU, nn.Identity, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.Mish, nn.LeakyReLU, nn.ELU, nn.Softplus)
_OF_ROWS = (*_ELEMENTWISE, NumberWaves, Spread)
"""Layers without parameters that take any number of dimensions before the last."""


def stacked_call(module: nn.Module, tensors: Mapping[str, Tensor], inputs: Inputs, masks: DropoutMasks) -> Tensor:
    """Call a module with parameters and buffers of its own for each run.

    Linear layers, alone and in sequences, are batched products of matrices; dropout layers in sequences draw masks by the seed
    of each run; ``torch.func`` maps everything else.

    Args:
        module: The module, whose own tensors are not used.
        tensors: Parameters and buffers by name, each ``(runs, ...)``.
        inputs: ``(runs, rows, ...)``, or sparse rows that all runs see.
        masks: What dropout layers keep.

    Returns:
        Outputs ``(runs, rows, ...)``.
    """
    if _is_sequence(module):
        for name, layer in module.named_children():
            inputs = stacked_call(layer, tensors_under(name, tensors), inputs, masks)
        return as_tensor(inputs)
    if isinstance(inputs, SparseRows):
        return _layer_of_sparse_rows(module, tensors, inputs)
    if type(module) is nn.Dropout:
        return masks.drop(inputs, module.p) if module.training else inputs
    if len(inputs) == 1:  # nothing to batch, so any module will do
        outputs: Tensor = functional_call(
            module, {name: tensor.squeeze(0) for name, tensor in tensors.items()}, inputs.squeeze(0)
        )
        return outputs.unsqueeze(0)
    return _layer_of_many(module, tensors, inputs)


def _layer_of_sparse_rows(module: nn.Module, tensors: Mapping[str, Tensor], rows: SparseRows) -> Tensor:
    if type(module) is SparseLinear:
        return torch.stack([bag(rows, weight) for weight in tensors["weight"]]) + tensors["bias"].unsqueeze(1)
    return torch.stack(
        [
            functional_call(module, {name: tensor[run] for name, tensor in tensors.items()}, rows)
            for run in range(len(next(iter(tensors.values()))))
        ]
    )


def _layer_of_many(module: nn.Module, tensors: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
    if type(module) is nn.Linear and inputs.dim() == 3:
        return _stacked_linear(inputs, tensors["weight"], tensors.get("bias"))
    if type(module) is nn.Flatten and (module.start_dim, module.end_dim) == (1, -1):
        return inputs.flatten(2)
    if type(module) in _OF_ROWS:
        return _same_for_all(module, inputs)
    return cast("Tensor", vmap(lambda own, rows: functional_call(module, own, (rows,)))(dict(tensors), inputs))


def _same_for_all(module: nn.Module, inputs: Tensor) -> Tensor:
    """Call a module without parameters, and once for all runs where they see the same rows."""
    if inputs.stride(0):
        return cast("Tensor", module(inputs))
    outputs: Tensor = module(inputs[:1])
    return outputs.expand(len(inputs), *outputs.shape[1:])


def _is_sequence(module: nn.Module) -> bool:
    return type(module).forward is nn.Sequential.forward


def hides_dropout(module: nn.Module) -> bool:
    """Return whether a dropout layer is where :func:`stacked_call` does not see it: anywhere but in sequences.

    Args:
        module: The module.

    Returns:
        True if its masks cannot be those of each run.

    >>> hides_dropout(nn.Sequential(nn.Linear(2, 2), nn.Dropout())), hides_dropout(nn.TransformerEncoderLayer(8, 2))
    (False, True)
    """
    if type(module) is nn.Dropout:
        return False
    if _is_sequence(module):
        return any(map(hides_dropout, module.children()))
    return any(isinstance(part, nn.modules.dropout._DropoutNd) for part in module.modules())


def tensors_under(name: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of a part of a module by their names in that part.

    Args:
        name: The name of the part.
        tensors: The tensors of the whole module by name.

    Returns:
        Those of the part.
    """
    prefix = f"{name}."
    return {path.removeprefix(prefix): tensor for path, tensor in tensors.items() if path.startswith(prefix)}


def _stacked_linear(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if bias is None:
        return torch.bmm(inputs, weight.transpose(1, 2))
    if is_autocast_enabled(inputs.device.type):
        # As autocast would, but for the backward pass of our own, which it does not reach.
        inputs, weight, bias = (tensor.to(torch.bfloat16) for tensor in (inputs, weight, bias))
    return cast("Tensor", _StackedLinear.apply(inputs, weight, bias))  # type: ignore[no-untyped-call]


class _StackedLinear(torch.autograd.Function):
    """``inputs @ weight.T + bias`` for each run.

    Autograd's own gradient of the weights comes out transposed, and copying it into place costs more than the product.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        return torch.baddbmm(bias.unsqueeze(1), inputs, weight.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        inputs, weight = ctx.saved_tensors
        grad_inputs = torch.bmm(grad, weight) if ctx.needs_input_grad[0] else None
        return grad_inputs, torch.bmm(grad.transpose(1, 2), inputs), grad.sum(1)
