"""How many labels are wrong and which ones, on labels that were made wrong."""

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score

from lossmith import ForwardCorrection, make_loss
from lossmith.analysis import confident_joint, confident_suspects, estimate_noise, suspects

ROWS, CLASSES = 3000, 4
PAIR = np.eye(CLASSES) * 0.8 + np.roll(np.eye(CLASSES), 1, 1) * 0.2
EVEN = np.eye(CLASSES) * 0.6 + (1 - np.eye(CLASSES)) * 0.4 / 3


def predictions(matrix: np.ndarray, certainty: float = 10.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return probabilities that know the truth more or less well, the truth, and labels that the matrix made of it."""
    generator = np.random.default_rng(seed)
    truth = generator.integers(CLASSES, size=ROWS)
    logits = generator.normal(size=(ROWS, CLASSES)) + certainty * generator.random((ROWS, 1)) * np.eye(CLASSES)[truth]
    noisy = torch.softmax(torch.from_numpy(2 * logits), 1).numpy() @ matrix
    labels = np.array([generator.choice(CLASSES, p=matrix[label]) for label in truth])
    return noisy, truth, labels


@pytest.mark.parametrize("matrix", [np.eye(CLASSES), 0.95 * np.eye(CLASSES) + 0.05 / 4, PAIR, EVEN])
def test_the_share_of_wrong_labels_and_what_was_taken_for_what(matrix):
    probabilities, truth, labels = predictions(matrix)
    found = estimate_noise(torch.from_numpy(probabilities), torch.from_numpy(labels))
    wrong = np.mean(labels != truth)
    assert found.rate == pytest.approx(wrong, abs=0.03)
    assert found.interval[0] - 1e-3 <= wrong <= found.interval[1] + 1e-3
    joint = np.zeros((CLASSES, CLASSES))
    np.add.at(joint, (truth, labels), 1 / ROWS)
    assert np.abs(found.joint - joint).to_numpy().sum() < 0.1
    assert np.abs(confident_joint(probabilities, labels) - joint).sum() < 0.25  # the published method, to compare with
    np.testing.assert_allclose(found.transition.sum(axis=1), 1.0)
    assert 1 - np.trace(found.joint) == pytest.approx(found.rate)
    assert found.joint.to_numpy().sum() == pytest.approx(1.0)
    shares = [np.mean(truth[labels == label] != label) for label in range(CLASSES)]
    np.testing.assert_allclose(found.by_class["wrong"], shares, atol=0.08)
    assert (found.by_class["low"] <= found.by_class["wrong"]).all()
    assert (found.by_class["wrong"] <= found.by_class["high"]).all()


@pytest.mark.parametrize("matrix", [PAIR, EVEN])
def test_suspects_are_ranked_by_how_likely_their_label_is_wrong(matrix):
    probabilities, truth, labels = predictions(matrix)
    found = suspects(probabilities, labels, least=0.0)
    assert sorted(found["row"]) == list(range(ROWS))
    assert found["chance"].is_monotonic_decreasing
    is_wrong = (labels != truth)[found["row"]]
    own = average_precision_score(is_wrong, found["chance"])
    published = average_precision_score(labels != truth, confident_suspects(probabilities, labels))
    assert min(own, published) > 0.75
    listed = suspects(probabilities, labels)
    assert len(listed) == (found["chance"] >= 0.5).sum()
    assert (found.loc[: len(listed) - 1, "probably"] == truth[listed["row"]])[is_wrong[: len(listed)]].mean() > 0.8
    # Chances are to be believed, on average: of those that are listed, and of all others.
    is_listed = np.arange(ROWS) < len(listed)
    assert is_wrong[is_listed].mean() == pytest.approx(found["chance"][is_listed].mean(), abs=0.15)
    assert is_wrong[~is_listed].mean() == pytest.approx(found["chance"][~is_listed].mean(), abs=0.03)


def test_labels_that_are_wrong_on_unclear_rows_alone_are_not_counted_and_it_says_so():
    """As those of people: 8 % of all labels are wrong, and each of them where predictions hardly know better than chance."""
    probabilities, truth, _ = predictions(np.eye(CLASSES), certainty=4.0)
    ordered = np.sort(probabilities, 1)
    unclear = np.argsort(ordered[:, -1] - ordered[:, -2])[: int(0.16 * ROWS)]
    labels = truth.copy()
    labels[unclear[::2]] = (truth[unclear[::2]] + 1) % CLASSES
    found = estimate_noise(probabilities, labels)
    assert found.interval[1] < np.mean(labels != truth)
    assert f"{100 * found.error:.0f} % of the predictions are taken to be wrong themselves" in found.caution
    assert estimate_noise(*predictions(PAIR)[::2]).caution == ""


def test_confident_learning_by_hand():
    probabilities = [[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.85, 0.15], [0.3, 0.7]]
    labels = [0, 0, 1, 1, 1]
    # Thresholds are .75 and .55: the second row is of no class, the fourth of class 0. A row of label 0 counts for two.
    np.testing.assert_allclose(confident_joint(probabilities, labels), [[0.4, 0.2], [0.0, 0.4]])
    np.testing.assert_allclose(confident_suspects(probabilities, labels), [-0.8, -0.2, -0.6, 0.7, -0.4])


def test_names_few_rows_and_labels_that_nobody_has():
    probabilities = np.tile([[0.7, 0.2, 0.1]], (6, 1))
    found = estimate_noise(probabilities, [0, 0, 0, 0, 1, 0], classes=["a", "b", "c"])
    assert list(found.transition.columns) == ["a", "b", "c"]
    assert found.interval[1] - found.interval[0] > 0.3  # six rows tell little
    assert found.by_class.loc["c", "rows"] == 0
    assert np.isnan(found.by_class.loc["c", "wrong"])
    assert str(found).endswith(f"({100 * found.interval[0]:.1f} to {100 * found.interval[1]:.1f})")
    assert suspects(probabilities, [0, 0, 0, 0, 1, 0], classes=["a", "b", "c"], least=0.1).loc[0, "label"] == "b"


@pytest.mark.parametrize(
    ("probabilities", "labels", "options", "message"),
    [
        ([[0.5, 0.6]], [0], {}, "sum to 1"),
        ([[0.5, 0.5]], [2], {}, r"labels must be in \[0, 2\), got 2"),
        ([[1.0]], [0], {}, "2 classes at least, got 1"),
        ([[0.5, 0.5]], [0], {"classes": ["a"]}, "classes must be 2 names"),
        ([[0.5, 0.5]], [0], {"least": 2}, r"least must be in \[0, 1\], got 2"),
    ],
)
def test_bad_input_is_one_line(probabilities, labels, options, message):
    with pytest.raises(ValueError, match=message):
        suspects(probabilities, labels, **options)


def test_an_estimate_corrects_a_loss():
    probabilities, _, labels = predictions(PAIR)
    found = estimate_noise(probabilities, labels)
    corrected = ForwardCorrection(matrix=found.transition)
    np.testing.assert_allclose(corrected.matrix.matrix, found.transition, rtol=1e-12)
    assert make_loss(str(corrected)).matrix.matrix.equal(corrected.matrix.matrix)
    with pytest.raises(ValueError, match="estimate is filled in by compare"):
        make_loss("forward-correction(ce, matrix=estimate)")(torch.zeros(2, 3), torch.tensor([0, 1]))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("forward-correction(z-loss)", "loss must be one of the target's probability"),
        ("forward-correction(ce, matrix=pear(0.2))", "unknown matrix 'pear'"),
        ("forward-correction(ce, matrix=[0.5])", "must be square"),
        ("forward-correction(ce, matrix=matrix([0.5, 0.4], [0, 1]))", "row 0 must be shares that add up to 1"),
        ("forward-correction(ce, matrix=matrix([1, 0], [1, 0]))", "label 1 must be that of some class"),
        ("forward-correction(ce, rate=0.1, matrix=pair(0.1))", "either matrix or rate"),
        ("backward-correction(ce, matrix=pair(1))", r"rate must be in \[0, 1\)"),
    ],
)
def test_matrices_that_cannot_be_are_one_line(expression, message):
    with pytest.raises(ValueError, match=message):
        make_loss(expression)


@pytest.mark.parametrize("expression", ["backward-correction(ce, rate=0.75)", "backward-correction(ce, matrix=pair(0.5))"])
def test_labels_that_tell_nothing_cannot_be_corrected(expression):
    with pytest.raises(ValueError, match="labels of 4 classes must tell something"):
        make_loss(expression)(torch.zeros(2, 4), torch.tensor([0, 1]))


@pytest.mark.parametrize("inner", ["ce", "gce", "nce + mae"])
@pytest.mark.parametrize("matrix", [PAIR, EVEN])
def test_corrected_losses_of_noisy_labels_are_those_of_true_ones(inner, matrix):
    """On average over labels: backward as it is, forward in what minimises it."""
    logits = torch.randn(5, CLASSES, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rows = ", ".join(map(str, matrix.tolist()))
    backward = make_loss(f"backward-correction({inner}, matrix=matrix({rows}))", reduction="none")
    for truth in range(CLASSES):
        mean = sum(share * backward(logits, torch.full((5,), label)) for label, share in enumerate(matrix[truth]))
        torch.testing.assert_close(mean, make_loss(inner, reduction="none")(logits, torch.full((5,), truth)))
    forward = make_loss(f"forward-correction(ce, matrix=matrix({rows}))")
    truths = torch.softmax(logits, 1)
    at_truth = logits.clone().requires_grad_()
    forward(at_truth, truths @ torch.from_numpy(matrix)).backward()
    assert at_truth.grad.abs().max() < 1e-12
