"""How often was the first version wrong? ``python -m evidence.old_protocol``, after ``python -m evidence.replication``.

The code of the first version, on the same tables, losses and noise, with its defaults: one split for all five seeds, learning
rates chosen once, on clean labels. Its claims are checked against the fifteen replicates of the studies of the replication. At
20 % noise it answers another question besides, how losses do with rates chosen on clean labels, so that noise 0 is the fair
comparison.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.measure import markdown_table
from evidence.replication import LARGE, held, share_held
from evidence.studies import NICENESS, NOISE, Command, export, share
from evidence.tables import TARGET, Table
from evidence.verdicts import CLAIMS, verdict_of_p

__all__ = ["OldVersion", "check_claims", "summary"]

COMMIT = "093d5cb"
SEEDS = 5
LOSSES = ("ce", "focal", "label-smoothing", "sce", "gce", "bi-tempered", "logit-bias(mae, num_classes={classes})")
"""The losses of the replication, as the first version needs to be told them."""
ALL_NOISE = "all"


class OldVersion:
    """The first version, which runs in processes of its own."""

    def __init__(self, checkout: Path) -> None:
        """Take a checkout of its code, which is made where there is none.

        Args:
            checkout: A folder.
        """
        if not checkout.exists():
            self._run(["git", "worktree", "add", "--detach", os.fspath(checkout), COMMIT])
        self._environment = {**os.environ, "PYTHONPATH": os.fspath(checkout.resolve() / "src")}

    def study(self, table: Table, folder: Path, *options: str) -> None:
        """Make a study, or finish it."""
        losses = ",".join(LOSSES).format(classes=table.classes)
        noise = ",".join(map(str, NOISE))
        given = ["--target", TARGET, "--losses", losses, "--noise", noise, "--seeds", str(SEEDS), "--no-report"]
        self._run([*_NICE, "-m", "lossmith", "compare", os.fspath(table.file), *given, "--output", os.fspath(folder), *options])

    def claims(self, folder: Path) -> dict[str, Any]:
        """Return what the first version says about a study of its own."""
        said = self._run([sys.executable, os.fspath(Path(__file__).with_name("old_claims.py")), os.fspath(folder)])
        return dict(json.loads(said))

    def _run(self, command: list[str]) -> str:
        environment = getattr(self, "_environment", None)
        return subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout


_NICE = ["nice", "-n", str(NICENESS), sys.executable]


def check_claims(said: dict[str, Any], accuracy: pd.DataFrame) -> pd.DataFrame:
    """Return the claims about a table beside the mean differences over all replicates of the new protocol.

    Args:
        said: What :meth:`OldVersion.claims` returns.
        accuracy: A row for each noise and replicate of the table, a column for each loss.

    Returns:
        A row for each noise, ``all`` among them, and loss.
    """
    frame = pd.DataFrame(said["differences"])
    frame["loss"] = frame["loss"].str.replace(r", num_classes=\d+\)", ")", regex=True)
    losses = accuracy.drop(columns=["table", "noise", "seed"])
    by_noise = losses.sub(losses["ce"], axis=0).groupby(accuracy["noise"]).mean()
    true = pd.concat([by_noise, by_noise.mean().to_frame(ALL_NOISE).T])
    frame["all"] = [true.at[noise, loss] for noise, loss in zip(frame["noise"], frame["loss"], strict=True)]
    frame["verdict"] = frame["p_holm"].map(verdict_of_p)
    frame["held"] = [held(*both) for both in zip(frame["difference"], frame["all"], strict=True)]
    frame["reversed"] = (frame["difference"] * frame["all"] < 0) & frame["verdict"].isin(CLAIMS)
    return frame.assign(headline=(frame["noise"] == ALL_NOISE) & (frame["loss"] == said["loss"]))


def summary(claims: pd.DataFrame) -> pd.DataFrame:
    """Return how many claims held, and how many of the large differences were claimed, by noise.

    Args:
        claims: Rows of :func:`check_claims`.

    Returns:
        A row for each noise and strength.
    """
    rows = []
    for noise, part in claims.groupby("noise", sort=False):
        large = part[part["all"].abs() > LARGE]
        found = int((large["verdict"].isin(CLAIMS) & (large["difference"] * large["all"] > 0)).sum())
        for verdict in CLAIMS:
            of_it = part[part["verdict"] == verdict]
            better, worse = (of_it[of_it["difference"] * sign > 0] for sign in (1, -1))
            rows.append(
                {
                    "noise": str(noise),
                    "claimed": verdict,
                    "held": share_held(of_it),
                    "better than ce": share_held(better),
                    "worse than ce": share_held(worse),
                    "reversed": str(int(of_it["reversed"].sum())),
                    "large differences claimed": share(found, len(large)),
                }
            )
    return pd.DataFrame(rows)


def main() -> None:
    """Study every table with the first version, export its claims and print how many held."""
    command = Command(__doc__, "old_protocol")
    old = OldVersion(command.options.old_code or command.options.folder / "first-version")
    accuracy = pd.read_csv(command.options.results / "small_tables" / "accuracy.csv")
    claims = []
    for table in command.tables():
        own, folder = accuracy[accuracy["table"] == table.name], command.options.folder / command.name / table.name
        if own.empty:
            continue
        if not command.options.no_training:
            old.study(table, folder, *([f"--workers={command.options.workers}"] if command.options.workers else []))
        elif not folder.exists():
            continue
        claims.append(check_claims(old.claims(folder), own).assign(table=table.name))
        export(pd.concat(claims), command.results / "claims.csv")
    counted = summary(pd.concat(claims))
    export(counted, command.results / "summary.csv")
    print(markdown_table(list(counted.columns), counted.to_numpy().tolist()))


if __name__ == "__main__":
    main()
