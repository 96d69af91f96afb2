"""How many activations are not zero."""

from collections import Counter
from collections.abc import Sequence

from torch import Tensor, nn

from lossmith.analysis.layers import Batches, LayerReader, input_batches

__all__ = ["nonzero_activations"]


def nonzero_activations(
    model: nn.Module, inputs: Batches, *, layers: Sequence[str] | None = None, batch_size: int = 256
) -> dict[str, float]:
    """Return the share of non-zero activations of each layer, averaged over inputs (figure 2 of Kornblith et al. 2021).

    ``inputs`` are a tensor, or batches as a ``DataLoader`` gives them; ``layers`` default to all that contain no others.

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
