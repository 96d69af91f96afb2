"""The spread of a fresh network's logits."""

import copy
import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from lossmith.expressions.limits import Limits

__all__ = ["logit_scale"]


def logit_scale(model: nn.Module, loader: Iterable[Tensor | Sequence[Tensor]], *, examples: int = 1000) -> float:
    """Return the standard deviation of a model's logits over the classes: the ``sigma`` of :func:`average_error`.

    Call it on a model that is freshly initialised, before training. The deviations are those from the mean logit of an
    example, which no softmax sees. ``loader`` yields inputs, or tuples that start with them, as for training; as many batches
    are used as make up the given number of examples. The model runs as a copy, in the mode that it is in, and is not changed.

    Args:
        model: A classifier as it is before training.
        loader: Yields inputs, or tuples that start with them.
        examples: How many are enough.

    Returns:
        The standard deviation.

    Raises:
        ValueError: If the loader yields nothing, or the model has one output only.

    >>> _ = torch.manual_seed(0)
    >>> model = nn.Linear(100, 1000)
    >>> nn.init.normal_(model.weight, std=0.1).shape  # 100 inputs of variance 1, each times 0.1
    torch.Size([1000, 100])
    >>> round(logit_scale(model, [torch.randn(500, 100)]), 1)
    1.0
    """
    Limits(1, whole=True).check("examples", examples, owner="logit_scale")
    fresh = copy.deepcopy(model)
    squares, freedom, seen = 0.0, 0, 0
    with torch.no_grad():
        for batch in loader:
            logits = _rows(fresh(batch if isinstance(batch, Tensor) else batch[0]))
            squares += float((logits - logits.mean(1, keepdim=True)).square().sum())
            freedom += len(logits) * (logits.shape[1] - 1)
            seen += len(logits)
            if seen >= examples:
                break
    if freedom == 0:
        raise ValueError(f"logit_scale: loader must yield examples of at least two classes, got {seen} examples.")
    return math.sqrt(squares / freedom)


def _rows(logits: Tensor) -> Tensor:
    if logits.dim() < 2:
        raise ValueError(f"logit_scale: model must return logits (N, C) or (N, C, ...), got shape {tuple(logits.shape)}.")
    return logits.movedim(1, -1).flatten(0, -2).double()
