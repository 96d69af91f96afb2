"""What a paper trained with: its network, its losses and the settings of each, and where we have to differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from lossmith.expressions.quotes import quote
from lossmith.objectives.named_objectives import make_objective

__all__ = ["PublishedLoss", "PublishedRecipe"]


class PublishedLoss(NamedTuple):
    """A loss of a paper, with what it was trained with."""

    expression: str
    rate: float | None = None
    """Its learning rate; None where the recipe says what is tried."""
    decay: float | None = None
    """Its weight decay; None where all losses have the same."""


@dataclass(frozen=True)
class PublishedRecipe:
    """How a paper trained, as settings of a study."""

    name: str
    summary: str
    reference: str
    """The paper, and where in it the numbers stand."""
    losses: tuple[PublishedLoss, ...]
    """The first is the baseline."""
    settings: Mapping[str, Any]
    """All other settings, by the names that they have in a file."""
    differs: tuple[str, ...]
    """Where a study of this recipe is not what the paper did, and what the paper does not say."""
    data: str = ""
    """The data of the paper, where it is known by name."""

    def settings_with(self, given: Mapping[str, Any], losses: Sequence[str] | None) -> dict[str, Any]:
        """Return the settings of a study: those of the recipe, wherever the user does not say otherwise.

        Rates that are given, or a number of trials to draw, stand in the place of the published settings of all losses: a weight
        decay that was published for a loss suits its learning rate, and goes with it.

        Args:
            given: What the user says.
            losses: Expressions that the user names; None for those of the paper.

        Returns:
            Settings by name.

        Raises:
            ValueError: If a loss is named that the paper has no learning rate for, and none is given.
        """
        known = self.losses if losses is None else [self._published(loss) for loss in losses]
        found = {**self.settings, "losses": [loss.expression for loss in known]}
        if self.data:
            found["data"] = self.data
        if {"rates", "loss_rates", "trials"} & set(given):
            found.pop("rates", None)
        else:
            found |= self._by_loss(known, "rate")
            if not {"decays", "loss_decays"} & set(given):
                found |= self._by_loss(known, "decay")
        return {**found, **given}

    def _published(self, expression: str) -> PublishedLoss:
        """Return a loss that the user names with what is published for it, however it is written."""
        wanted = _meaning(expression)
        same = (loss for loss in self.losses if _meaning(loss.expression) == wanted)
        return next(same, PublishedLoss(expression))._replace(expression=expression)

    def _by_loss(self, losses: Sequence[PublishedLoss], kind: str) -> dict[str, Any]:
        """Return the published learning rates or weight decays by loss; nothing where all losses have the same."""
        if all(getattr(loss, kind) is None for loss in self.losses):
            return {}
        numbers = {loss.expression: getattr(loss, kind) for loss in losses}
        for expression, number in numbers.items():
            if number is None:
                instead = f"give {kind}s, loss_{kind}s or trials"
                raise ValueError(f"compare: recipe {self.name} has no {kind} for {quote(expression)}; {instead}.")
        return {f"loss_{kind}s": numbers}


def _meaning(expression: str) -> str:
    """Return what an expression stands for; itself, where it is the name of a user's own loss."""
    try:
        return repr(replace(make_objective(expression), name="same", learning_rate=None, weight_decay=0.0))
    except ValueError:
        return expression
