"""Results as files: every run as CSV or Parquet, the table of a paper as LaTeX or Markdown."""

from collections.abc import Callable, Sequence
from math import isnan
from pathlib import Path
from typing import NamedTuple, Protocol

import pandas as pd

from lossmith.statistics.summary import summarise
from lossmith.statistics.wording import is_share, spoken

__all__ = ["Cell", "HasResults", "export_results", "latex_table", "markdown_table", "table_cells"]


class HasResults(Protocol):
    """A study, as far as exports need one."""

    @property
    def results(self) -> pd.DataFrame:
        """One row per run that counts."""
        ...

    @property
    def unfinished(self) -> str:
        """A sentence that says so where runs are missing."""
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
        """Return the standard error in the same form; nothing for a single run."""
        return "" if isnan(self.standard_error) else number_text(self.standard_error, self.metric)


def number_text(value: float, metric: str) -> str:
    """Return a value of a metric with the digits that a table has room for."""
    if is_share(metric):
        return f"{100 * value:.2f}"
    return f"{value:.1f}" if metric == "seconds" else f"{value:.3f}"


def table_cells(results: pd.DataFrame, metric: str = "accuracy") -> dict[str, dict[str, Cell]]:
    """Return the cells by loss and noise; what has no run has no cell.

    Args:
        results: A row for each run.
        metric: The column that is summarised.

    Returns:
        The cells by loss, then by noise level.

    Raises:
        ValueError: If a column is missing, or a run is there twice.
    """
    rows: dict[str, dict[str, Cell]] = {loss: {} for loss in results["loss"].unique()}
    for row in summarise(results, metric).itertuples(index=False):
        cell = Cell(row.mean, row.standard_error, int(row.runs), bool(row.bold), bool(row.best), metric)
        rows[row.loss][row.noise] = cell
    return rows


def markdown_table(results: pd.DataFrame, metric: str = "accuracy", *, note: str = "") -> str:
    """Return losses x noise levels in Markdown: mean ± standard error, bold where not significantly worse than the best.

    Args:
        results: A row for each run.
        metric: The column that is summarised.
        note: What to say above the table.

    Returns:
        The lines of the table.

    Raises:
        ValueError: If a column is missing, or a run is there twice.
    """
    header = ["loss", *(_on_one_line(noise).replace("|", r"\|") for noise in results["noise"].unique())]
    rule = [":--", *("--:" for _ in header[1:])]
    rows = _rows(results, metric, _markdown_cell, _markdown_code)
    above = f"> {note}\n\n" if note else ""
    return above + "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows)) + "\n"


def latex_table(results: pd.DataFrame, metric: str = "accuracy", *, note: str = "") -> str:
    """Return losses x noise levels as a LaTeX table for the package booktabs.

    Args:
        results: A row for each run.
        metric: The column that is summarised.
        note: What to say first in the caption.

    Returns:
        The lines of the table.

    Raises:
        ValueError: If a column is missing, or a run is there twice.
    """
    noises = list(results["noise"].unique())
    rows = _rows(results, metric, _latex_cell, lambda name: rf"\texttt{{{_latex_escaped(name)}}}")
    seeds = results["seed"].nunique()
    unit = " (\\%)" if is_share(metric) else ""
    first = rf"\textbf{{{_latex_escaped(note)}}} " if note else ""
    caption = (
        f"{first}{spoken(metric).capitalize()}{unit}, mean $\\pm$ standard error over {seeds} seed{'s' if seeds != 1 else ''}. "
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
    """Write results to a file whose ending names the form: every run as .csv or .parquet, a table as .tex or .md.

    Names are written so that nothing runs them: LaTeX and Markdown print them as they are, and in CSV, which is opened in
    spreadsheets, one that begins with ``=``, ``+``, ``-`` or ``@`` has an apostrophe before it.

    Args:
        study: A study, or anything with ``results``.
        file: Where the results are written.
        metric: The column of a table.

    Returns:
        The file.

    Raises:
        ValueError: If the study has no results yet, or the ending names no known form.
    """
    file = Path(file)
    writers: dict[str, Callable[[], object]] = {
        ".csv": lambda: _without_formulas(study.results).to_csv(file, index=False),
        ".parquet": lambda: study.results.to_parquet(file, index=False),
        ".tex": lambda: file.write_text(latex_table(study.results, metric, note=study.unfinished), encoding="utf-8"),
        ".md": lambda: file.write_text(markdown_table(study.results, metric, note=study.unfinished), encoding="utf-8"),
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


_LATEX = {
    **{sign: rf"\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n")


def _latex_escaped(text: str) -> str:
    r"""Return text that LaTeX prints as it is. Signs are replaced in one go, so that no replacement is replaced again.

    >>> print(_latex_escaped(r"a\b_{1}^2"))
    a\textbackslash{}b\_\{1\}\textasciicircum{}2
    """
    return "".join(_LATEX.get(sign, sign) for sign in _on_one_line(text))


def _markdown_code(text: str) -> str:
    r"""Return text as code in a cell of a table: bars would end the cell, and a backtick the code.

    >>> _markdown_code("gce"), _markdown_code("a|b"), _markdown_code("`a`")
    ('`gce`', '`a\\|b`', '`` `a` ``')
    """
    written = _on_one_line(text).replace("|", r"\|")
    fence = "`"
    while fence in written:
        fence += "`"
    return f"{fence} {written} {fence}" if len(fence) > 1 else f"`{written}`"


def _on_one_line(text: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in text)


def _without_formulas(results: pd.DataFrame) -> pd.DataFrame:
    """Put an apostrophe before texts that a spreadsheet would run as a formula."""
    safe = results.copy()
    for column in safe.columns:
        safe[column] = safe[column].map(_not_a_formula) if safe[column].dtype.kind not in "biufmM" else safe[column]
    return safe


def _not_a_formula(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_SIGNS) else value
