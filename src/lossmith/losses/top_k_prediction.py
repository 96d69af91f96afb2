"""Predictions of k classes: their probabilities and their accuracy."""

import torch
from torch import Tensor

from lossmith.losses.targets import ClassIndices, check_shapes
from lossmith.numerics.subset_marginals import log_odds_of_absence

__all__ = ["topk_accuracy", "topk_probabilities"]


def topk_probabilities(logits: Tensor, k: int, *, scale: float = 1.0, normalize: bool = True) -> Tensor:
    """Return how likely each class is to be among k, a set of k classes being as likely as ``exp(sum of its scores / scale)``.

    For ranking or averaging predictions of k classes, over crops say. The probabilities sum to k; they are divided by k unless
    ``normalize`` is false. ``logits`` are ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``; 1 <= k < C. For k = 1 this is the softmax.
    A ``SmoothTopKLoss`` predicts with ``scale = k tau``.

    >>> topk_probabilities(torch.tensor([2.0, 2.0, 0.0]), k=2, normalize=False)
    tensor([0.8935, 0.8935, 0.2130])

    Reference: Berrada, Zisserman and Kumar 2018, appendix C.
    """
    if not logits.is_floating_point() or logits.dim() == 0:
        got = f"{logits.dtype} of shape {tuple(logits.shape)}"
        raise TypeError(f"topk_probabilities: logits must be floating point, (C), (N, C) or (N, C, d1, ...), got {got}.")
    if scale <= 0:
        raise ValueError(f"topk_probabilities: scale must be > 0, got {scale}.")
    dimension = min(1, logits.dim() - 1)
    moved = logits.movedim(dimension, -1)
    rows = moved.reshape(-1, moved.shape[-1])
    check_k("topk_probabilities", rows, k)
    values = rows.to(torch.promote_types(rows.dtype, torch.float32))
    check_possible("topk_probabilities", values, values.detach().topk(k, 1).values[:, -1], k)
    probabilities = torch.sigmoid(-log_odds_of_absence(values, k, scale))
    probabilities = probabilities / k if normalize else probabilities
    return probabilities.to(logits.dtype).view(moved.shape).movedim(-1, dimension)


def topk_accuracy(logits: Tensor, target: Tensor, k: int = 5, *, ignore_index: int = -100) -> Tensor:
    """Return the share of the examples whose class is among the k largest scores; chance decides between equal scores.

    A model that gives every class the same score has the accuracy of guessing, ``k / C``, and scores that are not numbers count
    as wrong. Shapes and ``ignore_index`` are those of the losses.

    >>> logits = torch.tensor([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [0.0, 0.0, 0.0]])
    >>> topk_accuracy(logits, torch.tensor([1, 2, 0]), k=2)
    tensor(0.5556)

    Reference: Berrada, Zisserman and Kumar 2018, equation 5.
    """
    check_shapes("topk_accuracy", logits, target, None, None)
    if target.is_floating_point():
        raise TypeError(f"topk_accuracy: target must be class indices, got {target.dtype}.")
    rows, labels = (logits, target) if logits.dim() > 1 else (logits.unsqueeze(0), target.unsqueeze(0))
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ValueError(f"topk_accuracy: k must be an integer >= 1, got {k!r}.")
    labels, valid = ClassIndices.read("topk_accuracy", labels, rows.shape[1], ignore_index)
    score = rows.gather(1, labels.unsqueeze(1))
    ahead = (rows > score).sum(1)
    level = (rows == score).sum(1)
    hits = ((k - ahead) / level.clamp(min=1)).clamp(0.0, 1.0)
    hits = torch.where(torch.isnan(rows).any(1), 0.0, hits)
    return hits.mean() if valid is None else hits[valid].mean()


def check_k(owner: str, logits: Tensor, k: int) -> None:
    """Raise an error unless ``1 <= k < C`` for logits ``(N, C, ...)``."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ValueError(f"{owner}: k must be an integer >= 1, got {k!r}.")
    if k >= logits.shape[1]:
        raise ValueError(f"{owner}: k must be < number of classes {logits.shape[1]}, got {k}.")


def check_possible(owner: str, logits: Tensor, kth: Tensor, k: int) -> None:
    """Raise an error where fewer than k classes of a row ``(N, C)`` are possible.

    ``kth`` is the k-th largest score of each row, or of all but one class; a closer look is needed only where it is not a number.
    """
    if logits.device.type != "cpu" or torch.compiler.is_compiling() or logits.numel() == 0:
        return
    try:
        if kth.amin() > torch.finfo(logits.dtype).min:
            return
        fewest = int((logits != -torch.inf).sum(1).amin())
    except RuntimeError:  # inside torch.vmap values cannot be read
        return
    if fewest < k:
        raise ValueError(f"{owner}: logits must have at least k = {k} classes above -inf in every row, got {fewest}.")
