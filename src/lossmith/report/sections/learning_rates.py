"""All trials of each loss against their learning rate: was every loss given its chance?"""

import numpy as np
import pandas as pd

from lossmith.report.elements import Section, cases, figure
from lossmith.report.line_panels import Axis, Curve, Marks, Panel, metric_axis
from lossmith.report.plot_frames import spanned
from lossmith.report.small_multiples import panel_a_loss
from lossmith.report.subject import Series, Subject
from lossmith.statistics.summary import is_higher_better
from lossmith.statistics.trial_frames import usable_trials
from lossmith.statistics.wording import capitalised, spoken

_FEW_RATES = 8
"""Different rates up to which the line goes through the mean of each."""
_PLACES = 13
_WIDTH = 0.25
"""Of the window that smooths the line, in powers of ten."""
_FAR = 0.1
"""The share of the worst trials that need not be seen."""


def section(subject: Subject) -> Section | None:
    """Return a panel for each loss and noise level; None where one rate was tried."""
    trials = usable_trials(subject.trials, subject.metric)
    trials = trials[trials["learning_rate"] > 0].assign(rate=lambda frame: np.log10(frame["learning_rate"]))
    noises = [noise for noise in subject.noises if trials.loc[trials["noise"] == noise, "rate"].nunique() > 1]
    if not noises:
        return None
    x = Axis("learning rate", spanned([trials["rate"].to_numpy()], 0.03), _decades(trials["rate"]), _rate, _rate)
    bodies = {}
    for noise in noises:
        panel = _panel(subject, trials[trials["noise"] == noise], noise)
        bodies[subject.noise_title(noise)] = panel_a_loss(panel, x, metric_axis(subject.metric, "test"), baseline_too=True)
    lead = (
        "Every setting that was tried. A wide plateau forgives a rate that is off; a loss whose best rates lie at the end of "
        "what was tried may do better beyond it."
    )
    caption = (
        f"{capitalised(spoken(subject.metric))} on the test split of each trial. Dots were trained to the end, dashes were "
        "stopped early and stand where they were then, rings were chosen on the validation rows. The line is a running mean of "
        "trials trained to the end, in which those kept by chance stand for those that were stopped. What is far worse than the "
        "others lies outside of the panels."
    )
    return Section("rates", "Learning rates", lead, figure(cases("At", bodies, "rates"), caption, key="rates"))


def _rate(exponent: float) -> str:
    return f"{10**exponent:.2g}"


def _decades(exponents: "pd.Series[float]") -> list[float]:
    """Return where ticks are: powers of ten, or both ends where there are fewer than two."""
    low, high = float(exponents.min()), float(exponents.max())
    whole = [float(power) for power in range(int(np.ceil(low - 0.05)), int(np.floor(high + 0.05)) + 1)]
    return whole if len(whole) > 1 else [low, high]


def _panel(subject: Subject, trials: pd.DataFrame, noise: str) -> Panel:
    ended = trials[~trials["stopped"]]
    rates = np.sort(ended["rate"].unique())
    places = rates if len(rates) <= _FEW_RATES else np.linspace(rates[0], rates[-1], _PLACES)
    width = 1e-3 if len(rates) <= _FEW_RATES else _WIDTH
    present = set(trials["loss"])
    curves = [
        _curve(series, trials[trials["loss"] == series.name], places, width)
        for series in subject.series
        if series.name in present
    ]
    axis = metric_axis(subject.metric, "test")
    shown = _without_the_worst(ended["value"], is_higher_better(subject.metric))
    reach = spanned([shown, *(curve.y for curve in curves if curve.series.number == 0 or curve.series.recommended)], 0.06)
    return Panel(subject.noise_title(noise), places, curves, Axis(axis.label, reach, None, axis.tick_text, axis.value_text))


def _curve(series: Series, trials: pd.DataFrame, places: np.ndarray, width: float) -> Curve:
    ended = trials[~trials["stopped"]]
    kinds = {
        "dash": trials[trials["stopped"]],
        "dot": ended[~ended["counts"]],
        "ring": ended[ended["counts"]],
    }
    marks = [Marks(rows["rate"].to_numpy(), rows["value"].to_numpy(), kind) for kind, rows in kinds.items()]
    # Trials beyond the edge of the range stand for none of those that were drawn; in the line they count as themselves.
    weights = ended["weight"].clip(lower=1.0).to_numpy()
    return Curve(series, running_mean(ended["rate"].to_numpy(), ended["value"].to_numpy(), weights, places, width), marks=marks)


def running_mean(x: np.ndarray, y: np.ndarray, weights: np.ndarray, places: np.ndarray, width: float) -> np.ndarray:
    """Return weighted means in a bell-shaped window around each place; NaN where no point is within two widths of it.

    >>> running_mean(np.array([0.0, 1.0]), np.array([2.0, 4.0]), np.ones(2), np.array([0.0, 1.0, 9.0]), 0.1)
    array([ 2.,  4., nan])
    """
    distances = (places[:, None] - x[None]) / width
    near = np.exp(-0.5 * distances**2) * weights * (np.abs(distances) <= 2)
    total = near.sum(1)
    return np.where(total > 0, near @ y / np.where(total > 0, total, 1.0), np.nan)


def _without_the_worst(values: "pd.Series[float]", higher_is_better: bool) -> np.ndarray:
    ordered = np.sort(values.to_numpy(float))
    far = int(_FAR * len(ordered))
    return ordered[far:] if higher_is_better else ordered[: len(ordered) - far]
