"""Parameters of losses in searches by Optuna."""

from typing import TYPE_CHECKING

from lossmith import objectives
from lossmith.losses import ClassificationLoss, make_loss
from lossmith.objectives import with_parameters
from lossmith.objectives.ranges import Range

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.distributions import BaseDistribution

__all__ = ["search_space", "suggest_loss"]


def search_space(loss: str) -> "dict[str, BaseDistribution]":
    """Return where to look for every number of a loss, as distributions of Optuna.

    Args:
        loss: The expression of a loss or of an objective.

    Returns:
        Distributions by the names that :func:`suggest_loss` gives parameters, for ``study.ask`` or a sampler; empty where there
        is nothing to tune.

    Raises:
        ValueError: If the expression cannot be read.
    """
    return {f"{loss}: {name}": _distribution(range_) for name, range_ in objectives.search_space(loss).items()}


def suggest_loss(trial: "Trial", loss: str) -> ClassificationLoss:
    """Return the loss with the numbers that a trial suggests.

    Parameters are named after the loss, so that a study may choose among losses whose parameters have the same name.

    Args:
        trial: A trial of Optuna.
        loss: The expression of a loss.

    Returns:
        The loss, ready to train with.

    Raises:
        ValueError: If the expression cannot be read.
    """
    values = {name: range_.suggest(trial, f"{loss}: {name}") for name, range_ in objectives.search_space(loss).items()}
    return make_loss(with_parameters(loss, values))


def _distribution(range_: Range) -> "BaseDistribution":
    from optuna.distributions import FloatDistribution, IntDistribution

    if range_.whole:
        return IntDistribution(int(range_.low), int(range_.high), log=range_.log)
    return FloatDistribution(float(range_.low), float(range_.high), log=range_.log)
