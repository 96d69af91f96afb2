"""The contract of ``torch.nn.CrossEntropyLoss``, kept once for every loss.

A loss says what one example costs (:meth:`ClassificationLoss.example_losses`); this module does everything around it: input
checks, shapes, precision, class weights, ignored targets, label smoothing, example weights and the reduction.
"""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypedDict

import torch
from torch import Tensor, nn

from lossmith.losses.limits import Limits
from lossmith.losses.printed_form import printed_call
from lossmith.losses.targets import ClassIndices, are_all_classes, are_usual, check_shapes, one_hot
from lossmith.nearest import nearest
from lossmith.numerics.rowwise import rowwise_loss, rowwise_mean
from lossmith.numerics.rules import Rule

if TYPE_CHECKING:
    from lossmith.losses.weighted_sum import WeightedSum

__all__ = ["ClassificationLoss", "Options", "check_option_names"]

Reduction = Literal["mean", "sum", "none"]


class Options(TypedDict, total=False):
    """What every loss takes beside its own parameters, with the meaning it has in ``torch.nn.CrossEntropyLoss``."""

    weight: Tensor | Sequence[float] | None
    ignore_index: int
    reduction: Reduction
    label_smoothing: float


class ClassificationLoss(nn.Module):
    """Base of all losses: a drop-in for ``torch.nn.CrossEntropyLoss``. In formulas ``p`` is the probability of the target.

    A subclass gives its ``name``, the ``limits`` of its parameters and :meth:`example_losses`.
    """

    name: ClassVar[str]
    limits: ClassVar[Mapping[str, Limits]] = {}
    presets: ClassVar[Mapping[int, Mapping[str, Any]]] = {}
    """Published parameters by number of classes."""

    weight: Tensor | None
    ignore_index: int
    reduction: Reduction
    label_smoothing: float

    def __init__(
        self,
        *,
        weight: Tensor | Sequence[float] | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        label_smoothing: float = 0.0,
        **unknown: Any,
    ) -> None:
        super().__init__()
        check_option_names(type(self), unknown)
        self.register_buffer("weight", _as_class_weights(weight, type(self).__name__))
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.label_smoothing = label_smoothing

    @classmethod
    def for_classes(cls, num_classes: int, **options: Any) -> Self:
        """Make the loss with the parameters published for this number of classes."""
        if num_classes not in cls.presets:
            known = (
                f"one of {', '.join(map(str, cls.presets))}" if cls.presets else "left out, as there are no published parameters"
            )
            raise ValueError(f"{cls.__name__}: num_classes must be {known}, got {num_classes}.")
        return cls(**cls.presets[num_classes], **options)

    def rule(self, logits: Tensor, target: Tensor) -> Rule | None:
        """Return the rule that gives the losses, or None where it takes more than one to compute them."""
        return None

    def example_losses(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the loss of each example.

        ``logits`` are ``(N, C, ...)`` in single or double precision. ``target`` holds valid class indices ``(N, ...)``, or a
        factor for the loss of every class ``(N, C, ...)``, in which case the loss is the sum over the classes.
        """
        rule = self.rule(logits, target)
        assert rule is not None, "a loss without a rule says itself what an example costs"
        return rowwise_loss(rule, logits, target)

    def weighted_soft_losses(self, logits: Tensor, probabilities: Tensor, weight: Tensor | None) -> Tensor:
        """Return the loss of each example under a distribution of labels: the expected class-weighted loss."""
        return self.example_losses(logits, probabilities if weight is None else probabilities * weight)

    def predict_proba(self, logits: Tensor) -> Tensor:
        """Return the class probabilities that belong to this loss."""
        return torch.softmax(logits, min(1, logits.dim() - 1))

    def kind_of_probabilities(self) -> tuple[str | float, ...]:
        """Return what makes these probabilities what they are: losses of the same kind can be parts of one sum."""
        return ("softmax",)

    def forward(self, logits: Tensor, target: Tensor, *, sample_weight: Tensor | None = None) -> Tensor:
        """Return the loss, reduced as ``torch.nn.CrossEntropyLoss`` does.

        ``sample_weight``, one factor for each example, multiplies the loss of the example and its share of the mean.
        """
        if sample_weight is None and are_usual(logits, target):
            mean = self._usual_mean(logits, target)
            if mean is not None:
                return mean
        owner = type(self).__name__
        check_shapes(owner, logits, target, sample_weight, self.weight)
        batched = logits.dim() > 1
        rows, labels = (logits, target) if batched else (logits.unsqueeze(0), target.unsqueeze(0))
        rows = rows if rows.dtype in (torch.float32, torch.float64) else rows.float()
        losses, share = (self._soft if labels.is_floating_point() else self._hard)(rows, labels)
        if sample_weight is not None:
            factor = sample_weight.to(losses.dtype)
            losses, share = losses * factor, factor.expand_as(losses) if share is None else share * factor
        reduced = _reduce(losses, share, self.reduction)
        output_dtype = _output_dtype(logits, target)
        reduced = reduced if reduced.dtype == output_dtype else reduced.to(output_dtype)
        return reduced if batched or self.reduction != "none" else reduced.squeeze(0)

    def _usual_mean(self, logits: Tensor, target: Tensor) -> Tensor | None:
        """Return the mean of the losses where nothing but that is asked for, as nearly always: no operation more than needed."""
        if self.reduction != "mean" or self.label_smoothing or self._has_class_weights():
            return None
        if target.is_floating_point():
            has_own_meaning = type(self).weighted_soft_losses is not ClassificationLoss.weighted_soft_losses
            is_plain = self.ignore_index < 0 and not has_own_meaning
        else:
            is_plain = are_all_classes(target, logits.shape[1], self.ignore_index)
        rule = self.rule(logits, target) if is_plain else None
        return None if rule is None else rowwise_mean(rule, logits, target)

    def _has_class_weights(self) -> bool:
        # This is where nn.Module finds self.weight after it has looked everywhere else, unless it was replaced by a parameter.
        return (self._buffers["weight"] if "weight" in self._buffers else self.weight) is not None  # noqa: SIM401

    def _soft(self, logits: Tensor, probabilities: Tensor) -> tuple[Tensor, None]:
        if self.ignore_index >= 0:
            raise ValueError(
                f"{type(self).__name__}: ignore_index must be negative where target holds probabilities, got {self.ignore_index}."
            )
        smoothed = _smooth(probabilities.to(logits.dtype), self.label_smoothing)
        return self.weighted_soft_losses(logits, smoothed, _along_classes(self.weight, logits)), None

    def _hard(self, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the losses and each example's share of the mean; None stands for equal shares."""
        indices = ClassIndices.read(type(self).__name__, target, logits.shape[1], self.ignore_index)
        if indices.valid is not None:  # whatever the logits of ignored examples are
            logits = torch.where(indices.valid.unsqueeze(1), logits, 0.0)
        share = None if self.weight is None else self.weight.to(logits.dtype)[indices.target]
        if self.label_smoothing:
            smoothed = _smooth(one_hot(logits, indices.target), self.label_smoothing)
            losses = self.weighted_soft_losses(logits, smoothed, _along_classes(self.weight, logits))
        else:
            losses = self.example_losses(logits, indices.target)
            losses = losses if share is None else losses * share
        if indices.valid is not None:
            losses = torch.where(indices.valid, losses, 0.0)
            share = indices.valid.to(losses.dtype) if share is None else torch.where(indices.valid, share, 0.0)
        return losses, share

    def __setattr__(self, name: str, value: Any) -> None:
        """Check parameters whenever they are set, so that a schedule cannot leave their range unnoticed."""
        if name in self.limits:
            value = self.limits[name].check(name, value, owner=type(self).__name__)
        elif name in _OPTION_CHECKS:
            value = _OPTION_CHECKS[name](value, type(self).__name__)
        super().__setattr__(name, value)

    def __mul__(self, factor: float) -> "WeightedSum":
        from lossmith.losses.weighted_sum import scaled  # a sum is itself a loss, so that it cannot be imported above

        return scaled(self, factor)

    __rmul__ = __mul__

    def __add__(self, other: "ClassificationLoss") -> "WeightedSum":
        from lossmith.losses.weighted_sum import added

        return added(self, other)

    def parameters_in_order(self) -> dict[str, Any]:
        """Return the loss's own parameters by name, as its constructor takes them."""
        names = [name for name, kind in inspect.signature(type(self)).parameters.items() if kind.kind is not kind.VAR_KEYWORD]
        return {name: getattr(self, name) for name in names if name not in Options.__annotations__}

    def __repr__(self) -> str:
        """Return the expression that ``lossmith.make_loss`` reads back to an equal loss."""
        return printed_call(self.name, self.parameters_in_order() | self.changed_options())

    def changed_options(self) -> dict[str, Any]:
        """Return the options that are not at their defaults."""
        defaults = inspect.signature(ClassificationLoss).parameters
        options = {name: getattr(self, name) for name in Options.__annotations__}
        return {name: value for name, value in options.items() if isinstance(value, Tensor) or value != defaults[name].default}


def check_option_names(owner: type[ClassificationLoss], options: Iterable[str]) -> None:
    """Raise an error for the first that is no option."""
    for name in options:
        if name not in Options.__annotations__:
            known = [*inspect.signature(owner).parameters, *Options.__annotations__]
            raise TypeError(f"{owner.__name__}: unknown parameter {name!r}{nearest(name, known)}")


def _reduce(losses: Tensor, share: Tensor | None, reduction: Reduction) -> Tensor:
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    return losses.mean() if share is None else losses.sum() / share.sum()


def _smooth(probabilities: Tensor, smoothing: float) -> Tensor:
    if smoothing == 0:
        return probabilities
    return probabilities * (1 - smoothing) + smoothing / probabilities.shape[1]


def _along_classes(weight: Tensor | None, logits: Tensor) -> Tensor | None:
    return None if weight is None else weight.to(logits.dtype).view(-1, *[1] * (logits.dim() - 2))


def _output_dtype(logits: Tensor, target: Tensor) -> torch.dtype:
    """Return what torch's cross-entropy returns: single precision where autocast is on, else what the inputs promote to."""
    dtype = torch.promote_types(logits.dtype, target.dtype) if target.is_floating_point() else logits.dtype
    kind = logits.device.type
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
        return torch.promote_types(dtype, torch.float32)
    return dtype


_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def _as_class_weights(weight: Tensor | Sequence[float] | None, owner: str) -> Tensor | None:
    if weight is None:
        return None
    if not isinstance(weight, Tensor) or weight.dtype in _WHOLE:
        weight = torch.as_tensor(weight, dtype=torch.get_default_dtype())
    if weight.dim() != 1 or not weight.is_floating_point():
        raise ValueError(f"{owner}: weight must be one number per class, got {weight.dtype} of shape {tuple(weight.shape)}.")
    return weight


def _check_reduction(value: object, owner: str) -> object:
    if value not in ("mean", "sum", "none"):
        raise ValueError(f"{owner}: reduction must be 'mean', 'sum' or 'none', got {value!r}.")
    return value


def _check_ignore_index(value: object, owner: str) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{owner}: ignore_index must be an integer, got {value!r}.")
    return value


def _check_smoothing(value: object, owner: str) -> object:
    return Limits(0.0, 1.0).check("label_smoothing", value, owner=owner)


_OPTION_CHECKS = {"reduction": _check_reduction, "ignore_index": _check_ignore_index, "label_smoothing": _check_smoothing}
