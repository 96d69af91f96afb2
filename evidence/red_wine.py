"""The red wines of Cortez et al. 2009 with their six qualities, put together from sets of KEEL that each tell some apart."""

from pathlib import Path

import pandas as pd

from lossmith.data.sources.known_sets import read_known_set

__all__ = ["red_wine"]

_PAIRS = {"winequality-red-3_vs_5": ("3", "5"), "winequality-red-8_vs_6": ("8", "6")}
"""Sets of two qualities: that of the rare class and that of the other."""


def red_wine(keel: Path | None = None) -> pd.DataFrame:
    """Return 1599 wines, 11 features and their quality from 3 to 8.

    KEEL has the whole table only as "4 or another quality". Which other one it is, three further sets tell: 3 or 5, 8 or 6,
    and 8 or one of 6 and 7. A wine that two of them know, because two wines are equal in all features, is counted as often as
    it is there.

    Args:
        keel: The folder that holds the package of the KEEL sets, where it is not installed.

    Returns:
        The features, and the quality in the column ``class``.

    Raises:
        ValueError: If the sets are not on this machine.
    """
    parts = [_part("winequality-red-4", {True: "4"}, keel)]
    parts += [_part(name, {True: rare, False: other}, keel) for name, (rare, other) in _PAIRS.items()]
    sixes = parts[-1][parts[-1]["class"] == "6"]
    parts.append(_without(_part("winequality-red-8_vs_6-7", {False: "7"}, keel), sixes))
    return pd.concat(parts, ignore_index=True)


def _part(name: str, qualities: dict[bool, str], keel: Path | None) -> pd.DataFrame:
    """Return the wines of a set whose quality it tells: of its rare class (True), of the other, or of both."""
    examples = read_known_set(f"keel:{name}", keel)
    wines, labels = pd.DataFrame(examples.inputs), pd.Series(examples.labels).astype(str)
    rare = (labels == labels.value_counts().idxmin()).to_numpy()
    quality = pd.Series(rare, index=wines.index).map(qualities)
    return wines.assign(**{"class": quality})[quality.notna()]


def _without(wines: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Return the wines but those that are known already, one for one."""
    features = list(wines.columns[:-1])
    copy = {"copy": lambda frame: frame.groupby(features).cumcount()}
    both = wines.assign(**copy).merge(known.assign(**copy)[[*features, "copy"]], how="left", indicator=True)
    return both.loc[both["_merge"] == "left_only", list(wines.columns)]
