"""What counts of many runs: in which epoch, and with settings chosen on clean labels, as papers do, or on noisy ones.

All rates of a loss are trained under all noises, to the end. So both conventions are choices from the same runs: *clean* takes
the rate that is best on validation rows without wrong labels, for every noise; *noisy*, at each noise, the one that is best on
validation rows as noisy as those of training. Likewise the *last* epoch counts, or the *best* on those same rows.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lossmith.studies import Study

if TYPE_CHECKING:
    from evidence.papers.paper_table import Piece

__all__ = ["CHOICES", "EPOCHS", "accuracies", "chosen", "every_run"]

CHOICES, EPOCHS = ("clean", "noisy"), ("last", "best")
CELL = ["loss", "noise", "seed"]
CLEAN = "none"


def accuracies(made: "Sequence[tuple[Piece, Study]]", measures: Sequence[str] = ("accuracy",)) -> pd.DataFrame:
    """Return what counts in both conventions: a row for each loss, noise, replicate, choice and epoch.

    Args:
        made: Pieces with their studies. Pieces of equal marks are chosen from together.
        measures: What is measured in the last epoch; of the best, accuracy alone is known.

    Returns:
        The marks of the pieces, ``loss``, ``noise``, ``seed``, ``choice``, ``epoch``, ``learning_rate`` and the measures.
    """
    groups: dict[tuple[tuple[str, Any], ...], list[pd.DataFrame]] = {}
    for piece, study in made:
        groups.setdefault(tuple(piece.marks.items()), []).append(
            pd.DataFrame(every_run(study, measures)).replace({"noise": dict(piece.called)})
        )
    found = [chosen(pd.concat(runs, ignore_index=True)).assign(**dict(marks)) for marks, runs in groups.items()]
    frame = pd.concat(found, ignore_index=True)
    marks = [name for piece, _ in made[:1] for name in piece.marks]
    return frame[[*marks, *CELL, "choice", "epoch", "learning_rate", *measures]]


def every_run(study: Study, measures: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield two rows for each run of a study, as its last and as its best epoch leave it; second chances are left out.

    Args:
        study: Whose runs are trained to the end.
        measures: Columns of its results.

    Yields:
        Loss, noise, replicate, rate, epoch, the ``score`` that it is chosen by, and the measures.
    """
    for run in study.trials[study.trials["epochs"] == study.settings.recipe.epochs].to_dict("records"):
        about = {name: run[name] for name in (*CELL, "learning_rate", "weight_decay")}
        last = {name: run[name] for name in measures}
        yield {**about, "epoch": "last", "score": run["validation_score"], **last}
        validation, test = (np.nan_to_num(study.store.curve(run["run"], f"{part}_accuracy")) for part in ("validation", "test"))
        if len(validation) and validation.any():
            place = int(validation.argmax())
            yield {**about, "epoch": "best", "score": float(validation[place]), "accuracy": float(test[place])}


def chosen(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs that count, by convention.

    Args:
        runs: All runs of all rates, with the ``score`` of each.

    Returns:
        A row for each cell, epoch and choice; where no labels are wrong at all, there is one choice.
    """
    keys = [*CELL, "epoch", "learning_rate", "weight_decay"]
    runs = runs.assign(score=runs["score"].fillna(-1.0)).sort_values(keys, ignore_index=True)
    of_clean = runs[runs["noise"] == CLEAN].set_index([name for name in keys if name != "noise"])["score"]
    own = runs.assign(choice="noisy", by=runs["score"])
    places = pd.MultiIndex.from_frame(runs[[name for name in keys if name != "noise"]])
    clean = runs.assign(choice="clean", by=of_clean.reindex(places).to_numpy())
    has_noise = runs["noise"].nunique() > 1
    both = pd.concat([clean.dropna(subset=["by"]), own] if has_noise else [own], ignore_index=True)
    best = both.groupby([*CELL, "choice", "epoch"], sort=False)["by"].idxmax()
    return both.loc[best.sort_values()].drop(columns=["by", "score"]).reset_index(drop=True)
