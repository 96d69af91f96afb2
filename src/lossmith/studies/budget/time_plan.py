"""How a study is made to fit into the time there is.

Without a word from the user five replicates fit into fifteen minutes, and quick studies get more of them. What does not fit is
made smaller in an order that treats all losses alike: first fewer training rows, then fewer trials, last fewer epochs; never
fewer replicates than five.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lossmith.statistics.wording import counted
from lossmith.studies.budget.cost import LONGEST_SECONDS, Cost
from lossmith.studies.design.settings import FEWEST_SEEDS, MOST_SEEDS, USUAL_TRIALS, Settings
from lossmith.studies.design.usual_training import completed_recipe
from lossmith.studies.progress import duration
from lossmith.training.recipe import Recipe

__all__ = ["TimePlan", "plan_in_time"]

USUAL_SECONDS = 80.0
"""What quick studies use for further replicates."""
FEWEST_TRIALS = 4
FEWEST_ROWS = 500
FEWEST_EPOCHS = 5


@dataclass(frozen=True)
class TimePlan:
    """Settings that fit into the time there is."""

    settings: Settings
    seconds: float
    shrunk: str = ""
    """What was made smaller, and what the whole would cost; empty where nothing was."""
    too_long: str = ""
    """That it takes longer than there is time, although nothing can be made smaller; empty where it fits."""


def plan_in_time(settings: Settings, cost: Cost, *, asked: Recipe) -> TimePlan:
    """Return settings that fit: as many replicates as there is time for, and less of everything else only where there is not.

    What the user gave stays as it is.

    Args:
        settings: Where 0 stands for what is to be found.
        cost: What was measured.
        asked: The recipe as the user gave it. What it leaves open suits the rows that are left.

    Returns:
        Settings in which nothing is open any more. If even the smallest plan takes longer than there is time, it says so.
    """
    open_ = replace(settings, seeds=settings.seeds or FEWEST_SEEDS, trials=settings.trials or USUAL_TRIALS)
    longest = 60 * settings.minutes or LONGEST_SECONDS
    plan = open_
    for smaller in _smaller_plans(settings, open_, cost, asked):
        if cost.seconds(plan) <= longest:
            break
        plan = smaller
    if not settings.seeds:
        time_there = 60 * settings.minutes or USUAL_SECONDS
        fitting = int(time_there / (cost.seconds(plan) / plan.seeds))
        plan = replace(plan, seeds=min(max(fitting, FEWEST_SEEDS), MOST_SEEDS))
    shrunk = _what_was_shrunk(open_, plan, cost)
    is_asked = bool(settings.minutes or shrunk)
    too_long = f"longer than the {longest / 60:g} min there are" if is_asked and cost.seconds(plan) > longest else ""
    return TimePlan(plan, cost.seconds(plan), shrunk, too_long)


def _smaller_plans(given: Settings, plan: Settings, cost: Cost, asked: Recipe) -> Iterator[Settings]:
    """Yield plans that are smaller one after another, each by less than a half."""
    if not given.train_rows and cost.rows > FEWEST_ROWS:
        for step in range(1, math.ceil(math.log(cost.rows / FEWEST_ROWS, 1.5)) + 1):
            rows = max(FEWEST_ROWS, round(cost.rows / 1.5**step))
            plan = replace(plan, train_rows=rows, recipe=completed_recipe(asked, plan.recipe.model, rows))
            yield plan
    if not given.trials and not given.gives_rates:
        for trials in (6, FEWEST_TRIALS):
            plan = replace(plan, trials=trials)
            yield plan
    while not asked.epochs and plan.recipe.epochs > FEWEST_EPOCHS:
        epochs = max(FEWEST_EPOCHS, round(plan.recipe.epochs / 1.5))
        plan = replace(plan, recipe=replace(plan.recipe, epochs=epochs))
        yield plan


def _what_was_shrunk(whole: Settings, plan: Settings, cost: Cost) -> str:
    """Return what is smaller in a plan, and what the whole would cost."""
    changes = []
    if plan.train_rows != whole.train_rows:
        changes.append(f"{plan.train_rows} of {counted(cost.rows, 'training row')} in each replicate")
    if plan.trials != whole.trials:
        changes.append(f"{plan.trials} of {whole.trials} trials")
    usual = completed_recipe(replace(plan.recipe, epochs=0), plan.recipe.model, plan.train_rows or cost.rows)
    if plan.recipe.epochs < min(whole.recipe.epochs, usual.epochs):
        changes.append(f"{plan.recipe.epochs} of {counted(min(whole.recipe.epochs, usual.epochs), 'epoch')}")
    if not changes:
        return ""
    return f"to fit into the time: {', '.join(changes)}; the whole would take about {duration(cost.seconds(whole))}"
