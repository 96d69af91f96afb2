"""What belongs next to a recommendation: benefits and costs, uneven classes, references ahead, and what would change it."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from lossmith.statistics.differences.luck import NO_LUCK
from lossmith.statistics.differences.paired_tests import Difference, replicates_needed
from lossmith.statistics.evidence import LEVEL, Evidence
from lossmith.statistics.summary import best_loss, is_higher_better
from lossmith.statistics.trial_frames import finished_trials, usable_trials
from lossmith.statistics.wording import interval, is_share, listed, percent, spoken

__all__ = ["benefits", "costs", "edges", "guessing", "more_replicates", "reference_ahead", "uneven_classes", "untried_noise"]

_NOTABLE = 1.5  # ratio of times above which it is worth mentioning
_MANY, _FEW = 3.0, 0.2  # times the mean size of a class: larger and smaller ones make classes uneven
_NOTABLE_LEAD = (
    0.01  # from which a reference is named though chance could explain it: a point, or a hundredth of what a metric is
)


def costs(evidence: Evidence, loss: str, noise: str) -> list[str]:
    """Return what a loss costs against the baseline: in calibration, in accuracy where something else was judged by, in time."""
    return [*_side_effects(evidence, loss, noise, wanted=-1), *_time(evidence, loss, noise, longer=True)]


def benefits(evidence: Evidence, loss: str, noise: str) -> list[str]:
    """Return what a loss gives beyond the metric that was judged by, against the baseline."""
    return [*_side_effects(evidence, loss, noise, wanted=1), *_time(evidence, loss, noise, longer=False)]


def guessing(results: pd.DataFrame, test_labels: np.ndarray, metric: str) -> list[str]:
    """Tell if no loss learnt more than which class is the commonest, by the metric where it is known what that is worth."""
    if not len(test_labels) or metric not in ("accuracy", "balanced_accuracy"):  # labels need not be told by one's own training
        return []
    counts = np.bincount(test_labels)
    is_balanced = metric == "balanced_accuracy"
    worth = 1 / np.count_nonzero(counts) if is_balanced else counts.max() / len(test_labels)
    if results.groupby(["loss", "noise"])[metric].mean().max() > worth:
        return []
    said = f"a balanced accuracy of {100 * worth:.1f} %" if is_balanced else f"{100 * worth:.1f} % of the test split"
    return [f"No loss does better than always predicting the commonest class, {said}."]


def uneven_classes(evidence: Evidence, loss: str, noise: str, class_shares: Sequence[float] | None) -> list[str]:
    """Tell that classes are uneven where accuracy hides it, or where balanced accuracy tells another story."""
    if evidence.metric != "accuracy":
        return []
    story = _by_balanced_accuracy(evidence, loss, noise)
    shares = np.asarray(class_shares if class_shares is not None else [], float)
    shares = shares[shares > 0]
    if not len(shares) or not (shares.max() > _MANY * shares.mean() or shares.min() < _FEW * shares.mean()):
        return [f"By balanced accuracy, in which rare classes count as much: {story}."] if story else []
    sizes = f"the largest has {percent(shares.max())} of the rows, the smallest {percent(shares.min(), 1)}"
    advice = f"by balanced accuracy: {story}" if story else "accuracy hides the rare ones (--metric balanced-accuracy)"
    return [f"Classes are uneven, {sizes}; {advice}."]


def more_replicates(evidence: Evidence, noise: str) -> list[str]:
    """Tell how many replicates would show the largest gain over the baseline, if it is real."""
    family = evidence.differences[evidence.differences["noise"] == noise]
    compared = family[family["loss"].isin(evidence.sound(noise))]
    if compared.empty or not compared["gain"].max() > 0:
        return []
    row = compared.loc[compared["gain"].idxmax()]
    mean, low, high, spread, p = (float(row[name]) for name in ("difference", "low", "high", "spread", "p"))
    found, lead = Difference(int(row["pairs"]), mean, low, high, spread, p), f"the lead of {row['loss']}"
    if not found.spread > 0:
        return [f"More replicates could show {lead}; how many cannot be told from these."]
    of_rows = evidence.luck_of_rows(str(row["loss"]), evidence.baseline, noise) if evidence.luck_of_rows else NO_LUCK
    needed = replicates_needed(found, LEVEL / len(family), overlap_ratio=evidence.overlap.ratio, rows=of_rows)
    if needed is None:
        return [f"More replicates of these rows would not show {lead}, if it is real: it takes more data."]
    return [f"About {max(needed, found.pairs + 1)} replicates would show {lead}, if it is real."]


def untried_noise(results: pd.DataFrame) -> Iterable[str]:
    """Tell how many wrong labels were not tried."""
    most = results["noise_rate"].max() if "noise_rate" in results else float("nan")
    if most == 0:
        yield "Wrong labels were not tried; with them the order often changes."
    elif most > 0:
        yield f"More wrong labels than {percent(most)} were not tried."


def edges(evidence: Evidence, losses: Iterable[str], noise: str) -> Iterable[str]:
    """Tell which losses have their best learning rate at the end of those tried in at least half of the replicates."""
    if evidence.trials is None or evidence.trials.empty:
        return
    frame = usable_trials(evidence.trials, evidence.metric)
    frame = frame[frame["noise"] == noise] if noise in set(frame["noise"]) else frame
    for loss in losses:
        found = [_edge(cell) for _, cell in frame[frame["loss"] == loss].groupby(["noise", "seed"])]
        at_end = [rate for rate in found if rate]
        if found and 2 * len(at_end) >= len(found):
            rate = float(np.median(at_end))
            yield f"The best learning rate of {loss}, {rate:.2g}, is at the end of those tried; it may do better beyond."


def _edge(cell: pd.DataFrame) -> float:
    """Return the learning rate that counts in a cell if it is at the end of three or more; else 0."""
    finished, tried = finished_trials(cell), cell["learning_rate"].dropna()
    if finished.empty or tried.nunique() < 3:
        return 0.0
    chosen = finished["counts"].idxmax() if finished["counts"].any() else finished["place"].idxmax()
    rate = float(cell.at[chosen, "learning_rate"])
    return rate if rate in (tried.min(), tried.max()) else 0.0


def _side_effects(evidence: Evidence, loss: str, noise: str, *, wanted: int) -> Iterable[str]:
    """Tell measures besides the metric in which a loss is better (1) or worse (-1) than the baseline, beyond chance."""
    if loss == evidence.baseline:
        return
    level = evidence.level(noise)
    pair = level[level["loss"].isin([loss, evidence.baseline])]
    for measure in ("ece", "accuracy"):
        if measure in (evidence.metric, "accuracy" if evidence.metric == "balanced_accuracy" else "") or measure not in pair:
            continue
        compared = evidence.compare(pair, evidence.baseline, measure)
        if len(compared) and compared["p"].iloc[0] < LEVEL and np.sign(compared["gain"].iloc[0]) == wanted:
            means = pair.groupby("loss")[measure].mean()
            yield _side_effect(measure, means[loss], evidence.baseline, means[evidence.baseline])


def _side_effect(measure: str, mean: float, baseline: str, of_baseline: float) -> str:
    is_better = (mean > of_baseline) == is_higher_better(measure)
    subject = "Calibration" if measure == "ece" else "Accuracy"
    words = spoken(measure) if measure == "ece" else "mean"
    numbers = (percent(one, 1) if is_share(measure) else f"{one:.3f}" for one in (mean, of_baseline))
    first, second = numbers
    return f"{subject} is {'better' if is_better else 'worse'}: {words} {first}, {baseline} {second}."


def _time(evidence: Evidence, loss: str, noise: str, *, longer: bool) -> Iterable[str]:
    """Tell the ratio of times where it is large; runs are trained in stacks of several losses, whose time they share.

    It is that of the fastest runs: others had to wait for whatever the machine was doing besides.
    """
    level = evidence.level(noise)
    if loss == evidence.baseline or "seconds" not in level:
        return
    fastest = level.groupby("loss")["seconds"].min()
    if evidence.baseline not in fastest or not min(fastest[loss], fastest[evidence.baseline]) > 0:
        return
    ratio = fastest[loss] / fastest[evidence.baseline]
    if longer and ratio >= _NOTABLE:
        yield f"Training takes {ratio:.1f} times as long as with {evidence.baseline}."
    elif not longer and ratio <= 1 / _NOTABLE:
        yield f"Training takes {percent(ratio)} of the time that {evidence.baseline} takes."


def _by_balanced_accuracy(evidence: Evidence, loss: str, noise: str) -> str:
    """Return what balanced accuracy says where it contradicts the choice of a loss; nothing where it does not."""
    other, level = "balanced_accuracy", evidence.level(noise)
    if other not in level:
        return ""
    compared = evidence.compare(level[level["loss"].isin(evidence.sound(noise))], evidence.baseline, other)
    told = compared[compared["p_holm"] < LEVEL]
    chosen = told[(told["loss"] == loss) & (told["gain"] < 0)]
    if len(chosen):
        return f"{loss} is worse than {evidence.baseline}, {interval(chosen.iloc[0], other)}"
    better = told[(told["gain"] > 0)]
    if better.empty or loss in set(better["loss"]):
        return ""
    row = better.loc[better["gain"].idxmax()]
    return f"{row['loss']} beats {evidence.baseline} by {interval(row, other)}"


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
    compared = _without_test_rows(evidence).compare(both[["loss", "noise", "seed", metric]], best, metric)
    mean = abs(float(level.loc[level["loss"] == best, metric].mean()))
    notable = _NOTABLE_LEAD if is_share(metric) else _NOTABLE_LEAD * mean
    ahead = compared[(compared["gain"] > 0) & ((compared["p_holm"] < LEVEL) | (compared["gain"] >= notable))]
    return _lead_in_words(ahead.sort_values("gain", ascending=False), best, metric) if len(ahead) else ""


def _lead_in_words(ahead: pd.DataFrame, best: str, metric: str) -> str:
    row = ahead.iloc[0]
    size, _, ends = interval(row, metric).lstrip("+").partition(" (")
    by_metric = "" if metric == "accuracy" else f" in {spoken(metric)}"
    lead = f"{row['loss']} is {size}{by_metric} ahead of the best loss, {best}" + (f" ({ends}" if ends else "")
    so_what = ": another model may gain more than another loss" if row["p_holm"] < LEVEL else ", which chance could explain"
    too = f" Ahead, too: {listed(list(ahead['loss'][1:]))}." if len(ahead) > 1 else ""
    return f"{lead}{so_what}.{too}"


def _without_test_rows(evidence: Evidence) -> Evidence:
    """Return the evidence without the variance of test rows, which is known of pairs of losses only."""
    return Evidence(evidence.results, evidence.baseline, evidence.metric, overlap=evidence.overlap)
