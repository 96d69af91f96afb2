"""Objectives: a final layer, a loss, schedules of its parameters and weight decay, together by name.

What is trained is more than a loss. ``make_objective("cosine-softmax(tau=0.05)")`` turns a backbone into a model with the right
final layer, its loss and its optimiser's parameter groups, and so does the name of any loss.
"""

import copy
from collections.abc import Callable, Mapping
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
from lossmith.losses.nearest import nearest
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
        object.__setattr__(self, "schedules", checked_schedules(self.loss, self.schedules))
        object.__setattr__(self, "name", self.name or repr(self.loss))
        for name in ("final_weight_decay", "weight_decay"):
            Limits(0.0).check(name, getattr(self, name), owner="Objective")
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
    ) -> Trainable:
        """Return the model, its loss and its parameter groups.

        The backbone returns features, ``out_features`` of them unless ``in_features`` says how many. The loss is a copy, so that
        an objective can be built many times.
        """
        width = getattr(backbone, "out_features", None) if in_features is None else in_features
        if not isinstance(width, int):
            raise ValueError(f"Objective: give in_features, because the {type(backbone).__name__} has no out_features.")
        model = Classifier(backbone, self.head(width, num_classes))
        loss = copy.deepcopy(self.loss)
        if isinstance(loss, SigmoidCrossEntropyLoss):
            loss.init_bias_(model.head)
        decay = self.weight_decay if weight_decay is None else weight_decay
        return Trainable(model, loss, final_layer_groups(model, model.head, decay, self.final_weight_decay))

    def scheduler(self, loss: ClassificationLoss, total: int | None = None) -> LossScheduler | None:
        """Return the scheduler of the loss that :meth:`build` made, or None where nothing is scheduled."""
        return LossScheduler(loss, self.schedules, total=total) if self.schedules else None

    def passes(self, loss: ClassificationLoss) -> tuple[ClassificationLoss, ...]:
        """Return the losses that each batch is passed for, one after another."""
        return loss.passes() if self.two_passes and isinstance(loss, ComplementObjective) else (loss,)


def _head(layer: type[nn.Module], **parameters: Any) -> Head:
    with torch.device("meta"):  # raises for a parameter out of range; takes no memory and draws no random numbers
        layer(1, 1, **parameters)
    return partial(layer, **parameters)


def _softmax() -> Objective:
    """Softmax cross-entropy, the baseline."""
    return Objective(CrossEntropyLoss())


def _dropout(keep: float = 0.7, loss: ClassificationLoss | None = None) -> Objective:
    """Dropout of the features, of which a share ``keep`` is kept."""
    return Objective(loss or CrossEntropyLoss(), head=_head(DropoutLinear, keep=keep))


def _extra_l2(final_weight_decay: float = 8e-4, loss: ClassificationLoss | None = None) -> Objective:
    """More weight decay on the final layer."""
    return Objective(loss or CrossEntropyLoss(), final_weight_decay=final_weight_decay)


def _cosine_softmax(tau: float = 0.05, bias: bool = True, loss: ClassificationLoss | None = None) -> Objective:
    """Cosines between features and the weights of the classes, as logits."""
    return Objective(loss or CrossEntropyLoss(), head=_head(CosineLinear, tau=tau, bias=bias))


def _two_pass_cot(gamma: float = 1.0) -> Objective:
    """Complement objective training as published: two passes a batch. As a single pass it is the loss ``cot``."""
    return Objective(ComplementObjective(gamma), two_passes=True)


def _scheduled(loss: ClassificationLoss, **schedules: Schedule | float) -> Objective:
    """Any loss, with schedules of its parameters."""
    return Objective(loss, schedules=schedules)


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


class Published(NamedTuple):
    """What a paper trained an objective with."""

    learning_rate: float
    weight_decay: float
    parameters: Mapping[str, float] = {}


def _cifar(learning_rate: float, product: float, **parameters: float) -> Published:
    """Read a cell of table A.2: powers of ten, of the learning rate and of its product with the weight decay."""
    return Published(10**learning_rate, 10 ** (product - learning_rate), parameters)


def _imagenet(**parameters: float) -> Published:
    """Read a row of table A.1; the schedule is the same for all, warming up to 1.6."""
    return Published(1.6, 8e-5, parameters)


DATA_SETS = {"cifar-10": 10, "cifar-100": 100, "imagenet": 1000}
"""The data sets of the presets, with their number of classes, by which the losses know their own."""

PRESETS: dict[str, tuple[Published, Published, Published]] = {
    "softmax": (_cifar(-0.75, -3.75), _cifar(-1, -4), _imagenet()),
    "squared-error": (_cifar(-1, -3.5), _cifar(-1, -3.75), _imagenet()),
    "logit-norm": (_cifar(-2, -4), _cifar(-2.25, -3.75), _imagenet()),
    "extra-l2": (
        _cifar(-1, -3.5, final_weight_decay=10**-1.5),
        _cifar(-1, -3.75, final_weight_decay=10**-3.33),
        _imagenet(final_weight_decay=8e-4),
    ),
    "cosine-softmax": (_cifar(-2.25, -4, tau=0.08), _cifar(-2, -3.75, tau=0.1), _imagenet(tau=0.05)),
    "dropout": (_cifar(-1, -3.75, keep=0.65), _cifar(-1.25, -3.75, keep=0.75), _imagenet(keep=0.7)),
    "sigmoid": (_cifar(0, -3.75), _cifar(-1, -3.75), _imagenet()),
    "label-smoothing": (_cifar(-1, -3.75), _cifar(-1, -3.5), _imagenet()),
    "logit-penalty": (_cifar(-0.75, -3.75), _cifar(-1.25, -3.75), _imagenet()),
}
"""Kornblith et al., "What's in a loss function for image classification?", tables A.1 and A.2, one for each data set. The
parameters of losses stand with the losses."""


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
            return super()._preset(name, factory)
        self._take()
        if preset not in DATA_SETS or name not in PRESETS:
            known, kind, word = (PRESETS, "objective", name) if preset in DATA_SETS else (DATA_SETS, "data set", preset)
            raise ValueError(f"make_objective: no preset for the {kind} {word!r} in {self._text!r}{nearest(word, known)}")
        published = PRESETS[name][list(DATA_SETS).index(preset)]
        self._published = self._published or published
        of_loss = LOSSES[name].presets.get(DATA_SETS[preset], {}) if name in LOSSES else {}
        return {**of_loss, **published.parameters}
