"""Agreement, clusters and ensembles of predictions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mode

from lossmith.analysis.prediction_agreement import agreement, cluster, ensemble_accuracy, ensembles, majority_vote


def runs(count=5, rows=40, classes=4, seed=0):
    random = np.random.default_rng(seed)
    labels = random.integers(classes, size=rows)
    noise = random.integers(classes, size=(count, rows))
    return np.where(random.random((count, rows)) < 0.5, labels, noise), labels


@given(st.integers(0, 1000), st.integers(1, 5), st.integers(1, 12), st.integers(1, 4))
@settings(max_examples=50, deadline=None)
def test_agreement_against_loops(seed, count, rows, classes):
    predictions, labels = runs(count, rows, classes, seed)
    got = agreement(list(predictions), labels)
    for i in range(count):
        for j in range(count):
            pairs = list(zip(predictions[i], predictions[j], labels, strict=True))
            assert got.same_prediction[i, j] == pytest.approx(np.mean([a == b for a, b, _ in pairs]))
            assert got.both_right_or_wrong[i, j] == pytest.approx(np.mean([(a == y) == (b == y) for a, b, y in pairs]))
            mistakes = [a == b for a, b, y in pairs if y not in (a, b)]
            assert got.same_mistake[i, j] == pytest.approx(np.mean(mistakes) if mistakes else 1.0)


def test_scores_are_predictions():
    predictions, labels = runs()
    scores = [np.eye(4)[run] for run in predictions]
    np.testing.assert_array_equal(agreement(scores, labels).same_prediction, agreement(list(predictions), labels).same_prediction)


def test_clusters_join_what_is_alike():
    similarity = np.full((4, 4), 0.2)
    for a, b, value in ((0, 2, 0.9), (1, 3, 0.8)):
        similarity[a, b] = similarity[b, a] = value
    np.fill_diagonal(similarity, 1.0)
    tree = cluster(similarity)
    assert {frozenset(tree.order[:2]), frozenset(tree.order[2:])} == {frozenset({0, 2}), frozenset({1, 3})}
    np.testing.assert_allclose(tree.linkage[:, 2], [0.1, 0.2, 0.8])
    assert sorted(max(height for _, height in bracket) for bracket in tree.brackets) == pytest.approx([0.1, 0.2, 0.8])
    leaves = {position for bracket in tree.brackets for position, height in bracket if height == 0.0}
    assert leaves == {0.0, 1.0, 2.0, 3.0}


def test_clusters_of_few_runs():
    assert cluster([[1.0]]).order == (0,)
    assert cluster([[1.0]]).brackets == ()
    assert cluster(np.ones((3, 3))).linkage[:, 2].tolist() == [0.0, 0.0]


def test_majority_against_scipy():
    predictions, _ = runs(count=7, rows=200)
    np.testing.assert_array_equal(majority_vote(list(predictions)), mode(predictions, axis=0).mode)


@given(st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_chance_decides_ties(seed):
    predictions, labels = runs(count=4, seed=seed)
    expected = []
    for votes, label in zip(predictions.T, labels, strict=True):
        counts = np.bincount(votes)
        leading = np.flatnonzero(counts == counts.max())
        expected.append((label in leading) / len(leading))
    assert ensemble_accuracy(list(predictions), labels) == pytest.approx(np.mean(expected))
    assert ensemble_accuracy(list(predictions[::-1]), labels) == pytest.approx(np.mean(expected))


def test_ensembles_within_and_between_losses():
    predictions, labels = runs(count=10, rows=100)
    by_loss = {"a": list(predictions[:5]), "b": list(predictions[5:])}
    table = ensembles(by_loss, labels)
    assert (table.losses, table.size) == (("a", "b"), 4)
    assert table.accuracy[0, 0] == ensemble_accuracy(by_loss["a"][:4], labels)
    mixed = [ensemble_accuracy([*by_loss[x][:2], *by_loss[y][2:4]], labels) for x, y in ("ab", "ba")]
    assert table.accuracy[0, 1] == table.accuracy[1, 0] == pytest.approx(np.mean(mixed))


def test_voting_beats_single_runs():
    predictions, labels = runs(count=9, rows=2000)
    single = np.mean(predictions == labels, axis=1).max()
    assert ensemble_accuracy(list(predictions), labels) > single + 0.1


def test_bad_input():
    with pytest.raises(ValueError, match=r"^agreement: predictions must have at least one run, got none\.$"):
        agreement([], [0])
    with pytest.raises(ValueError, match=r"^agreement: predictions must have 1 entries, one for each row, got 2\.$"):
        agreement([[0, 1]], [0])
    with pytest.raises(ValueError, match=r"^majority_vote: predictions must have 2 entries, one for each row, got 1\.$"):
        majority_vote([[0, 1], [0]])
    with pytest.raises(ValueError, match=r"^ensembles: predictions must have at least 2 runs of each loss, got 1\.$"):
        ensembles({"a": [[0], [1]], "b": [[0]]}, [0])
    with pytest.raises(ValueError, match=r"^ensembles: .* got 0\.$"):
        ensembles({}, [0])
    with pytest.raises(ValueError, match=r"^cluster: similarity must be a symmetric matrix, got shape \(2, 2\)\.$"):
        cluster([[1.0, 0.0], [0.5, 1.0]])
