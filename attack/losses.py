"""Losses on logits of any size, shape and kind: finite where the logits are, and no row disturbs another."""

import math
import random
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attack.kind import Failure, Kind
from lossmith.losses import LOSSES, ClassificationLoss
from lossmith.losses.contract.needs_data import NeedsData

__all__ = ["LOSS_CALLS"]

LARGEST = 1e15
"""Of logits whose losses must be finite: the square of a larger one, which some losses need, has no place in single precision."""
_LARGEST_POWER = math.log(torch.finfo(torch.float32).max)
SHAPES = ((1,), (7,), (0, 3), (1, 1), (1, 2), (5, 1), (4, 10), (2, 1000), (3, 5, 2), (2, 3, 0), (2, 4, 3, 2), (1, 20000))
KINDS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def attempt(chance: random.Random, _: Path, __: object) -> None:
    """Call a loss and its gradient; a word about what else the logits may have been meant for is no failure."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(one class|several labels)", category=UserWarning)
        _attempt(chance)


def _attempt(chance: random.Random) -> None:
    torch.manual_seed(chance.randrange(2**31))
    name = chance.choice(sorted(LOSSES))
    loss = _made(chance, name)
    logits, target = _logits(chance), None
    if loss is None:
        return
    target = _target(chance, logits)
    where = f"{loss!r} with {logits.dtype} {tuple(logits.shape)} and a target of {target.dtype} {tuple(target.shape)}"
    try:
        value = loss(logits, target)
        (gradient,) = torch.autograd.grad(value.sum(), logits)
    except (ValueError, IndexError, TypeError) as error:
        if "\n" in str(error):
            raise Failure(f"{where}: not one line: {error}") from error
        return
    if gradient.shape != logits.shape or gradient.dtype != logits.dtype:
        raise Failure(f"{where}: a gradient of {gradient.dtype} {tuple(gradient.shape)}")
    if not (value.isinf().any() and _has_no_bound(loss)):
        _check_finite(logits, value, gradient, where)
    _check_rows(loss, logits, target, where)


def _made(chance: random.Random, name: str) -> ClassificationLoss | None:
    """Return the loss with options and perhaps a number of its own, unless these are refused in one line."""
    example = LOSSES[name].example if issubclass(LOSSES[name], NeedsData) else {}
    options: dict[str, Any] = {**example, "reduction": chance.choice(("mean", "sum", "none"))}
    for parameter in LOSSES[name].limits:
        if chance.random() < 0.3:
            options[parameter] = chance.choice((0, 1, 2, 0.5, 0.7, 1.5, 4, -1, 1e-8, 100, float("inf"), float("nan"), "x", None))
    if chance.random() < 0.2:
        options["label_smoothing"] = chance.random()
    try:
        return LOSSES[name](**options)
    except (ValueError, TypeError) as error:
        if "\n" in str(error):
            raise Failure(f"{name} of {options}: not one line: {error}") from error
        return None


def _logits(chance: random.Random) -> Tensor:
    scale = chance.choice((0.0, 1e-30, 1e-3, 1.0, 1.0, 30.0, 1e3, 1e8, LARGEST))
    logits = (scale * torch.randn(chance.choice(SHAPES))).clamp(-LARGEST, LARGEST).to(chance.choice(KINDS))
    if chance.random() < 0.3 and logits.numel():
        logits.view(-1)[chance.randrange(logits.numel())] = chance.choice((float("nan"), float("inf"), float("-inf")))
    return logits.requires_grad_()


def _target(chance: random.Random, logits: Tensor) -> Tensor:
    classes = logits.shape[0] if logits.dim() == 1 else logits.shape[1]
    rest = () if logits.dim() == 1 else (logits.shape[0], *logits.shape[2:])
    if chance.random() < 0.3:
        return torch.softmax(torch.randn(logits.shape), 0 if logits.dim() == 1 else 1).to(logits.dtype)
    target = torch.randint(0, classes, rest)
    if chance.random() < 0.1 and target.numel():
        target.view(-1)[0] = chance.choice((-100, -1, classes, 2**40))
    return target


def _has_no_bound(loss: ClassificationLoss) -> bool:
    """Return whether the loss grows like ``p**(1 - t1)``, beyond any number, is infinite where p is 0, or beyond all numbers."""
    power = getattr(loss, "q", 0.0) * math.log1p(getattr(loss, "b", 0.0))  # of agce, (b + 1)**q
    return getattr(loss, "t1", 0.0) >= 1 or power > _LARGEST_POWER


def _check_finite(logits: Tensor, value: Tensor, gradient: Tensor, where: str) -> None:
    wide = logits.dtype in (torch.float32, torch.float64)
    if not (wide and logits.isfinite().all() and logits.numel()):
        return
    largest = float(logits.detach().abs().max())
    if not gradient.isfinite().all():
        raise Failure(f"{where}: a gradient that is not finite, of logits up to {largest:g}")
    if value.isinf().any():
        raise Failure(f"{where}: an infinite loss, of logits up to {largest:g}")


def _check_rows(loss: ClassificationLoss, logits: Tensor, target: Tensor, where: str) -> None:
    """Raise Failure if the losses of rows that are finite depend on those that are not."""
    if loss.reduction != "none" or logits.dim() != 2 or not len(logits):
        return
    good = logits.isfinite().all(1)
    alone = loss(logits[good], target[good])
    if not torch.allclose(loss(logits, target)[good].double(), alone.double(), rtol=1e-2, atol=1e-3, equal_nan=True):
        raise Failure(f"{where}: rows depend on one another")


LOSS_CALLS = Kind("losses", attempt)
