"""Which settings are tried: the same number for every loss, drawn anew in every replicate.

They fill their ranges evenly (a Latin hypercube): each of ``n`` trials has a learning rate in another ``n``-th of the range,
and likewise the weight decay and the parameters of the loss, each in an order of its own. All losses and noises of a replicate
are tried with the same rates and decays, so that no loss is lucky with its draw.
"""

from collections.abc import Mapping
from itertools import product
from typing import NamedTuple

import numpy as np

from lossmith.objectives.search_spaces import search_space, with_parameters
from lossmith.studies.design.settings import Settings
from lossmith.studies.design.tuned_ranges import Tuned, as_value
from lossmith.studies.design.usual_training import decay_range, rate_range
from lossmith.training.recipe import Cell, Run
from lossmith.training.seeds import derived_seed

__all__ = [
    "Setting",
    "drawn_settings",
    "expression_of",
    "loss_expression",
    "seed_of_draws",
    "settings_of_trial",
    "trial_runs",
]

WITHOUT_DECAY = 1 / 3
"""The share of trials that have no weight decay."""


class Setting(NamedTuple):
    """What a trial is trained with."""

    learning_rate: float
    weight_decay: float
    parameters: str = ""
    """Of the loss, as its expression has them: ``q=0.5``; empty where they are as the loss has them."""


def drawn_settings(settings: Settings, loss: str, seed: int, *, own: bool = False) -> list[Setting]:
    """Return the settings that are tried for a loss in a replicate.

    Args:
        settings: Those of the study.
        loss: An expression, whose parameters are tuned where the study does that.
        seed: The replicate.
        own: Whether the loss is the user's own, of whose parameters nothing is known.

    Returns:
        As many as the study tries, all different in general.

    >>> [setting.learning_rate for setting in drawn_settings(Settings(rates=(0.1, 0.3)), "ce", 0)]
    [0.1, 0.3]
    """
    if settings.gives_rates:
        return [Setting(*both) for both in product(settings.rates_of(loss), settings.decays_of(loss) or (0.0,))]
    rates, decays = _rates(settings, seed), _decays(settings, loss, seed)
    return [Setting(*each) for each in zip(rates, decays, _drawn_parameters(settings, loss, seed, own), strict=True)]


def trial_runs(settings: Settings, cell: Cell, *, own: bool = False) -> list[Run]:
    """Return the trials of a cell."""
    seed = seed_of_draws(settings, cell.loss, cell.seed)
    return [Run(*cell, *setting) for setting in drawn_settings(settings, cell.loss, seed, own=own)]


def seed_of_draws(settings: Settings, loss: str, seed: int) -> int:
    """Return the seed by which initial weights, batches and trials of a loss are drawn in a replicate.

    Args:
        settings: Those of the study, which say whether losses have their draws in common.
        loss: Its name.
        seed: The replicate.

    Returns:
        The replicate itself, or a seed of the loss's own.

    >>> seed_of_draws(Settings(), "ce", 3), seed_of_draws(Settings(draws="own"), "ce", 3) > 3
    (3, True)
    """
    return seed if settings.draws == "common" else derived_seed(seed, f"draws of {loss}")


def expression_of(loss: str, parameters: str) -> str:
    """Return the expression of a loss with the parameters of a trial.

    >>> expression_of("gce", "q=0.5"), expression_of("gce", "")
    ('gce(q=0.5)', 'gce')
    """
    if not parameters:
        return loss
    given = (part.partition("=") for part in parameters.split(", "))
    return with_parameters(loss, {name: float(value) for name, _, value in given})


def loss_expression(settings: Settings, run: Run) -> str:
    """Return the expression of a run's loss with those of its parameters that are the loss's own."""
    own = [part for part in _parts(run) if part.partition("=")[0] not in settings.tuned]
    return expression_of(run.loss, ", ".join(own))


def settings_of_trial(settings: Settings, run: Run) -> dict[str, float | int | str]:
    """Return what is tuned besides parameters of the loss, by name, as a training function takes it.

    Args:
        settings: Those of the study.
        run: The trial.

    Returns:
        ``learning_rate`` and ``weight_decay`` where they are tuned, and whatever else is.
    """
    usual = {
        "learning_rate": (run.learning_rate, settings.rates_of(run.loss)),
        "weight_decay": (run.weight_decay, settings.decays_of(run.loss)),
    }
    found: dict[str, float | int | str] = {
        name: value for name, (value, given) in usual.items() if given or name in settings.tuned
    }
    for part in _parts(run):
        name, _, value = part.partition("=")
        if name in settings.tuned:
            found[name] = as_value(value)
    return found


def _parts(run: Run) -> list[str]:
    return run.parameters.split(", ") if run.parameters else []


def _rates(settings: Settings, seed: int) -> list[float]:
    shares = _shares(settings.trials_of_a_cell, seed, "rate")
    if "learning_rate" in settings.tuned:
        return [float(settings.tuned["learning_rate"].at(share)) for share in shares]
    if settings.is_own:
        return [0.0] * len(shares)
    return [_scaled(share, *rate_range(settings.recipe)) for share in shares]


def _decays(settings: Settings, loss: str, seed: int) -> list[float]:
    shares = _shares(settings.trials_of_a_cell, seed, "decay")
    given = settings.decays_of(loss)
    if given:
        return [given[int(share * len(given))] for share in shares]
    if "weight_decay" in settings.tuned:
        return [float(settings.tuned["weight_decay"].at(share)) for share in shares]
    if settings.is_own:
        return [0.0] * len(shares)
    low, high = decay_range(settings.recipe)
    rest = 1 - WITHOUT_DECAY
    return [0.0 if share < WITHOUT_DECAY else _scaled((share - WITHOUT_DECAY) / rest, low, high) for share in shares]


def _drawn_parameters(settings: Settings, loss: str, seed: int, own: bool) -> list[str]:
    """Return for each trial the parameters of the loss, and what else is tuned by a name of its own."""
    space: dict[str, Tuned] = dict(search_space(loss)) if "parameters" in settings.tune and not own else {}
    if shared := space.keys() & settings.tuned.keys():
        raise ValueError(f"compare: tune must not give {shared.pop()} a range, which is a parameter of {loss}.")
    space |= {name: within for name, within in settings.tuned.items() if name not in ("learning_rate", "weight_decay")}
    trials = settings.trials_of_a_cell
    columns = {name: [within.at(share) for share in _shares(trials, seed, f"parameter {name}")] for name, within in space.items()}
    return [_written({name: values[trial] for name, values in columns.items()}) for trial in range(trials)]


def _written(parameters: Mapping[str, float | int | str]) -> str:
    return ", ".join(
        f"{name}={_rounded(value)!r}" if isinstance(value, float) else f"{name}={value}" for name, value in parameters.items()
    )


def _shares(trials: int, seed: int, purpose: str) -> list[float]:
    """Return a number in every ``trials``-th of [0, 1), in an order by chance."""
    generator = np.random.default_rng(derived_seed(seed, f"trials {purpose}"))
    shares: list[float] = ((generator.permutation(trials) + generator.random(trials)) / trials).tolist()
    return shares


def _scaled(share: float, low: float, high: float) -> float:
    """Return the place of a share in a range in which all scales are alike."""
    return _rounded(low * (high / low) ** share)


def _rounded(value: float) -> float:
    """Three digits are enough to tell settings apart, and can be read."""
    return float(f"{value:.3g}")
