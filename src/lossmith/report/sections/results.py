"""The table: every loss at every noise level."""

from markupsafe import Markup

from lossmith.report.elements import MISSING, Section, cases, loss_name
from lossmith.report.result_tables import Cell, number_text, table_cells
from lossmith.report.subject import Series, Subject
from lossmith.report.svg import element
from lossmith.statistics.summary import usable_results
from lossmith.statistics.wording import counted, is_share, spoken

METRICS = ("accuracy", "balanced_accuracy", "top5", "nll", "ece", "brier", "false_label_accuracy", "memorised")


def section(subject: Subject) -> Section:
    """Return tables of all metrics, for the reader to choose from."""
    known = [metric for metric in METRICS if metric in subject.results and len(usable_results(subject.results, metric))]
    tables = {_title(metric): _table(subject, metric) for metric in known}
    return Section("results", "Results", _lead(subject), cases("Show", tables, "metric"))


def _lead(subject: Subject) -> str:
    if subject.seeds < 2:
        return "On the test split, whose labels are as the data has them. One seed: no spread is known, and nothing is bold."
    return (
        f"On the test split, whose labels are as the data has them: mean ± standard error over {counted(subject.seeds, 'seed')}. "
        "Bold: not significantly worse than the best of its column (paired t-test, p > 0.05)."
    )


def _title(metric: str) -> str:
    name = spoken(metric)
    return f"{name[0].upper()}{name[1:]}" + (" (%)" if is_share(metric) else "")


def _table(subject: Subject, metric: str) -> Markup:
    cells = table_cells(subject.results, metric)
    noises = [noise for noise in subject.noises if any(noise in row for row in cells.values())]
    heads = [_head("Loss", "", "loss"), *(_head(noise, subject.noise_words(noise), noise) for noise in noises)]
    rows = [_row(series, cells[series.name], noises, metric) for series in subject.series]
    if len(noises) > 1:
        heads.append(_head("mean", "of all levels", "all"))
    table = element(
        "table",
        element("caption", _title(metric), class_="hidden"),
        element("thead", element("tr", *heads)),
        element("tbody", *rows),
    )
    return element("div", table, class_="scroll sortable")


def _head(title: str, words: str, key: str) -> Markup:
    arrow = element("span", class_="arrow", aria_hidden="true")
    return element(
        "th", element("button", title, arrow, element("small", words), type="button"), scope="col", data_key=key, aria_sort="none"
    )


def _row(series: Series, cells: dict[str, Cell], noises: list[str], metric: str) -> Markup:
    found = [cells.get(noise) for noise in noises]
    columns = [_cell(cell) for cell in found]
    if len(noises) > 1:
        columns.append(_mean_cell([cell.mean for cell in found if cell is not None], len(noises), metric))
    name = element("th", loss_name(series), scope="row", data_value=series.name)
    return element("tr", name, *columns, class_="chosen" if series.recommended else None, data_series=series.number)


def _cell(cell: Cell | None) -> Markup:
    if cell is None:
        return element("td", MISSING, aria_label="no run")
    mean = element("strong", cell.mean_text) if cell.bold else cell.mean_text
    error = element("span", f" ± {cell.error_text}", class_="error") if cell.error_text else ""
    return element("td", mean, error, data_value=f"{cell.mean:.6g}", class_="best" if cell.best else None)


def _mean_cell(means: list[float], levels: int, metric: str) -> Markup:
    if len(means) < levels:
        return element("td", MISSING, aria_label="not all noise levels have runs")
    mean = sum(means) / levels
    return element("td", number_text(mean, metric), data_value=f"{mean:.6g}", class_="mean")
