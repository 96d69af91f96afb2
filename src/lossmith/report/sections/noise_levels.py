"""Accuracy against the share of wrong labels."""

import numpy as np

from lossmith.experiments.statistics import summarise
from lossmith.report.elements import figure, legend
from lossmith.report.line_panels import Axis, Curve, Panel, line_panels
from lossmith.report.section import Section
from lossmith.report.subject import Subject


def section(subject: Subject) -> Section | None:
    """Return one panel over all noise levels; None where there is one level only."""
    if len(subject.noises) < 2:
        return None
    x, axis = _across(subject)
    table = summarise(subject.results).set_index(["loss", "noise"])
    curves = []
    for series in subject.series:
        rows = table.loc[series.name].reindex(list(subject.noises))
        error = rows["standard_error"].to_numpy(float)
        mean = rows["mean"].to_numpy(float)
        curves.append(Curve(series, mean, mean - error, mean + error))
    body = line_panels([Panel("Test accuracy", x, curves)], axis, Axis.share("accuracy"), dots=True)
    lead = "A loss that resists wrong labels stays high to the right. Where lines cross, the best loss depends on the noise."
    caption = "Mean over seeds; bands are ± one standard error. Test labels are never corrupted."
    return Section("noise", "Accuracy against noise", lead, figure(body, caption, key="noise", before=legend(subject.series)))


def _across(subject: Subject) -> tuple[np.ndarray, Axis]:
    """Return places of the noise levels: their rates, or where kinds of noise differ just one beside the other."""
    rates = np.array([subject.rates[noise] for noise in subject.noises])
    kinds = {noise.partition("(")[0] for noise in subject.noisy}
    if len(kinds) == 1 and len(np.unique(rates)) == len(rates):
        axis = Axis.share("wrong labels in training")
        return rates, axis
    names = {float(number): noise for number, noise in enumerate(subject.noises)}
    places = np.array(list(names))
    return places, Axis("noise", (-0.3, len(names) - 0.7), list(names), names.__getitem__, names.__getitem__)
