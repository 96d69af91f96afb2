"""Objectives: a final layer, a loss, schedules of its parameters and weight decay, together by name.

What is trained is more than a loss. ``make_objective("cosine-softmax(tau=0.05)")`` turns a backbone into a model with the right
final layer, its loss and its optimiser's parameter groups, and so does the name of any loss.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from torch import Tensor, nn

from lossmith.expressions.limits import Limits
from lossmith.losses import (
    ClassificationLoss,
    ComplementObjective,
)
from lossmith.losses.contract.needs_data import fill_in, is_complete
from lossmith.losses.multi_label.presence import PresenceLoss
from lossmith.objectives.heads import final_layer_groups
from lossmith.objectives.scheduler import LossScheduler, checked_schedules
from lossmith.objectives.schedules import Schedule

__all__ = ["Classifier", "Head", "Objective", "Trainable", "filled_in"]

Head = Callable[[int, int], nn.Module]


class Classifier(nn.Module):
    """A backbone and the final layer on top of it.

    Args:
        backbone: Turns inputs into features.
        head: Turns features into logits.
    """

    def __init__(self, backbone: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits.

        Args:
            inputs: A batch.

        Returns:
            The logits.
        """
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

    >>> from lossmith import make_objective
    >>> backbone = nn.Linear(8, 4)
    >>> objective = make_objective("extra-l2(1e-3)")
    >>> model, loss, groups = objective.build(backbone, num_classes=3, weight_decay=1e-4)
    >>> [group["weight_decay"] for group in groups]
    [0.0001, 0.0011]

    Train as usual, with every loss of ``objective.passes(loss)`` in turn where that may be more than one, and step
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
        device and precision. A backbone with a function ``initialise`` says how layers of its network start: it is called with
        the final layer, too, unless that has a start of its own, as that of cosine softmax. The loss is a copy, so that an
        objective can be built many times. ``weight_decay`` replaces the published one; ``decay_vectors=False`` exempts biases
        and normalisation layers from it.

        Args:
            backbone: Turns inputs into features; it becomes part of the model.
            num_classes: How many classes the final layer tells apart, at least 2.
            in_features: The width of the features, where the backbone has no ``out_features``.
            weight_decay: What every parameter gets; by default what was published.
            decay_vectors: Whether biases and normalisation layers get weight decay.

        Returns:
            The model, the loss to train it with, and groups for an optimiser.

        Raises:
            ValueError: If the width of the features is not known, or a number is out of its range.
        """
        Limits(2, whole=True).check("num_classes", num_classes, owner="Objective")
        model = Classifier(backbone, self.head(_width(backbone, in_features), num_classes))
        initialise = getattr(backbone, "initialise", None)
        if initialise is not None and not _starts_by_itself(model.head):
            initialise(model.head)
        like = next((parameter for parameter in backbone.parameters() if parameter.is_floating_point()), None)
        if like is not None:
            model.head.to(like.device, like.dtype)
        loss = copy.deepcopy(self.loss)
        for part in loss.modules():
            if isinstance(part, PresenceLoss):
                part.init_bias_(model.head)
        decay = self.weight_decay if weight_decay is None else weight_decay
        groups = final_layer_groups(model, model.head, decay, self.final_weight_decay, decay_vectors=decay_vectors)
        return Trainable(model, loss, groups)

    def scheduler(self, loss: ClassificationLoss, total: int | None = None) -> LossScheduler | None:
        """Return the scheduler of the loss that :meth:`build` made, or None where nothing is scheduled.

        Args:
            loss: The loss to change.
            total: How many steps training has, where a schedule needs to know.

        Returns:
            A scheduler at step 0.

        Raises:
            ValueError: If a schedule does not fit into ``total`` steps, or needs to know them.
        """
        return LossScheduler(loss, self.schedules, total=total) if self.schedules else None

    def passes(self, loss: ClassificationLoss) -> tuple[ClassificationLoss, ...]:
        """Return the losses that each batch is passed for, one after another.

        Args:
            loss: The loss that :meth:`build` made.

        Returns:
            One loss, or two for an objective with two passes a batch.
        """
        return loss.passes() if self.two_passes and isinstance(loss, ComplementObjective) else (loss,)


def _starts_by_itself(head: nn.Module) -> bool:
    """Return whether a final layer is initialised in a way of its own."""
    return getattr(type(head), "reset_parameters", None) is not nn.Linear.reset_parameters


def _width(backbone: nn.Module, in_features: int | None) -> int:
    width = getattr(backbone, "out_features", None) if in_features is None else in_features
    if width is None:
        raise ValueError(f"Objective: give in_features, because the {type(backbone).__name__} has no out_features.")
    Limits(1, whole=True).check("out_features" if in_features is None else "in_features", width, owner="Objective")
    return int(width)


def filled_in(trained: Objective | nn.Module, facts: Mapping[str, Any]) -> Objective | nn.Module:
    """Return an objective, or a loss, with what its loss lacks and is known of the training rows.

    Args:
        trained: What is trained, which is not changed.
        facts: What is known, by the names of parameters.

    Returns:
        The same where nothing is lacking, else a copy.
    """
    loss = trained.loss if isinstance(trained, Objective) else trained
    if not isinstance(loss, ClassificationLoss) or is_complete(loss):
        return trained
    loss = copy.deepcopy(loss)
    fill_in(loss, facts)
    return replace(trained, loss=loss) if isinstance(trained, Objective) else loss
