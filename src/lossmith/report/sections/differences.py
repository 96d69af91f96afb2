"""How much better or worse than the baseline, with the intervals of the verdicts."""

from math import inf, isnan

import pandas as pd
from markupsafe import Markup

from lossmith.report.elements import MISSING, Section, cases, figure, loss_name
from lossmith.report.subject import Series, Subject
from lossmith.report.svg import element, position, ticks
from lossmith.statistics.summary import is_higher_better
from lossmith.statistics.wording import is_share, spoken

_WIDTH = 300
_LEFT, _RIGHT = 6, 294
_HEADS = ("Difference", "95 % interval", "p (Holm)")


def section(subject: Subject) -> Section | None:
    """Return the differences at each noise level."""
    if len(subject.series) < 2 or subject.replicates < 2 or subject.differences.empty:
        return None
    baseline = subject.baseline
    compared = subject.differences.groupby("noise", sort=False)
    bodies = {
        subject.noise_title(noise): _table(subject, compared.get_group(noise), noise)
        for noise in subject.noises
        if noise in compared.groups
    }
    lead = (
        f"How far each loss is from {baseline} in the same replicates. These are the intervals by which was decided: one that "
        "leaves out zero is a difference beyond chance."
    )
    return Section(
        "differences", "How sure", lead, figure(cases("At", bodies, "difference"), _caption(subject), key="differences")
    )


def _caption(subject: Subject) -> str:
    unit = "points" if is_share(subject.metric) else spoken(subject.metric)
    way = "" if is_higher_better(subject.metric) else ", where less is better"
    shared = ", for the rows that replicates share," if subject.study.overlap.ratio or subject.study.overlap.rows else ""
    marked = " \N{DAGGER} looks untrained, and is not judged." if subject.untrained else ""
    return (
        f"Difference to {subject.baseline} in {unit}{way}, with its 95 % interval, corrected{shared} and for looking "
        f"at several losses (Holm).{marked}"
    )


def _domain(rows: pd.DataFrame) -> tuple[float, float]:
    """Return a range with zero and all means but the few that are far off, and intervals as far as three times as wide."""
    means = _close([0.0, *rows["difference"].dropna()])
    rows = rows[rows["difference"].isin(means)]
    reach = 3 * (max(means) - min(means)) or 0.01
    low = max(min([*means, *rows["low"].dropna()]), min(means) - reach)
    high = min(max([*means, *rows["high"].dropna()]), max(means) + reach)
    margin = 0.06 * (high - low) or 0.01
    return low - margin, high + margin


def _close(means: list[float]) -> list[float]:
    """Return the differences without a quarter at most, those from which all others would look like none."""
    kept = sorted(means, key=abs)
    most_left_out = len(kept) // 4
    for _ in range(most_left_out):
        if abs(kept[-1]) > 6 * abs(kept[-2]) > 0:
            kept.pop()
    return kept


def _table(subject: Subject, rows: pd.DataFrame, noise: str) -> Markup:
    """Return a table that a narrow screen shows with two lines for each loss; roles keep it a table for screen readers."""
    by_loss, domain = rows.set_index("loss"), _domain(rows)
    scale = 100 if is_share(subject.metric) else 1
    order = by_loss["difference"].sort_values(ascending=not is_higher_better(subject.metric), na_position="last").index
    series = {one.name: one for one in subject.series}
    body = [_row(series[loss], by_loss.loc[loss], domain, scale, subject.untrained.get((loss, noise), "")) for loss in order]
    axis = element("th", _axis(domain, scale), scope="col", role="columnheader", class_="drawn", aria_label="Drawing")
    heads = [element("th", text, scope="col", role="columnheader") for text in _HEADS]
    first = element("th", "Loss", scope="col", role="columnheader")
    table = element(
        "table",
        element("caption", subject.noise_title(noise), class_="hidden"),
        element("thead", element("tr", first, axis, *heads, role="row"), role="rowgroup"),
        element("tbody", *body, role="rowgroup"),
        class_="intervals",
        role="table",
    )
    return element("div", table, class_="scroll")


def _axis(domain: tuple[float, float], scale: float) -> Markup:
    marks = [
        element("text", f"{scale * tick:+.3g}" if tick else "0", x=_place(tick, domain), y=12, text_anchor="middle")
        for tick in ticks(*domain, 4)
    ]
    return element("svg", element("g", *marks, class_="grid"), viewBox=f"0 0 {_WIDTH} 16", class_="interval", aria_hidden="true")


def _row(series: Series, row: pd.Series, domain: tuple[float, float], scale: float, untrained: str) -> Markup:
    known = not isnan(row["low"])
    digits = 2 if scale == 100 else 3
    limit = 1.0 if scale == 100 else inf  # a difference of shares is no larger, whatever the t distribution says
    low, high = (min(max(float(row[end]), -limit), limit) for end in ("low", "high"))
    ends = f"{scale * low:+.{digits}f} to {scale * high:+.{digits}f}" if known else "not known"
    p = row["p_holm"]
    p_text = MISSING if isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"
    mark = element("abbr", "\N{DAGGER}", title=untrained, class_="sign") if untrained else ""
    cells = [
        element("td", _drawing(series, row, domain), role="cell", class_="drawn"),
        element("td", f"{scale * row['difference']:+.{digits}f}" if row["pairs"] else MISSING, role="cell"),
        element("td", ends, role="cell"),
        element("td", element("strong", p_text) if p < 0.05 and not untrained else p_text, role="cell"),
    ]
    name = element("th", loss_name(series), mark, scope="row", role="rowheader")
    return element("tr", name, *cells, role="row", class_="untrained" if untrained else None, data_series=series.number)


def _drawing(series: Series, row: pd.Series, domain: tuple[float, float]) -> Markup:
    zero = _place(0.0, domain)
    marks = [element("line", x1=zero, x2=zero, y1=0, y2=22, class_="zero")]
    if not isnan(row["low"]):
        marks.append(element("line", x1=_place(row["low"], domain), x2=_place(row["high"], domain), y1=11, y2=11, class_="reach"))
    if row["pairs"] and domain[0] <= row["difference"] <= domain[1]:
        marks.append(element("circle", cx=_place(row["difference"], domain), cy=11, r=3.6))
    elif row["pairs"]:
        low = row["difference"] < domain[0]
        marks.append(element("path", d="M8 5L1 11L8 17" if low else "M292 5L299 11L292 17", class_="beyond"))
    return element("svg", *marks, viewBox=f"0 0 {_WIDTH} 22", class_=f"interval {series.style}", aria_hidden="true")


def _place(value: float, domain: tuple[float, float]) -> float:
    return min(max(position(float(value), domain, (_LEFT, _RIGHT)), 0.0), float(_WIDTH))
