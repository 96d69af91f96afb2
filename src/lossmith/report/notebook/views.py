"""What a notebook shows of a study: the whole, its recommendation, a table, one of its plots."""

from markupsafe import Markup

from lossmith.expressions.nearest import nearest
from lossmith.expressions.quotes import quote
from lossmith.report.elements import Section
from lossmith.report.notebook.fragment import framed_page, page_of, scoped
from lossmith.report.sections import PROVENANCE, SECTIONS
from lossmith.report.sections.answer import answer
from lossmith.report.sections.results import table
from lossmith.report.study_page import answer_of_study, render_report
from lossmith.report.subject import ReportedStudy, Subject
from lossmith.report.svg import element
from lossmith.statistics.recommendation import Recommendation
from lossmith.studies.shown import Shown

__all__ = ["plot", "recommendation_html", "study_html", "table_html", "whole_report"]

PLOTS = {**SECTIONS, "rerun": PROVENANCE}


def study_html(study: ReportedStudy) -> str:
    """Return the answer of a study and its table.

    Args:
        study: One that has results.

    Returns:
        HTML for a cell's output.

    Raises:
        ValueError: If it has none.
    """
    subject = Subject(study)
    results = SECTIONS["results"](subject)
    assert results is not None
    return scoped(_answered(answer_of_study(subject)) + _section(results))


def recommendation_html(advice: Recommendation) -> str:
    """Return a recommendation.

    Args:
        advice: What a study recommends.

    Returns:
        HTML for a cell's output.
    """
    return scoped(_answered(answer(advice, notes=[advice.unfinished] if advice.unfinished else [])))


def table_html(study: ReportedStudy, measure: str) -> str:
    """Return the table of a measure: every loss under every noise, with references below.

    Args:
        study: One that has results.
        measure: A column of its results.

    Returns:
        HTML for a cell's output.

    Raises:
        ValueError: If it has none.
    """
    return scoped(table(Subject(study), measure))


def plot(study: ReportedStudy, name: str) -> Shown:
    """Return one section of the report.

    Args:
        study: One that has results.
        name: Of the section.

    Returns:
        What a notebook shows.

    Raises:
        ValueError: If there is no such section, the study has nothing to show in it, or no results.
    """
    if name not in PLOTS:
        raise ValueError(
            f"Study.plot: name must be one of {', '.join(PLOTS)}, got {quote(name)}{nearest(str(name), list(PLOTS))}"
        )
    section = PLOTS[name](Subject(study))
    if section is None:
        raise ValueError(f"Study.plot: {name} has nothing to show in this study.")
    body = scoped(_section(section))
    return Shown(f"plot {name!r} of {study.folder}", body, page_of(body, section.title))


def whole_report(study: ReportedStudy) -> Shown:
    """Return the whole report, in a frame of its own.

    Args:
        study: One that has results.

    Returns:
        What a notebook shows.

    Raises:
        ValueError: If it has none.
    """
    page = render_report(study)
    return Shown(f"report of {study.folder}", framed_page(page, f"Report of {study.folder}"), page)


def _answered(body: Markup) -> Markup:
    return element("section", body, class_="answer")


def _section(section: Section) -> Markup:
    return element("section", element("h2", section.title), element("p", section.lead, class_="lead"), section.body)
