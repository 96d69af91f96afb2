"""A part of a page that is at home on any other: its style and its script stay within it."""

import hashlib
import re
from functools import cache
from itertools import count

from markupsafe import Markup

from lossmith.report.line_panels import plot_clips
from lossmith.report.study_page import page_resource, page_style
from lossmith.report.svg import element

__all__ = ["framed_page", "page_of", "scoped"]

_NUMBERS = count(1)
_FRAME_HEIGHT = 720
_DARK_HOSTS = ('[data-jp-theme-light="false"] &', ".vscode-dark &", '[data-theme="dark"] &', 'html[theme="dark"] &')
_LIGHT_HOSTS = ('[data-jp-theme-light="true"] &', ".vscode-light &", '[data-theme="light"] &', 'html[theme="light"] &')
"""How JupyterLab, VS Code, Sphinx's furo and Colab say that they are dark or light, whatever the system prefers."""
_PLAIN = "table, caption, thead, tbody, tr, th, td, pre, code, figure { background: none; border: 0; margin: 0; color: inherit; }"
"""What hosts like to decorate, which the rules of the page take for plain."""
_IN_A_CELL = """\
& { position: relative; background: none; padding: .25rem 0; }
main { padding: 0; }
section, .answer { margin: 1rem 0; }
.answer h1 { font-size: 2rem; }
table { margin: 0; }
"""


def scoped(body: Markup) -> str:
    """Return HTML whose style reaches nothing else, and which answers to pointer and keys where scripts run.

    Every rule is nested in the identifier of the element, which also makes it stronger than the rules of the notebook around it.

    Args:
        body: What is shown.

    Returns:
        HTML for a cell's output.
    """
    name = f"lossmith-{hashlib.sha256(body.encode()).hexdigest()[:8]}-{next(_NUMBERS)}"
    style = element("style", Markup(f"#{name} {{\n{_nested_style()}\n}}"))  # noqa: S704  ours
    start = f'(() => {{ {page_resource("script.js")} enliven(document.getElementById("{name}")); }})();'
    tip = element("div", id="tip", role="status", hidden="hidden")
    script = element("script", Markup(start))  # noqa: S704  ours
    return str(element("div", style, element("main", body), plot_clips(), tip, script, id=name))


def framed_page(page: str, title: str) -> str:
    """Return a whole page within another one.

    Args:
        page: HTML with head and body.
        title: What it is, for those who do not see it.

    Returns:
        HTML for a cell's output.
    """
    look = f"width: 100%; height: {_FRAME_HEIGHT}px; border: 1px solid #8885; border-radius: 6px;"
    return str(element("iframe", srcdoc=page, title=title, style=look))


def page_of(fragment: str, title: str) -> str:
    """Return a page that holds nothing but a fragment.

    Args:
        fragment: What :func:`scoped` returned.
        title: Of the page.

    Returns:
        HTML that needs no other file.
    """
    head = (
        element("meta", charset="utf-8")
        + element("title", title)
        + element("style", "body { margin: 2rem auto; max-width: 72rem; }")
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{fragment}</body></html>\n'


@cache
def _nested_style() -> str:
    """Return the style of the page such that it can stand within another rule, and follows the colours of its host."""
    rules = re.sub(r"^html .*$|^@media \(prefers-reduced-motion.*$", "", str(page_style()), flags=re.MULTILINE)
    schemes = [_host_colours(rules, _DARK_HOSTS, dark=True), _host_colours(rules, _LIGHT_HOSTS, dark=False)]
    rules = re.sub(r"^( *)(:root|body)\b", r"\1&", rules, flags=re.MULTILINE).replace("{ :root {", "{ & {")
    rules = re.sub(r"(?<![\w-])\.script ", "&.script ", rules)
    return "\n".join([_PLAIN, rules, *schemes, _IN_A_CELL])


def _host_colours(rules: str, hosts: tuple[str, ...], *, dark: bool) -> str:
    """Return the variables of one colour scheme, for hosts that name it."""
    within = r"prefers-color-scheme: dark\) \{\s*:root \{([^}]*)\}" if dark else r"^:root \{([^}]*)\}"
    variables = " ".join(re.findall(within, rules, flags=re.MULTILINE))
    return f"{', '.join(hosts)} {{ {variables} }}"
