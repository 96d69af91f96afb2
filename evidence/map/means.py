"""Mean accuracies of the map: from its own cells, and from the studies of the replication until there are any."""

import json
import re
from pathlib import Path

import pandas as pd

__all__ = ["KEYS", "differences", "map_means", "uneven_means", "wrong_share"]

KEYS = ["data", "kind", "rows", "classes", "noise", "loss"]
OWN = "as `lossmith compare` does: nine trials (texts and images six), settings chosen on rows as noisy as those of training"
EARLIER = (
    "by the protocol of `lossmith compare`, with the network `mlp`, nine trials and fifteen replicates; the full map, "
    "`python -m evidence.map`, has not been run yet"
)


def wrong_share(noise: str) -> float:
    """Return the share of wrong labels of a noise.

    >>> wrong_share("none"), wrong_share("pair(0.2)")
    (0.0, 0.2)
    """
    found = re.search(r"\(([\d.]+)\)", noise)
    return float(found[1]) if found else 0.0


def map_means(results: Path, *, by_kind_of_noise: bool = False) -> tuple[pd.DataFrame, str]:
    """Return the mean accuracy of each loss on each set under each noise, and how the sets were studied.

    Args:
        results: The folder of all exported results.
        by_kind_of_noise: Whether noise keeps its name; otherwise kinds of noise of one share are averaged.

    Returns:
        A row for each set, noise and loss, and a sentence.

    Raises:
        SystemExit: If nothing has been studied.
    """
    own, earlier = results / "map" / "cells.csv", results / "small_tables" / "accuracy.csv"
    if own.is_file():
        cells, protocol = pd.read_csv(own), OWN
    elif earlier.is_file():
        cells, protocol = _of_replication(earlier), EARLIER
    else:
        raise SystemExit("nothing has been studied yet: python -m evidence.map")
    noise = cells["noise"] if by_kind_of_noise else cells["noise"].map(wrong_share)
    return cells.assign(noise=noise).groupby(KEYS, sort=False)["accuracy"].mean().reset_index(), protocol


def uneven_means(results: Path) -> pd.DataFrame:
    """Return the mean balanced accuracy of each loss on each set of uneven classes (``python -m evidence.rare_classes``).

    Args:
        results: The folder of all exported results.

    Returns:
        A row for each set and loss, as in :func:`map_means`, with the ``imbalance`` of the set; none where nothing was exported.
    """
    file = results / "rare_classes" / "results.csv"
    if not file.is_file():
        return pd.DataFrame(columns=[*KEYS, "accuracy", "imbalance"])
    cells = pd.read_csv(file).drop(columns="accuracy").assign(noise=0.0)
    means = cells.groupby([*KEYS, "imbalance"], sort=False)["balanced_accuracy"].mean()
    return means.rename("accuracy").reset_index()


def _of_replication(file: Path) -> pd.DataFrame:
    """Return the accuracies of an earlier command as cells of a map."""
    wide = pd.read_csv(file)
    about = json.loads(file.with_name("settings.json").read_text())["studies"]
    long = wide.melt(["table", "noise", "seed"], var_name="loss", value_name="accuracy").rename(columns={"table": "data"})
    rows = {name: study["rows"]["train"] for name, study in about.items()}
    classes = {name: study["classes"] for name, study in about.items()}
    return long.assign(kind="table", rows=long["data"].map(rows), classes=long["data"].map(classes))


def differences(means: pd.DataFrame, baseline: str = "ce") -> pd.DataFrame:
    """Return means with the ``difference`` of each loss to the baseline on the same set under the same noise."""
    place = [name for name in KEYS if name != "loss"]
    of_baseline = means[means["loss"] == baseline].set_index(place)["accuracy"]
    return means.assign(
        difference=means["accuracy"].to_numpy() - of_baseline.reindex(pd.MultiIndex.from_frame(means[place])).to_numpy()
    )
