"""Objectives: a final layer, a loss, schedules of its parameters and weight decay, together by name.

What is trained is more than a loss. ``make_objective("cosine-softmax(tau=0.05)")`` turns a backbone into a model with the right
final layer, its loss and its optimiser's parameter groups, and so does the name of any loss.
"""

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Unpack

import torch
from torch import Tensor, nn

from lossmith.heads import CosineLinear, DropoutLinear, final_layer_groups
from lossmith.loss_scheduler import LossScheduler, checked_schedules
from lossmith.losses import (
    LOSSES,
    ClassificationLoss,
    ComplementObjective,
    CrossEntropyExpectationLoss,
    CrossEntropyLoss,
    LogitBias,
    SigmoidCrossEntropyLoss,
    make_loss,
)
from lossmith.losses.contract import Options
from lossmith.losses.expression import ExpressionReader
from lossmith.losses.limits import Limits
from lossmith.nearest import nearest
from lossmith.published_trainings import DATA_SETS, PRESETS, Published
from lossmith.schedules import SCHEDULES, Schedule

__all__ = ["OBJECTIVES", "Classifier", "Objective", "Trainable", "make_objective"]

Head = Callable[[int, int], nn.Module]


class Classifier(nn.Module):
    """A backbone and the final layer on top of it."""

    def __init__(self, backbone: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits."""
        logits: Tensor = self.head(self.backbone(inputs))
        return logits


class Trainable(NamedTuple):
    """What a training loop needs."""

    model: Classifier
    loss: ClassificationLoss
    groups: list[dict[str, Any]]
    """The optimiser's parameter groups."""


@dataclass(frozen=True)
class Objective:
    """What to train: a loss, the final layer in front of it, schedules of its parameters, and weight decay.

    >>> backbone = nn.Linear(8, 4)
    >>> objective = make_objective("extra-l2(1e-3)")
    >>> model, loss, groups = objective.build(backbone, num_classes=3, weight_decay=1e-4)
    >>> [group["weight_decay"] for group in groups]
    [0.0001, 0.0011]

    Train as ever, with every loss of ``objective.passes(loss)`` in turn where that may be more than one, and step
    ``objective.scheduler(loss, total=epochs)``, unless it is None, after each epoch.
    """

    loss: ClassificationLoss
    head: Head = nn.Linear
    """Makes the final layer from the width of the features and the number of classes."""
    schedules: Mapping[str, Schedule | str | float] = field(default_factory=dict)
    final_weight_decay: float = 0.0
    """Weight decay of the final layer's weights, on top of what all have."""
    two_passes: bool = False
    """Whether each batch is passed twice, once for each part of the loss."""
    learning_rate: float | None = None
    """The learning rate that was published for it."""
    weight_decay: float = 0.0
    """The weight decay that was published for it."""
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.loss, ClassificationLoss):
            raise TypeError(f"Objective: loss must be a lossmith loss, got {type(self.loss).__name__} {self.loss!r}.")
        if not callable(self.head):
            raise TypeError(f"Objective: head must make a layer from its width and the number of classes, got {self.head!r}.")
        object.__setattr__(self, "schedules", checked_schedules(self.loss, self.schedules))
        object.__setattr__(self, "name", self.name or repr(self.loss))
        for name in ("final_weight_decay", "weight_decay"):
            Limits(0.0).check(name, getattr(self, name), owner="Objective")
        Limits(0.0, low_open=True, optional=True).check("learning_rate", self.learning_rate, owner="Objective")
        if self.two_passes and not isinstance(self.loss, ComplementObjective):
            raise ValueError(f"Objective: two_passes needs a loss with two passes, such as cot, got {self.loss}.")

    def __str__(self) -> str:
        return self.name

    def build(
        self,
        backbone: nn.Module,
        num_classes: int,
        *,
        in_features: int | None = None,
        weight_decay: float | None = None,
        decay_vectors: bool = True,
    ) -> Trainable:
        """Return the model, its loss and its parameter groups.

        The backbone returns features, ``out_features`` of them unless ``in_features`` says how many; the final layer has its
        device and precision. The loss is a copy, so that an objective can be built many times. ``weight_decay`` replaces the
        published one; ``decay_vectors=False`` exempts biases and normalisation layers from it.
        """
        Limits(2, whole=True).check("num_classes", num_classes, owner="Objective")
        model = Classifier(backbone, self.head(_width(backbone, in_features), num_classes))
        like = next((parameter for parameter in backbone.parameters() if parameter.is_floating_point()), None)
        if like is not None:
            model.head.to(like.device, like.dtype)
        loss = copy.deepcopy(self.loss)
        for part in loss.modules():
            if isinstance(part, SigmoidCrossEntropyLoss):
                part.init_bias_(model.head)
        decay = self.weight_decay if weight_decay is None else weight_decay
        groups = final_layer_groups(model, model.head, decay, self.final_weight_decay, decay_vectors=decay_vectors)
        return Trainable(model, loss, groups)

    def scheduler(self, loss: ClassificationLoss, total: int | None = None) -> LossScheduler | None:
        """Return the scheduler of the loss that :meth:`build` made, or None where nothing is scheduled."""
        return LossScheduler(loss, self.schedules, total=total) if self.schedules else None

    def passes(self, loss: ClassificationLoss) -> tuple[ClassificationLoss, ...]:
        """Return the losses that each batch is passed for, one after another."""
        return loss.passes() if self.two_passes and isinstance(loss, ComplementObjective) else (loss,)


def _width(backbone: nn.Module, in_features: int | None) -> int:
    width = getattr(backbone, "out_features", None) if in_features is None else in_features
    if width is None:
        raise ValueError(f"Objective: give in_features, because the {type(backbone).__name__} has no out_features.")
    Limits(1, whole=True).check("out_features" if in_features is None else "in_features", width, owner="Objective")
    return int(width)


def _head(layer: type[nn.Module], **parameters: Any) -> Head:
    with torch.device("meta"):  # raises for a parameter out of range; takes no memory and draws no random numbers
        layer(1, 1, **parameters)
    return partial(layer, **parameters)


def _upon(inner: ClassificationLoss | Objective | None, owner: str, **changes: Any) -> Objective:
    """Return an objective that is more than a loss, or than another objective: each can have one final layer."""
    if inner is not None and not isinstance(inner, ClassificationLoss | Objective):
        raise TypeError(f"{owner}: loss must be a loss or an objective, got {inner!r}.")
    base = inner if isinstance(inner, Objective) else Objective(inner or CrossEntropyLoss())
    if "head" in changes and base.head is not nn.Linear:
        layer = base.head.func if isinstance(base.head, partial) else base.head
        raise ValueError(f"{owner}: its loss must not bring a final layer of its own, got {getattr(layer, '__name__', layer)}.")
    return replace(base, name="", **changes)


def _softmax() -> Objective:
    """Softmax cross-entropy, the baseline."""
    return Objective(CrossEntropyLoss())


def _dropout(keep: float = 0.7, loss: ClassificationLoss | Objective | None = None) -> Objective:
    """Dropout of the features, of which a share ``keep`` is kept."""
    return _upon(loss, "dropout", head=_head(DropoutLinear, keep=keep))


def _extra_l2(final_weight_decay: float = 8e-4, loss: ClassificationLoss | Objective | None = None) -> Objective:
    """More weight decay on the final layer."""
    return _upon(loss, "extra-l2", final_weight_decay=final_weight_decay)


def _cosine_softmax(tau: float = 0.05, bias: bool = True, loss: ClassificationLoss | Objective | None = None) -> Objective:
    """Cosines between features and the weights of the classes, as logits."""
    return _upon(loss, "cosine-softmax", head=_head(CosineLinear, tau=tau, bias=bias))


def _two_pass_cot(gamma: float = 1.0) -> Objective:
    """Complement objective training as published: two passes a batch. As a single pass it is the loss ``cot``."""
    return Objective(ComplementObjective(gamma), two_passes=True)


def _scheduled(loss: ClassificationLoss | Objective, **schedules: Schedule | float) -> Objective:
    """Any loss or objective, with schedules of the loss's parameters."""
    if not schedules:
        raise ValueError("scheduled: give a schedule for at least one parameter, such as focus=linear(0, 0.5), got none.")
    before = loss.schedules if isinstance(loss, Objective) else {}
    return _upon(loss, "scheduled", schedules={**before, **schedules})


def _late_expectation() -> Objective:
    """Cross-entropy and expectation loss in equal parts, the expectation loss alone for the last 5 %."""
    return Objective(CrossEntropyExpectationLoss(), schedules={"focus": "focus-late"})


def _gradual_expectation() -> Objective:
    """From cross-entropy and expectation loss in equal parts to the expectation loss, in six equal phases."""
    return Objective(CrossEntropyExpectationLoss(), schedules={"focus": "focus-gradual"})


def _cyclic_logit_bias(loss: ClassificationLoss | None = None) -> Objective:
    """A bounded loss with the cyclic logit bias for a thousand classes."""
    return Objective(LogitBias(loss), schedules={"epsilon": "epsilon-cyclic"})


OBJECTIVES: dict[str, Callable[..., Objective]] = {
    "softmax": _softmax,
    "dropout": _dropout,
    "extra-l2": _extra_l2,
    "cosine-softmax": _cosine_softmax,
    "two-pass-cot": _two_pass_cot,
    "ce-el-late": _late_expectation,
    "ce-el-gradual": _gradual_expectation,
    "cyclic-logit-bias": _cyclic_logit_bias,
    "scheduled": _scheduled,
}
"""Objectives that are more than a loss, by name. Every loss, and every sum of losses, is an objective, too."""

PRESETS_OF_A_LOSS: dict[str, type[ClassificationLoss]] = {"two-pass-cot": ComplementObjective}
"""Objectives with the parameters that are published for a loss, by number of classes."""


def make_objective(expression: str, **options: Unpack[Options]) -> Objective:
    """Read an objective from text: one of the catalogue, or any loss; with ``@`` what a paper trained it with on a data set.

    Options of ``torch.nn.CrossEntropyLoss``, such as class weights, go to its loss.

    >>> make_objective("cosine-softmax(tau=0.05)").head
    functools.partial(<class 'lossmith.heads.CosineLinear'>, tau=0.05, bias=True)
    >>> make_objective("dropout(keep=0.7, loss=gce)").loss
    gce(q=0.7)
    >>> make_objective("scheduled(ce-el, focus=linear(0, 0.5))").schedules
    {'focus': Linear(start=0.0, end=0.5)}
    >>> objective = make_objective("label-smoothing@cifar-10")
    >>> objective.loss, round(objective.learning_rate, 4), round(objective.weight_decay, 6)
    (label-smoothing(alpha=0.04), 0.1, 0.001778)
    >>> make_objective("cosine-softmax", weight=[1.0, 2.0]).loss
    ce(weight=[1.0, 2.0])
    """
    objective = _ObjectiveReader(expression).read()
    return replace(objective, loss=make_loss(repr(objective.loss), **options)) if options else objective


class _ObjectiveReader(ExpressionReader):
    """Reads objectives; schedules and losses among their arguments, too."""

    def __init__(self, text: str) -> None:
        super().__init__(text, {**SCHEDULES, **OBJECTIVES, **LOSSES}, caller="make_objective", kind="objective")
        self._published: Published | None = None

    def read(self) -> Objective:
        """Return the objective that the whole text describes."""
        result = super().read()
        if isinstance(result, Schedule):
            raise ValueError(f"make_objective: {self._text!r} is a schedule; write scheduled(LOSS, PARAMETER={self._text}).")
        objective = Objective(result) if isinstance(result, ClassificationLoss) else result
        training = {}
        if self._published:
            training = {"learning_rate": self._published.learning_rate, "weight_decay": self._published.weight_decay}
        return replace(objective, name=self._text.strip(), **training)

    def _preset(self, name: str, factory: Callable[..., Any]) -> dict[str, Any]:
        preset = self._peek().text
        if preset.isdigit():
            if name in PRESETS_OF_A_LOSS:
                factory = PRESETS_OF_A_LOSS[name]
            elif name in PRESETS and name not in LOSSES:
                raise ValueError(f"make_objective: {name} has presets for {_or(DATA_SETS)}, got {preset} in {self._text!r}.")
            return super()._preset(name, factory)
        self._take()
        if preset not in DATA_SETS:
            raise ValueError(f"make_objective: no preset for the data set {preset!r} in {self._text!r}; take {_or(DATA_SETS)}.")
        if name not in PRESETS:
            raise ValueError(f"make_objective: no preset for the objective {name!r} in {self._text!r}{nearest(name, PRESETS)}")
        published = PRESETS[name][list(DATA_SETS).index(preset)]
        self._published = self._published or published
        of_loss = LOSSES[name].presets.get(DATA_SETS[preset], {}) if name in LOSSES else {}
        return {**of_loss, **published.parameters}


def _or(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}"
