"""Any loss, as a function that returns one number for each example."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from lossmith.expressions.limits import Limits
from lossmith.expressions.quotes import quote
from lossmith.losses import ClassificationLoss, make_loss

__all__ = ["Loss", "PerExampleLoss", "check_classes", "check_sigma", "named_loss"]

Loss = str | nn.Module | Callable[[Tensor, Tensor], Tensor]
"""An expression that ``lossmith.make_loss`` reads, a loss, or any function of logits ``(N, C)`` and class indices ``(N,)``."""


MOST_CLASSES = 10_000_000
"""For which logits are drawn; a row of so many takes 80 MB."""


class PerExampleLoss:
    """A loss in training mode and without reduction; what was given is not changed."""

    def __init__(self, loss: Loss, owner: str) -> None:
        made: Any = make_loss(loss) if isinstance(loss, str) else loss
        if not callable(made):
            raise TypeError(f"{owner}: loss must be text, a loss or a function of logits and target, got {type(loss).__name__}.")
        if isinstance(made, nn.Module):
            made = copy.deepcopy(made).train()
            if hasattr(made, "reduction"):
                made.reduction = "none"
        self._loss: Callable[[Tensor, Tensor], Tensor] = made
        self._owner = owner

    def __call__(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the losses of rows of logits."""
        losses = self._loss(logits, target)
        if not isinstance(losses, Tensor) or losses.shape != target.shape:
            got = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
            raise ValueError(f"{self._owner}: loss must return one number for each of {len(target)} examples, got {got}.")
        return losses

    def gradient(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the gradient of each example's loss with respect to its logits."""
        rows = logits.detach().requires_grad_()
        with torch.enable_grad():
            losses = self(rows, target)
            if not losses.requires_grad:
                raise ValueError(f"{self._owner}: loss must be differentiable in the logits, got one that is not.")
            (gradient,) = torch.autograd.grad(losses.sum(), rows)
        return gradient

    def target_gradient(self, logits: Tensor) -> Tensor:
        """Return the derivative of each row's loss with respect to the logit of its target, which is class 0."""
        # A copy, because a view of one column would keep all others in memory.
        return self.gradient(logits, torch.zeros(len(logits), dtype=torch.long))[:, 0].clone()


def named_loss(loss: str | ClassificationLoss, owner: str) -> ClassificationLoss:
    """Return a copy of a loss of the library, given or read from text."""
    if isinstance(loss, str):
        return make_loss(loss)
    if not isinstance(loss, ClassificationLoss):
        raise TypeError(f"{owner}: loss must be text or a lossmith loss, got {type(loss).__name__}.")
    return copy.deepcopy(loss)


def check_classes(name: str, number: int, owner: str, *, most: float = MOST_CLASSES) -> None:
    """Raise an error unless the number is one of classes: whole, at least 2 and not beyond the most.

    Args:
        name: What the argument is called.
        number: The number.
        owner: Whom errors name.
        most: The most that there may be: as many as logits can be drawn for, or more where none are drawn.

    Raises:
        TypeError: If it is not a whole number.
        ValueError: If it is below 2 or beyond the most.
    """
    Limits(2, whole=True).check(name, number, owner=owner)
    if number > most:
        raise ValueError(f"{owner}: {name} must be at most {most:,}, got {quote(number)}.")


def check_sigma(sigma: float, owner: str) -> None:
    """Raise an error unless sigma is a standard deviation: above 0."""
    Limits(0.0, low_open=True).check("sigma", sigma, owner=owner)
