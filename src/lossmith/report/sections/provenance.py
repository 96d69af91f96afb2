"""What was run and how to run it again."""

import json
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from lossmith.report.elements import Section, copyable
from lossmith.report.subject import Subject
from lossmith.report.svg import element
from lossmith.statistics.wording import counted

_TITLES = {
    "data": "Data",
    "noise": "Label noise",
    "losses": "Losses",
    "seeds": "Seeds",
    "recipe": "Training",
    "search": "Search",
    "versions": "Versions",
    "created": "Begun",
}


def section(subject: Subject) -> Section:
    """Return the command, the facts, and all settings as they are stored."""
    provenance = subject.study.provenance
    facts = [(title, provenance[key]) for key, title in _TITLES.items() if provenance.get(key)]
    listed = [part for title, value in facts for part in (element("dt", title), element("dd", _fact(value)))]
    stored = element("pre", element("code", json.dumps(dict(provenance), indent=2, default=str, ensure_ascii=False)), tabindex=0)
    body = (
        _again(provenance)
        + element("dl", *listed, class_="facts")
        + element("details", element("summary", "All settings"), stored)
        + _method(subject)
    )
    runs, searches = counted(len(subject.results), "training run"), len(subject.searches_only)
    search = f", and on {counted(searches, 'more run')} to find learning rates" if searches else ""
    return Section("rerun", "What was run", f"This page rests on {runs}{search}.", body)


def _again(provenance: Mapping[str, Any]) -> Markup:
    """Return the command that does it again; a study with parts that were made in Python has none."""
    if provenance.get("from_python"):
        return element(
            "p", f"The study was run in Python with {provenance['from_python']}; the same call of compare runs it again."
        )
    return element("p", "To run it again:") + copyable(str(provenance.get("command", "")))


def _fact(value: Any) -> Markup | str:
    """Return a setting for people: lists with commas, mappings as pairs."""
    if isinstance(value, Mapping):
        pairs = [(key, item) for key, item in value.items() if item not in (None, "", [], {})]
        return Markup("; ").join(
            element("span", f"{str(key).replace('_', ' ')} ", element("b", _fact(item))) for key, item in pairs
        )
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) if len(value) <= 30 else f"{len(value)}: {', '.join(map(str, value[:12]))}, ..."
    return str(value)


def _method(subject: Subject) -> Markup:
    rows = len(subject.study.test_labels)
    accuracy = float(subject.results["accuracy"].max())
    sampling = 100 * (accuracy * (1 - accuracy) / rows) ** 0.5
    items = [
        "Losses are compared in pairs: the same seed means the same split, starting weights, order of examples and wrong labels.",
        f"The better one is sought against {subject.baseline}, with p-values corrected for the number of losses (Holm).",
        "Noise levels are averaged within a seed before any test, since runs of one seed are not independent.",
        "A run that diverged counts with the last predictions that were finite, and its loss is not recommended.",
        f"Tests speak of other seeds, not of other test rows: {rows} leave an accuracy uncertain by {sampling:.1f} points.",
    ]
    return element(
        "details", element("summary", "How the comparison is made"), element("ul", *(element("li", item) for item in items))
    )
