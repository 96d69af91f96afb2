"""What belongs next to a recommendation: failures, exceptions, costs, and what would change it."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from lossmith.statistics.paired_tests import Difference, seeds_needed
from lossmith.statistics.summary import compare_to, is_higher_better, overall_results, usable_results
from lossmith.statistics.wording import counted, interval, percent

__all__ = ["costs", "did_diverge", "exceptions", "failures", "gains", "guessing", "limits", "more_seeds", "sound_losses"]

_NOTABLE = 1.5  # ratio of times above which it is worth mentioning
_LEVEL = 0.05


def sound_losses(results: pd.DataFrame, baseline: str) -> list[str]:
    """Return the baseline, and the losses without a run that diverged or is missing."""
    runs = results.groupby("loss", sort=False).size()
    failed = set(results.loc[did_diverge(results), "loss"])
    return [loss for loss in runs.index if loss == baseline or (loss not in failed and runs[loss] == runs.max())]


def did_diverge(results: pd.DataFrame) -> pd.Series:
    """Return for each run whether it diverged."""
    return results["diverged"].astype(bool) if "diverged" in results else pd.Series(False, results.index)


def gains(compared: pd.DataFrame, metric: str) -> pd.Series:
    """Return differences with the sign that makes the better loss positive."""
    return compared["difference"] if is_higher_better(metric) else -compared["difference"]


def exceptions(results: pd.DataFrame, loss: str, baseline: str, metric: str) -> list[str]:
    """Tell the noise levels at which the recommended loss loses to the baseline."""
    if loss == baseline or results["noise"].nunique() < 2:
        return []
    compared = compare_to(results[results["loss"].isin([loss, baseline])], baseline, metric)
    worse = compared[(compared["p"] < _LEVEL) & (gains(compared, metric) < 0)]
    where = ["Without noise" if noise == "none" else f"With noise {noise}" for noise in worse["noise"]]
    rows = [row for _, row in worse.iterrows()]
    return [f"{at} it is worse than {baseline}: {interval(row, metric)}." for at, row in zip(where, rows, strict=True)]


def failures(results: pd.DataFrame) -> list[str]:
    """Tell which losses diverged or lack runs, and are therefore out."""
    failed = results[did_diverge(results)].groupby("loss", sort=False).size()
    runs = results.groupby("loss", sort=False).size()
    fewer = runs[runs < runs.max()]
    return [
        *(f"{loss} diverged in {count} of {counted(int(runs[loss]), 'run')}." for loss, count in failed.items()),
        *(f"{loss} has {count} of {counted(int(runs.max()), 'run')} only." for loss, count in fewer.items()),
    ]


def guessing(results: pd.DataFrame, test_labels: np.ndarray) -> list[str]:
    """Tell if no loss learnt more than which class is the commonest."""
    commonest = np.bincount(test_labels).max() / len(test_labels)
    if results.groupby(["loss", "noise"]).accuracy.mean().max() > commonest:
        return []
    return [f"No loss does better than always predicting the commonest class, {100 * commonest:.1f} % of the test split."]


def costs(results: pd.DataFrame, loss: str, baseline: str) -> list[str]:
    """Tell what a loss costs in calibration and in time, against the baseline."""
    if loss == baseline:
        return []
    pair = results[results["loss"].isin([loss, baseline])]
    return [*_calibration_cost(pair, loss, baseline), *_time_cost(pair, loss, baseline)]


def more_seeds(results: pd.DataFrame, baseline: str, metric: str) -> list[str]:
    """Tell how many seeds would show the largest gain over the baseline, if it is real."""
    compared = compare_to(results[results["loss"].isin(sound_losses(results, baseline))], baseline, metric, pooled=True)
    gain = gains(compared, metric)
    row = compared.loc[gain.idxmax()]
    if gain.max() <= 0:
        return []
    pairs = int(row["pairs"])
    numbers = (float(row[name]) for name in ("difference", "low", "high", "spread", "p"))
    needed = seeds_needed(Difference(pairs, *numbers), _LEVEL / len(compared))
    if needed is None:
        return [f"More seeds could show the lead of {row['loss']}; how many cannot be told from these."]
    return [f"About {max(needed, pairs + 1)} seeds would show the lead of {row['loss']}, if it is real."]


def limits(results: pd.DataFrame, searches: pd.DataFrame | None, losses: Iterable[str]) -> list[str]:
    """Tell what was not tried: more noise, and learning rates beyond the end of the search at which one of the losses is best."""
    searched = [] if searches is None or searches.empty else [edge for loss in losses for edge in _edge(searches, loss)]
    return [*_untried_noise(results), *searched]


def _calibration_cost(pair: pd.DataFrame, loss: str, baseline: str) -> Iterable[str]:
    if "ece" not in pair:
        return
    means = overall_results(usable_results(pair, "ece")).groupby("loss")["value"].mean()
    if len(means) < 2:
        return
    row = compare_to(pair, baseline, "ece", pooled=True).iloc[0]
    numbers = f"expected calibration error {means[loss]:.3f}, {baseline} {means[baseline]:.3f}"
    if row["p"] < _LEVEL:
        yield f"Calibration is {'worse' if row['difference'] > 0 else 'better'}: {numbers}."
    else:
        yield f"Calibration: no evidence of a difference ({numbers})."


def _time_cost(pair: pd.DataFrame, loss: str, baseline: str) -> Iterable[str]:
    """Tell the ratio of times where it is large; runs are trained in stacks of several losses, whose time they share.

    It is that of the fastest runs: others had to wait for whatever the machine was doing besides.
    """
    seconds = pair.groupby("loss")["seconds"].min() if "seconds" in pair else {}
    ratio = seconds[loss] / seconds[baseline] if len(seconds) == 2 and seconds[baseline] > 0 else float("nan")
    if ratio >= _NOTABLE:
        yield f"Training takes {ratio:.1f} times as long as with {baseline}."


def _untried_noise(results: pd.DataFrame) -> Iterable[str]:
    most = results["noise_rate"].max() if "noise_rate" in results else float("nan")
    if most == 0:
        yield "Wrong labels were not tried; with them the order often changes."
    elif most > 0:
        yield f"More wrong labels than {percent(most)} were not tried."


def _edge(searches: pd.DataFrame, loss: str) -> Iterable[str]:
    tried = searches[searches["loss"] == loss].groupby("learning_rate")["validation_accuracy"].mean().dropna()
    if len(tried) > 2 and (best := tried.idxmax()) in (tried.index.min(), tried.index.max()):
        yield f"The best learning rate of {loss}, {best:g}, is at the end of those searched; it may do better beyond."
