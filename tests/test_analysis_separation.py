"""Class separation in O(n d) against the quadruple sum of equation 11."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lossmith.analysis.class_means import ClassMeans, class_centroids
from lossmith.analysis.separation import DISTANCES, SeparationSums, class_separation, unit_rows


def distance(x, y, kind):
    if kind == "euclidean":
        return ((x - y) ** 2).sum() / 2
    return 1.0 - x @ y / np.linalg.norm(x) / np.linalg.norm(y)


def separation_by_loops(features, labels, kind):
    """Equation 11 as it is printed."""
    if kind == "centred-cosine":
        features = features - features.mean(0)
    groups = [features[labels == k] for k in np.unique(labels)]
    averages = [[np.mean([[distance(x, y, kind) for y in b] for x in a]) for b in groups] for a in groups]
    return 1.0 - np.mean(np.diag(averages)) / np.mean(averages)


def clusters(sizes, dimension=3, spread=1.0, offset=0.0, seed=0):
    random = np.random.default_rng(seed)
    labels = random.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centres = random.normal(size=(len(sizes), dimension))
    return offset + centres[labels] + spread * random.normal(size=(len(labels), dimension)), labels


@pytest.mark.parametrize("kind", DISTANCES)
@pytest.mark.parametrize("sizes", [(5, 5, 5), (1, 2, 17), (9, 1), (4, 1, 1, 1)])
def test_against_the_double_loop(kind, sizes):
    features, labels = clusters(sizes)
    assert class_separation(features, labels, kind).r_squared == pytest.approx(
        separation_by_loops(features, labels, kind), rel=1e-11
    )


@given(st.integers(0, 10_000), st.sampled_from(DISTANCES), st.lists(st.integers(1, 6), min_size=1, max_size=5))
@settings(max_examples=80, deadline=None)
def test_between_zero_and_one(seed, kind, sizes):
    features, labels = clusters(sizes, seed=seed)
    assert 0.0 <= class_separation(features, labels, kind).r_squared <= 1.0


@given(st.integers(0, 10_000), st.integers(1, 6), st.booleans())
@settings(max_examples=40, deadline=None)
def test_batches_add_up(seed, parts, normalize):
    features, labels = clusters((7, 3, 11), seed=seed)
    sums = SeparationSums(normalize=normalize)
    for rows in np.array_split(np.arange(21), parts):
        sums.update(torch.from_numpy(features[rows]), torch.from_numpy(labels[rows]))
    whole = class_separation(features, labels, "cosine" if normalize else "euclidean")
    assert sums.result().within == pytest.approx(whole.within, rel=1e-12)
    assert sums.result().overall == pytest.approx(whole.overall, rel=1e-12)


def test_mean_of_a_first_pass():
    features, labels = clusters((7, 3, 11))
    sums = SeparationSums(centre=features.mean(0))
    for rows in np.array_split(np.arange(21), 3):
        sums.update(features[rows], labels[rows])
    assert sums.result().r_squared == pytest.approx(class_separation(features, labels, "centred-cosine").r_squared, rel=1e-12)


def test_numbers_of_classes_do_not_matter_only_which_are_equal():
    features, labels = clusters((5, 5, 5))
    renamed = np.array([40, 7, 12])[labels]
    assert class_separation(features, renamed).r_squared == pytest.approx(class_separation(features, labels).r_squared, rel=1e-12)


def test_offset_does_not_cancel():
    """Distances do not see an offset; features rounded at 1e6 have lost 6 digits, and no more than these may be missing."""
    features, labels = clusters((50, 50))
    near = class_separation(features, labels, "euclidean").r_squared
    far = class_separation(features + 1e6, labels, "euclidean").r_squared
    assert far == pytest.approx(near, rel=1e-9)


def test_collapsed_classes_keep_their_digits():
    features, labels = clusters((20, 20, 20), spread=1e-9)
    within = class_separation(features, labels, "euclidean").within
    centred = [features[labels == k] - features[labels == k].mean(0) for k in range(3)]
    assert within == pytest.approx(np.mean([(part**2).sum(1).mean() for part in centred]), rel=1e-5)
    assert class_separation(features, labels).r_squared == pytest.approx(1.0)


@pytest.mark.parametrize("kind", DISTANCES)
@pytest.mark.parametrize("value", [0.0, 0.1, 1e30, 1e-30])
def test_constant_features(kind, value):
    separation = class_separation(np.full((7, 3), value), [0, 0, 1, 1, 2, 2, 2], kind)
    assert (separation.r_squared, separation.overall) == (0.0, 0.0)


@pytest.mark.parametrize("kind", DISTANCES)
def test_one_class_and_one_example_a_class(kind):
    features, _ = clusters((6,))
    assert class_separation(features, [3] * 6, kind).r_squared == 0.0
    assert class_separation(features, range(6), kind).r_squared == 1.0
    assert class_separation(features[:1], [0], kind).r_squared == 0.0


def test_zero_vectors_have_no_direction():
    separation = class_separation([[0.0, 0.0], [0.0, 0.0], [2.0, 0.0]], [0, 0, 1])
    assert (separation.within, separation.overall, separation.r_squared) == (0.0, 0.25, 1.0)


def test_unit_rows_of_extreme_lengths():
    rows = unit_rows(np.array([[1e-300, 1e-300], [1e200, -1e200], [5e-324, 0.0]]))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-15)


def test_centroids():
    features, labels = clusters((4, 2, 6))
    np.testing.assert_allclose(class_centroids(features, labels), [features[labels == k].mean(0) for k in range(3)], rtol=1e-12)
    means = ClassMeans().update(features, labels + 2)
    assert means.occurring.tolist() == [2, 3, 4]
    assert means.counts.tolist() == [4, 2, 6]


def test_bad_input():
    with pytest.raises(ValueError, match=r"^class_separation: distance must be one of cosine, .*, got 'manhattan'\.$"):
        class_separation([[1.0]], [0], "manhattan")
    with pytest.raises(ValueError, match=r"^SeparationSums: no examples were added\.$"):
        SeparationSums().result()
    with pytest.raises(ValueError, match=r"^ClassMeans: features must have 1 columns, got 2\.$"):
        SeparationSums().update([[1.0]], [0]).update([[1.0, 2.0]], [0])
