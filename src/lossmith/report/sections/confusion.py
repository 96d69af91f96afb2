"""Which classes are taken for which: predictions on the test split, and the labels that training saw."""

import numpy as np
from markupsafe import Markup

from lossmith.report.elements import Section, cases, figure
from lossmith.report.heat_maps import heat_map
from lossmith.report.subject import Subject
from lossmith.report.svg import element
from lossmith.statistics.summary import best_loss


def section(subject: Subject) -> Section | None:
    """Return for each noise level the labels given and the predictions of the recommended loss and of the baseline."""
    if not subject.study.classes:
        return None
    bodies = {subject.noise_title(noise): _maps(subject, noise) for noise in subject.noises}
    lead = "Labels as training saw them, beside predictions on the test split. Where noise is copied, both have the same pattern."
    caption = "Shares of each row in percent. The colour is the root of the share, so that rare mistakes show."
    return Section(
        "confusion",
        "Confusion and noise",
        lead,
        figure(cases("At", bodies, "confusion", first=list(bodies)[-1]), caption, key="confusion"),
    )


def _maps(subject: Subject, noise: str) -> Markup:
    names = subject.study.classes
    maps = []
    if noise in subject.noisy:
        maps.append(heat_map("Labels in training", subject.study.noise_matrix(noise), names, "true class", "label given"))
    for loss in dict.fromkeys((subject.advice.loss, subject.baseline, *_runner_up(subject))):
        matrix = _confusion(subject, loss, noise)
        if matrix is not None:
            maps.append(heat_map(f"Predictions with {loss}", matrix, names, "true class", "predicted"))
    return element("div", *maps, class_="panels")


def _runner_up(subject: Subject) -> list[str]:
    """Return another loss to look at where the baseline is recommended: the best of the others."""
    if not subject.advice.keeps_baseline:
        return []
    best = best_loss(subject.results[subject.results["loss"] != subject.baseline], subject.metric)
    return [best] if best else []


def _confusion(subject: Subject, loss: str, noise: str) -> np.ndarray | None:
    """Return the shares of predictions of every true class, over all replicates, each with the rows of its own test split."""
    classes = len(subject.study.classes)
    counts = np.zeros((classes, classes))
    runs = subject.runs(loss, noise)
    for run, seed in zip(runs["run"], runs["seed"], strict=True):
        np.add.at(counts, (subject.study.test_labels(seed), subject.study.test_probabilities(run).argmax(1)), 1)
    return counts / np.maximum(counts.sum(1, keepdims=True), 1) if len(runs) else None
