"""Writes the page on which suspect labels are looked through, with the texts or images themselves."""

import base64
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup
from PIL import Image

from lossmith import __version__
from lossmith.data import PreparedData
from lossmith.data.sparse_rows import as_tensor
from lossmith.report.elements import MISSING, values_table
from lossmith.report.heat_maps import heat_map
from lossmith.report.study_page import page_resource, page_style
from lossmith.studies.labels.inspection import LabelInspection

__all__ = ["write_inspection"]

MOST_SHOWN = 300
"""Suspects on the page: more than anybody looks through in an hour."""
LONGEST_TEXT = 3000
MOST_FIELDS = 30


def write_inspection(inspection: LabelInspection, file: str | Path) -> Path:
    """Write the page: one file that needs nothing else, to mark labels right or wrong by keyboard and save the corrected ones.

    Args:
        inspection: What ``lossmith.inspect_labels`` found.
        file: Where to; its folder is made where it is missing.

    Returns:
        The file.
    """
    loader = PackageLoader("lossmith.report", "labels")
    environment = Environment(loader=loader, autoescape=select_autoescape(), undefined=StrictUndefined, trim_blocks=True)
    own = {name: Markup(loader.get_source(environment, name)[0]) for name in ("review.css", "review.js")}  # noqa: S704  ours
    page = environment.get_template("page.html").render(
        **_words(inspection),
        classes=_classes(inspection.estimate.by_class),
        matrix=_matrix(inspection),
        facts=_facts(inspection),
        items=range(min(len(inspection.suspects), MOST_SHOWN)),
        style=Markup("\n").join([page_style(), own["review.css"]]),
        page_script=page_resource("script.js"),
        script=own["review.js"],
        version=__version__,
    )
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def _words(inspection: LabelInspection) -> dict[str, str]:
    estimate, number = inspection.estimate, len(inspection.suspects)
    low, high = (f"{100 * end:.1f}" for end in estimate.interval)
    shown = "" if number <= MOST_SHOWN else f" The first {MOST_SHOWN} are here, all are in suspects.csv."
    return {
        "name": inspection.data.name,
        "headline": f"{100 * estimate.rate:.1f} % of the labels",
        "verdict": f"{low} to {high} % with 95 % confidence, if the most certain predictions are right; confident learning, the"
        f" published method, says {100 * inspection.confident_rate:.1f} %. {number} of {len(inspection.rows)} labels are more"
        f" likely wrong than right. {estimate.caution}".rstrip(),
        "method": f"Every row was predicted by networks ({inspection.model}) that did not see it, in {inspection.folds} folds,"
        f" trained with {' and with '.join(inspection.by_loss)}.",
        "lead": f"The most suspect first.{shown} Say which are wrong, by keyboard or by touch, and save the labels of all rows.",
    }


def _classes(by_class: pd.DataFrame) -> Markup:
    def percent(value: float) -> str:
        return f"{100 * value:.1f}" if np.isfinite(value) else MISSING

    rows = [
        [
            str(name),
            str(row.rows),
            percent(row.wrong),
            f"{percent(row.low)} to {percent(row.high)}",
            str(row.probably),
            percent(row.missed),
        ]
        for name, row in by_class.sort_values("wrong", ascending=False).iterrows()
    ]
    return values_table("Wrong labels, in percent", ["label", "rows", "wrong", "95 %", "most are", "missed"], rows)


def _matrix(inspection: LabelInspection) -> Markup:
    matrix = inspection.estimate.transition.to_numpy()
    return heat_map("Shares of true classes", matrix, [str(name) for name in inspection.data.classes], "true class", "label")


def _facts(inspection: LabelInspection) -> dict[str, Any]:
    """Return what the page's script needs."""
    number_of = {name: number for number, name in enumerate(inspection.data.classes)}
    shown = inspection.suspects.head(MOST_SHOWN)
    items = [
        {
            "row": int(each.row),
            "label": number_of[each.label],
            "probably": number_of[each.probably],
            "chance": round(float(each.chance), 4),
            "duplicate": None if pd.isna(each.duplicate) else [int(each.duplicate), str(each.duplicate_label)],
            **_content(inspection, int(each.row)),
        }
        for each in shown.itertuples()
    ]
    return {
        "fingerprint": inspection.data.fingerprint(),
        "classes": list(map(str, inspection.data.classes)),
        "rows": inspection.rows.tolist(),
        "labels": inspection.labels.tolist(),
        "items": items,
    }


def _content(inspection: LabelInspection, row: int) -> dict[str, Any]:
    """Return what a row is, as people read it."""
    data = inspection.data
    if data.kind == "text" and data.texts is not None:
        return {"text": _cut(data.texts.strings[row])}
    if data.kind == "image":
        return {"image": _picture(data, row)}
    if inspection.frame is not None:
        values = inspection.frame.iloc[row]
        return {"fields": [[str(name), _cut(str(value))] for name, value in list(values.items())[:MOST_FIELDS]]}
    numbers = as_tensor(data.inputs[torch.tensor([row])]).flatten().tolist()[:MOST_FIELDS]
    return {"fields": [[f"input {number}", f"{value:.4g}"] for number, value in enumerate(numbers)]}


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} …"


def _picture(data: PreparedData, row: int) -> str:
    """Return an image of the data, from its darkest to its lightest value."""
    values = as_tensor(data.inputs[torch.tensor([row])])[0].double().numpy()
    low, high = values.min(), values.max()
    pixels = np.rint(255 * (values - low) / max(high - low, 1e-9)).astype(np.uint8)
    channels = pixels[0] if len(pixels) == 1 else np.moveaxis(pixels[:3], 0, -1)
    file = BytesIO()
    Image.fromarray(channels).save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
