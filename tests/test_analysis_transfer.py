"""Logistic regression on frozen features against the objective written out."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.datasets import load_digits

from lossmith.analysis.feature_transfer import STRENGTHS, _Solver, _validation_mask, transfer, transfer_to_classes


def clusters(rows=90, classes=3, dimension=4, spread=1.5, seed=0):
    random = np.random.default_rng(seed)
    labels = np.arange(rows) % classes
    return np.random.default_rng(99).normal(size=(classes, dimension))[labels] + spread * random.normal(
        size=(rows, dimension)
    ), labels


def best_by_scipy(features, labels, classes, strength):
    """Minimise the sum of the losses plus half the strength times the squares of one weight vector for each class."""
    rows, dimension = features.shape

    def objective(flat):
        weights, biases = flat[: classes * dimension].reshape(classes, dimension), flat[classes * dimension :]
        logits = features @ weights.T + biases
        losses = logsumexp(logits, axis=1) - logits[np.arange(rows), labels]
        slope = np.exp(logits - logsumexp(logits, axis=1, keepdims=True)) - np.eye(classes)[labels]
        gradient = np.concatenate([(slope.T @ features + strength * weights).ravel(), slope.sum(0)])
        return losses.sum() + strength / 2 * np.square(weights).sum(), gradient

    start = np.zeros(classes * (dimension + 1))
    flat = minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-6}).x
    return lambda x: x @ flat[: classes * dimension].reshape(classes, dimension).T + flat[classes * dimension :]


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("strength", [1e-2, 1.0, 100.0])
def test_strength_is_of_the_sum_of_losses(classes, strength):
    features, labels = clusters(classes=classes)
    solver = _Solver(1e-8, 10_000)
    model = solver.fit(solver.model(), features, labels, strength)
    logits = best_by_scipy(features, labels, classes, strength)(features)
    expected = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(features), expected, atol=2e-6)
    assert solver.converged


def test_warm_starts_do_not_change_the_minimum():
    features, labels = clusters()
    solver = _Solver(1e-8, 10_000)
    warm = solver.model()
    for strength in (100.0, 1.0, 0.01):
        solver.fit(warm, features, labels, strength)
    cold = solver.fit(solver.model(), features, labels, 0.01)
    np.testing.assert_allclose(warm.predict_proba(features), cold.predict_proba(features), atol=1e-5)


def test_centring_does_not_change_predictions():
    features, labels = clusters(spread=3.0)
    features += 5.0
    solver = _Solver(1e-8, 10_000)
    expected = np.mean(best_by_scipy(features, labels, 3, 10.0)(features).argmax(1) == labels)
    assert solver.path(features, labels, features, labels, [10.0]) == [expected]


def test_strengths_are_those_of_the_paper():
    assert len(STRENGTHS) == 45
    assert (STRENGTHS[0], STRENGTHS[-1]) == pytest.approx((1e-6, 1e5))
    np.testing.assert_allclose(np.diff(np.log10(STRENGTHS)), 0.25, rtol=1e-9)


def test_choice_and_refit():
    features, labels = clusters(rows=60)
    test_features, test_labels = clusters(rows=300, seed=1)
    chosen = np.arange(0, 60, 4)
    result = transfer(features, labels, test_features, test_labels, validation_rows=chosen)
    rest = np.setdiff1d(np.arange(60), chosen)
    scores = _Solver(1e-5, 1000).path(features[rest], labels[rest], features[chosen], labels[chosen], STRENGTHS[::-1])
    np.testing.assert_array_equal(result.validation_accuracy, scores[::-1])
    best = np.flatnonzero(result.validation_accuracy == result.validation_accuracy.max())
    assert result.strength == STRENGTHS[best[-1]]
    logits = best_by_scipy(features, labels, 3, result.strength)(test_features)
    assert result.accuracy == pytest.approx(np.mean(logits.argmax(1) == test_labels), abs=1 / 300)
    assert result.converged


def test_digits():
    features, labels = load_digits(return_X_y=True)
    strengths = (1.0, 100.0, 1e4)
    result = transfer(features[:600], labels[:600], features[600:1000], labels[600:1000], strengths=strengths)
    assert result.accuracy > 0.88
    assert result.strengths == strengths
    assert not transfer(features[:600], labels[:600], features, labels, strengths=(1e-6,), max_iterations=3).converged


def test_held_out_classes():
    features, labels = clusters(classes=4)
    result = transfer_to_classes(features, labels, features, labels, classes=[1, 3])
    rows = np.isin(labels, [1, 3])
    assert result.accuracy == transfer(features[rows], labels[rows], features[rows], labels[rows]).accuracy
    with pytest.raises(ValueError, match=r"^transfer_to_classes: classes must occur among the labels of features, got \[9\]\.$"):
        transfer_to_classes(features, labels, features, labels, classes=[9])


def test_a_fifth_of_each_class_chooses():
    labels = np.repeat([0, 1, 2, 3], [50, 10, 3, 1])
    mask = _validation_mask(labels, None, seed=0)
    assert [int(mask[labels == k].sum()) for k in range(4)] == [10, 2, 1, 0]
    assert (mask != _validation_mask(labels, None, seed=1)).any()


def test_degenerate_input():
    features, labels = np.ones((10, 3)), np.array([0] * 7 + [1] * 3)
    assert transfer(features, labels, features, labels, strengths=(1.0,)).accuracy == 0.7
    with pytest.raises(ValueError, match=r"^transfer: labels must have at least 2 classes to fit to, got 1\.$"):
        transfer(features, [0] * 10, features, labels)
    with pytest.raises(ValueError, match=r"^transfer: a class must have at least 2 examples, one of them for validation, got 1"):
        transfer(features[:2], [0, 1], features, labels)
    with pytest.raises(ValueError, match=r"^transfer: strengths must be > 0, got 0\.0\.$"):
        transfer(features, labels, features, labels, strengths=(0.0,))
    with pytest.raises(ValueError, match=r"^transfer: test_labels must have 10 entries, one for each row, got 9\.$"):
        transfer(features, labels, features, labels[1:])
    with pytest.raises(ValueError, match=r"^transfer: test_features must have 3 columns, as features have, got 2\.$"):
        transfer(features, labels, features[:, :2], labels)
