"""The report: one self-contained page."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from lossmith import __version__
from lossmith.losses import make_loss
from lossmith.report.elements import copyable
from lossmith.report.section import Section
from lossmith.report.sections import PROVENANCE, SECTIONS
from lossmith.report.subject import ReportedStudy, Subject

__all__ = ["render_report", "write_report"]

_STRENGTHS = {"strong evidence": "strong", "evidence": "some"}


def write_report(study: ReportedStudy, file: str | Path | None = None, *, more: Sequence[Section] = ()) -> Path:
    """Write the page of a study and return its file, by default ``report.html`` in the study's folder.

    The page needs no network, no other file and no server. Sections in ``more`` come before the last one, which tells what was
    run.
    """
    file = Path(file) if file is not None else study.folder / "report.html"
    page = render_report(study, more)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page, encoding="utf-8")
    return file


def render_report(study: ReportedStudy, more: Sequence[Section] = ()) -> str:
    """Return the page as text."""
    subject = Subject(study)
    made = [make(subject) for make in SECTIONS]
    sections = [section for section in (*made, *more, PROVENANCE(subject)) if section is not None]
    template = _environment().get_template("page.html")
    return template.render(
        subject=subject,
        advice=subject.advice,
        choices=sorted(subject.advice.by_noise, key=lambda choice: subject.noises.index(choice.noise)),
        strength=_STRENGTHS.get(subject.advice.sure, "none"),
        snippet=_snippet(subject),
        sections=sections,
        version=study.settings.get("versions", {}).get("lossmith", __version__),
        style=_resource("style.css"),
        script=_resource("script.js"),
    )


def _snippet(subject: Subject) -> Markup:
    """Return the line that makes the recommended loss; nothing for an objective or a loss that the user brought."""
    try:
        make_loss(subject.advice.loss)
    except ValueError:
        return Markup()
    return copyable(f'loss = lossmith.make_loss("{subject.advice.loss}")')


def _environment() -> Environment:
    loader = PackageLoader("lossmith.report")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _resource(name: str) -> Any:
    """Return a file beside the template, which is ours and needs no escaping."""
    return Markup((files("lossmith.report") / "templates" / name).read_text(encoding="utf-8"))  # noqa: S704
