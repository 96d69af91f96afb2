"""How much better or worse than the baseline, with intervals."""

from math import isnan

import pandas as pd
from markupsafe import Markup

from lossmith.report.elements import MISSING, Section, cases, figure, loss_name
from lossmith.report.subject import Series, Subject
from lossmith.report.svg import element, position, ticks
from lossmith.statistics.summary import ALL_NOISE, compare_to
from lossmith.statistics.wording import is_share

_WIDTH = 300
_LEFT, _RIGHT = 6, 294


def section(subject: Subject) -> Section | None:
    """Return the differences on average and at each noise level."""
    if len(subject.series) < 2 or subject.seeds < 2:
        return None
    metric, baseline = subject.advice.metric, subject.baseline
    compared = compare_to(subject.results, baseline, metric)
    tables = {}
    if len(subject.noises) > 1:
        pooled = compare_to(subject.results, baseline, metric, pooled=True)
        if len(pooled):
            tables["all noise levels together"] = pooled.assign(noise=ALL_NOISE)
    tables |= {subject.noise_title(noise): compared[compared["noise"] == noise] for noise in subject.noises}
    bodies = {title: _table(subject, rows, _domain(rows), title) for title, rows in tables.items()}
    lead = (
        f"How far each loss is from {baseline} with the same seeds. An interval that leaves out zero is a difference beyond "
        "chance, if it were the only one looked at; p is corrected for looking at all of them (Holm)."
    )
    caption = f"Difference to {baseline}{' in points' if is_share(metric) else ''} with its 95 % interval (paired t)."
    return Section("differences", "How sure", lead, figure(cases("At", bodies, "difference"), caption, key="differences"))


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


def _table(subject: Subject, rows: pd.DataFrame, domain: tuple[float, float], title: str) -> Markup:
    by_loss = rows.set_index("loss")
    scale = 100 if is_share(subject.advice.metric) else 1
    order = by_loss["difference"].sort_values(ascending=False, na_position="last").index
    series = {one.name: one for one in subject.series}
    body = [_row(series[loss], by_loss.loc[loss], domain, scale) for loss in order]
    heads = ["Loss", _axis(domain, scale), "Difference", "95 % interval", "p (Holm)"]
    head = element("thead", element("tr", *(element("th", text, scope="col") for text in heads)))
    table = element("table", element("caption", title, class_="hidden"), head, element("tbody", *body), class_="intervals")
    return element("div", table, class_="scroll")


def _axis(domain: tuple[float, float], scale: float) -> Markup:
    marks = [
        element("text", f"{scale * tick:+.3g}" if tick else "0", x=_place(tick, domain), y=12, text_anchor="middle")
        for tick in ticks(*domain, 4)
    ]
    return element("svg", element("g", *marks, class_="grid"), viewBox=f"0 0 {_WIDTH} 16", class_="interval", aria_hidden="true")


def _row(series: Series, row: pd.Series, domain: tuple[float, float], scale: float) -> Markup:
    known = not isnan(row["low"])
    ends = f"{scale * row['low']:+.2f} to {scale * row['high']:+.2f}" if known else "not known"
    p = row["p_holm"]
    p_text = MISSING if isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"
    cells = [
        element("td", _drawing(series, row, domain)),
        element("td", f"{scale * row['difference']:+.2f}" if row["pairs"] else MISSING),
        element("td", ends),
        element("td", element("strong", p_text) if p < 0.05 else p_text),
    ]
    return element("tr", element("th", loss_name(series), scope="row"), *cells, data_series=series.number)


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
