"""Which losses predict alike, and what they know together."""

import numpy as np
import pandas as pd
from markupsafe import Markup

from lossmith.report.analysis_sections import analysis_section
from lossmith.report.dendrograms import dendrogram
from lossmith.report.elements import Section
from lossmith.report.heat_maps import heat_map
from lossmith.report.subject import Subject
from lossmith.report.svg import element
from lossmith.studies.study_analysis import Analysis

_LEAD = (
    "Runs of one loss in different replicates show how much agreement there can be. Losses that agree less see other things, "
    "and have more to gain from one another in an ensemble."
)
_CAPTION = (
    "Percent of the test rows for which two runs predict the same, over pairs of runs of different replicates where these share "
    "enough test rows, of the same one otherwise. Losses are in the order of the tree, which joins what is most alike first: "
    "runs, or losses where only runs of the same replicate are compared. Ensembles are majority votes, half of the runs from "
    "either loss; there are none where every replicate has test rows of its own."
)


def section(subject: Subject) -> Section | None:
    """Return heat maps and a dendrogram for each noise level; nothing where no analysis was made or there is one run."""
    known = {series.name for series in subject.series}

    def body(analysis: Analysis) -> Markup | None:
        # Since the analysis was made, runs may have gone missing, and with them all results of a loss.
        return _drawings(subject, analysis) if analysis.brackets and known.issuperset(_losses(analysis)) else None

    return analysis_section(subject, ("agreement", "Agreement"), (_LEAD, _CAPTION), body)


def _drawings(subject: Subject, analysis: Analysis) -> Markup:
    looks = {series.name: series for series in subject.series}
    losses = _losses(analysis)
    order = _mean_places(losses)
    maps = [_map("Same prediction", analysis.agreement["same_prediction"], order)]
    if analysis.ensembles is not None:
        maps.append(_map("Accuracy of ensembles", analysis.ensembles, [loss for loss in order if loss in analysis.ensembles]))
    tree = dendrogram("Runs by agreement", analysis.run_agreement, analysis.brackets, [looks[loss] for loss in losses])
    return element("div", maps[0], tree, *maps[1:], class_="panels")


def _losses(analysis: Analysis) -> list[str]:
    """Return the loss of each run, in the order of the leaves."""
    return [str(run).rsplit(", seed ", 1)[0] for run in analysis.run_agreement.index]


def _mean_places(losses: list[str]) -> list[str]:
    """Return the losses by the mean place of their runs among the leaves."""
    places: dict[str, list[int]] = {}
    for place, loss in enumerate(losses):
        places.setdefault(loss, []).append(place)
    return sorted(places, key=lambda loss: float(np.mean(places[loss])))


def _map(title: str, table: pd.DataFrame, order: list[str]) -> Markup:
    matrix = table.loc[order, order].to_numpy()
    span = (float(np.nanmin(matrix)), float(np.nanmax(matrix))) if np.isfinite(matrix).any() else None
    return heat_map(title, matrix, order, "loss", "with", span=span)
