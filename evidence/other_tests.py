"""What other tests would have claimed from the same replicates, and how much of it held: ``python -m evidence.other_tests``.

The protocol corrects a paired t-test twice: for the rows that replicates share, and for the number of losses. Each correction
costs power. This is what verdicts without them are worth, from the accuracies that ``python -m evidence.replication`` exported.
"""

from collections.abc import Iterator

import pandas as pd

from benchmarks.measure import markdown_table
from evidence.replication import FIRST, LARGE, held
from evidence.studies import Command, export, share
from lossmith.statistics.differences.overlapping import INDEPENDENT, Overlap
from lossmith.statistics.evidence import LEVEL
from lossmith.statistics.summary import compare_to

__all__ = ["claims_by_test", "counted_claims"]

SHARED = Overlap(0.25)
"""A fifth of the rows are test rows, four fifths are not."""
TESTS = {
    "both corrections, as here": (SHARED, "p_holm"),
    "for shared rows only": (SHARED, "p"),
    "for the number of losses only": (INDEPENDENT, "p_holm"),
    "none": (INDEPENDENT, "p"),
}
"""Which correction a test has: how replicates overlap, and which p-value is read."""
_KEYS = ["table", "noise", "seed"]


def claims_by_test(accuracy: pd.DataFrame, first: int) -> pd.DataFrame:
    """Return what each test claims from the first replicates of every table, beside what the others show.

    Args:
        accuracy: ``table``, ``noise``, ``seed`` and a column for each loss, ``ce`` first.
        first: How many replicates give the claims.

    Returns:
        A row for each test, table, noise and loss: ``difference``, ``fresh``, ``all``, ``claimed`` and ``held``.
    """
    long = accuracy.melt(_KEYS, var_name="loss", value_name="accuracy")
    parts = [_claims(part, first).assign(table=table) for table, part in long.groupby("table", sort=False)]
    return pd.concat(parts, ignore_index=True)


def _claims(results: pd.DataFrame, first: int) -> pd.DataFrame:
    is_first = results["seed"].isin(sorted(results["seed"].unique())[:first])
    fresh, every = (_differences(part) for part in (results[~is_first], results))
    tests = []
    for name, (overlap, p) in TESTS.items():
        said = compare_to(results[is_first], "ce", overlap=overlap)
        keys = pd.MultiIndex.from_frame(said[["noise", "loss"]])
        said = said.assign(test=name, claimed=said[p] < LEVEL, fresh=fresh.loc[keys].to_numpy(), all=every.loc[keys].to_numpy())
        tests.append(said.assign(held=list(map(held, said["difference"], said["fresh"]))))
    return pd.concat(tests)


def _differences(results: pd.DataFrame) -> "pd.Series[float]":
    return compare_to(results, "ce").set_index(["noise", "loss"])["difference"]


def counted_claims(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Return for each test and number of replicates how many claims held, and how many large differences were found.

    Args:
        accuracy: As :func:`claims_by_test` takes it.

    Returns:
        A row for each, in words.
    """
    return pd.DataFrame(list(_counted(accuracy)))


def _counted(accuracy: pd.DataFrame) -> Iterator[dict[str, str]]:
    for first in FIRST:
        for test, part in claims_by_test(accuracy, first).groupby("test", sort=False):
            claims, large = part[part["claimed"]], part[part["all"].abs() > LARGE]
            found = large["claimed"] & (large["difference"] * large["all"] > 0)
            yield {
                "replicates": str(first),
                "corrected": str(test),
                "claims that held": share(int(claims["held"].sum()), len(claims)),
                "turned round": str(int((claims["difference"] * claims["fresh"] < 0).sum())),
                "large differences found": share(int(found.sum()), len(large)),
            }


def main() -> None:
    """Export and print the table."""
    command = Command(__doc__, "replication")
    found = counted_claims(pd.read_csv(command.results / "accuracy.csv"))
    export(found, command.results / "other_tests.csv")
    print(markdown_table(list(found.columns), found.to_numpy().tolist()))


if __name__ == "__main__":
    main()
