"""Which trial should count, and when may others be stopped? ``python -m evidence.choice``.

On the ten tables of development sixteen settings of every loss are trained to their end, half an hour of two cores. Nine of
them, drawn many times, are what a study would have tried. Rules that look at validation rows alone choose one of the nine, or one
of the three that are ahead part of the way. What counts is the accuracy of the chosen trial on test rows, whose labels are right.
"""

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pandas as pd

from benchmarks.measure import markdown_table
from evidence.rivals import DEVELOPMENT, LOSSES, NOISE
from evidence.studies import WHOLE, Command, export, write_settings
from lossmith.studies import Study
from lossmith.studies.measures import merit_of_stored
from lossmith.training.merit import best_first

__all__ = ["RACES", "RULES", "chosen", "main", "summary", "trials_with_curves"]

REPLICATES = 3
RATES = (5e-4, 2e-3, 6e-3, 2e-2)
DECAYS = (0.0, 0.1, 3.0, 30.0)
DRAWS, TRIED, KEPT = 40, 9, 3
CELL = ["noise", "loss", "seed"]

Rule = Callable[[pd.DataFrame], int]
"""Takes trials, and returns the place of one of them."""


def _by_study(trials: pd.DataFrame) -> int:
    return best_first([merit_of_stored(trial) for trial in trials.to_dict("records")])[0]


def _by_likelihood_alone(trials: pd.DataFrame) -> int:
    """Choose as a study would that knows nothing of training rows."""
    return _by_study(trials.assign(train_accuracy=np.nan))


RULES: Mapping[str, Rule] = {
    "accuracy": lambda trials: int(trials["validation_score"].to_numpy().argmax()),
    "likelihood": lambda trials: int(trials["validation_likelihood"].to_numpy().argmax()),
    "likelihood within one error": _by_likelihood_alone,
    "the same less a tenth of the gap": _by_study,
}
"""What the choice is made by."""
RACES: Mapping[str, float | None] = {"all": None, "half": 1 / 2, "a third": 1 / 3}
"""How long those that are stopped have trained."""


def trials_with_curves(study: Study) -> pd.DataFrame:
    """Return the trials of a study that have come to their end, with their validation accuracy part of the way.

    Args:
        study: One whose trials did not race.

    Returns:
        ``Study.trials`` with a column for each race.
    """
    trials = study.trials
    usual = trials["epochs"] == trials["epochs"].min()  # no second chances
    trials = trials[usual & ~trials["diverged"] & trials["validation_likelihood"].notna()]
    curves = [study.store.curve(run, "validation_accuracy") for run in trials["run"]]
    parts = {name: [_part_of_the_way(curve, part) for curve in curves] for name, part in RACES.items() if part is not None}
    return trials.assign(**parts)


def _part_of_the_way(curve: np.ndarray, part: float) -> float:
    return float(curve[math.ceil(len(curve) * part) - 1])


def chosen(trials: pd.DataFrame, seed: int = 0) -> Iterator[dict[str, object]]:
    """Yield the test accuracy of what each rule chooses in each cell, averaged over draws of nine trials.

    Args:
        trials: What :func:`trials_with_curves` returns.
        seed: Of the draws.

    Yields:
        A row for each cell, race and rule.
    """
    for cell, part in trials.groupby(CELL, sort=False):
        generator = np.random.default_rng(seed)
        found: dict[tuple[str, str], list[float]] = {(race, rule): [] for race in RACES for rule in RULES}
        for _ in range(DRAWS):
            tried = part.iloc[generator.permutation(len(part))[:TRIED]]
            for race, share in RACES.items():
                going = tried if share is None else tried.nlargest(KEPT, race)
                for rule, choose in RULES.items():
                    found[race, rule].append(float(going["accuracy"].iloc[choose(going)]))
        for (race, rule), values in found.items():
            yield {**dict(zip(CELL, cell, strict=True)), "trained": race, "rule": rule, "accuracy": float(np.mean(values))}


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over tables for each noise, loss, race and rule.

    The lead is that over the choice by accuracy after a race of a third, as studies had it, with its standard error over tables.

    Args:
        found: Rows of :func:`chosen` with the ``table`` they belong to.

    Returns:
        A row for each.
    """
    tables = found.groupby(["noise", "loss", "trained", "rule", "table"], sort=False)["accuracy"].mean().unstack("table")
    before = tables.xs(("a third", "accuracy"), level=("trained", "rule"))
    leads = tables.sub(before.reindex(tables.index.droplevel(["trained", "rule"])).to_numpy())
    rows = tables.mean(axis=1).rename("accuracy").to_frame()
    rows["lead"] = leads.mean(axis=1)
    rows["standard error"] = leads.std(axis=1, ddof=1) / np.sqrt(leads.shape[1])
    return (100 * rows).reset_index()


def main() -> None:
    """Study the ten tables, export what each rule chooses and print the means."""
    command = Command(__doc__, "choice", replicates=REPLICATES)
    studies: list[Study] = []
    found: list[pd.DataFrame] = []
    grid = {**WHOLE, "rates": RATES, "decays": DECAYS, "references": False}
    del grid["trials"]
    for table in command.tables():
        if table.name not in DEVELOPMENT:
            continue
        study = command.study(table, losses=list(LOSSES), noise=NOISE, seeds=command.options.replicates, **grid)
        if study is None:
            continue
        studies.append(study)
        found.append(pd.DataFrame(chosen(trials_with_curves(study))).assign(table=table.name))
        export(pd.concat(found), command.results / "chosen.csv")
        write_settings(studies, command.results / "settings.json")
        print(table.name, flush=True)
    means = summary(pd.concat(found))
    export(means, command.results / "summary.csv", digits=2)
    print(markdown_table(list(means.columns), means.round(2).astype(str).to_numpy().tolist()))


if __name__ == "__main__":
    main()
