"""What other tests would have claimed from the same replicates, and how much of it held: ``python -m evidence.other_tests``.

The protocol asks test rows for their luck, and corrects for the rows that replicates share and for the number of losses. This is
what tests over replicates alone are worth, with either correction or none, from what ``python -m evidence.replication`` exported.
"""

from collections.abc import Iterator

import pandas as pd

from benchmarks.measure import markdown_table
from evidence.replication import LARGE
from evidence.studies import Command, export, share
from evidence.verdicts import CLAIMS
from lossmith.statistics.differences.overlapping import INDEPENDENT, Overlap
from lossmith.statistics.evidence import LEVEL
from lossmith.statistics.summary import compare_to

__all__ = ["claims_by_test", "counted_claims"]

SHARED = Overlap(0.25)
"""A fifth of the rows are test rows, four fifths are not."""
HERE = "this protocol, settings checked"
TESTS = {
    "t over replicates, corrected for shared rows and the number of losses": (SHARED, "p_holm"),
    "t over replicates, for shared rows only": (SHARED, "p"),
    "t over replicates, for the number of losses only": (INDEPENDENT, "p_holm"),
    "t over replicates, not corrected": (INDEPENDENT, "p"),
}
"""Which correction a test has: how replicates overlap, and which p-value is read."""
_KEYS = ["noise", "loss"]


def claims_by_test(said: pd.DataFrame, accuracy: pd.DataFrame) -> pd.DataFrame:
    """Return what each test claims from every five replicates of every table, beside what the others show.

    Args:
        said: The verdicts as :mod:`evidence.replication` exports them.
        accuracy: ``table``, ``noise``, ``seed`` and a column for each loss, ``ce`` first.

    Returns:
        The rows of ``said`` for each ``test``, with whether it ``claimed`` a difference.
    """
    claims = [said.assign(test=HERE, claimed=said["verdict"].isin(CLAIMS))]
    for (table, replicates), part in said.groupby(["table", "replicates"], sort=False):
        first, last = map(int, str(replicates).split("-"))
        results = accuracy[(accuracy["table"] == table) & accuracy["seed"].between(first, last)].drop(columns="table")
        long = results.melt(["noise", "seed"], var_name="loss", value_name="accuracy")
        for test, (overlap, p) in TESTS.items():
            found = compare_to(long, "ce", overlap=overlap).set_index(_KEYS)[p]
            keys = pd.MultiIndex.from_frame(part[_KEYS])
            claims.append(part.assign(test=test, claimed=(found.loc[keys] < LEVEL).to_numpy()))
    return pd.concat(claims, ignore_index=True)


def counted_claims(claims: pd.DataFrame) -> pd.DataFrame:
    """Return for each test how many claims held, and how many large differences were found.

    Args:
        claims: Rows of :func:`claims_by_test`.

    Returns:
        A row for each, in words.
    """
    return pd.DataFrame(list(_counted(claims)))


def _counted(claims: pd.DataFrame) -> Iterator[dict[str, str]]:
    for test, part in claims.groupby("test", sort=False):
        claimed, large = part[part["claimed"]], part[part["all"].abs() > LARGE]
        found = large["claimed"] & (large["difference"] * large["all"] > 0)
        yield {
            "test": str(test),
            "claims that held": share(int(claimed["held"].sum()), len(claimed)),
            "turned round": str(int((claimed["difference"] * claimed["fresh"] < 0).sum())),
            "large differences found": share(int(found.sum()), len(large)),
        }


def main() -> None:
    """Export and print the table."""
    command = Command(__doc__, "replication")
    found = counted_claims(claims_by_test(*(pd.read_csv(command.results / f"{name}.csv") for name in ("verdicts", "accuracy"))))
    export(found, command.results / "other_tests.csv")
    print(markdown_table(list(found.columns), found.to_numpy().tolist()))


if __name__ == "__main__":
    main()
