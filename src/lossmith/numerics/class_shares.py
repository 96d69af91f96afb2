"""How frequent classes are, from how often each was counted, or as in data whose classes have a long tail."""

import torch
from torch import Tensor

from lossmith.numerics.elementary import as_scalar
from lossmith.numerics.one_operation import as_one_operation, is_stand_in

__all__ = ["TAIL_ROWS", "effective_weights", "log_counts", "log_shares", "margins", "tail_places"]

TAIL_ROWS = 5000.0
"""The rows of the most frequent class of a long tail, as in the long-tailed CIFAR-10 that papers train on."""


def log_shares(logits: Tensor, counts: Tensor | None, imbalance: float | None) -> Tensor:
    """Return the logarithm of the share of each class, in a shape and precision that can be added to logits.

    Args:
        logits: ``(N, C, ...)``, for their shape and type.
        counts: How often each class was counted, ``(C,)``, > 0.
        imbalance: In place of counts, how much less frequent the last class is than the first, see :func:`log_counts`.

    Returns:
        ``(1, C, 1, ...)``.

    >>> log_shares(torch.zeros(1, 2), torch.tensor([3.0, 1.0]), None).exp()
    tensor([[0.7500, 0.2500]])
    """
    found = log_counts(logits, counts, imbalance)
    return found - found.logsumexp(1, keepdim=True)


def log_counts(logits: Tensor, counts: Tensor | None, imbalance: float | None) -> Tensor:
    """Return the logarithm of how often each class was counted, in a shape and precision that can be added to logits.

    Args:
        logits: ``(N, C, ...)``, for their shape and type.
        counts: How often each class was counted, ``(C,)``, > 0.
        imbalance: In place of counts: the first class has 5000, the last so much less, in equal ratios from class to class.

    Returns:
        ``(1, C, 1, ...)``.

    >>> log_counts(torch.zeros(1, 3), None, 0.01).exp().round()
    tensor([[5000.,  500.,   50.]])
    """
    if counts is None:
        assert imbalance is not None
        return tail_places(logits) * torch.log(as_scalar(imbalance, logits)) + torch.log(as_scalar(TAIL_ROWS, logits))
    return counts.to(logits.device, logits.dtype).log().view(1, -1, *[1] * (logits.dim() - 2))


def tail_places(logits: Tensor) -> Tensor:
    """Return the place of each class between the first, 0, and the last, 1.

    Args:
        logits: ``(N, C, ...)``, for their shape and type.

    Returns:
        ``(1, C, 1, ...)``.

    >>> tail_places(torch.zeros(1, 3))
    tensor([[0.0000, 0.5000, 1.0000]])
    """
    if is_stand_in(logits):
        return as_one_operation(tail_places, logits)
    classes = logits.shape[1]
    places = torch.arange(classes, dtype=logits.dtype, device=logits.device) / max(1, classes - 1)
    return places.view(1, -1, *[1] * (logits.dim() - 2))


def margins(log_counts: Tensor, largest: float) -> Tensor:
    """Return margins in proportion to ``n**(-1/4)``, of which the rarest class has the largest.

    Args:
        log_counts: The logarithms of the counts n, ``(1, C, ...)``.
        largest: The largest margin.

    Returns:
        A margin for each class, in the same shape.

    >>> margins(torch.tensor([[160000.0, 10000.0]]).log(), 0.5)
    tensor([[0.2500, 0.5000]])
    """
    return largest * torch.exp((log_counts.amin(1, keepdim=True) - log_counts) / 4)


def effective_weights(log_counts: Tensor, beta: float) -> Tensor:
    """Return weights by effective numbers, ``(1 - beta) / (1 - beta**n)``, such that the mean weight of a row is 1.

    Args:
        log_counts: The logarithms of the counts n, ``(1, C, ...)``.
        beta: In [0, 1): at 0 all classes weigh 1, towards 1 they weigh ``1 / n``.

    Returns:
        A weight for each class, in the same shape.

    >>> effective_weights(torch.tensor([[3.0, 1.0]]).log(), 0.0)
    tensor([[1., 1.]])
    """
    counts = torch.exp(log_counts)
    left = as_scalar(1 - beta, log_counts)  # by which beta = 0.9999 keeps its digits in single precision
    weights = -1 / torch.expm1(counts * torch.log1p(-left))
    return weights * (counts.sum(1, keepdim=True) / (counts * weights).sum(1, keepdim=True))
