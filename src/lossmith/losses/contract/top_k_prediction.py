"""Predictions of k classes: their probabilities and their accuracy."""

import torch
from torch import Tensor

from lossmith.losses.contract.targets import ClassIndices, check_shapes
from lossmith.numerics.subsets.marginals import log_odds_of_absence
from lossmith.torch_compat import is_traced

__all__ = ["topk_accuracy", "topk_probabilities"]


def topk_probabilities(logits: Tensor, k: int, *, scale: float = 1.0, normalize: bool = True) -> Tensor:
    """Return how likely each class is to be among k, a set of k classes being as likely as ``exp(sum of its scores / scale)``.

    For ranking or averaging predictions of k classes, over crops say. The probabilities sum to k; they are divided by k unless
    ``normalize`` is false. ``logits`` are ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``; 1 <= k < C. For k = 1 this is the softmax.
    A ``SmoothTopKLoss`` predicts with ``scale = k tau``.

    Args:
        logits: Scores ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``.
        k: How many classes are chosen, 1 <= k < C.
        scale: What scores are divided by, > 0.
        normalize: Whether to divide by k, so that the probabilities add up to 1.

    Returns:
        Probabilities of the same shape.

    Raises:
        TypeError: If the logits are not floating point, or have no classes.
        ValueError: If ``k`` or ``scale`` is out of range, or fewer than k scores of a row are above -inf.

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
    check_possible("topk_probabilities", values, k)
    probabilities = torch.sigmoid(-log_odds_of_absence(values, k, scale))
    probabilities = probabilities / k if normalize else probabilities
    return probabilities.to(logits.dtype).view(moved.shape).movedim(-1, dimension)


def topk_accuracy(logits: Tensor, target: Tensor, k: int = 5, *, ignore_index: int = -100) -> Tensor:
    """Return the share of the examples whose class is among the k largest scores; chance decides between equal scores.

    A model that gives every class the same score has the accuracy of guessing, ``k / C``, and scores that are not numbers count
    as wrong. Shapes and ``ignore_index`` are those of the losses.

    Args:
        logits: Scores ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``.
        target: Class indices.
        k: How many guesses are allowed, >= 1.
        ignore_index: Target of examples that do not count.

    Returns:
        One number in [0, 1]; NaN where no example counts.

    Raises:
        TypeError: If the target does not hold class indices.
        ValueError: If ``k`` is below 1, or shapes do not fit.
        IndexError: If a class index is out of range.

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
    """Raise an error unless ``1 <= k < C`` for logits ``(N, C, ...)``.

    Args:
        owner: Whom the error names.
        logits: Scores ``(N, C, ...)``.
        k: How many classes are chosen.

    Raises:
        ValueError: If ``k`` is not an integer from 1 to C - 1.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ValueError(f"{owner}: k must be an integer >= 1, got {k!r}.")
    if k >= logits.shape[1]:
        raise ValueError(f"{owner}: k must be < number of classes {logits.shape[1]}, got {k}.")


def check_possible(owner: str, logits: Tensor, k: int) -> None:
    """Raise an error where fewer than k classes are possible for an example of logits ``(N, C, ...)``.

    Args:
        owner: Whom the error names.
        logits: Scores ``(N, C, ...)``, of which -inf is that of an impossible class.
        k: How many classes are chosen.

    Raises:
        ValueError: If fewer than k scores of a row are above -inf.
    """
    if logits.device.type != "cpu" or is_traced() or logits.numel() == 0:
        return
    try:
        # A closer look is needed only where some logit is -inf.
        if logits.detach().amin() > -torch.inf:
            return
        fewest = int((logits != -torch.inf).sum(1).amin())
    except RuntimeError:  # inside torch.vmap values cannot be read
        return
    if fewest < k:
        raise ValueError(f"{owner}: logits must have at least k = {k} classes above -inf in every row, got {fewest}.")
