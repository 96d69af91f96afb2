"""Losses made of other losses: they have no options of their own, but those of their parts."""

from typing import Any, cast

from torch import Tensor, nn

from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.options import Options

__all__ = ["CompositeLoss"]


def _shared(name: str) -> Any:
    def get(self: "CompositeLoss") -> Any:
        return getattr(self.parts[0], name)

    def set_(self: "CompositeLoss", value: Any) -> None:
        for loss in self.parts:
            setattr(loss, name, value)

    return property(get, set_, doc=f"The ``{name}`` of all parts.")


class CompositeLoss(ClassificationLoss):
    """Base of sums and wrappers. Reading an option asks the first part; setting it sets it on all.

    Args:
        *losses: The parts, whose options must be equal.
    """

    weight: Tensor | None = _shared("weight")
    ignore_index = _shared("ignore_index")
    reduction = _shared("reduction")
    label_smoothing = _shared("label_smoothing")

    def __init__(self, *losses: ClassificationLoss) -> None:
        nn.Module.__init__(self)
        for loss in losses:
            if not isinstance(loss, ClassificationLoss):
                raise TypeError(f"{type(self).__name__}: every part must be a lossmith loss, got {type(loss).__name__}.")
        self.losses = nn.ModuleList(losses)
        for loss in losses[1:]:
            if loss.weight is not None and loss.weight is losses[0].weight:
                loss.weight = loss.weight.clone()  # torch.func.functional_call does not take one tensor under two names
            for name in Options.__annotations__:
                if not _equal(getattr(loss, name), getattr(losses[0], name)):
                    raise ValueError(
                        f"{type(self).__name__}: {name} must be the same in all parts, got {getattr(losses[0], name)}"
                        f" in {losses[0].name} and {getattr(loss, name)} in {loss.name}."
                    )

    @property
    def parts(self) -> list[ClassificationLoss]:
        """The losses that this one is made of."""
        # What list(self.losses) gives, without a search for it: every option of every call is looked up here.
        return cast("list[ClassificationLoss]", [*self._modules["losses"]._modules.values()])  # type: ignore[union-attr]

    @property
    def takes_several(self) -> bool:  # type: ignore[override]
        """Whether several classes can be true at once, by all parts."""
        return all(part.takes_several for part in self.parts)

    def check_call(self, logits: Tensor, target: Tensor) -> None:
        """Let all parts check."""
        for part in self.parts:
            part.check_call(logits, target)

    def _has_class_weights(self) -> bool:
        return self.parts[0]._has_class_weights()


def _equal(first: object, second: object) -> bool:
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return first.shape == second.shape and bool((first == second).all())
    return type(first) is type(second) and first == second
