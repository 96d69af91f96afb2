"""Writes the page: a template, its styles and its scripts, in one file that needs nothing else."""

import json
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from lossmith import __version__
from lossmith.report.explore.sliders import catalogue, printed_losses

__all__ = ["write_explorer"]

SCRIPTS = (
    "softmax.js",
    "tempered.js",
    "top_k.js",
    "rows.js",
    "losses.js",
    "averages.js",
    "state.js",
    "chart.js",
    "panels.js",
    "controls.js",
    "network.js",
    "playground.js",
    "main.js",
)
"""In the order in which they need one another."""


def write_explorer(file: str | Path) -> Path:
    """Write the page with sliders for every loss.

    Args:
        file: Where to; its folder is made where it is missing.

    Returns:
        The file.
    """
    loader = PackageLoader("lossmith.report", "explore")
    environment = Environment(loader=loader, autoescape=select_autoescape(), undefined=StrictUndefined, trim_blocks=True)
    environment.policies["json.dumps_kwargs"] = {}  # the order of the catalogue, and of parameters, is meant
    environment.globals["source"] = lambda name: loader.get_source(environment, name)[0]
    contents = {"catalogue": catalogue(), "formulas": _formulas(), "scripts": SCRIPTS, "version": __version__}
    page = environment.get_template("page.html").render(contents)
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def _formulas() -> str:
    """Return the formulas of all losses, by name and form, as an object of JavaScript."""
    losses = []
    for name, forms in printed_losses()[0].items():
        written = [f"{{ names: {json.dumps(form)}, formula: {formula} }}" for form, formula in forms.items()]
        losses.append(f"  {json.dumps(name)}: [{', '.join(written)}],\n")
    return f"{{\n{''.join(losses)}}}"
