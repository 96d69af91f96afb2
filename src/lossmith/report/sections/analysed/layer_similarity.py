"""Where in the network losses make a difference."""

import numpy as np
from markupsafe import Markup

from lossmith.report.analysis_sections import analysis_section
from lossmith.report.elements import Section
from lossmith.report.heat_maps import heat_map
from lossmith.report.line_panels import Axis, Curve, Panel
from lossmith.report.small_multiples import Look, curves_of_losses
from lossmith.report.subject import Subject
from lossmith.report.svg import element
from lossmith.studies.study_analysis import Analysis, LayerMaps


def section(subject: Subject) -> Section | None:
    """Return similarity along the layers, and maps of all pairs of layers; nothing without weights or with a single run."""

    def body(analysis: Analysis) -> Markup | None:
        maps = analysis.layers
        if maps is None or subject.baseline not in maps.losses or not np.isfinite(maps.cka).any():
            return None
        return _curves(subject, maps) + element("div", *_maps(subject, maps), class_="panels", style="margin-top: 1.5rem")

    lead = f"Where in the network a loss makes a difference: how alike its layers are to those trained with {subject.baseline}."
    caption = (
        "Linear CKA in percent, averaged over pairs of models: 100 where two layers tell examples apart in the same way. Models "
        "are of different replicates, and read test rows of both, where there are enough of them; otherwise of the same one. "
        f"The line of {subject.baseline} shows what another replicate alone does; it is missing where none is compared."
    )
    return analysis_section(subject, ("layers", "Similarity of layers"), (lead, caption), body)


def _curves(subject: Subject, maps: LayerMaps) -> Markup:
    places = np.arange(1.0, len(maps.layers) + 1.0)
    shown = [series for series in subject.series if series.name in maps.losses]
    curves = [Curve(series, np.diag(maps.between(subject.baseline, series.name))) for series in shown]
    names: dict[float, str] = dict(zip(places.tolist(), maps.layers, strict=True))

    def name(place: float) -> str:
        return names.get(place, "")

    across = Axis("layer", at=places.tolist(), tick_text=lambda place: f"{place:.0f}", value_text=name)
    panel = Panel(f"Corresponding layers, with {subject.baseline}", places, curves)
    return curves_of_losses([panel], across, Axis.share("CKA"), key="layers-together", look=Look(dots=True))


def _maps(subject: Subject, maps: LayerMaps) -> list[Markup]:
    """Return the baseline with itself, with the recommended loss and with the one whose last layer is least like its own."""
    last = maps.of_layer(maps.layers[-1]).loc[subject.baseline].drop(subject.baseline)
    farthest = [str(last.idxmin())] if len(last) else []
    chosen = [loss for loss in (subject.baseline, subject.advice.loss, *farthest) if loss in maps.losses]
    drawn = {loss: maps.between(subject.baseline, loss) for loss in dict.fromkeys(chosen)}
    return [
        heat_map(f"{subject.baseline} with {loss}", matrix, maps.layers, subject.baseline, loss, span=(0.0, 1.0))
        for loss, matrix in drawn.items()
        if np.isfinite(matrix).all()
    ]
