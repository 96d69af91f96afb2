"""Metrics by which a study chooses: higher is better, whatever the metric."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import balanced_accuracy_score, f1_score, log_loss, top_k_accuracy_score

from lossmith.studies.measures import MEASURES, METRICS, merit_of, score_of


def predictions(rows=120, classes=8):
    generator = np.random.default_rng(0)
    labels = generator.integers(classes, size=rows)
    logits = generator.normal(size=(rows, classes)) + 1.5 * np.eye(classes)[labels]
    return softmax(logits, 1), labels


def test_scores_against_scikit_learn():
    probabilities, labels = predictions()
    predicted = probabilities.argmax(1)
    expected = {
        "accuracy": np.mean(predicted == labels),
        "balanced_accuracy": balanced_accuracy_score(labels, predicted),
        "macro_f1": f1_score(labels, predicted, average="macro"),
        "nll": -log_loss(labels, probabilities),
        "brier": -np.square(probabilities - np.eye(8)[labels]).sum(1).mean(),
        "top5": top_k_accuracy_score(labels, probabilities, k=5),
    }
    assert expected.keys() == set(METRICS) <= MEASURES.keys()
    for metric, value in expected.items():
        assert score_of(metric, probabilities, labels) == pytest.approx(value, rel=1e-6), metric


@pytest.mark.parametrize("metric", METRICS)
def test_better_predictions_have_higher_scores(metric):
    probabilities, labels = predictions()
    sharper = 0.2 * probabilities + 0.8 * np.eye(8)[labels]
    assert score_of(metric, sharper, labels) > score_of(metric, probabilities, labels)


def test_unknown_metric():
    with pytest.raises(ValueError, match=r"metric must be one of .*, got 'acuracy'; did you mean 'accuracy'\?"):
        score_of("acuracy", *predictions())


@pytest.mark.parametrize("metric", METRICS)
def test_merits_do_not_depend_on_how_sure_a_network_is(metric):
    probabilities, labels = predictions()
    surer = probabilities**7 / (probabilities**7).sum(1, keepdims=True)
    merit, other = merit_of(metric, probabilities, labels), merit_of(metric, surer, labels)
    if metric in ("nll", "brier"):
        assert other.score < merit.score
        assert np.isnan([other.likelihood, merit.likelihood]).all()
    else:
        assert other == pytest.approx(merit, rel=1e-6)


def test_classes_count_alike_in_the_likelihood_where_they_do_so_in_the_metric():
    probabilities, labels = predictions()
    few = np.flatnonzero((labels > 0) | (np.arange(len(labels)) < 20))
    twice = np.concatenate([few, few[labels[few] == 0]])
    for metric, changes in (("accuracy", True), ("balanced_accuracy", False), ("macro_f1", False)):
        once, again = (merit_of(metric, probabilities[rows], labels[rows]).likelihood for rows in (few, twice))
        assert (once != pytest.approx(again, abs=1e-9)) == changes, metric
