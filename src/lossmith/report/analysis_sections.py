"""Sections of an analysis, and tables of what it measured: means over runs with their standard errors."""

from collections.abc import Callable, Sequence
from math import isfinite

import pandas as pd
from markupsafe import Markup

from lossmith.report.elements import MISSING, Section, cases, figure, loss_name
from lossmith.report.subject import Series, Subject
from lossmith.report.svg import element
from lossmith.studies.study_analysis import Analysis
from lossmith.studies.study_analysis.analysis_text import measure_title

__all__ = ["analysis_section", "measured_table"]


def analysis_section(
    subject: Subject,
    heading: tuple[str, str],
    words: tuple[str, str],
    body: Callable[[Analysis], Markup | None],
    *,
    before: Markup | str = "",
) -> Section | None:
    """Return a section with a body for each noise level that was analysed, for the reader to choose from.

    ``heading`` is anchor and title, ``words`` are lead and caption. None where there is no body: nothing was analysed, or what
    the section needs was not kept.
    """
    anchor, title = heading
    lead, caption = words
    made = {subject.noise_title(analysis.noise): body(analysis) for analysis in subject.analyses}
    bodies = {name: each for name, each in made.items() if each is not None}
    if not bodies:
        return None
    return Section(anchor, title, lead, figure(cases("At", bodies, anchor), caption, key=anchor, before=before))


def measured_table(
    subject: Subject, caption: str, table: pd.DataFrame, *, shares: Sequence[str] = (), lower_is_better: bool | None = None
) -> Markup:
    """Return a table of losses x measures; ``shares`` are written in percent, and the best of a column is marked."""
    measures = [str(name) for name in table.columns.unique(0) if name != "runs"]
    table = table[measures]  # without the number of runs
    means = table.xs("mean", axis=1, level=1)
    better = {None: None, True: means.min(), False: means.max()}[lower_is_better]
    heads = ["Loss", *(f"{measure_title(name)} (%)" if name in shares else measure_title(name) for name in measures)]
    head = element("thead", element("tr", *(element("th", title, scope="col") for title in heads)))

    def row(series: Series) -> Markup:
        found = table.loc[series.name]
        cells = [
            _cell(found[name], 100 if name in shares else 1, best=better is not None and found[name]["mean"] == better[name])
            for name in measures
        ]
        return element("tr", element("th", loss_name(series), scope="row"), *cells, data_series=series.number)

    body = element("tbody", *(row(series) for series in subject.series if series.name in table.index))
    return element("div", element("table", element("caption", caption, class_="hidden"), head, body), class_="scroll")


def _cell(found: "pd.Series[float]", scale: int, *, best: bool) -> Markup:
    mean, error = scale * found["mean"], scale * found["se"]
    digits = 1 if scale == 100 else 3
    written = f"{mean:.{digits}f}" if isfinite(mean) else "\N{INFINITY}" if mean > 0 else MISSING
    spread = element("span", f" ± {error:.{digits}f}", class_="error") if isfinite(error) else ""
    return element("td", written, spread, class_="best" if best else None)
