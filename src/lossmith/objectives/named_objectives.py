"""The objectives that have a name, and how any objective is read from text."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import torch
from torch import nn

from lossmith.expressions.nearest import nearest
from lossmith.expressions.quotes import quote, shortened
from lossmith.expressions.reader import ExpressionReader
from lossmith.expressions.written import WrittenPart
from lossmith.losses import (
    LOSSES,
    ClassificationLoss,
    ComplementObjective,
    CrossEntropyExpectationLoss,
    CrossEntropyLoss,
    LDAMLoss,
    LogitBias,
    make_loss,
)
from lossmith.losses.catalogue import ADDABLE_LOSSES, OTHER_NAMES
from lossmith.losses.contract.options import Options
from lossmith.objectives.heads import CosineLinear, DropoutLinear
from lossmith.objectives.named_schedules import SCHEDULES
from lossmith.objectives.objective import Head, Objective
from lossmith.objectives.published import DATA_SETS, PRESETS, Published
from lossmith.objectives.schedules import Piecewise, Schedule

__all__ = ["OBJECTIVES", "make_objective", "written_parts"]


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


def _deferred_weights(max_margin: float = 0.5, scale: float = 30.0, beta: float = 0.9999) -> Objective:
    """Margins by class counts on cosines, and for the last 20 % of training weights by effective numbers, too."""
    head = _head(CosineLinear, tau=1.0, bias=False)
    return Objective(LDAMLoss(max_margin, scale), head=head, schedules={"beta": Piecewise((0.0, beta), at=(0.8,))})


OBJECTIVES: dict[str, Callable[..., Objective]] = {
    "softmax": _softmax,
    "dropout": _dropout,
    "extra-l2": _extra_l2,
    "cosine-softmax": _cosine_softmax,
    "two-pass-cot": _two_pass_cot,
    "ce-el-late": _late_expectation,
    "ce-el-gradual": _gradual_expectation,
    "cyclic-logit-bias": _cyclic_logit_bias,
    "ldam-drw": _deferred_weights,
    "scheduled": _scheduled,
}
"""Objectives that are more than a loss, by name. Every loss, and every sum of losses, is an objective, too."""

PRESETS_OF_A_LOSS: dict[str, type[ClassificationLoss]] = {"two-pass-cot": ComplementObjective}
"""Objectives with the parameters that are published for a loss, by number of classes."""


def make_objective(expression: str, **options: Unpack[Options]) -> Objective:
    """Read an objective from text: one of the catalogue, or any loss; with ``@`` what a paper trained it with on a data set.

    Options of ``torch.nn.CrossEntropyLoss``, such as class weights, go to its loss.

    Args:
        expression: The objective as it is written on the command line.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, for its loss.

    Returns:
        The objective, named as it was written.

    Raises:
        TypeError: If the expression is not text.
        ValueError: If it cannot be read, there is no such preset, or a parameter is out of its range.

    >>> make_objective("cosine-softmax(tau=0.05)").head
    functools.partial(<class 'lossmith.objectives.heads.CosineLinear'>, tau=0.05, bias=True)
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


def written_parts(expression: str) -> tuple[Objective, list[WrittenPart]]:
    """Read an objective, and where its parts stand in the text.

    Args:
        expression: The objective as it is written on the command line.

    Returns:
        The objective, and its calls and sums, inner ones before those that hold them.

    Raises:
        TypeError: If the expression is not text.
        ValueError: If it cannot be read.

    >>> [(part.name, part.start, part.end) for part in written_parts("dropout(loss=gce)")[1]]
    [('gce', 13, 16), ('dropout', 0, 17)]
    """
    reader = _ObjectiveReader(expression)
    return reader.read(), reader.written


class _ObjectiveReader(ExpressionReader):
    """Reads objectives; schedules and losses among their arguments, too."""

    def __init__(self, text: str) -> None:
        catalogue: dict[str, Callable[..., Any]] = {**SCHEDULES, **OBJECTIVES, **LOSSES, **OTHER_NAMES}
        super().__init__(text, catalogue, addable=ADDABLE_LOSSES, caller="make_objective", kind="objective")
        self._published: Published | None = None

    def read(self) -> Objective:
        """Return the objective that the whole text describes."""
        result = super().read()
        if isinstance(result, Schedule):
            schedule = shortened(self._text)
            raise ValueError(f"make_objective: {quote(self._text)} is a schedule; write scheduled(LOSS, PARAMETER={schedule}).")
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
                given = f"{shortened(preset)} in {quote(self._text)}"
                raise ValueError(f"make_objective: {name} has presets for {_or(DATA_SETS)}, got {given}.")
            return super()._preset(name, factory)
        self._take()
        if preset not in DATA_SETS:
            unknown = f"{quote(preset)} in {quote(self._text)}"
            raise ValueError(f"make_objective: no preset for the data set {unknown}; take {_or(DATA_SETS)}.")
        if name not in PRESETS:
            raise ValueError(
                f"make_objective: no preset for the objective {name!r} in {quote(self._text)}{nearest(name, PRESETS)}"
            )
        published = PRESETS[name][list(DATA_SETS).index(preset)]
        self._published = self._published or published
        of_loss = LOSSES[name].presets.get(DATA_SETS[preset], {}) if name in LOSSES else {}
        return {**of_loss, **published.parameters}


def _or(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}"
