"""The table: every loss at every noise level, and below them the classical models."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from lossmith.report.elements import MISSING, Section, cases, loss_name
from lossmith.report.subject import Series, Subject
from lossmith.report.svg import element
from lossmith.report.table_cells import UNTRAINED, Cell, metric_title, reference_cells, table_cells
from lossmith.statistics.summary import usable_results
from lossmith.statistics.wording import counted, percent

METRICS = ("accuracy", "balanced_accuracy", "macro_f1", "top5", "nll", "ece", "brier", "false_label_accuracy", "memorised")
AGAIN = "\N{DOUBLE DAGGER}"


def section(subject: Subject) -> Section:
    """Return tables of all metrics, for the reader to choose from, that of the study first."""
    ordered = dict.fromkeys((subject.metric, *METRICS))
    known = [metric for metric in ordered if metric in subject.results and len(usable_results(subject.results, metric))]
    tables = {metric_title(metric): table(subject, metric) for metric in known}
    return Section("results", "Results", _lead(subject), cases("Show", tables, "metric") + _notes(subject))


def _lead(subject: Subject) -> str:
    if subject.replicates < 2:
        return "On the test split, whose labels are as the data has them. One replicate: no spread is known, and nothing is bold."
    return (
        "On the test split, whose labels are as the data has them: mean ± standard error over "
        f"{counted(subject.replicates, 'replicate')}. Bold: not significantly worse than the best of its column (paired t-test, "
        "p > 0.05)."
    )


def table(subject: Subject, metric: str) -> Markup:
    """Return the table of one metric.

    Args:
        subject: What the page is about.
        metric: A column of the results.

    Returns:
        HTML.
    """
    cells = table_cells(subject.results, metric, subject.study.overlap)
    noises = [noise for noise in subject.noises if any(noise in row for row in cells.values())]
    heads = [_head("Loss", "", "loss"), *(_head(noise, subject.noise_words(noise), noise) for noise in noises)]
    widths = subject.plateaus if metric == subject.metric else {}
    if widths:
        heads.append(_head("Good settings", "of those tried", "settings"))
    rows = [_row(subject, series, cells[series.name], noises, widths) for series in subject.series]
    made = element(
        "table",
        element("caption", metric_title(metric), class_="hidden"),
        element("thead", element("tr", *heads)),
        element("tbody", *rows),
        _references(subject, metric, noises, len(heads)),
    )
    return element("div", made, class_="scroll sortable")


def _head(title: str, words: str, key: str) -> Markup:
    arrow = element("span", class_="arrow", aria_hidden="true")
    return element(
        "th", element("button", title, arrow, element("small", words), type="button"), scope="col", data_key=key, aria_sort="none"
    )


def _row(
    subject: Subject,
    series: Series,
    cells: Mapping[str, Cell],
    noises: Sequence[str],
    widths: Mapping[tuple[str, str], float],
) -> Markup:
    columns = [_cell(cells.get(noise), _marks(subject, series.name, noise)) for noise in noises]
    if widths:
        columns.append(_plateau([widths.get((series.name, noise)) for noise in noises], subject))
    name = element("th", loss_name(series), scope="row", data_value=series.name)
    return element("tr", name, *columns, class_="chosen" if series.recommended else None, data_series=series.number)


def _cell(cell: Cell | None, marks: Markup) -> Markup:
    if cell is None:
        return element("td", MISSING, aria_label="no run")
    mean = element("strong", cell.mean_text) if cell.bold else cell.mean_text
    error = element("span", f" ± {cell.error_text}", class_="error") if cell.error_text else ""
    return element("td", mean, error, marks, data_value=f"{cell.mean:.6g}", class_="best" if cell.best else None)


def _marks(subject: Subject, loss: str, noise: str) -> Markup:
    """Return signs with the reason under the pointer; the notes below the table have it, too."""
    found = [(sign, words, cells.get((loss, noise))) for sign, words, cells in _signs(subject)]
    return Markup().join(element("abbr", sign, title=f"{words}: {why}", class_="sign") for sign, words, why in found if why)


def _signs(subject: Subject) -> list[tuple[str, str, Mapping[tuple[str, str], str]]]:
    """Return the signs, what they stand for, and the cells that have them."""
    return [
        (UNTRAINED, "looks untrained", subject.untrained),
        (f"({UNTRAINED})", "looks untrained in fewer than half of the replicates", subject.partly_untrained),
        (AGAIN, "had a second chance, with more epochs", subject.second_chances),
    ]


def _plateau(shares: Sequence[float | None], subject: Subject) -> Markup:
    """Return the share of good settings at each noise level."""
    known = [share for share in shares if share is not None]
    if not known:
        return element("td", MISSING)
    words = f"{', '.join(f'{100 * share:.0f}' for share in known)} %"
    title = "; ".join(
        f"{subject.noise_title(noise)}: {percent(share)} of the settings are good"
        for noise, share in zip(subject.noises, shares, strict=False)
        if share is not None
    )
    return element("td", words, data_value=f"{known[0]:.4g}", title=title, class_="plateau")


def _references(subject: Subject, metric: str, noises: Sequence[str], columns: int) -> Markup:
    """Return the rows of the classical models, apart from the losses, so that sorting leaves them where they are."""
    known = reference_cells(subject.references, metric)
    if not known:
        return Markup()
    rows = [
        element(
            "tr",
            element("th", name, scope="row"),
            *(_cell(cells.get(noise), Markup()) for noise in noises),
            *(element("td") for _ in range(columns - 1 - len(noises))),
        )
        for name, cells in known.items()
    ]
    title = element("tr", element("th", "References: classical models on the same rows", scope="rowgroup", colspan=columns))
    return element("tbody", title, *rows, class_="references")


def _notes(subject: Subject) -> Markup:
    """Return what the signs in the table stand for."""
    notes = [element("li", f"{sign} {words}: ", _listed(subject, cells), ".") for sign, words, cells in _signs(subject) if cells]
    if subject.plateaus:
        notes.append(
            element(
                "li",
                "Good settings: the share of all settings tried that came within one standard error of the best on the "
                "validation rows, by noise level. A wide plateau needs little tuning.",
            )
        )
    return element("ul", *notes, class_="notes") if notes else Markup()


def _listed(subject: Subject, cells: Mapping[tuple[str, str], str]) -> Markup:
    one_level = len(subject.noises) == 1
    return Markup("; ").join(
        element("code", loss) + ("" if one_level else f" at {noise}") + f", {why}" for (loss, noise), why in cells.items()
    )
