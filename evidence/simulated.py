"""Simulated studies, where the truth is known: ``python -m evidence.simulated``.

Rows have a difficulty that all losses share, a loss has its own view of each row, and a training its own luck, some of which all
rows of a replicate may have in common, as where tuning went wrong. Losses are all the same, but for the last in some studies.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.measure import markdown_table
from evidence.studies import Command, export, share
from lossmith.statistics.differences.luck import LuckByScores, LuckOfRows, RowScores
from lossmith.statistics.differences.overlapping import Overlap
from lossmith.statistics.summary import compare_to

__all__ = ["p_values", "simulated"]

STUDIES = 200
CASES = (
    {"losses alike": True},
    {"losses alike": True, "tuning": 0.1},
    {"losses alike": True, "tuning": 0.3},
    {"losses alike": True, "replicates": 10},
    {"losses alike": False, "gain": 0.5},
    {"losses alike": False, "gain": 0.5, "tuning": 0.2},
)
_FOLDS = 5


def simulated(
    draw: np.random.Generator, *, losses: int = 5, rows: int = 300, replicates: int = 5, tuning: float = 0.0, gain: float = 0.0
) -> tuple[pd.DataFrame, LuckByScores]:
    """Return the results of a study, and the luck of its rows.

    Args:
        draw: Draws everything.
        losses: How many there are besides the baseline.
        rows: Of the data, every fifth of which is tested by a replicate.
        replicates: How many there are.
        tuning: The luck of a training that all rows of a replicate share, in deviations of the difficulty of rows.
        gain: What the last loss is better by, in the same unit.

    Returns:
        A row for each loss and replicate, and what tells the luck of rows.
    """
    names = ["ce", *(f"loss{number}" for number in range(losses))]
    difficulty = draw.normal(0, 1, rows)
    views = {name: draw.normal(0, 0.5, rows) for name in names}
    rounds = [np.array_split(draw.permutation(rows), _FOLDS) for _ in range(-(-replicates // _FOLDS))]
    folds = [fold for each in rounds for fold in each][:replicates]
    scores: dict[str, dict[int, RowScores]] = {name: {} for name in names}
    for name in names:
        ahead = 1.0 + (gain if name == names[-1] else 0.0)
        for seed, fold in enumerate(folds):
            luck = draw.normal(0, 0.5, len(fold)) + tuning * draw.normal()
            scores[name][seed] = RowScores(fold, (difficulty[fold] + views[name][fold] + luck + ahead > 0).astype(float))
    results = [
        {"loss": name, "noise": "none", "seed": seed, "accuracy": tested.scores.mean()}
        for name, each in scores.items()
        for seed, tested in each.items()
    ]
    return pd.DataFrame(results), LuckByScores(lambda loss, _: scores[loss])


def p_values(results: pd.DataFrame, luck: LuckOfRows | None) -> np.ndarray:
    """Return the corrected p-value of each loss against the baseline, with or without what rows tell."""
    return compare_to(results, "ce", overlap=Overlap(1 / (_FOLDS - 1)), luck_of_rows=luck)["p_holm"].to_numpy()


def _counted() -> Iterator[dict[str, str]]:
    for case in CASES:
        draw, alike = np.random.default_rng(1), case["losses alike"]
        settings = {name: value for name, value in case.items() if name != "losses alike"}
        studies = [simulated(draw, **settings) for _ in range(STUDIES)]  # type: ignore[arg-type]
        for test, knows_rows in {"this protocol": True, "t over replicates, corrected for shared rows": False}.items():
            p = np.array([p_values(results, luck if knows_rows else None) for results, luck in studies])
            found = (p < 0.05).any(1) if alike else p[:, -1] < 0.05
            told = ", ".join(f"{name} {value}" for name, value in settings.items()) or "five replicates"
            yield {"losses": "all the same" if alike else "one is better", "studies": told, "test": test, "claimed": _of(found)}


def _of(found: np.ndarray) -> str:
    return share(int(found.sum()), len(found))


def main() -> None:
    """Export and print how often something is claimed, where there is nothing and where there is something."""
    command = Command(__doc__, "simulated")
    found = pd.DataFrame(list(_counted()))
    export(found, command.results / "claims.csv")
    print(markdown_table(list(found.columns), found.to_numpy().tolist()))


if __name__ == "__main__":
    main()
