"""What dropout layers keep, for each run by a generator of its own: a run draws the same masks alone and among others."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lossmith.training.seeds import generator

__all__ = ["DropoutMasks"]

_BYTES = 8  # of a number that a generator draws at once
_VALUES = 256  # of a byte


class DropoutMasks:
    """Draws masks for inputs ``(runs, rows, ...)``."""

    def __init__(self, seeds: Sequence[int]) -> None:
        self.generators = [generator(seed, "dropout") for seed in seeds]

    def bernoulli(self, inputs: Tensor, kept: float) -> Tensor:
        """Return what to multiply inputs by: 0, or 1 / kept with that probability.

        Args:
            inputs: What is to be dropped from.
            kept: The share that is kept.

        Returns:
            A mask of the same shape.
        """
        masks = [torch.empty(inputs.shape[1:], dtype=inputs.dtype).bernoulli_(kept, generator=own) for own in self.generators]
        return torch.stack(masks).to(inputs.device).div_(kept)

    def drop(self, inputs: Tensor, share: float) -> Tensor:
        """Return the inputs without a share of them, the others enlarged so that the mean stays.

        Numbers of 64 bits are drawn and read as eight bytes: where masks are as large as the layers of a stack, drawing a number
        for each of their entries takes longer than the layers do. The share is rounded to a 256th.

        Args:
            inputs: What is dropped from.
            share: How much of it, in [0, 1].

        Returns:
            Inputs of which that share is 0.
        """
        dropped = round(share * _VALUES)
        if dropped in (0, _VALUES):
            return inputs if not dropped else torch.zeros_like(inputs)
        entries = inputs[0].numel()
        drawn = torch.empty(len(inputs), -(-entries // _BYTES), dtype=torch.int64)
        for row, own in zip(drawn, self.generators, strict=True):
            row.random_(-(2**63), None, generator=own)
        kept = drawn.to(inputs.device).view(torch.uint8)[:, :entries].reshape(inputs.shape) >= dropped
        return inputs * kept.to(inputs.dtype).mul_(_VALUES / (_VALUES - dropped))

    def keep(self, runs: Tensor) -> None:
        """Go on with some of the runs.

        Args:
            runs: Their places among those there are.
        """
        self.generators = [self.generators[run] for run in runs.tolist()]
