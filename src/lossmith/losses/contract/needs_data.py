"""Losses with parameters that come from the training rows, and how they get them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from lossmith.expressions.limits import Limits
from lossmith.losses.contract.classification_loss import ClassificationLoss

__all__ = ["IMBALANCE", "NeedsCounts", "NeedsData", "as_counts", "check_filled_in", "fill_in", "is_complete", "lacking_in"]

IMBALANCE = Limits(0.0, 1.0, low_open=True, optional=True)
"""How much less frequent the last class of a long tail is than the first."""


class NeedsData(ClassificationLoss):
    """A loss with parameters that the training rows decide; each is None until it is given."""

    from_data: ClassVar[Mapping[str, str]] = {}
    """The names of these parameters, and what each of them is, in words."""
    example: ClassVar[Mapping[str, Any]] = {}
    """Parameters with which the loss can be shown, timed and tested with any number of classes."""

    def lacking(self) -> tuple[str, ...]:
        """Return the names of the parameters that the training rows must still decide."""
        return tuple(name for name in self.from_data if getattr(self, name) is None)


def fill_in(loss: nn.Module, facts: Mapping[str, Any]) -> None:
    """Give a loss, and all losses in it, what they lack and is known of the training rows; the rest stays as it is.

    Args:
        loss: The loss, which is changed.
        facts: What is known, by the names of parameters.
    """
    for part in loss.modules():
        for name in part.lacking() if isinstance(part, NeedsData) else ():
            if name in facts:
                setattr(part, name, facts[name])


def is_complete(loss: nn.Module) -> bool:
    """Return whether a loss, and all losses in it, lack nothing that the training rows decide.

    Args:
        loss: The loss.

    Returns:
        True if it can be called.
    """
    return not lacking_in(loss)


def lacking_in(loss: nn.Module) -> list[str]:
    """Return the names of all parameters of a loss, and of losses in it, that the training rows must still decide.

    Args:
        loss: The loss.

    Returns:
        Each name once, in order.
    """
    names = [name for part in loss.modules() if isinstance(part, NeedsData) for name in part.lacking()]
    return list(dict.fromkeys(names))


def check_filled_in(loss: NeedsData) -> None:
    """Raise an error that says what a loss lacks, and who would give it.

    Args:
        loss: The loss.

    Raises:
        ValueError: If it lacks something.
    """
    for name in loss.lacking():
        who = f"compare and LossmithClassifier fill it in, make_loss takes {name}=..."
        raise ValueError(f"{type(loss).__name__}: {name} must be given, {loss.from_data[name]} ({who}), got None.")


class NeedsCounts(NeedsData):
    """A loss that knows how many training rows each class has, from counts or as in a long tail."""

    from_data: ClassVar[Mapping[str, str]] = {"counts": "the number of training rows of each class"}
    example: ClassVar[Mapping[str, Any]] = {"imbalance": 0.1}
    counts: Tensor | None
    imbalance: float | None

    def _take_counts(self, counts: Tensor | Sequence[float] | None, imbalance: float | None) -> None:
        """Keep what the constructor was given."""
        owner = type(self).__name__
        if counts is not None and imbalance is not None:
            raise ValueError(f"{owner}: give either counts or imbalance, got both.")
        self.register_buffer("counts", as_counts(counts, owner))
        self.imbalance = imbalance

    def lacking(self) -> tuple[str, ...]:
        """Return that counts are missing where no imbalance stands for them."""
        return () if self.imbalance is not None else super().lacking()

    def check_call(self, logits: Tensor, target: Tensor) -> None:
        """Raise an error where there are no counts, or not one for each class."""
        check_filled_in(self)
        if self.counts is not None and self.counts.numel() != logits.shape[1]:
            expected = f"{logits.shape[1]} numbers, one per class of logits"
            raise ValueError(f"{type(self).__name__}: counts must hold {expected}, got {self.counts.numel()}.")
        super().check_call(logits, target)

    def __setattr__(self, name: str, value: Any) -> None:
        """Check counts whenever they are set."""
        super().__setattr__(name, as_counts(value, type(self).__name__) if name == "counts" else value)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        """Move counts with the loss, but keep their precision: half precision has no place for 100,000 rows."""
        before = self.counts
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if before is not None and self.counts is not None:
            self._buffers["counts"] = before.to(self.counts.device)
        return self


def as_counts(counts: Tensor | Sequence[float] | None, owner: str) -> Tensor | None:
    """Return counts of classes as a tensor, or raise an error that names what came.

    Args:
        counts: One number > 0 per class, or None.
        owner: Whom the error names.

    Returns:
        A floating-point tensor ``(C,)``, or None.

    Raises:
        ValueError: If it is not one number > 0 per class.
    """
    if counts is None:
        return None
    found = torch.as_tensor(counts)
    found = found if found.is_floating_point() else found.to(torch.get_default_dtype())
    if found.dim() != 1 or not found.numel():
        raise ValueError(f"{owner}: counts must be one number per class, got shape {tuple(found.shape)}.")
    wrong = ~((found > 0) & found.isfinite())
    if not found.is_meta and wrong.any():
        place = int(wrong.nonzero()[0])
        raise ValueError(f"{owner}: counts must be finite and > 0 for every class, got {found[place]:g} for class {place}.")
    return found
