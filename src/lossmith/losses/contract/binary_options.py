"""The contract of ``torch.nn.BCEWithLogitsLoss``, for losses of one logit per label."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lossmith.losses.contract.numbers import HasNumbers
from lossmith.losses.contract.options import Reduction
from lossmith.losses.contract.reduction import checked_denominator, reduce

__all__ = ["OneLogitLoss"]


class OneLogitLoss(HasNumbers):
    """Base of losses of one logit per label: weights of elements and of positive labels, and the reduction.

    Args:
        weight: Factors for the losses of the elements that they broadcast to.
        pos_weight: Factors for the losses of positive labels.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | Sequence[float] | None,
        pos_weight: Tensor | Sequence[float] | None,
        reduction: Reduction,
    ) -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"{type(self).__name__}: reduction must be 'mean', 'sum' or 'none', got {reduction!r}.")
        for name, factors in (("weight", weight), ("pos_weight", pos_weight)):
            self.register_buffer(name, None if factors is None else torch.as_tensor(factors))
        self.reduction: Reduction = reduction

    def _rows(self, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits and labels as they are computed with, in single precision at least, behind one another."""
        dtype = self._computed_dtype(logits, target)
        return logits.to(dtype).reshape(-1), target.to(dtype).reshape(-1)

    def _reduced(self, losses: Tensor, logits: Tensor, denominator: float | Tensor | None) -> Tensor:
        """Return the weighted losses of all elements, given in the shape of the logits, reduced and in their precision."""
        if denominator is not None:
            denominator = checked_denominator(denominator, self.reduction, type(self).__name__)
        if self.weight is not None:
            losses = losses * self.weight.to(losses.dtype)
        return reduce(losses, None, self.reduction, denominator).to(logits.dtype)

    def _computed_dtype(self, logits: Tensor, target: Tensor) -> torch.dtype:
        owner = type(self).__name__
        if not logits.is_floating_point():
            raise TypeError(f"{owner}: logits must be floating point, got {logits.dtype}.")
        if target.is_complex():
            raise TypeError(f"{owner}: target must be labels or probabilities, got {target.dtype}.")
        if target.shape != logits.shape:
            raise ValueError(f"{owner}: target must have shape {tuple(logits.shape)}, got {tuple(target.shape)}.")
        return torch.promote_types(logits.dtype, torch.float32)
