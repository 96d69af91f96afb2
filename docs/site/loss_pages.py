"""The page of a loss: formula, picture, use, parameters, evidence, reference; all from its class and from kept results."""

import inspect
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from formulas import mathml

import lossmith
from lossmith.losses import LOSSES, ClassificationLoss
from lossmith.losses.contract.needs_data import NeedsCounts

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "evidence" / "results" / "small_tables" / "over_tables.csv"


def loss_page(name: str, loss: type[ClassificationLoss], pictures: Mapping[str, str]) -> str:
    """Return the page of a loss in Markdown."""
    about = _parts(loss)
    images = "\n".join(
        f"```{{image}} pictures/{file}\n:class: only-{scheme}\n:alt: {name}: value and pull beside cross-entropy\n```"
        for scheme, file in pictures.items()
    )
    parts = [
        f"# {name}",
        _marked(about["summary"]),
        _formula(loss),
        images,
        _CAPTION + (_COUNTED if issubclass(loss, NeedsCounts) else ""),
        "## When to use it",
        *(_marked(paragraph) for paragraph in about["words"]),
        "## In Python and on the command line",
        _IN_PYTHON.format(home=_home(loss), made=loss.__name__, name=name),
        f"```\nlossmith show {name}\nlossmith compare digits --losses ce,{name}\n```",
        _example(about["example"]),
        _parameters(loss, about["arguments"]),
        _presets(loss),
        _evidence(name),
        f"## Reference\n\n{_marked(about['reference'])}" if about["reference"] else "",
        f"[All losses](index.md). The class: {{py:class}}`lossmith.losses.{loss.__name__}`.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def loss_index(purposes: Mapping[str, Sequence[str]]) -> str:
    """Return the page that leads to all losses."""
    groups = []
    for purpose, names in purposes.items():
        rows = "\n".join(
            f"| [`{name}`]({name}.md) | {_marked(_parts(LOSSES[name])['summary']).replace('|', chr(92) + '|')} |"
            for name in names
        )
        groups.append(f"## Losses {purpose}\n\n| loss | what it is |\n|---|---|\n{rows}")
    tree = "\n".join(name for names in purposes.values() for name in names)
    return "\n\n".join(["# Losses", _LEAD, *groups, f"```{{toctree}}\n:hidden:\n{tree}\n```"]) + "\n"


_LEAD = """\
Each of them drops in for `nn.CrossEntropyLoss`, with all of its options. `lossmith list` prints them, `lossmith show gce` one,
and `lossmith explore` writes a page with [sliders](../explore.md) for every one."""
_IN_PYTHON = """\
```python
import lossmith

loss = {home}.{made}()
loss = lossmith.make_loss("{name}")  # the same
```"""
_CAPTION = """\
Left the loss of one example of ten classes, by how far the target's logit is ahead of the others, which are equal; right how hard
it pulls at that logit. Dashed: cross-entropy."""
_COUNTED = " Classes are a long tail, the last a tenth as frequent as the first, and the target is of the first."
_COMPARED = """\
## Evidence

Accuracy of `{loss}` less that of `ce`, in points with its 95 % interval over {tables} real tables of up to 1,000 rows, with the
network `mlp`, each loss tuned as long as the others (`python -m evidence.over_tables`); p by signed ranks, corrected for the
number of losses:

| noise in training | difference | tables ahead | behind | p |
|---|--:|--:|--:|--:|
{rows}

[Statistics](../statistics.md#how-often-it-is-right) has all of them together."""


@cache
def _parts(loss: type[ClassificationLoss]) -> dict[str, object]:
    """Return summary, words, example, arguments and reference of a docstring."""
    text = inspect.getdoc(loss) or ""
    before, _, rest = text.partition("Args:\n")
    arguments, _, reference = rest.partition("\nReference:")
    paragraphs = [part for part in before.split("\n\n") if part.strip()]
    example = "\n\n".join(part for part in paragraphs if part.lstrip().startswith(">>>"))
    words = [part.replace("\n", " ") for part in paragraphs[1:] if not part.lstrip().startswith(">>>")]
    return {
        "summary": paragraphs[0].replace("\n", " "),
        "words": words,
        "example": example,
        "arguments": arguments,
        "reference": " ".join(reference.split()),
    }


def formula_of(loss: type[ClassificationLoss]) -> str:
    """Return the first formula of the docstring; nothing where the words alone tell."""
    about = _parts(loss)
    quoted = re.findall(r"``([^`]*)``", " ".join([str(about["summary"]), *list(about["words"])[:1]]))
    return next((each for each in quoted if re.search(r"[-+*/] |\b(log|sum)|^-", each)), "")


def _formula(loss: type[ClassificationLoss]) -> str:
    formula = formula_of(loss)
    return f'```{{raw}} html\n<div class="formula">{mathml(formula)}</div>\n```' if formula else ""


def _marked(text: object) -> str:
    """Return docstring text in Markdown, with references to names as code."""
    marked = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", str(text)).replace("``", "`")
    outside = re.split(r"(`[^`]*`)", marked)
    return "".join(part if part.startswith("`") else re.sub(r"([*<>_|])", r"\\\1", part) for part in outside)


def _example(example: object) -> str:
    return f"```pycon\n{example}\n```" if example else ""


def _parameters(loss: type[ClassificationLoss], arguments: object) -> str:
    """Return a table of the parameters with their defaults and ranges."""
    made = loss()
    meanings = {
        found[1].lstrip("*"): " ".join(found[2].split())
        for found in re.finditer(r"^ {4}(\**\w+): (.*(?:\n {8}.*)*)", str(arguments), re.MULTILINE)
    }
    rows = [
        f"| `{name}` | `{value!r}` | {made.limits.get(name, '')} | {_marked(meanings.get(name, ''))} |"
        for name, value in made.parameters_in_order().items()
        if name != "losses"
    ]
    options = "and the options of `nn.CrossEntropyLoss`: `weight`, `ignore_index`, `reduction`, `label_smoothing`"
    if not rows:
        return f"## Parameters\n\nNone of its own, {options}."
    return "\n".join(
        [
            "## Parameters\n",
            "| name | default | range | meaning |",
            "|---|---|---|---|",
            *rows,
            f"\n{options[0].upper()}{options[1:]}.",
        ]
    )


def _home(loss: type[ClassificationLoss]) -> str:
    return "lossmith" if loss.__name__ in dir(lossmith) else "lossmith.losses"


def _presets(loss: type[ClassificationLoss]) -> str:
    rows = [f"| `{loss.name}@{classes}` | `{loss.for_classes(classes)}` |" for classes in loss.presets]
    return "\n".join(["## Published parameters\n", "| written | stands for |", "|---|---|", *rows]) if rows else ""


def _evidence(name: str) -> str:
    """Return what many tables tell of a loss, against cross-entropy; nothing where it was not part of them."""
    found = [row for row in _over_tables() if row["loss"] == name or row["loss"].startswith(f"{name}(")]
    if not found:
        return ""
    return _COMPARED.format(loss=found[0]["loss"], tables=found[0]["tables"], rows="\n".join(map(_compared, found)))


def _compared(row: Mapping[str, Any]) -> str:
    difference = f"{row['difference']:+.1f} ({row['low']:.1f} to {row['high']:.1f})"
    return f"| {row['noise']} | {difference} | {row['ahead']} | {row['behind']} | {row['p_holm']:.2g} |"


@cache
def _over_tables() -> list[dict[str, Any]]:
    return pd.read_csv(RESULTS).to_dict("records")
