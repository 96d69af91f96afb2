"""Do verdicts hold when the study is made again? ``python -m evidence.replication``.

The default losses on real tables, 0 and 20 % wrong labels, ten replicates and more. What every five say is checked on the others:
a verdict holds if the fresh mean difference has its sign and at least a third of its size. So that silence is no way out, power
is counted, too: how many of the differences above two points get one. Tables whose verdicts were exported before are not studied
again.
"""

from collections.abc import Sequence

import pandas as pd

from benchmarks.measure import markdown_table
from evidence.studies import NOISE, WHOLE, Command, export, share, write_settings
from evidence.verdicts import CLAIMS, DEPENDS, SILENT, UNTRAINED, evidence_of, mean_differences, parts_of, verdicts
from lossmith.statistics.evidence import Evidence
from lossmith.studies import Study

__all__ = ["checked_verdicts", "held", "power", "replicated"]

REPLICATES = 10
LARGE = 0.02
KEPT = 1 / 3
COLUMNS = ["table", "noise", "loss", "replicates", "verdict", "difference", "low", "high", "deviation", "p_holm"]
CHECKED = ["fresh", "fresh_error", "all", "held"]


def checked_verdicts(found: Evidence) -> pd.DataFrame:
    """Return what every five replicates say, beside what the others and all of them show.

    Args:
        found: A study.

    Returns:
        A row for each five, noise and loss: the verdict, the ``fresh`` difference with its error as replicates tell it, that of
        ``all`` replicates, and whether it ``held``.
    """
    seeds = sorted(found.results["seed"].unique())
    checked = []
    for name, part in parts_of(found).items():
        of_part = set(part.results["seed"])
        fresh, every = (mean_differences(found, seeds) for seeds in ([seed for seed in seeds if seed not in of_part], seeds))
        said = verdicts(part).set_index(["noise", "loss"]).join(fresh.add_prefix("fresh_")).join(every["mean"].rename("all"))
        said = said.rename(columns={"fresh_mean": "fresh"}).reset_index().assign(replicates=name)
        checked.append(said.assign(held=list(map(held, said["difference"], said["fresh"]))))
    return pd.concat(checked, ignore_index=True)


def held(claimed: float, fresh: float) -> bool:
    """Return whether a fresh difference has the sign of the claimed one and at least a third of its size.

    >>> held(-0.03, -0.01), held(0.03, 0.009), held(0.03, -0.03)
    (True, False, False)
    """
    return claimed * fresh > 0 and abs(fresh) >= KEPT * abs(claimed) * (1 - 1e-9)


def replicated(said: pd.DataFrame) -> pd.DataFrame:
    """Return how many claims held, by their strength, direction and noise.

    Args:
        said: Rows of :func:`checked_verdicts`.

    Returns:
        A row for each.
    """
    rows = []
    directions = {"either": said["difference"] != 0, "better": said["difference"] > 0, "worse": said["difference"] < 0}
    for verdict in (*CLAIMS, DEPENDS):
        for direction, there in directions.items():
            part = said[there & (said["verdict"] == verdict)]
            of_noise = {noise: share_held(part[part["noise"] == noise]) for noise in said["noise"].unique()}
            rows.append({"verdict": verdict, "than ce": direction, "held": share_held(part), **of_noise})
    return pd.DataFrame(rows)


def share_held(claims: pd.DataFrame) -> str:
    """Return how many of the claims held, with the interval of their share."""
    return share(int(claims["held"].sum()), len(claims))


def power(said: pd.DataFrame) -> pd.DataFrame:
    """Return how many of the large differences get a verdict that points the right way.

    Args:
        said: Rows of :func:`checked_verdicts`.

    Returns:
        A row for each noise.
    """
    rows = []
    for noise in (*said["noise"].unique(), "all"):
        part = said[(said["all"].abs() > LARGE) & ((said["noise"] == noise) | (noise == "all"))]
        right = part["difference"] * part["all"] > 0
        of_verdict = {name: str((part["verdict"] == name).sum()) for name in (DEPENDS, UNTRAINED, SILENT)}
        claimed = int((part["verdict"].isin(CLAIMS) & right).sum())
        trained = int((part["verdict"] != UNTRAINED).sum())
        rows.append({"noise": noise, "large differences": str(len(part)), "found": share(claimed, trained), **of_verdict})
    return pd.DataFrame(rows)


def accuracies(found: Evidence) -> pd.DataFrame:
    """Return the accuracy of every cell: a row for each noise and replicate, a column for each loss."""
    order = list(dict.fromkeys(found.results["loss"]))
    wide = found.results.pivot(index=["noise", "seed"], columns="loss", values=found.metric)[order]
    return wide.reset_index()


def print_tables(said: pd.DataFrame, command: Command, names: Sequence[str] = ("held", "power")) -> None:
    """Export and print what held and what was found."""
    for name, frame in zip(names, (replicated(said), power(said)), strict=True):
        export(frame, command.results / f"{name}.csv")
        print(f"\n{markdown_table(list(frame.columns), frame.to_numpy().tolist())}")


def main() -> None:
    """Study every table, export all verdicts and accuracies, and print what held."""
    command = Command(__doc__, "replication", replicates=REPLICATES)
    studies: list[Study] = []
    said, cells = command.exported("verdicts.csv"), command.exported("accuracy.csv")
    for table in command.tables_beyond(said):
        study = command.study(table, noise=NOISE, seeds=command.options.replicates, **WHOLE)
        if study is None:
            continue
        studies.append(study)
        found = evidence_of(study)
        said.append(checked_verdicts(found).assign(table=table.name))
        cells.append(accuracies(found).assign(table=table.name))
        export(pd.concat(said)[[*COLUMNS, *CHECKED]], command.results / "verdicts.csv")
        export(
            pd.concat(cells).pipe(lambda frame: frame[["table", *frame.columns.drop("table")]]), command.results / "accuracy.csv"
        )
        write_settings(studies, command.results / "settings.json")
        print(table.name, said[-1]["verdict"].value_counts().to_dict(), flush=True)
    print_tables(pd.concat(said), command)


if __name__ == "__main__":
    main()
