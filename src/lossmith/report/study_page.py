"""The report: one self-contained page."""

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from lossmith import __version__
from lossmith.losses import make_loss
from lossmith.report.colours import colour_rules
from lossmith.report.elements import Section, copyable
from lossmith.report.line_panels import plot_clips
from lossmith.report.sections import PROVENANCE, SECTIONS
from lossmith.report.sections.noise_levels import overview
from lossmith.report.subject import ReportedStudy, Subject
from lossmith.statistics.verdicts import DEPENDS, Choice
from lossmith.statistics.wording import listed

__all__ = ["render_report", "write_report"]

_STRENGTHS = {"strong evidence": "strong", "evidence": "some", DEPENDS: "depends"}


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
    made = [make(subject) for make in SECTIONS]
    sections = [section for section in (*made, *more, PROVENANCE(subject)) if section is not None]
    template = _environment(subject).get_template("page.html")
    advice, snippet = subject.advice, _snippet(subject)
    lists = {
        "How much will you tune?": advice.tuning,
        "What other data say": advice.elsewhere,
        "What else it gives": advice.benefits,
        "What it costs": advice.costs,
        "What would change this": advice.would_change,
    }
    return template.render(
        subject=subject,
        advice=advice,
        notes=_notes(subject),
        winner=next((series.style for series in subject.series if series.name == advice.loss), ""),
        choices=sorted(advice.by_noise, key=lambda choice: subject.noises.index(choice.noise)),
        told={choice.noise: _told(choice) for choice in advice.by_noise},
        strength=_STRENGTHS.get(advice.sure, "none"),
        lists=lists,
        cards=sum(map(bool, (*lists.values(), snippet))) or 1,
        picture=overview(subject),
        snippet=snippet,
        sections=sections,
        version=(study.provenance.get("versions") or {}).get("lossmith", __version__),
        clip=plot_clips(),
        style=Markup("\n").join([Markup(colour_rules()), _resource("style.css")]),  # noqa: S704  ours
        script=_resource("script.js"),
    )


def _notes(subject: Subject) -> list[str]:
    """Return what is to be known before anything else: that results are missing, and that the plan is not the whole."""
    shrunk = str(subject.study.provenance.get("shrunk") or "").rstrip(".")
    return [note for note in (subject.advice.unfinished, f"The plan was made smaller {shrunk}." if shrunk else "") if note]


def _told(choice: Choice) -> str:
    """Return what is said of a level of added noise."""
    untrained = f"Untrained: {listed(choice.untrained)}." if choice.untrained else ""
    return " ".join(filter(None, (choice.reason, *choice.depends, untrained, choice.reference)))


def _snippet(subject: Subject) -> Markup:
    """Return the line that makes the recommended loss; nothing for an objective or a loss that the user brought."""
    try:
        make_loss(subject.advice.loss)
    except ValueError:
        return Markup()
    return copyable(f'loss = lossmith.make_loss("{subject.advice.loss}")')


def _environment(subject: Subject) -> Environment:
    loader = PackageLoader("lossmith.report")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["code"] = lambda text: _with_code(text, [series.name for series in subject.series])
    return environment


def _with_code(text: str, names: Sequence[str]) -> Markup:
    """Return a sentence with the names of losses set as code; the longest first, since names contain one another."""
    longest_first = sorted(map(str, map(escape, names)), key=len, reverse=True)
    name = "|".join(map(re.escape, longest_first))
    marked = re.sub(rf"(?<![\w(*-])(?:{name})(?![\w(*-])", r"<code>\g<0></code>", str(escape(text)))
    return Markup(re.sub(r"(?<= )-(?=\d)", "\N{MINUS SIGN}", marked))  # noqa: S704  the text was escaped


def _resource(name: str) -> Any:
    """Return a file that lies next to the template; it is ours and needs no escaping."""
    return Markup((files("lossmith.report") / "templates" / name).read_text(encoding="utf-8"))  # noqa: S704
