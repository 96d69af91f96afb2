"""Results as files: every run as CSV or Parquet, the table of a paper as LaTeX or Markdown."""

from collections.abc import Callable, Sequence
from math import isnan
from pathlib import Path
from typing import NamedTuple, Protocol

import pandas as pd

from lossmith.experiments.statistics import summarise
from lossmith.experiments.wording import is_share, spoken

__all__ = ["Cell", "HasResults", "export_results", "latex_table", "markdown_table", "table_cells"]


class HasResults(Protocol):
    """A study, as far as exports need one."""

    @property
    def results(self) -> pd.DataFrame:
        """One row a final run."""
        ...


class Cell(NamedTuple):
    """One entry of a table of losses x noise levels."""

    mean: float
    standard_error: float
    runs: int
    bold: bool
    best: bool
    metric: str

    @property
    def mean_text(self) -> str:
        """Return the mean as people read it, shares in percent."""
        return number_text(self.mean, self.metric)

    @property
    def error_text(self) -> str:
        """Return the standard error likewise; nothing for one run."""
        return "" if isnan(self.standard_error) else number_text(self.standard_error, self.metric)


def number_text(value: float, metric: str) -> str:
    """Return a value of a metric with the digits that a table has room for."""
    if is_share(metric):
        return f"{100 * value:.2f}"
    return f"{value:.1f}" if metric == "seconds" else f"{value:.3f}"


def table_cells(results: pd.DataFrame, metric: str = "accuracy") -> dict[str, dict[str, Cell]]:
    """Return the cells by loss and noise; what has no run has no cell."""
    rows: dict[str, dict[str, Cell]] = {loss: {} for loss in results["loss"].unique()}
    for row in summarise(results, metric).itertuples(index=False):
        cell = Cell(row.mean, row.standard_error, int(row.runs), bool(row.bold), bool(row.best), metric)
        rows[row.loss][row.noise] = cell
    return rows


def markdown_table(results: pd.DataFrame, metric: str = "accuracy") -> str:
    """Return losses x noise levels in Markdown: mean ± standard error, bold where not significantly worse than the best."""
    header = ["loss", *results["noise"].unique()]
    rule = [":--", *("--:" for _ in header[1:])]
    rows = _rows(results, metric, _markdown_cell, lambda name: f"`{name}`")
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows)) + "\n"


def latex_table(results: pd.DataFrame, metric: str = "accuracy") -> str:
    """Return losses x noise levels as a LaTeX table for the package booktabs."""
    noises = list(results["noise"].unique())
    rows = _rows(results, metric, _latex_cell, lambda name: rf"\texttt{{{_latex_escaped(name)}}}")
    seeds = results["seed"].nunique()
    unit = " (\\%)" if is_share(metric) else ""
    caption = (
        f"{spoken(metric).capitalize()}{unit}, mean $\\pm$ standard error over {seeds} seed{'s' if seeds != 1 else ''}. "
        "Bold: not significantly worse than the best of the column (paired t-test, $p > 0.05$)."
    )
    head = ["Loss", *map(_latex_escaped, noises)]
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{caption}}}",
            rf"  \begin{{tabular}}{{l{'r' * len(noises)}}}",
            r"    \toprule",
            f"    {' & '.join(head)} \\\\",
            r"    \midrule",
            *(f"    {' & '.join(row)} \\\\" for row in rows),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def export_results(study: HasResults, file: str | Path, metric: str = "accuracy") -> Path:
    """Write results to a file whose ending names the form: every run as .csv or .parquet, a table as .tex or .md."""
    file = Path(file)
    writers: dict[str, Callable[[], object]] = {
        ".csv": lambda: study.results.to_csv(file, index=False),
        ".parquet": lambda: study.results.to_parquet(file, index=False),
        ".tex": lambda: file.write_text(latex_table(study.results, metric), encoding="utf-8"),
        ".md": lambda: file.write_text(markdown_table(study.results, metric), encoding="utf-8"),
    }
    if file.suffix not in writers:
        raise ValueError(f"export: the file must end in {', '.join(writers)}, got {file.name}.")
    if study.results.empty:
        raise ValueError("export: the study has no results yet.")
    writers[file.suffix]()
    return file


def _rows(
    results: pd.DataFrame, metric: str, cell_text: Callable[[Cell], str], name_text: Callable[[str], str]
) -> Sequence[Sequence[str]]:
    noises = list(results["noise"].unique())
    return [
        [name_text(loss), *(cell_text(cells[noise]) if noise in cells else "" for noise in noises)]
        for loss, cells in table_cells(results, metric).items()
    ]


def _markdown_cell(cell: Cell) -> str:
    mean = f"**{cell.mean_text}**" if cell.bold else cell.mean_text
    return f"{mean} ± {cell.error_text}" if cell.error_text else mean


def _latex_cell(cell: Cell) -> str:
    mean = rf"\mathbf{{{cell.mean_text}}}" if cell.bold else cell.mean_text
    return rf"${mean} \pm {cell.error_text}$" if cell.error_text else f"${mean}$"


def _latex_escaped(text: str) -> str:
    for sign in "&%$#_{}":
        text = text.replace(sign, rf"\{sign}")
    return text
