"""The models of many runs as one: a matrix with the weights of a run in each row."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from lossmith.data.sparse_rows import Inputs, SparseRows, as_tensor
from lossmith.objectives.heads import DropoutLinear
from lossmith.objectives.objective import Classifier
from lossmith.training.devices import CPU, is_accelerator
from lossmith.training.models.sparse_layers import first_table
from lossmith.training.stacks.arithmetic import computed
from lossmith.training.stacks.built_model import Built, learned_parameters
from lossmith.training.stacks.dropout_masks import DropoutMasks
from lossmith.training.stacks.lazy_adamw import LazyAdamW
from lossmith.training.stacks.stacked_layers import stacked_call, tensors_under

__all__ = ["StackedModel"]

ROWS_AT_ONCE = 1 << 11
"""Rows, times runs, that are predicted at once, so that the cache holds what the layers pass on."""
IMAGES_AT_ONCE = 1 << 7
"""The same of images that go through convolutions, which pass on more."""
ACCELERATED = 8
"""How many times as many at once on an accelerator."""


class StackedModel:
    """Models of one architecture. ``weights`` ``(runs, size)`` has their parameters and, after them, their buffers.

    With ``lazily`` the first layer of sparse rows has an optimiser of its own, and stands between parameters and buffers.
    """

    def __init__(
        self,
        built: Sequence[Built],
        seeds: Sequence[int],
        precision: str = "float32",
        *,
        lazily: bool = False,
        device: torch.device = CPU,
    ) -> None:
        self.template: nn.Module = built[0].model
        self._precision = precision
        self._channels_last = built[0].channels_last and len(built) == 1
        self._takes_sparse = first_table(self.template) is not None
        self._table = first_table(self.template) if lazily else None
        parameters = learned_parameters(self.template)
        self._names = [name for name in parameters if name != self._table]
        self.size = sum(parameters[name].numel() for name in self._names)
        """How many of the weights are parameters that one gradient holds."""
        ordered = {name: parameters[name] for name in (*self._names, *self._tables)} | _buffers(self.template)
        self._shapes = {name: tensor.shape for name, tensor in ordered.items()}
        self.weights = torch.stack([_as_vector(own.model, list(ordered)) for own in built]).to(device)
        self.decay = _decays(built, {name: parameters[name].numel() for name in self._names}, device)
        """A number for each parameter; None where none of them shrinks."""
        self.template.to(device)  # for what it counts; its weights are those above
        self._masks = DropoutMasks(seeds)
        self._kept_share = 1.0
        if isinstance(self.template, Classifier) and isinstance(self.template.head, DropoutLinear):
            # Its masks must come from the seed of each run: we draw them, and leave the rest to a plain layer.
            head = self.template.head
            self._kept_share = head.keep
            plain = nn.Linear(head.in_features, head.out_features, head.bias is not None, device="meta")
            self.template = Classifier(self.template.backbone, plain)
        self._require_gradients()
        self.lazy: LazyAdamW | None = None
        if self._table is not None:
            self.lazy = LazyAdamW(self.leaves[self._table], torch.tensor([own.decay[self._table] for own in built]))

    @property
    def _tables(self) -> tuple[str, ...]:
        """The name of what is trained lazily, if anything is."""
        return () if self._table is None else (self._table,)

    def _require_gradients(self) -> None:
        views = self.tensors(self.weights)
        self._gradient: Tensor | None = None
        self.leaves = {name: view.detach().requires_grad_(name in self._names) for name, view in views.items()}

    @property
    def generators(self) -> list[torch.Generator]:
        """What draws the masks of each run."""
        return self._masks.generators

    @property
    def parameters(self) -> Tensor:
        """The parameters ``(runs, size)``."""
        return self.weights[:, : self.size]

    def tensors(self, weights: Tensor) -> dict[str, Tensor]:
        """Return rows of weights as the tensors that they are, each ``(runs, ...)``.

        Args:
            weights: The weights of some runs, ``(runs, size)``.

        Returns:
            Views by name.
        """
        parts = torch.split(weights, [shape.numel() for shape in self._shapes.values()], 1)
        return {name: part.view(-1, *shape) for part, (name, shape) in zip(parts, self._shapes.items(), strict=True)}

    def state_dict(self, weights: Tensor) -> dict[str, Tensor]:
        """Return one row of weights as the ``state_dict`` of the model, with its counters, where it has any.

        Args:
            weights: The weights of one run, ``(size,)``.

        Returns:
            Copies by name.
        """
        counters = {name: buffer.clone() for name, buffer in self.template.named_buffers() if not buffer.is_floating_point()}
        return {name: tensor[0].clone() for name, tensor in self.tensors(weights.unsqueeze(0)).items()} | counters

    def logits(self, inputs: Inputs) -> Tensor:
        """Return logits ``(runs, rows, classes)`` in the mode of the template, differentiable in the parameters.

        Args:
            inputs: A batch for each run, ``(runs, rows, ...)``, or sparse rows for all of them.

        Returns:
            The logits.
        """
        if isinstance(inputs, SparseRows):
            inputs = self.for_all(inputs, len(self.weights))
        if self.lazy is not None and isinstance(inputs, SparseRows):
            columns, inputs = inputs.occurring()
            self.leaves[str(self._table)] = self.lazy.read(columns)
        features = self._features(self.leaves, inputs)
        if self._kept_share < 1:
            features = features * self._masks.bernoulli(features, self._kept_share)
        return self._head(self.leaves, features)

    def gradient(self, losses: Tensor) -> Tensor:
        """Return the gradient of the loss of each run with respect to its parameters, ``(runs, size)``.

        Args:
            losses: The loss of each run, ``(runs,)``.

        Returns:
            A buffer that the next call overwrites.
        """
        leaves = [self.leaves[name] for name in (*self._names, *self._tables)]
        parts = torch.autograd.grad(losses, leaves, torch.ones_like(losses), materialize_grads=True)
        if self._table is not None:
            parts, self._table_gradient = parts[:-1], parts[-1]
        if self._gradient is None:
            self._gradient = torch.empty_like(self.parameters)
        # In the same place each time: fresh memory of this size costs more than the copy.
        return torch.cat([part.flatten(1) for part in parts], 1, out=self._gradient)

    def move_table(self, rates: Tensor) -> None:
        """Train the first layer of sparse rows by the last gradient, where it is trained lazily.

        Args:
            rates: The learning rates ``(runs, 1)``.
        """
        if self.lazy is not None:
            self.lazy.step(self._table_gradient, rates)

    def catch_up(self) -> None:
        """Make ``weights`` what they are after all steps, where some were put off."""
        if self.lazy is not None:
            self.lazy.catch_up()

    def predict(self, inputs: Inputs, rows: Tensor, weights: Tensor) -> Tensor:
        """Return the logits ``(runs, rows, classes)`` of some rows of the inputs.

        Args:
            inputs: All inputs of the data.
            rows: Row numbers.
            weights: The weights of some runs, ``(runs, size)``.

        Returns:
            Logits, without a gradient.
        """
        tensors = self.tensors(weights)
        return self._in_blocks(lambda block: self._head(tensors, self._features(tensors, block)), inputs, rows, len(weights))

    def features(self, inputs: Inputs, rows: Tensor, weights: Tensor) -> Tensor:
        """Return what the final layer sees of some rows of the inputs, ``(runs, rows, features)``.

        Args:
            inputs: All inputs of the data.
            rows: Row numbers.
            weights: The weights of some runs, ``(runs, size)``.

        Returns:
            Features, without a gradient.
        """
        tensors = self.tensors(weights)
        return self._in_blocks(lambda block: self._features(tensors, block), inputs, rows, len(weights))

    def classes(self, inputs: Inputs, rows: Tensor, weights: Tensor) -> Tensor:
        """Return the classes predicted for some rows of the inputs, ``(runs, rows)``; -1 where a logit is not finite.

        Args:
            inputs: All inputs of the data.
            rows: Row numbers.
            weights: The weights of some runs, ``(runs, size)``.

        Returns:
            Class indices.
        """
        tensors = self.tensors(weights)

        def predicted(block: Inputs) -> Tensor:
            logits = self._head(tensors, self._features(tensors, block))
            return torch.where(logits.isfinite().all(2), logits.argmax(2), -1)

        return self._in_blocks(predicted, inputs, rows, len(weights))

    def _in_blocks(self, call: Callable[[Inputs], Tensor], inputs: Inputs, rows: Tensor, runs: int) -> Tensor:
        self.template.eval()
        size = IMAGES_AT_ONCE if self._channels_last else min(512, max(64, ROWS_AT_ONCE // runs))
        if is_accelerator(self.weights.device):  # which has no such cache, and much to do at once
            size *= ACCELERATED
        with torch.inference_mode():
            parts = [call(self.for_all(inputs[some], runs)) for some in torch.split(rows, size)]
        return torch.cat(parts, 1)  # outside, so that it is a tensor like any other

    def for_all(self, rows: Inputs, runs: int) -> Inputs:
        """Return rows that all runs see, as :func:`stacked_call` takes them.

        Args:
            rows: Some rows of the inputs.
            runs: How many runs there are.

        Returns:
            The rows for each run, or sparse rows for all.
        """
        if isinstance(rows, SparseRows) and self._takes_sparse:
            return rows
        whole = as_tensor(rows)
        return whole.expand(runs, *whole.shape)

    def _features(self, tensors: Mapping[str, Tensor], inputs: Inputs) -> Tensor:
        """Return what the final layer sees, or the logits of a model that has them from its last layer."""
        module, own = self.template, tensors
        if isinstance(module, Classifier):
            module, own = module.backbone, tensors_under("backbone", tensors)
        layers = partial(stacked_call, module, own, masks=self._masks)
        return computed(layers, inputs, self._precision, channels_last=self._channels_last)

    def _head(self, tensors: Mapping[str, Tensor], features: Tensor) -> Tensor:
        if not isinstance(self.template, Classifier):
            return features
        return stacked_call(self.template.head, tensors_under("head", tensors), features, self._masks)

    def keep(self, runs: Tensor) -> None:
        """Go on with some of the runs.

        Args:
            runs: Their places among those there are.
        """
        self.weights = self.weights[runs]
        self._masks.keep(runs)
        self._require_gradients()
        if self.lazy is not None:
            self.lazy.keep(runs, self.leaves[str(self._table)])


def _decays(built: Sequence[Built], sizes: Mapping[str, int], device: torch.device) -> Tensor | None:
    if not any(own.decay[name] for own in built for name in sizes):
        return None
    rows = [torch.cat([torch.full((size,), own.decay[name]) for name, size in sizes.items()]) for own in built]
    return torch.stack(rows).to(device)


def _buffers(model: nn.Module) -> dict[str, Tensor]:
    """Return what training does not learn. Counters, which are integers, are left out: nothing that we call depends on them."""
    frozen = {name: parameter for name, parameter in model.named_parameters() if not parameter.requires_grad}
    return frozen | {name: buffer for name, buffer in model.named_buffers() if buffer.is_floating_point()}


def _as_vector(model: nn.Module, names: Sequence[str]) -> Tensor:
    tensors = learned_parameters(model) | _buffers(model)
    return torch.cat([tensors[name].detach().flatten() for name in names])
