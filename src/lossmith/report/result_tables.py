"""Results as files: every run as CSV or Parquet, the table of a paper as LaTeX or Markdown."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pandas as pd

from lossmith.report.table_cells import UNTRAINED, Cell, reference_cells, table_cells
from lossmith.statistics.differences.overlapping import INDEPENDENT, Overlap
from lossmith.statistics.wording import capitalised, counted, is_share, spoken

__all__ = ["HasResults", "export_results", "latex_table", "markdown_table"]

_UNTRAINED_WORDS = "looks untrained in half of the replicates or more."


class HasResults(Protocol):
    """A study, as far as exports need one."""

    @property
    def results(self) -> pd.DataFrame:
        """One row per run that counts."""
        ...

    @property
    def references(self) -> pd.DataFrame:
        """One row per classical model, noise and replicate."""
        ...

    @property
    def metric(self) -> str:
        """What losses are compared by."""
        ...

    @property
    def overlap(self) -> Overlap:
        """What replicates share."""
        ...

    @property
    def unfinished(self) -> str:
        """A sentence that says so where runs are missing."""
        ...


def markdown_table(
    results: pd.DataFrame,
    metric: str = "accuracy",
    *,
    note: str = "",
    references: pd.DataFrame | None = None,
    overlap: Overlap = INDEPENDENT,
) -> str:
    """Return losses x noise levels in Markdown: mean ± standard error, bold where not significantly worse than the best.

    Args:
        results: A row for each run.
        metric: The column that is summarised.
        note: What to say above the table.
        references: A row for each classical model, noise and replicate, which come below the losses.
        overlap: What replicates share.

    Returns:
        The lines of the table.

    Raises:
        ValueError: If a column is missing, or a run is there twice.
    """
    header = ["loss", *(_on_one_line(noise).replace("|", r"\|") for noise in results["noise"].unique())]
    rule = [":--", *("--:" for _ in header[1:])]
    noises, cells = list(results["noise"].unique()), table_cells(results, metric, overlap)
    rows = _rows(cells, noises, _markdown_cell, _markdown_code)
    if references is not None:
        rows += _rows(reference_cells(references, metric), noises, _markdown_cell, lambda name: f"*{_on_one_line(name)}*")
    above = f"> {note}\n\n" if note else ""
    below = f"\n{UNTRAINED} {_UNTRAINED_WORDS}\n" if _any_untrained(cells) else ""
    return above + "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows)) + "\n" + below


def latex_table(
    results: pd.DataFrame,
    metric: str = "accuracy",
    *,
    note: str = "",
    references: pd.DataFrame | None = None,
    overlap: Overlap = INDEPENDENT,
) -> str:
    """Return losses x noise levels as a LaTeX table for the package booktabs.

    Args:
        results: A row for each run.
        metric: The column that is summarised.
        note: What to say first in the caption.
        references: A row for each classical model, noise and replicate, which come below the losses.
        overlap: What replicates share.

    Returns:
        The lines of the table.

    Raises:
        ValueError: If a column is missing, or a run is there twice.
    """
    noises = list(results["noise"].unique())
    cells = table_cells(results, metric, overlap)
    rows = _rows(cells, noises, _latex_cell, lambda name: rf"\texttt{{{_latex_escaped(name)}}}")
    beside = [] if references is None else _rows(reference_cells(references, metric), noises, _latex_cell, _latex_escaped)
    caption = _latex_caption(metric, results["seed"].nunique(), note, _UNTRAINED_WORDS if _any_untrained(cells) else "")
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
            *([r"    \midrule"] if beside else []),
            *(f"    {' & '.join(row)} \\\\" for row in beside),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _latex_caption(metric: str, replicates: int, note: str, dagger: str) -> str:
    """Return what the numbers are; ``note`` comes first, and what the dagger means last, each where there is one."""
    unit = " (\\%)" if is_share(metric) else ""
    first = rf"\textbf{{{_latex_escaped(note)}}} " if note else ""
    last = rf" $\dagger$ {dagger}" if dagger else ""
    return (
        f"{first}{capitalised(spoken(metric))}{unit}, mean $\\pm$ standard error over {counted(replicates, 'replicate')}. "
        f"Bold: not significantly worse than the best of the column (paired t-test, $p > 0.05$).{last}"
    )


def export_results(study: HasResults, file: str | Path, metric: str = "") -> Path:
    """Write results to a file whose ending names the form: every run as .csv or .parquet, a table as .tex or .md.

    Names are written so that nothing runs them: LaTeX and Markdown print them as they are, and in CSV, which is opened in
    spreadsheets, one that begins with ``=``, ``+``, ``-`` or ``@`` has an apostrophe before it.

    Args:
        study: A study, or anything with ``results``.
        file: Where the results are written.
        metric: The column of a table; without it what the study compares losses by.

    Returns:
        The file.

    Raises:
        ValueError: If the study has no results yet, or the ending names no known form.
    """
    file = Path(file)
    writers: dict[str, Callable[[], object]] = {
        ".csv": lambda: _without_formulas(study.results).to_csv(file, index=False),
        ".parquet": lambda: study.results.to_parquet(file, index=False),
        ".tex": lambda: file.write_text(_written(study, latex_table, metric), encoding="utf-8"),
        ".md": lambda: file.write_text(_written(study, markdown_table, metric), encoding="utf-8"),
    }
    if file.suffix not in writers:
        raise ValueError(f"export: the file must end in {', '.join(writers)}, got {file.name}.")
    if study.results.empty:
        raise ValueError("export: the study has no results yet.")
    writers[file.suffix]()
    return file


def _written(study: HasResults, table: Callable[..., str], metric: str) -> str:
    beside = {"references": study.references, "overlap": study.overlap}
    return table(study.results, metric or study.metric, note=study.unfinished, **beside)


def _rows(
    table: Mapping[str, Mapping[str, Cell]],
    noises: Sequence[str],
    cell_text: Callable[[Cell], str],
    name_text: Callable[[str], str],
) -> list[list[str]]:
    return [
        [name_text(name), *(cell_text(cells[noise]) if noise in cells else "" for noise in noises)]
        for name, cells in table.items()
    ]


def _any_untrained(table: Mapping[str, Mapping[str, Cell]]) -> bool:
    return any(cell.untrained for cells in table.values() for cell in cells.values())


def _markdown_cell(cell: Cell) -> str:
    mean = f"**{cell.mean_text}**" if cell.bold else cell.mean_text
    return (f"{mean} ± {cell.error_text}" if cell.error_text else mean) + (f" {UNTRAINED}" if cell.untrained else "")


def _latex_cell(cell: Cell) -> str:
    mean = rf"\mathbf{{{cell.mean_text}}}" if cell.bold else cell.mean_text
    mark = r"^{\dagger}" if cell.untrained else ""
    return rf"${mean} \pm {cell.error_text}{mark}$" if cell.error_text else f"${mean}{mark}$"


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
