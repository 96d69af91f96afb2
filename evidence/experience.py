"""How much better is a study with what other data showed? ``python -m evidence.experience``.

Every five replicates of ``python -m evidence.replication`` are a study; what is known besides are small tables that ``lossmith``
ships, without the one at hand; and the other replicates tell what was true, as far as their own error allows.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.measure import markdown_table
from evidence.studies import Command, export, share
from lossmith.statistics.experience import expected

__all__ = ["expectations", "summary"]

SURE = (0.5, 0.7, 0.9, 1.0)
"""Ends of the groups of probabilities."""


def expectations(said: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Return for every study, noise and loss what it lets one expect, and what other replicates showed.

    Args:
        said: Verdicts as :mod:`evidence.replication` exports them, with ``deviation``, ``fresh`` and ``fresh_error``.
        known: Of other tables ``table``, ``noise``, ``seed`` and a column for each loss, ``ce`` first.

    Returns:
        In points: what the study ``found``, what was ``expected`` (with ``spread``), the mean of the ``others``, and the
        ``fresh`` mean with its ``error``.
    """
    losses = known.drop(columns=["table", "noise", "seed"])
    elsewhere = losses.sub(losses["ce"], axis=0).groupby([known["noise"], known["table"]]).mean()
    return pd.DataFrame(list(_expected(said, elsewhere)))


def _expected(said: pd.DataFrame, elsewhere: pd.DataFrame) -> Iterator[dict[str, object]]:
    for row in said.itertuples(index=False):
        others = elsewhere.loc[row.noise].drop(index=row.table, errors="ignore")[row.loss].tolist()
        found = expected(row.difference, max(row.deviation, 1e-9), others)
        numbers = {
            "found": row.difference,
            "expected": found.difference,
            "spread": (found.high - found.low) / (2 * stats.norm.ppf(0.975)),
            "others": float(np.mean(others)),
            "fresh": row.fresh,
            "error": row.fresh_error,
        }
        yield {"table": row.table, "noise": row.noise, "loss": row.loss, **{name: 100 * value for name, value in numbers.items()}}


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Return how far each kind of answer is from what was true, and how often expectations were right.

    Args:
        found: Rows of :func:`expectations`.

    Returns:
        A row for each noise and for all: root mean square distances in points, coverage of intervals, and how often the sign
        was right where it was expected with some probability, beside that probability.
    """
    groups = {**dict(list(found.groupby("noise", sort=False))), "all": found}
    return pd.DataFrame([{"noise": str(noise), **_measured(part)} for noise, part in groups.items()])


def _measured(part: pd.DataFrame) -> dict[str, str]:
    distances = {f"error of {name}": f"{_distance(part, name):.2f}" for name in ("found", "others", "expected")}
    # What fresh replicates show is the truth and their own chance.
    spread = np.hypot(part["spread"], part["error"])
    z = (part["fresh"] - part["expected"]).abs() / spread
    covered = {f"{level} % intervals": share(int((z < stats.norm.ppf(0.5 + level / 200)).sum()), len(z)) for level in (80, 95)}
    return {**distances, **covered, **_signs(part, spread)}


def _distance(part: pd.DataFrame, name: str) -> float:
    """Return the root mean square distance from the truth: that from fresh replicates, less what is their own error."""
    return float(np.sqrt(max(0.0, ((part[name] - part["fresh"]) ** 2 - part["error"] ** 2).mean())))


def _signs(part: pd.DataFrame, spread: "pd.Series[float]") -> dict[str, str]:
    probability = stats.norm.cdf((part["expected"] / spread).abs())
    right = part["expected"] * part["fresh"] > 0
    groups = {(low, high): (probability >= low) & (probability <= high) for low, high in pairwise(SURE)}
    return {
        f"{low:.0%} to {high:.0%} sure": f"{probability[there].mean():.0%}: {share(int(right[there].sum()), int(there.sum()))}"
        if there.any()
        else "0 of 0"
        for (low, high), there in groups.items()
    }


def main() -> None:
    """Export and print the tables."""
    command = Command(__doc__, "replication")
    known = pd.read_csv(command.options.results / "small_tables" / "accuracy.csv")
    found = summary(expectations(pd.read_csv(command.results / "verdicts.csv"), known))
    export(found, command.results / "experience.csv")
    print(markdown_table(list(found.columns), found.to_numpy().tolist()))


if __name__ == "__main__":
    main()
