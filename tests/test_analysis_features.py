"""Sparsity, spectra, angles and distances of features."""

import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from torch import nn

from lossmith.analysis.angles import angular_visual_hardness, cosine_distances
from lossmith.analysis.layers import nonzero_activations
from lossmith.analysis.spectra import singular_spectrum


def test_nonzero_activations_over_uneven_batches():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Dropout(0.9))
    inputs = torch.randn(23, 4)
    shares = nonzero_activations(model, inputs, batch_size=5)
    expected = (model[0](inputs) > 0).double().mean().item()
    assert shares["0"] == 1.0
    assert shares["1"] == shares["2"] == pytest.approx(expected)  # dropout does not drop when it predicts
    assert nonzero_activations(model, [(inputs, None)], layers=["1"]) == {"1": shares["1"]}


def test_nothing_to_count():
    with pytest.raises(ValueError, match=r"^nonzero_activations: no layer gave an activation, or there were no inputs\.$"):
        nonzero_activations(nn.ReLU(), [])


@pytest.mark.parametrize("shape", [(3, 7), (7, 3), (50, 4), (1, 1)])
@pytest.mark.parametrize("centre", [False, True])
def test_spectrum_against_numpy(shape, centre):
    matrix = np.random.default_rng(0).normal(size=shape) + 3.0
    reference = np.linalg.svd(matrix - matrix.mean(0) if centre else matrix, compute_uv=False)
    np.testing.assert_allclose(singular_spectrum(matrix, centre=centre).values, reference, rtol=1e-10, atol=1e-13)


def test_small_singular_values_keep_their_digits():
    """A Gram matrix would lose everything below 1e-8 of the largest."""
    left = np.linalg.qr(np.random.default_rng(0).normal(size=(40, 3)))[0]
    assert singular_spectrum(left * [1.0, 1e-5, 1e-11]).values == pytest.approx([1.0, 1e-5, 1e-11], rel=1e-4)


def test_effective_rank():
    assert singular_spectrum(np.diag([2.0, 2.0, 2.0])).effective_rank == pytest.approx(3.0)
    assert singular_spectrum(np.diag([2.0, 0.0, 0.0])).effective_rank == 1.0
    constant = singular_spectrum(np.full((5, 3), 0.1), centre=True)
    assert (constant.effective_rank, constant.values.tolist(), constant.relative.tolist()) == (0.0, [0.0] * 3, [0.0] * 3)


def hardness_by_mpmath(x, weights, label):
    with mpmath.workdps(50):
        x = [mpmath.mpf(float(v)) for v in x]
        angles = []
        for row in weights:
            w = [mpmath.mpf(float(v)) for v in row]
            norms = mpmath.sqrt(mpmath.fdot(x, x)) * mpmath.sqrt(mpmath.fdot(w, w))
            angles.append(mpmath.acos(mpmath.fdot(x, w) / norms))
        return float(angles[label] / mpmath.fsum(angles))


@pytest.mark.parametrize("closeness", [1.0, 1e-3, 1e-9])
def test_hardness_to_many_digits(closeness):
    random = np.random.default_rng(0)
    weights = random.normal(size=(4, 5))
    labels = random.integers(4, size=30)
    features = weights[labels] + closeness * random.normal(size=(30, 5))
    expected = [hardness_by_mpmath(x, weights, label) for x, label in zip(features, labels, strict=True)]
    np.testing.assert_allclose(angular_visual_hardness(features, weights, labels), expected, rtol=1e-6)


def test_hardness_of_degenerate_input():
    assert angular_visual_hardness([[2.0, 0.0]], [[1.0, 0.0]], [0]).tolist() == [1.0]  # one class, angle 0: 1 / C
    assert angular_visual_hardness([[2.0, 0.0]], [[1.0, 0.0], [3.0, 0.0]], [0]).tolist() == [0.5]
    np.testing.assert_allclose(angular_visual_hardness([[0.0, 0.0]], np.eye(2), [1]), [0.5])
    np.testing.assert_allclose(angular_visual_hardness([[-1.0, 0.0]], np.eye(2), [0]), [2.0 / 3.0])


@given(st.integers(0, 1000), st.integers(1, 4), st.integers(2, 5))
@settings(max_examples=30, deadline=None)
def test_hardness_is_a_share(seed, classes, dimension):
    random = np.random.default_rng(seed)
    features, weights = random.normal(size=(6, dimension)), random.normal(size=(classes, dimension))
    shares = sum(angular_visual_hardness(features, weights, [label] * 6) for label in range(classes))
    np.testing.assert_allclose(shares, 1.0, rtol=1e-12)


@pytest.mark.parametrize("rows", [2, 60, 1500])
def test_distances_of_all_pairs(rows):
    random = np.random.default_rng(0)
    features, labels = random.normal(size=(rows, 3)), random.integers(3, size=rows)
    got = cosine_distances(features, labels, bins=20)
    pairs = pdist(features, "cosine")
    i, j = np.triu_indices(rows, 1)
    same = labels[i] == labels[j]
    for counts, expected in ((got.within, pairs[same]), (got.between, pairs[~same])):
        np.testing.assert_array_equal(counts, np.histogram(expected, got.edges)[0])
        area = (got.density(counts) * np.diff(got.edges)).sum()
        assert area == pytest.approx(1.0 if len(expected) else 0.0)


def test_distances_of_degenerate_input():
    lone = cosine_distances([[1.0, 2.0]], [0])
    assert lone.within.sum() == lone.between.sum() == 0
    assert lone.density(lone.within).tolist() == [0.0] * 100
    zeros = cosine_distances([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]], [0, 0, 1], bins=4)
    assert (zeros.within.tolist(), zeros.between.tolist()) == ([1, 0, 0, 0], [0, 2, 0, 0])
    opposite = cosine_distances([[1.0], [-1.0]], [0, 1], bins=4)
    assert opposite.between.tolist() == [0, 0, 0, 1]


def test_bad_input():
    with pytest.raises(ValueError, match=r"^angular_visual_hardness: weights must have 2 columns, as features have, got 3\.$"):
        angular_visual_hardness(np.eye(2), np.eye(3), [0, 1])
    with pytest.raises(ValueError, match=r"^cosine_distances: bins must be >= 1, got 0\.$"):
        cosine_distances(np.eye(2), [0, 1], bins=0)
    with pytest.raises(ValueError, match=r"^singular_spectrum: matrix must be finite, got 1 values that are not\.$"):
        singular_spectrum([[math.inf, 0.0]])
