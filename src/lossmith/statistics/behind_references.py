"""Is the best loss behind a reference model? Then another model may gain more than another loss."""

import pandas as pd

from lossmith.statistics.evidence import LEVEL, Evidence
from lossmith.statistics.summary import best_loss
from lossmith.statistics.wording import interval, is_share, listed, spoken

__all__ = ["reference_ahead"]

_NOTABLE = 0.01
"""Lead from which on a reference is named though chance could explain it: a point, or a hundredth of what a metric is."""


def reference_ahead(evidence: Evidence, noise: str) -> str:
    """Return a sentence about the reference that is ahead of the best loss at a noise level; nothing where none is.

    The best loss is the one with the best mean among those that can be recommended, whether or not it is: behind it all
    others are further behind. Intervals are corrected for the number of references.

    Args:
        evidence: Results and references.
        noise: One of the noise levels.

    Returns:
        The sentence.
    """
    level, metric = evidence.level(noise), evidence.metric
    best = best_loss(level[level["loss"].isin(evidence.sound(noise))], metric)
    if best is None or evidence.references is None or metric not in evidence.references:
        return ""
    references = evidence.references[evidence.references["noise"] == noise].rename(columns={"reference": "loss"})
    both = pd.concat([level.loc[level["loss"] == best, ["loss", "noise", "seed", metric]], references], ignore_index=True)
    compared = _without_rows(evidence).compare(both[["loss", "noise", "seed", metric]], best, metric)
    mean = abs(float(level.loc[level["loss"] == best, metric].mean()))
    notable = _NOTABLE if is_share(metric) else _NOTABLE * mean
    ahead = compared[(compared["gain"] > 0) & ((compared["p_holm"] < LEVEL) | (compared["gain"] >= notable))]
    return _sentence(ahead.sort_values("gain", ascending=False), best, metric) if len(ahead) else ""


def _sentence(ahead: pd.DataFrame, best: str, metric: str) -> str:
    row = ahead.iloc[0]
    size, _, ends = interval(row, metric).lstrip("+").partition(" (")
    by_metric = "" if metric == "accuracy" else f" in {spoken(metric)}"
    lead = f"{row['loss']} is {size}{by_metric} ahead of the best loss, {best}" + (f" ({ends}" if ends else "")
    so_what = ": another model may gain more than another loss" if row["p_holm"] < LEVEL else ", which chance could explain"
    too = f" Ahead, too: {listed(list(ahead['loss'][1:]))}." if len(ahead) > 1 else ""
    return f"{lead}{so_what}.{too}"


def _without_rows(evidence: Evidence) -> Evidence:
    """Return the evidence without the variance of test rows, which is known of pairs of losses only."""
    return Evidence(evidence.results, evidence.baseline, evidence.metric, overlap=evidence.overlap)
