"""What was run and how to run it again."""

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd
from markupsafe import Markup

from lossmith.report.elements import MISSING, Section, copyable, loss_name
from lossmith.report.sections.cost import all_trainings
from lossmith.report.sections.protocol import protocol
from lossmith.report.subject import Subject
from lossmith.report.svg import element
from lossmith.statistics.wording import counted, spoken
from lossmith.studies.design.settings import OWN

_TITLES = {
    "data": "Data",
    "noise": "Label noise",
    "losses": "Losses",
    "metric": "Metric",
    "seeds": "Replicates",
    "trials": "Trials",
    "recipe": "Training",
    "versions": "Versions",
    "created": "Begun",
}


def section(subject: Subject) -> Section:
    """Return the command, the facts, the protocol, the settings that were chosen, and all settings as they are stored."""
    provenance = subject.study.provenance
    known = {**provenance, "metric": spoken(subject.metric), "seeds": subject.replicates}
    if (recipe := provenance.get("recipe") or {}).get("model") == OWN:  # what else a recipe says is the built-in trainer's
        known["recipe"] = {name: recipe[name] for name in ("model", "epochs") if recipe.get(name)}
    facts = [(title, known[key]) for key, title in _TITLES.items() if known.get(key)]
    listed = [part for title, value in facts for part in (element("dt", title), element("dd", _fact(value)))]
    stored = element("pre", element("code", json.dumps(dict(provenance), indent=2, default=str, ensure_ascii=False)), tabindex=0)
    steps = element("ul", *(element("li", line) for line in protocol(subject)))
    body = (
        _again(subject)
        + element("dl", *listed, class_="facts")
        + element("h3", "How the comparison is made")
        + element("div", steps, class_="protocol")
        + element("h3", "Settings that were chosen")
        + _chosen(subject)
        + element("details", element("summary", "All settings of the study"), stored)
    )
    return Section("rerun", "What was run", _lead(subject), body)


def _lead(subject: Subject) -> str:
    cells, trainings = len(subject.results), len(all_trainings(subject))
    chosen = f", chosen from {counted(trainings, 'training')}" if trainings > cells else ""
    return f"This page rests on {counted(cells, 'run')}{chosen}."


def _again(subject: Subject) -> Markup:
    """Return the command that does it again; a study with parts that were made in Python has none."""
    provenance = subject.study.provenance
    if provenance.get("from_python"):
        return element(
            "p", f"The study was run in Python with {provenance['from_python']}; the same call of compare runs it again."
        )
    again = "It was run by an older lossmith, with:" if subject.study.caution else "To run it again:"
    return element("p", again) + copyable(str(provenance.get("command", "")))


def _fact(value: Any) -> Markup | str:
    """Return a setting for people: lists with commas, mappings as pairs."""
    if isinstance(value, Mapping):
        pairs = [(key, item) for key, item in value.items() if item not in (None, "", [], {}, ())]
        return Markup("; ").join(
            element("span", f"{str(key).replace('_', ' ')} ", element("b", _fact(item))) for key, item in pairs
        )
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) if len(value) <= 30 else f"{len(value)}: {', '.join(map(str, value[:12]))}, ..."
    return str(value)


def _chosen(subject: Subject) -> Markup:
    """Return the settings of each loss at each noise level: their range over the replicates."""
    grouped = dict(iter(subject.results.groupby(["loss", "noise"], sort=False)))
    heads = ["Loss", *subject.noises]
    rows = [
        element(
            "tr",
            element("th", loss_name(series), scope="row"),
            *(_settings(grouped.get((series.name, noise))) for noise in subject.noises),
        )
        for series in subject.series
    ]
    head = element("thead", element("tr", *(element("th", text, scope="col") for text in heads)))
    caption = element("caption", "Learning rate, weight decay and whatever else was chosen, over the replicates", class_="hidden")
    return element("div", element("table", caption, head, element("tbody", *rows), class_="settings"), class_="scroll")


def _settings(rows: pd.DataFrame | None) -> Markup:
    if rows is None:
        return element("td", MISSING)
    others = [
        f"{words} {_range(rows[name])}".strip()
        for name, words in (("weight_decay", "decay"), ("parameters", ""))
        if name in rows and not rows[name].isin(["", 0]).all()
    ]
    return element("td", f"rate {_range(rows['learning_rate'])}", *(element("small", text) for text in others))


def _range(values: "pd.Series[Any]") -> str:
    """Return what was chosen: numbers from the smallest to the largest, texts as they are.

    >>> _range(pd.Series([0.1, 0.03, 0.1])), _range(pd.Series(["q=0.5", "q=0.5", "q=0.7"]))
    ('0.03 to 0.1', 'q=0.5, q=0.7')
    """
    if values.dtype.kind in "iuf":
        low, high = float(values.min()), float(values.max())
        return f"{low:.2g} to {high:.2g}" if low < high else f"{low:.2g}"
    return ", ".join(dict.fromkeys(map(str, values)))
