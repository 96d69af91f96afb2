"""The answer, in words: which loss, how sure, on what evidence, and what would change it."""

import re
from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from lossmith.losses import make_loss
from lossmith.losses.contract.needs_data import NeedsData
from lossmith.report.elements import copyable
from lossmith.statistics.recommendation import Recommendation
from lossmith.statistics.verdicts import DEPENDS, Choice
from lossmith.statistics.wording import listed, percent

__all__ = ["answer", "page_templates"]

_STRENGTHS = {"strong evidence": "strong", "evidence": "some", DEPENDS: "depends"}


def answer(
    advice: Recommendation,
    *,
    losses: Sequence[str] = (),
    notes: Sequence[str] = (),
    winner: str = "",
    picture: Markup | str = "",
) -> Markup:
    """Return a recommendation as the report begins with it.

    Args:
        advice: What a study recommends.
        losses: Those of the study, as far as the recommendation does not compare them.
        notes: What is to be known before anything else.
        winner: The classes of the recommended loss, which give it its colour.
        picture: What stands below the choices by noise.

    Returns:
        HTML.
    """
    snippet = _snippet(advice)
    lists = {
        "How much will you tune?": advice.tuning,
        "What other data say": advice.elsewhere,
        "What else it gives": advice.benefits,
        "What it costs": advice.costs,
        "What would change this": advice.would_change,
    }
    page = page_templates([*_names(advice), *losses]).get_template("answer.html")
    shown = page.render(
        advice=advice,
        notes=notes,
        winner=winner,
        choices=sorted(advice.by_noise, key=lambda choice: choice.noise_rate),
        told={choice.noise: _told(choice) for choice in advice.by_noise},
        words={choice.noise: _wrong_labels(choice.noise_rate) for choice in advice.by_noise},
        strength=_STRENGTHS.get(advice.sure, "none"),
        lists=lists,
        cards=sum(map(bool, (*lists.values(), snippet))) or 1,
        picture=picture,
        snippet=snippet,
    )
    return Markup(shown)  # noqa: S704  the template escapes


def page_templates(names: Sequence[str] = ()) -> Environment:
    """Return the templates of pages, with a filter that sets names of losses as code.

    Args:
        names: The losses.

    Returns:
        The environment of Jinja.
    """
    loader = PackageLoader("lossmith.report")
    templates = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    templates.filters["code"] = lambda text: _with_code(text, names)
    return templates


def _names(advice: Recommendation) -> list[str]:
    compared = advice.differences.get("loss", [])
    return list(dict.fromkeys((advice.baseline, advice.loss, *map(str, compared))))


def _wrong_labels(rate: float) -> str:
    return f"{percent(rate)} wrong labels" if rate > 0 else "labels as they are"


def _told(choice: Choice) -> str:
    """Return what is said of a level of added noise."""
    untrained = f"Untrained: {listed(choice.untrained)}." if choice.untrained else ""
    return " ".join(filter(None, (choice.reason, *choice.depends, untrained, choice.reference)))


def _snippet(advice: Recommendation) -> Markup:
    """Return the line that makes the recommended loss; nothing for an objective or a loss that the user brought."""
    try:
        loss = make_loss(advice.loss)
    except ValueError:
        return Markup()
    lacking = {name for part in loss.modules() if isinstance(part, NeedsData) for name in part.lacking()}
    told = ", counts=counts)  # the training rows of each class" if lacking == {"counts"} else ")"
    told += "  # with the matrix that lossmith inspect writes in the place of estimate" if "matrix" in lacking else ""
    return copyable(f'loss = lossmith.make_loss("{advice.loss}"{told}')


def _with_code(text: str, names: Sequence[str]) -> Markup:
    """Return a sentence with the names of losses set as code; the longest first, since names contain one another."""
    longest_first = sorted(map(str, map(escape, names)), key=len, reverse=True)
    name = "|".join(map(re.escape, longest_first))
    marked = re.sub(rf"(?<![\w(*-])(?:{name})(?![\w(*-])", r"<code>\g<0></code>", str(escape(text))) if name else escape(text)
    return Markup(re.sub(r"(?<= )-(?=\d)", "\N{MINUS SIGN}", marked))  # noqa: S704  the text was escaped
