"""The contract of ``torch.nn.CrossEntropyLoss``, kept once for every loss.

A loss says what one example costs (:meth:`ClassificationLoss.formula`); this module does everything around it: input checks,
shapes, precision, class weights, ignored targets, label smoothing, example weights and the reduction.
"""

import inspect
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from lossmith import kernels
from lossmith.expressions.printed_form import printed_call
from lossmith.kernels import Formula
from lossmith.kernels.sharded.entering import as_given, is_spread, spread, whole_shape
from lossmith.losses.contract.arithmetic import SummableLoss
from lossmith.losses.contract.numbers import number
from lossmith.losses.contract.options import OPTION_CHECKS, Options, Reduction, as_class_weights, check_option_names
from lossmith.losses.contract.reduction import along_classes, checked_denominator, output_dtype, reduce, smooth, sum_of_shares
from lossmith.losses.contract.target_warnings import LOOKS, warn_of_other_meaning
from lossmith.losses.contract.targets import ClassIndices, are_all_classes, are_usual, check_range, check_shapes, one_hot

__all__ = ["ClassificationLoss"]


class ClassificationLoss(SummableLoss):
    """Base of all losses: a drop-in for ``torch.nn.CrossEntropyLoss``. In formulas ``p`` is the probability of the target.

    A subclass gives its ``name``, the ``limits`` of its parameters and its :meth:`formula`.

    Args:
        weight: One factor per class; none by default.
        ignore_index: Target of examples that do not count.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        label_smoothing: Share of the target that is spread over all classes, in [0, 1].
    """

    name: ClassVar[str]
    constants = {"label_smoothing": 0.0}
    presets: ClassVar[Mapping[int, Mapping[str, Any]]] = {}
    """Published parameters by number of classes."""
    takes_several: ClassVar[bool] = False
    """Whether several classes can be true at once."""
    _looks_left: int = LOOKS

    weight: Tensor | None
    ignore_index: int
    reduction: Reduction
    label_smoothing: float = number("label_smoothing")

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
        self.register_buffer("weight", as_class_weights(weight, type(self).__name__))
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.label_smoothing = label_smoothing

    @classmethod
    def for_classes(cls, num_classes: int, **options: Any) -> Self:
        """Make the loss with the parameters published for this number of classes.

        Args:
            num_classes: A number of classes that parameters were published for.
            **options: What else the constructor takes.

        Returns:
            The loss.

        Raises:
            ValueError: If nothing was published for it.
        """
        if num_classes not in cls.presets:
            known = f"one of {', '.join(map(str, cls.presets))}" if cls.presets else "left out, as nothing was published"
            raise ValueError(f"{cls.__name__}: num_classes must be {known}, got {num_classes}.")
        return cls(**cls.presets[num_classes], **options)

    @abstractmethod
    def formula(self) -> Formula:
        """Return what one example costs, with the parameters as they are now."""

    def example_losses(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the loss of each example, ``(N, ...)``.

        Args:
            logits: ``(N, C, ...)``, in single or double precision.
            target: Valid class indices ``(N, ...)``, or a factor for the loss of every class ``(N, C, ...)``, whose sum it is.
        """
        self.check_call(logits, target)
        return kernels.losses(self.formula(), logits, target)

    def check_call(self, logits: Tensor, target: Tensor) -> None:
        """Raise an error for input that cross-entropy accepts but that has no value under this loss; most losses take all."""

    def weighted_soft_losses(self, logits: Tensor, probabilities: Tensor, weight: Tensor | None) -> Tensor:
        """Return the loss of each example under a distribution of labels: the expected class-weighted loss.

        Args:
            logits: Logits ``(N, C, ...)``, in single or double precision.
            probabilities: A distribution of labels for each example, ``(N, C, ...)``.
            weight: One factor per class, shaped to broadcast, or None.

        Returns:
            Losses ``(N, ...)``.
        """
        return self.example_losses(logits, probabilities if weight is None else probabilities * weight)

    def predict_proba(self, logits: Tensor) -> Tensor:
        """Return the class probabilities that belong to this loss.

        Args:
            logits: Logits ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``.

        Returns:
            Probabilities of the same shape, which add up to 1 over the classes.
        """
        return torch.softmax(logits, min(1, logits.dim() - 1))

    def kind_of_probabilities(self) -> tuple[str | float, ...]:
        """Return what tells these probabilities from others: the parts of a sum predict together if theirs are of one kind."""
        return ("softmax",)

    def forward(
        self, logits: Tensor, target: Tensor, *, sample_weight: Tensor | None = None, denominator: float | Tensor | None = None
    ) -> Tensor:
        """Return the loss, reduced as ``torch.nn.CrossEntropyLoss`` does.

        Args:
            logits: ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``, floating point.
            target: Class indices of the shape of the logits without C, or class probabilities of their whole shape.
            sample_weight: A factor for each example, for its loss and for its share of the mean; none by default.
            denominator: What the sum of the losses is divided by, a number > 0 or a tensor of one, if not by that of this batch;
                pieces of a batch with the :meth:`denominator` of the whole have gradients that add up to that of the whole.

        Returns:
            One number, or a loss for each example where ``reduction`` is ``"none"``.

        Raises:
            TypeError: If an argument is not a tensor, or has a type that it cannot have.
            ValueError: If shapes do not fit, the target has no value under this loss, or nothing is summed that could be divided.
            IndexError: If a class index is out of range.
        """
        if not torch.compiler.is_compiling() and self._looks_left:
            self._look(logits, target)
        if denominator is not None:
            denominator = checked_denominator(denominator, self.reduction, type(self).__name__)
        if sample_weight is None and are_usual(logits, target) and not kernels.reduces(logits):
            mean = self._usual_mean(logits, target, denominator)
            if mean is not None:
                return mean
        owner = type(self).__name__
        if is_spread(logits):
            rows, labels = spread(owner, logits, target)
            check_shapes(owner, whole_shape(rows), whole_shape(labels), sample_weight, self.weight)
            return as_given(self._by_formula(rows, labels, sample_weight, denominator), logits)
        check_shapes(owner, logits, target, sample_weight, self.weight)
        if sample_weight is None and kernels.reduces(logits):
            reduced = self._reduced(logits, target, denominator)
            if reduced is not None:
                return reduced
        return self._by_formula(logits, target, sample_weight, denominator)

    def _look(self, logits: Tensor, target: Tensor) -> None:
        """Say once what a call means where that may not be what was meant."""
        has_reason = not self.takes_several and warn_of_other_meaning(self, logits, target)
        self._looks_left = 0 if has_reason or self.takes_several else self._looks_left - 1

    def _by_formula(
        self, logits: Tensor, target: Tensor, sample_weight: Tensor | None, denominator: float | Tensor | None
    ) -> Tensor:
        """Return the reduced loss, whatever is asked for."""
        batched = logits.dim() > 1
        rows, labels = (logits, target) if batched else (logits.unsqueeze(0), target.unsqueeze(0))
        rows = rows if rows.dtype in (torch.float32, torch.float64) else rows.float()
        losses, share = (self._soft if labels.is_floating_point() else self._hard)(rows, labels)
        if sample_weight is not None:
            factor = sample_weight.to(losses.dtype)
            losses, share = losses * factor, factor.expand_as(losses) if share is None else share * factor
        reduced = reduce(losses, share, self.reduction, denominator)
        dtype = output_dtype(logits, target)
        reduced = reduced if reduced.dtype == dtype else reduced.to(dtype)
        return reduced if batched or self.reduction != "none" else reduced.squeeze(0)

    def denominator(self, target: Tensor, *, sample_weight: Tensor | None = None) -> Tensor:
        """Return what the mean over a target divides by, which adds up over pieces: how many examples count, by class weight.

        Rows of probabilities count 1 whatever the class weights are, as in ``torch.nn.CrossEntropyLoss``.

        Args:
            target: Class indices or class probabilities, as in a call.
            sample_weight: A factor for each example, as in a call.

        Returns:
            One number, without gradient.
        """
        return sum_of_shares(type(self).__name__, target, self.weight, self.ignore_index, sample_weight)

    def _usual_mean(self, logits: Tensor, target: Tensor, denominator: float | Tensor | None) -> Tensor | None:
        """Return the mean of the losses where nothing else is asked for, the usual case, in as few operations as possible."""
        if self.reduction != "mean" or self.label_smoothing or self._has_class_weights():
            return None
        if target.is_floating_point():
            has_own_meaning = type(self).weighted_soft_losses is not ClassificationLoss.weighted_soft_losses
            is_plain = self.ignore_index < 0 and not has_own_meaning
        else:
            is_plain = are_all_classes(target, logits.shape[1], self.ignore_index)
        if not is_plain:
            return None
        self.check_call(logits, target)
        return kernels.mean(self.formula(), logits, target, denominator)

    def _reduced(self, logits: Tensor, target: Tensor, denominator: float | Tensor | None) -> Tensor | None:
        """Return the reduced losses by kernels that do all of it, or None where there are none for this call."""
        weight = self.weight
        is_other = logits.dim() == 1 or target.is_floating_point() or self.label_smoothing != 0
        if is_other or (weight is not None and (weight.requires_grad or weight.device != logits.device)):
            return None
        check_range(type(self).__name__, target, logits.shape[1], self.ignore_index)
        self.check_call(logits, target)
        dtype = output_dtype(logits, target)
        if denominator is None:
            reduction = kernels.Reduction(self.reduction, self.ignore_index, weight, dtype)
            return kernels.reduced(self.formula(), logits, target, reduction)
        # A sum that half precision could not hold is divided before it is rounded.
        found = kernels.reduced(self.formula(), logits, target, kernels.Reduction("sum", self.ignore_index, weight))
        return None if found is None else (found / denominator).to(dtype)

    def _has_class_weights(self) -> bool:
        # This is where nn.Module finds self.weight after it has looked everywhere else, unless it was replaced by a parameter.
        return (self._buffers["weight"] if "weight" in self._buffers else self.weight) is not None  # noqa: SIM401

    def _soft(self, logits: Tensor, probabilities: Tensor) -> tuple[Tensor, None]:
        if self.ignore_index >= 0:
            raise ValueError(
                f"{type(self).__name__}: ignore_index must be negative where target holds probabilities, got {self.ignore_index}."
            )
        smoothed = smooth(probabilities.to(logits.dtype), self.label_smoothing)
        return self.weighted_soft_losses(logits, smoothed, along_classes(self.weight, logits)), None

    def _hard(self, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the losses and each example's share of the mean; None stands for equal shares."""
        indices = ClassIndices.read(type(self).__name__, target, logits.shape[1], self.ignore_index)
        if indices.valid is not None:  # whatever the logits of ignored examples are
            logits = torch.where(indices.valid.unsqueeze(1), logits, 0.0)
        share = None if self.weight is None else self.weight.to(logits.dtype)[indices.target]
        if self.label_smoothing:
            smoothed = smooth(one_hot(logits, indices.target), self.label_smoothing)
            losses = self.weighted_soft_losses(logits, smoothed, along_classes(self.weight, logits))
        else:
            losses = self.example_losses(logits, indices.target)
            losses = losses if share is None else losses * share
        if indices.valid is not None:
            losses = torch.where(indices.valid, losses, 0.0)
            share = indices.valid.to(losses.dtype) if share is None else torch.where(indices.valid, share, 0.0)
        return losses, share

    def __setattr__(self, name: str, value: Any) -> None:
        """Check options whenever they are set, as numbers are."""
        if name in OPTION_CHECKS:
            value = OPTION_CHECKS[name](value, type(self).__name__)
        super().__setattr__(name, value)

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
