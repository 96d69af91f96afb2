"""How much better is a study with what other data showed? ``python -m evidence.experience``.

Every table of ``python -m evidence.replication`` in turn is the user's: its first replicates are the study, the other tables are
what is known besides, and its last replicates tell what was true, as far as their own error allows.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.measure import markdown_table
from evidence.other_tests import SHARED
from evidence.replication import FIRST
from evidence.studies import Command, export, share
from lossmith.statistics.experience import expected, honest_error
from lossmith.statistics.summary import compare_to

__all__ = ["expectations", "summary"]

SURE = (0.5, 0.7, 0.9, 1.0)
"""Ends of the groups of probabilities."""
_KEYS = ["table", "noise", "seed"]


def expectations(accuracy: pd.DataFrame, first: int) -> pd.DataFrame:
    """Return for every table, noise and loss what its first replicates let one expect, and what the others showed.

    Args:
        accuracy: ``table``, ``noise``, ``seed`` and a column for each loss, ``ce`` first.
        first: How many replicates the study has.

    Returns:
        In points: what the study ``found``, what was ``expected`` (with ``spread``), the mean of the ``others``, and the
        ``fresh`` mean with its ``error``.
    """
    results = accuracy.melt(_KEYS, var_name="loss", value_name="accuracy")
    compared = {table: _compared(part, first) for table, part in results.groupby("table", sort=False)}
    return pd.DataFrame([row for table in compared for row in _of_table(table, compared)])


def _compared(results: pd.DataFrame, first: int) -> dict[str, pd.DataFrame]:
    is_first = results["seed"].isin(sorted(results["seed"].unique())[:first])
    parts = {"study": (results[is_first], SHARED), "all": (results, SHARED)}
    found = {name: compare_to(part, "ce", overlap=overlap) for name, (part, overlap) in parts.items()}
    # What is true of a table is its mean over all splits: fresh replicates tell it with the error of independent ones.
    found["fresh"] = compare_to(results[~is_first], "ce")
    return {name: frame.set_index(["noise", "loss"]) for name, frame in found.items()}


def _of_table(table: str, compared: dict[str, dict[str, pd.DataFrame]]) -> Iterator[dict[str, object]]:
    own = compared[table]
    for key, row in own["study"].iterrows():
        others = [float(each["all"].at[key, "difference"]) for name, each in compared.items() if name != table]
        error = honest_error(row["error"], int(row["pairs"]))
        said = expected(row["difference"], max(error, 1e-9), others)
        numbers = {
            "found": row["difference"],
            "expected": said.difference,
            "spread": (said.high - said.low) / (2 * stats.norm.ppf(0.975)),
            "others": float(np.mean(others)),
            "fresh": own["fresh"].at[key, "difference"],
            "error": own["fresh"].at[key, "error"],
        }
        yield {"table": table, "noise": key[0], "loss": key[1], **{name: 100 * value for name, value in numbers.items()}}


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
    accuracy = pd.read_csv(command.results / "accuracy.csv")
    found = pd.concat([summary(expectations(accuracy, first)).assign(replicates=str(first)) for first in FIRST])
    export(found, command.results / "experience.csv")
    print(markdown_table(list(found.columns), found.to_numpy().tolist()))


if __name__ == "__main__":
    main()
