"""What a study shows in a notebook: itself, its table, its plots and its report, drawn by the report's own parts."""

from pathlib import Path
from typing import Any

import pandas as pd

from lossmith.lazy_names import imported

__all__ = ["ResultTable", "Shown", "ShownStudy"]


class Shown:
    """HTML, which a notebook shows and :meth:`write` keeps.

    Args:
        what: What is shown, in words.
        html: What a notebook puts below a cell.
        page: The same as a file that needs no other.
    """

    def __init__(self, what: str, html: str, page: str) -> None:
        self._what, self._html, self._page = what, html, page

    def __repr__(self) -> str:
        return f"<{self._what}: shown in a notebook; write(file) keeps it as a page>"

    def _repr_html_(self) -> str:
        return self._html

    def write(self, file: str | Path) -> Path:
        """Write a page that needs no other file.

        Args:
            file: Where to.

        Returns:
            The file.
        """
        file = Path(file)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self._page, encoding="utf-8")
        return file


class ShownStudy:
    """What a study draws of itself; base of :class:`lossmith.studies.Study`."""

    def _repr_html_(self) -> str | None:
        return shown_html("study_html", self)

    def plot(self, name: str) -> Shown:
        """Return one section of the report for a notebook to show, such as ``results``, ``noise``, ``rates`` or ``curves``.

        Args:
            name: Of the section; an unknown one is an error that names all.

        Returns:
            What a notebook shows.

        Raises:
            ValueError: If there is no section of that name, the study has nothing to show in it, or it has no results yet.
        """
        shown: Shown = _drawn_by("plot")(self, name)
        return shown

    def report(self, file: str | Path | None = None) -> Shown | Path:
        """Show the report of the study in a notebook, or write it.

        Args:
            file: Where the page is written; without it nothing is written.

        Returns:
            What a notebook shows; or the file.

        Raises:
            ValueError: If the study has no results yet.
        """
        shown: Shown = _drawn_by("whole_report")(self)
        return shown if file is None else shown.write(file)


class ResultTable(pd.DataFrame):  # type: ignore[misc]  # pandas has no types
    """A table of text that a notebook shows as the report does, unless it was changed; what is made of it is a plain frame."""

    _metadata = ["measure", "study"]
    measure: str
    study: Any

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame

    def _repr_html_(self) -> str | None:
        plain = pd.DataFrame(self)
        as_it_was = getattr(self, "study", None) is not None and plain.equals(pd.DataFrame(self.study.table(self.measure)))
        shown = shown_html("table_html", self.study, self.measure) if as_it_was else None
        return shown or str(plain._repr_html_())


def shown_html(view: str, *subject: Any) -> str | None:
    """Return what a view makes of a subject, or None where there is nothing to show yet, so that plain text is shown instead.

    Args:
        view: The name of a function of :mod:`lossmith.report.notebook`.
        *subject: What it takes.

    Returns:
        HTML, or None.
    """
    try:
        html: str = _drawn_by(view)(*subject)
    except (ImportError, ValueError):  # the extra ``report`` is missing, or results are
        return None
    return html


def _drawn_by(view: str) -> Any:
    """Return a function of the report, which is above studies and therefore looked up only when a person looks."""
    return imported(view, "lossmith.report.notebook", "lossmith.report")
