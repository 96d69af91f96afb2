"""The report: one self-contained page."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from lossmith import __version__
from lossmith.report.colours import colour_rules
from lossmith.report.elements import Section
from lossmith.report.line_panels import plot_clips
from lossmith.report.sections import PROVENANCE, SECTIONS
from lossmith.report.sections.answer import answer, page_templates
from lossmith.report.sections.noise_levels import overview
from lossmith.report.subject import ReportedStudy, Subject

__all__ = ["answer_of_study", "page_resource", "page_style", "render_report", "write_report"]


def write_report(study: ReportedStudy, file: str | Path | None = None, *, more: Sequence[Section] = ()) -> Path:
    """Write the page of a study and return its file, by default ``report.html`` in the study's folder.

    The page needs no network, no other file and no server. Sections in ``more`` come before the last one, which tells what was
    run.

    Args:
        study: The study that the page is about.
        file: Where the page is written.
        more: Sections of your own.

    Returns:
        The file.

    Raises:
        ValueError: If the study has no results yet.
    """
    file = Path(file) if file is not None else study.folder / "report.html"
    page = render_report(study, more)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page, encoding="utf-8")
    return file


def render_report(study: ReportedStudy, more: Sequence[Section] = ()) -> str:
    """Return the page as text.

    Args:
        study: The study that the page is about.
        more: Sections of your own, which come before the last one.

    Returns:
        HTML that needs no other file.

    Raises:
        ValueError: If the study has no results yet.
    """
    subject = Subject(study)
    made = [make(subject) for make in SECTIONS.values()]
    sections = [section for section in (*made, *more, PROVENANCE(subject)) if section is not None]
    return (
        page_templates()
        .get_template("page.html")
        .render(
            subject=subject,
            advice=subject.advice,
            answer=answer_of_study(subject),
            sections=sections,
            version=(study.provenance.get("versions") or {}).get("lossmith", __version__),
            clip=plot_clips(),
            style=page_style(),
            script=page_resource("script.js"),
        )
    )


def answer_of_study(subject: Subject) -> Markup:
    """Return the answer with its picture and in the colours of the page.

    Args:
        subject: What the page is about.

    Returns:
        HTML.
    """
    winner = next((series.style for series in subject.series if series.name == subject.advice.loss), "")
    losses = [series.name for series in subject.series]
    return answer(subject.advice, losses=losses, notes=_notes(subject), winner=winner, picture=overview(subject))


def _notes(subject: Subject) -> list[str]:
    """Return what is to be known before anything else: that results are missing, and that the plan is not the whole."""
    shrunk = str(subject.study.provenance.get("shrunk") or "").rstrip(".")
    return [note for note in (subject.advice.unfinished, f"The plan was made smaller {shrunk}." if shrunk else "") if note]


def page_style() -> Markup:
    """Return the rules of the page's style."""
    return Markup("\n").join([Markup(colour_rules()), page_resource("style.css")])  # noqa: S704  ours


def page_resource(name: str) -> Markup:
    """Return a file that lies next to the templates; it is ours and needs no escaping.

    Args:
        name: Of the file.

    Returns:
        Its text.
    """
    return Markup((files("lossmith.report") / "templates" / name).read_text(encoding="utf-8"))  # noqa: S704
