"""What training took: the runs that count, and all that was tried."""

import math

import pandas as pd
from markupsafe import Markup

from lossmith.report.elements import MISSING, Section, figure, loss_name
from lossmith.report.subject import Series, Subject
from lossmith.report.svg import element
from lossmith.statistics.evidence import did_diverge
from lossmith.statistics.wording import counted, is_share, spoken


def section(subject: Subject) -> Section:
    """Return a table with bars."""
    seconds = subject.results.groupby("loss")["seconds"].mean()
    heads = ["Loss", "Seconds a run", f"Against {subject.baseline}", "Trainings", "In all", "Diverged"]
    head = element("thead", element("tr", *(element("th", text, scope="col") for text in heads)))
    rows = [_row(subject, series, seconds) for series in subject.series]
    table = element("table", element("caption", "Time and cost", class_="hidden"), head, element("tbody", *rows), class_="bars")
    caption = (
        "Mean time of the runs that count, beside what the loss gains by it with the labels as they are; what a run held in "
        "memory beyond what was there before, where that is known; all trainings of a loss, with those stopped early; the time "
        "they took together; and how many of them diverged, at learning rates too large for their loss."
    )
    return Section("cost", "Time and cost", _lead(subject), figure(element("div", table, class_="scroll"), caption, key="cost"))


def all_trainings(subject: Subject) -> pd.DataFrame:
    """Return a row for each training; the runs that count, where no others are known."""
    return subject.trials if len(subject.trials) else subject.results


def _lead(subject: Subject) -> str:
    trainings = all_trainings(subject)
    references = float(subject.references["seconds"].sum()) if "seconds" in subject.references else 0.0
    beside = f", and the references {duration(references)} beside" if references else ""
    took = f"{counted(len(trainings), 'training')} took {duration(float(trainings['seconds'].sum()))} of a processor{beside}."
    return f"{took} Runs are trained in stacks whose time they share: only large differences mean anything."


def _row(subject: Subject, series: Series, seconds: "pd.Series[float]") -> Markup:
    mean, base = float(seconds[series.name]), float(seconds[subject.baseline])
    width = 100 * mean / max(float(seconds.max()), 1e-9)
    bar = element("span", class_=f"bar {series.style}", style=f"width: {width:.1f}%")
    trainings = all_trainings(subject)
    mine = trainings[trainings["loss"] == series.name]
    stopped = int(mine["stopped"].sum()) if "stopped" in mine else 0
    failed = int(did_diverge(mine).sum())
    cells = [
        element("td", element("span", bar, class_="track"), element("span", f"{mean:.3g}", class_="number")),
        element("td", f"{mean / base:.2f} times" if base > 0 else MISSING, _small(_gain(subject, series.name))),
        element("td", f"{len(mine)}", element("small", f"{stopped} stopped early") if stopped else ""),
        element("td", duration(float(mine["seconds"].sum())), _small(_memory(mine))),
        element("td", f"{failed} of {len(mine)}" if failed else "none"),
    ]
    return element("tr", element("th", loss_name(series), scope="row"), *cells, data_series=series.number)


def _gain(subject: Subject, loss: str) -> str:
    """Return the mean difference to the baseline, at the noise that comes first."""
    first = subject.results[subject.results["noise"] == subject.noises[0]]
    wide = first.pivot(index="seed", columns="loss", values=subject.metric)
    difference = float((wide[loss] - wide[subject.baseline]).mean()) if loss in wide and subject.baseline in wide else math.nan
    if loss == subject.baseline or not math.isfinite(difference):
        return ""
    points = f"{100 * difference:+.1f} points" if is_share(subject.metric) else f"{difference:+.3g}"
    return f"{points} of {spoken(subject.metric)}"


def _memory(runs: pd.DataFrame) -> str:
    mean = float(runs["memory"].mean()) if "memory" in runs else math.nan
    return f"{mean / 2**20:.3g} MB a run" if math.isfinite(mean) else ""


def _small(text: str) -> Markup:
    return element("small", text) if text else Markup()


def duration(seconds: float) -> str:
    """Return a time in the unit that people would use.

    >>> duration(12.3), duration(600), duration(9000)
    ('12.3 seconds', '10 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{seconds:.3g} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
