"""What the layers of a model put out, read with forward hooks while it runs.

Something small is made of each output while the model runs, so that no more than one activation is held at a time, and layers
that overwrite their input, as ``nn.ReLU(inplace=True)`` does, cannot spoil what was read before them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from lossmith.data.sparse_rows import Inputs, SparseRows

__all__ = ["InputBatches", "LayerReader", "input_batches", "leaf_layers", "nonzero_activations"]

InputBatches: TypeAlias = Inputs | Iterable[Any]
"""All inputs, a tensor or sparse rows, or batches: tensors, or tuples that begin with one, as a ``DataLoader`` gives them."""

Made = TypeVar("Made")


class LayerReader(Generic[Made]):
    """Runs a model on a batch and returns, by name, what ``make`` makes of the output of each layer.

    ``layers`` are names as in ``model.named_modules()``, and default to all modules that contain no others. A layer that runs
    more than once is read each time, as ``relu``, ``relu#2`` and so on. The model runs in evaluation mode without gradients, and
    is left as it was. Outputs that do not have one entry for each input are left out.

    Args:
        model: Any module.
        make: Turns the output of a layer, ``(n, ...)``, into what is kept of it.
        layers: The names of the layers to read.

    Raises:
        ValueError: If a layer is not in the model, or, when it is called, if a layer that was asked for gives no tensor.

    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    >>> LayerReader(model, make=lambda output: tuple(output.shape))(torch.zeros(5, 2))
    {'0': (5, 3), '1': (5, 3)}
    """

    def __init__(self, model: nn.Module, make: Callable[[Tensor], Made], layers: Sequence[str] | None = None) -> None:
        modules = dict(model.named_modules())
        unknown = [name for name in layers or () if name not in modules]
        if unknown:
            raise ValueError(f"LayerReader: layers must be names of modules in the model, got {unknown[0]!r}.")
        self.model = model
        self.make = make
        self.layers = tuple(leaf_layers(model) if layers is None else layers)
        self._modules = {name: modules[name] for name in self.layers}
        self._required = layers is not None

    def __call__(self, inputs: Inputs) -> dict[str, Made]:
        """Return what is made of each output for ``inputs``, in the order in which the layers ran."""
        made: dict[str, Made] = {}

        def read(name: str, _module: nn.Module, _arguments: Any, output: Any) -> None:
            tensor = _entries(output, len(inputs))
            if tensor is not None:
                calls = sum(known.split("#")[0] == name for known in made)
                made[name if calls == 0 else f"{name}#{calls + 1}"] = self.make(tensor)

        hooks = [module.register_forward_hook(partial(read, name)) for name, module in self._modules.items()]
        try:
            with _evaluating(self.model), torch.no_grad():
                self.model(inputs.to(_device(self.model)))
        finally:
            for hook in hooks:
                hook.remove()
        silent = [name for name in self.layers if name not in made]
        if self._required and silent:
            raise ValueError(f"LayerReader: layer {silent[0]!r} gave no tensor with one entry for each input.")
        return made


def leaf_layers(model: nn.Module) -> list[str]:
    """Return the names of the modules that contain no others.

    Args:
        model: Any module.

    Returns:
        Names as in ``model.named_modules()``, in their order.

    >>> leaf_layers(nn.Sequential(nn.Sequential(nn.Linear(2, 3), nn.ReLU()), nn.Linear(3, 2)))
    ['0.0', '0.1', '1']
    """
    return [name for name, module in model.named_modules() if not any(module.children())]


def input_batches(inputs: InputBatches, batch_size: int = 256) -> Iterator[Any]:
    """Yield batches of inputs: parts of a tensor, or what an iterable gives without the labels that may come with it.

    Args:
        inputs: A tensor, or batches as a ``DataLoader`` gives them.
        batch_size: The rows of a batch, where ``inputs`` is a tensor.

    Yields:
        Batches of inputs.

    >>> [len(batch) for batch in input_batches(torch.zeros(10, 2), batch_size=4)]
    [4, 4, 2]
    >>> [len(batch) for batch in input_batches([(torch.zeros(3, 2), torch.zeros(3))])]
    [3]
    """
    if isinstance(inputs, Tensor | SparseRows):
        yield from inputs.split(batch_size)
        return
    for batch in inputs:
        yield batch[0] if isinstance(batch, tuple | list) else batch


def _entries(output: Any, rows: int) -> Tensor | None:
    """Return the output of a layer if it has one entry for each input."""
    if isinstance(output, tuple) and output:  # recurrent layers return their state, too
        output = output[0]
    fits = isinstance(output, Tensor) and output.is_floating_point() and output.dim() > 0 and len(output) == rows
    return output if fits else None


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _device(model: nn.Module) -> torch.device:
    parameter = next(model.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device


def nonzero_activations(
    model: nn.Module, inputs: InputBatches, *, layers: Sequence[str] | None = None, batch_size: int = 256
) -> dict[str, float]:
    """Return the share of non-zero activations of each layer, averaged over inputs (figure 2 of Kornblith et al. 2021).

    ``inputs`` are a tensor, or batches as a ``DataLoader`` gives them; ``layers`` default to all that contain no others.

    Args:
        model: Any module.
        inputs: A tensor, or batches as a ``DataLoader`` gives them.
        layers: Names as in ``model.named_modules()``.
        batch_size: The rows of a batch, where ``inputs`` is a tensor.

    Returns:
        The share of each layer, by its name.

    Raises:
        ValueError: If a layer is unknown, no layer puts out an activation, or there are no inputs.

    >>> import torch
    >>> nonzero_activations(nn.Sequential(nn.Identity(), nn.ReLU()), torch.tensor([[1.0, -1.0], [2.0, 3.0]]))
    {'0': 1.0, '1': 0.75}
    """
    reader = LayerReader(model, _count, layers)
    nonzero: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for batch in input_batches(inputs, batch_size):
        for name, (active, activations) in reader(batch).items():
            nonzero[name] += active
            total[name] += activations
    if not total:
        raise ValueError("nonzero_activations: no layer gave an activation, or there were no inputs.")
    return {name: nonzero[name] / max(total[name], 1) for name in total}


def _count(output: Tensor) -> tuple[int, int]:
    return int(output.count_nonzero()), output.numel()
