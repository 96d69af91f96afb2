"""The numbers of a loss that a schedule may change or a solver choose, by their path."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from lossmith.expressions.limits import Limits
from lossmith.expressions.nearest import nearest
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.weighted_sum import WeightedSum

__all__ = ["AdjustableNumber", "adjustable_numbers", "path_of"]


@dataclass(frozen=True)
class AdjustableNumber:
    """A number that belongs to a loss."""

    owner: ClassificationLoss
    name: str

    def get(self) -> float:
        """Return the value that it has."""
        return float(getattr(self.owner, self.name))

    def set(self, value: float) -> None:
        """Give it another value."""
        setattr(self.owner, self.name, value)

    def limits(self) -> Limits:
        """Return its range; a combination takes some of its numbers from its parts, which know their ranges."""
        if self.name == "label_smoothing":
            return Limits(0.0, 1.0)
        parts = [part for part in self.owner.modules() if isinstance(part, ClassificationLoss)]
        return next((part.limits[self.name] for part in parts if self.name in part.limits), Limits())

    def check(self, values: Iterable[float]) -> None:
        """Set every value in turn, and at the end the one that it had: the loss raises its own error for one out of range.

        Args:
            values: What the number is going to be.

        Raises:
            ValueError: If a value is out of range.
        """
        before = self.get()
        try:
            for value in values:
                self.set(value)
        finally:
            self.set(before)


@dataclass(frozen=True)
class _Factor(AdjustableNumber):
    """The factor of one part of a sum."""

    owner: WeightedSum
    position: int

    def get(self) -> float:
        return self.owner.factors[self.position]

    def set(self, value: float) -> None:
        before = self.owner.factors
        self.owner.factors = (*before[: self.position], value, *before[self.position + 1 :])

    def limits(self) -> Limits:
        return Limits()

    def check(self, values: Iterable[float]) -> None:
        for value in values:
            Limits().check(self.name, value, owner="WeightedSum")


def adjustable_numbers(loss: ClassificationLoss) -> dict[str, AdjustableNumber]:
    """Return every number that can be changed, by path; those that are None are not in use.

    Args:
        loss: A loss, a sum or a wrapper.

    Returns:
        The numbers by path, those of the loss itself first.

    >>> from lossmith import make_loss
    >>> list(adjustable_numbers(make_loss("nce + 20*gce")))
    ['label_smoothing', 'factors.0', 'factors.1', 'losses.1.q']
    """
    found: dict[str, AdjustableNumber] = {}
    for path, module in loss.named_modules():
        if not isinstance(module, ClassificationLoss):
            continue
        prefix = f"{path}." if path else ""
        own = [name for name, value in module.parameters_in_order().items() if type(value) is float]
        options = [] if path else ["label_smoothing"]  # a sum or a wrapper has one for all of its parts
        found |= {f"{prefix}{name}": AdjustableNumber(module, name) for name in [*own, *options]}
        if type(module) is WeightedSum:
            found |= {f"{prefix}factors.{i}": _Factor(module, f"factors.{i}", i) for i in range(len(module.factors))}
    return found


def path_of(name: str, known: Collection[str], *, owner: str) -> str:
    """Return the path of a number that is named by it, or by its last part where that is unique.

    Args:
        name: A path, or its last part.
        known: All numbers by path.
        owner: Whom the error names.

    Returns:
        The path.

    Raises:
        ValueError: If no number, or more than one, has that name.
    """
    if name in known:
        return name
    matches = [path for path in known if path.endswith(f".{name}")]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise ValueError(f"{owner}: {name!r} is a parameter of several parts, name one of {', '.join(matches)}.")
    hint = nearest(name, [*known, *(path.rpartition(".")[2] for path in known)])
    advice = f"; known are {', '.join(known)}." if hint == "." else hint
    raise ValueError(f"{owner}: unknown parameter {name!r}{advice}")
