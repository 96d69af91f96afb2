"""What single tables cannot tell, all of them together can: ``python -m evidence.over_tables``.

The mean difference to ``ce`` over 24 tables of up to 1,000 rows, each with fifteen replicates of the network ``mlp``. Tables are
independent of one another, so that a t interval over them and signed ranks need no correction for shared rows.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.measure import markdown_table
from evidence.studies import Command, export
from lossmith.statistics.differences.paired_tests import holm

__all__ = ["over_tables"]


def over_tables(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Return how each loss did against ``ce`` over all tables.

    Args:
        accuracy: ``table``, ``noise``, ``seed`` and a column for each loss, ``ce`` first.

    Returns:
        A row for each noise and loss: mean difference in points with its 95 % interval, tables ahead and behind, and the p-value
        of Wilcoxon's signed ranks, corrected for the number of losses.
    """
    losses = accuracy.drop(columns=["table", "noise", "seed"])
    differences = losses.sub(losses["ce"], axis=0).drop(columns="ce").groupby([accuracy["noise"], accuracy["table"]], sort=False)
    means = 100 * differences.mean()
    return pd.concat([_of_noise(str(noise), means.loc[noise]) for noise in accuracy["noise"].unique()], ignore_index=True)


def _of_noise(noise: str, means: pd.DataFrame) -> pd.DataFrame:
    found = pd.DataFrame(list(_rows(noise, means)))
    return found.assign(p_holm=holm(found.pop("p").to_numpy(float)))


def _rows(noise: str, means: pd.DataFrame) -> Iterator[dict[str, object]]:
    for loss in means:
        points = means[loss].to_numpy()
        low, high = stats.t.interval(0.95, len(points) - 1, points.mean(), stats.sem(points))
        yield {
            "noise": noise,
            "loss": loss,
            "tables": len(points),
            "difference": points.mean(),
            "low": low,
            "high": high,
            "ahead": int(np.sum(points > 0)),
            "behind": int(np.sum(points < 0)),
            "p": stats.wilcoxon(points).pvalue,
        }


def main() -> None:
    """Export and print the table."""
    command = Command(__doc__, "small_tables")
    found = over_tables(pd.read_csv(command.results / "accuracy.csv"))
    export(found, command.results / "over_tables.csv")
    rounded = found.round({"difference": 1, "low": 1, "high": 1, "p_holm": 4}).astype(str)
    print(markdown_table(list(rounded.columns), rounded.to_numpy().tolist()))


if __name__ == "__main__":
    main()
