"""Are probabilities to be believed? Reliability diagrams."""

import numpy as np

from lossmith.analysis.calibration import CalibrationBins, ReliabilityDiagram
from lossmith.report.elements import Section, figure
from lossmith.report.line_panels import Axis, Curve, Panel
from lossmith.report.small_multiples import Look, curves_of_losses
from lossmith.report.subject import Series, Subject

_BINS = 10
_FEWEST = 10
"""Examples that a bin needs to be drawn: the share of fewer is mostly luck."""


def section(subject: Subject) -> Section | None:
    """Return a panel for each noise level, with a line for each loss."""
    if not subject.study.classes:
        return None
    panels = [_panel(subject, noise) for noise in subject.noises]
    x, y = Axis.share("confidence", (0.0, 1.0)), Axis.share("accuracy", (0.0, 1.0))
    body = curves_of_losses(panels, x, y, key="reliability", look=Look(diagonal=True, dots=True))
    lead = "On the dotted line a prediction of 80 % is right in 80 % of cases. Below it a model is too sure, above it too modest."
    caption = (
        f"Predictions of all replicates in {_BINS} even bins of their largest probability, without bins of fewer than {_FEWEST}. "
        "The expected calibration error is among the tables above."
    )
    return Section("calibration", "Reliability", lead, figure(body, caption, key="reliability"))


def _panel(subject: Subject, noise: str) -> Panel:
    centres = (np.arange(_BINS) + 0.5) / _BINS
    return Panel(subject.noise_title(noise), centres, [_curve(subject, series, noise) for series in subject.series])


def _curve(subject: Subject, series: Series, noise: str) -> Curve:
    diagram = _diagram(subject, series.name, noise)
    if diagram is None:
        return Curve(series, np.full(_BINS, np.nan))
    return Curve(series, np.where(diagram.counts >= _FEWEST, diagram.accuracy, np.nan))


def _diagram(subject: Subject, loss: str, noise: str) -> ReliabilityDiagram | None:
    bins = CalibrationBins(_BINS)
    runs = subject.runs(loss, noise)
    for run, seed in zip(runs["run"], runs["seed"], strict=True):
        bins.update(subject.study.test_probabilities(run), subject.study.test_labels(seed))
    return bins.diagram() if len(runs) else None
