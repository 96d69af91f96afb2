"""What training took."""

import pandas as pd
from markupsafe import Markup

from lossmith.report.elements import MISSING, Section, figure, loss_name
from lossmith.report.subject import Series, Subject
from lossmith.report.svg import element
from lossmith.statistics.caveats import did_diverge


def section(subject: Subject) -> Section:
    """Return a table with bars."""
    seconds = subject.results.groupby("loss")["seconds"].agg(["mean", "sem"])
    spent = float(subject.results["seconds"].sum())
    searched = float(subject.searches_only["seconds"].sum())
    rows = [_row(subject, series, seconds) for series in subject.series]
    heads = ["Loss", "Seconds a run", f"Against {subject.baseline}", "Learning rate", "Diverged"]
    head = element("thead", element("tr", *(element("th", text, scope="col") for text in heads)))
    table = element("table", element("caption", "Time and cost", class_="hidden"), head, element("tbody", *rows), class_="bars")
    search = f", and {_duration(searched)} to search for learning rates" if searched else ""
    took = f"The final runs took {_duration(spent)}{search}."
    lead = f"{took} Runs are trained in stacks whose time they share: only large differences mean anything."
    caption = "Mean time of one training run. The learning rate is what the search chose, by noise level where it differs."
    return Section("cost", "Time and cost", lead, figure(element("div", table, class_="scroll"), caption, key="cost"))


def _row(subject: Subject, series: Series, seconds: pd.DataFrame) -> Markup:
    mean = float(seconds.loc[series.name, "mean"])
    base = float(seconds.loc[subject.baseline, "mean"])
    width = 100 * mean / max(float(seconds["mean"].max()), 1e-9)
    bar = element("span", class_=f"bar {series.style}", style=f"width: {width:.1f}%")
    mine = subject.results[subject.results["loss"] == series.name]
    failed = int(did_diverge(mine).sum())
    cells = [
        element("td", element("span", bar, class_="track"), element("span", f"{mean:.3g}", class_="number")),
        element("td", f"{mean / base:.2f} times" if base > 0 else MISSING),
        element("td", ", ".join(f"{rate:g}" for rate in sorted(mine["learning_rate"].unique()))),
        element("td", f"{failed} of {len(mine)}" if failed else "none"),
    ]
    return element("tr", element("th", loss_name(series), scope="row"), *cells, data_series=series.number)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.3g} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
