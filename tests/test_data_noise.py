"""Label noise."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, truncnorm
from sklearn.linear_model import LogisticRegression

from lossmith.data import NOISES, LabelNoise, PreparedData, load_data, make_noise, realised
from lossmith.data.noise.feature_noise import margins
from lossmith.data.noise.label_noise import balanced_keys

DIGITS = replace(load_data("digits"), groups=(0, 0, 0, 1, 1, 1, 2, 2, 2, 3))
LABELS = DIGITS.labels[DIGITS.train]
RATED = {
    "symmetric": "symmetric({})",
    "uniform": "uniform({})",
    "pair": "pair({})",
    "asymmetric": "asymmetric({}, [9, 1], [3, 5], [5, 3])",
    "within-groups": "within-groups({})",
    "uniform-within-groups": "uniform-within-groups({})",
    "small-margin": "small-margin({})",
    "large-margin": "large-margin({})",
    "instance": "instance({})",
}
MATRIX = "matrix([0.9, 0.1, 0.0], [0.0, 0.7, 0.3], [0.25, 0.25, 0.5])"
EVERY = [*(form.format(0.3) for form in RATED.values()), MATRIX, "none"]


def toy(counts: list[int], features: int = 2, seed: int = 0) -> PreparedData:
    """Make training rows of each class, and two test rows."""
    draw = np.random.default_rng(seed)
    labels = draw.permutation(np.repeat(np.arange(len(counts)), counts))
    labels = torch.from_numpy(np.concatenate([labels, [0, 0]]))
    inputs = torch.from_numpy(draw.standard_normal((len(labels), features))).float()
    rows = torch.arange(len(labels))
    return PreparedData("toy", inputs, labels, tuple(map(str, range(len(counts)))), rows[:-2], rows[:0], rows[-2:])


def corrupted(noise: str, data: PreparedData = DIGITS, seed: int = 0) -> torch.Tensor:
    return make_noise(noise).corrupt(data, data.train, seed)


def test_every_kind_is_tried_here():
    assert {noise.split("(")[0] for noise in EVERY} == set(NOISES)


@pytest.mark.parametrize("noise", EVERY)
def test_the_printed_form_reads_back(noise):
    made = make_noise(noise)
    assert isinstance(made, LabelNoise)
    assert str(make_noise(str(made))) == str(made)
    assert make_noise(str(made)) == made
    assert make_noise(made) is made


def test_a_number_is_symmetric_noise():
    assert [str(make_noise(noise)) for noise in (0.4, "0.4", 1, 0, "0", "none")] == [
        "symmetric(0.4)", "symmetric(0.4)", "symmetric(1.0)", "none", "none", "none",
    ]  # fmt: skip


@pytest.mark.parametrize("noise", [noise for noise in EVERY if noise != MATRIX])
def test_noise_depends_on_data_and_seed_alone(noise):
    first, again, other = corrupted(noise), corrupted(noise), corrupted(noise, seed=1)
    assert torch.equal(first, again)
    assert torch.equal(first, other) == (noise == "none")
    assert first.dtype == torch.int64
    assert torch.equal(DIGITS.labels, load_data("digits").labels)  # the data itself is as it was


@pytest.mark.parametrize("name", ["symmetric", "pair", "small-margin", "large-margin"])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.375, 0.8, 1.0])
def test_the_share_of_wrong_labels_is_exact(name, rate):
    wrong = (corrupted(RATED[name].format(rate)) != LABELS).sum()
    assert int(wrong) == int(rate * len(LABELS) + 0.5)


@pytest.mark.parametrize("form", RATED.values())
def test_a_label_that_is_wrong_stays_wrong_as_the_rate_grows(form):
    before = LABELS
    for rate in (0.1, 0.2, 0.4, 0.7):
        after = corrupted(form.format(rate))
        wrong = before != LABELS
        assert torch.equal(after[wrong], before[wrong])
        assert (after != LABELS).sum() > wrong.sum()
        before = after


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 30), min_size=2, max_size=6), st.floats(0, 1), st.integers(0, 99))
def test_symmetric_noise_is_spread_over_classes(counts, rate, seed):
    data = toy(counts)
    labels = data.labels[data.train]
    noisy = corrupted(f"symmetric({rate})", data, seed)
    wrong = np.bincount(labels[noisy != labels], minlength=len(counts))
    assert wrong.sum() == int(rate * len(labels) + 0.5)
    # Below a threshold t on the keys, a class of n rows has n t of them to within 1, and all classes together, to within their
    # number; so t is as near to the rate as that number and the rounding of the total allow.
    slack = (len(counts) + 0.5) / sum(counts)
    assert (abs(wrong - rate * np.array(counts)) <= 1 + slack * np.array(counts)).all()


def test_the_wrong_classes_of_symmetric_noise_are_even():
    data = toy([6000, 6000, 6000, 6000])
    matrix = realised(data.labels[data.train], corrupted("symmetric(0.5)", data), 4).matrix
    np.testing.assert_allclose(np.diag(matrix), 0.5, atol=2e-4)
    for row, label in zip(matrix, range(4), strict=True):
        assert chisquare(np.delete(row, label) * 6000).pvalue > 1e-4


def test_uniform_noise_hits_the_true_class_too():
    data = toy([5000] * 4)
    assert realised(data.labels[data.train], corrupted("uniform(0.4)", data), 4).rate == pytest.approx(0.3, abs=0.01)


def test_pair_noise_is_the_next_class():
    noisy = corrupted("pair(1.0)")
    assert torch.equal(noisy, (LABELS + 1) % 10)


def test_asymmetric_noise_touches_its_classes_alone():
    matrix = realised(LABELS, corrupted(RATED["asymmetric"].format(0.25)), 10).matrix
    expected = np.eye(10)
    for source, target in ((9, 1), (3, 5), (5, 3)):
        expected[source, source] = matrix[source, source]
        expected[source, target] = 1 - matrix[source, source]
        assert matrix[source, source] == pytest.approx(0.75, abs=0.02)
    np.testing.assert_array_equal(matrix, expected)


def test_a_matrix_is_realised_but_for_rounding():
    data = toy([100, 37, 64])
    matrix = realised(data.labels[data.train], corrupted(MATRIX, data), 3).matrix
    difference = abs(matrix - np.array(make_noise(MATRIX).rows)) * np.array([[100], [37], [64]])
    assert difference.max() <= 1 + 1e-9


def test_a_matrix_from_a_file(tmp_path):
    rows = np.array(make_noise(MATRIX).rows)
    np.savetxt(tmp_path / "shares.csv", rows, delimiter=",")
    np.save(tmp_path / "shares.npy", rows)
    for name in ("shares.csv", "shares.npy"):
        assert make_noise(f"matrix({tmp_path / name})") == make_noise(MATRIX)
    (tmp_path / "words.csv").write_text("a,b\nc,d\n")
    with pytest.raises(ValueError, match=r"words.csv: not a matrix of label noise"):
        make_noise(f"matrix({tmp_path / 'words.csv'})")


@pytest.mark.parametrize(("name", "share"), [("within-groups", 0.5), ("uniform-within-groups", 0.5 * 2 / 3)])
def test_noise_within_groups_stays_there(name, share):
    noisy = corrupted(f"{name}(0.5)")
    groups = torch.tensor(DIGITS.groups)
    assert torch.equal(groups[noisy], groups[LABELS])
    able = LABELS != 9  # alone in its group
    assert ((noisy != LABELS)[able]).double().mean().item() == pytest.approx(share, abs=0.03)


def test_margins_are_distances_to_the_nearest_boundary():
    data = toy([40, 50, 60], features=3)
    rows = data.train.numpy()
    model = LogisticRegression().fit(data.inputs[rows], data.labels[rows])
    found = margins(data)
    for row in rows[:50]:
        own, x = int(data.labels[row]), data.inputs[row].double().numpy()
        distances = {}
        for other in {0, 1, 2} - {own}:
            normal = model.coef_[own] - model.coef_[other]
            distances[other] = (x @ normal + model.intercept_[own] - model.intercept_[other]) / np.sqrt(normal @ normal)
        rival = min(distances, key=distances.get)
        assert found.rivals[row] == rival
        assert found.distances[row] == pytest.approx(distances[rival], rel=1e-6, abs=1e-6)  # coefficients are single


@pytest.mark.parametrize("classes", [2, 3])
def test_margins_decide_who_is_wrong(classes):
    draw = torch.Generator().manual_seed(0)
    data = toy([200] * classes)
    centres = 3 * torch.stack([torch.cos(torch.arange(classes) * 2.0), torch.sin(torch.arange(classes) * 2.0)], dim=1)
    data = replace(data, inputs=centres[data.labels] + torch.randn(len(data.labels), 2, generator=draw))
    distances = abs(margins(data).distances)[data.train]
    near, far = (corrupted(noise, data) != data.labels[data.train] for noise in ("small-margin(0.2)", "large-margin(0.2)"))
    assert distances[near].max() < np.quantile(distances, 0.5)
    assert distances[far].min() > np.quantile(distances, 0.5)
    middle = margins(data).rivals[data.train][near.numpy()]
    assert torch.equal(corrupted("small-margin(0.2)", data)[near], torch.from_numpy(middle))


def test_instance_noise_has_the_rate_of_its_distribution():
    data = toy([20000, 20000], features=1)
    for rate in (0.2, 0.5):
        expected = truncnorm(-rate / 0.1, (1 - rate) / 0.1, loc=rate, scale=0.1).mean()
        found = realised(data.labels[data.train], corrupted(f"instance({rate})", data), 2).rate
        assert found == pytest.approx(expected, abs=4 * np.sqrt(0.25 / 40000))


def test_features_decide_the_class_of_instance_noise():
    data = toy([3000] * 5, features=10)
    same = replace(data, inputs=20 * torch.ones_like(data.inputs))  # all alike: each class has one rival
    noisy = corrupted("instance(0.4)", same)
    for label in range(5):
        counts = torch.bincount(noisy[data.labels[data.train] == label], minlength=5)
        assert (counts > 0).sum() == 2
    spread = realised(data.labels[data.train], corrupted("instance(0.4)", data), 5).matrix
    assert (spread > 0.01).sum() > 15  # features of all kinds have rivals of all kinds


def test_margins_of_words():
    words = torch.tensor([[2, 3, 0], [2, 2, 4], [5, 6, 0], [6, 5, 7]]).repeat(20, 1)
    labels = torch.tensor([0, 0, 1, 1]).repeat(20)
    rows = torch.arange(80)
    data = PreparedData("words", words, labels, ("a", "b"), rows[:-4], rows[:0], rows[-4:])
    assert (margins(data).distances > 0).all()


def test_a_row_has_its_draws_whatever_rows_come_with_it():
    noise = make_noise("symmetric(0.4)")
    both = noise.corrupt(DIGITS, torch.cat([DIGITS.train, DIGITS.validation]), 0)
    alone = noise.corrupt(DIGITS, DIGITS.validation, 0)
    labels = DIGITS.labels[DIGITS.validation]
    assert (alone != labels).sum() == int(0.4 * len(labels) + 0.5)
    together = both[len(DIGITS.train) :]
    twice = (alone != labels) & (together != labels)
    assert twice.any()
    assert torch.equal(alone[twice], together[twice])  # which class a row becomes does not depend on the other rows


@pytest.mark.parametrize("noise", [noise for noise in EVERY if noise != MATRIX])
def test_the_test_split_is_never_corrupted(noise):
    rows = torch.cat([DIGITS.train[:3], DIGITS.test[:2]])
    with pytest.raises(ValueError, match="rows must not be of the test split, got 2 that are"):
        make_noise(noise).corrupt(DIGITS, rows, 0)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 20), min_size=2, max_size=5).filter(sum), st.integers(0, 1000))
def test_balanced_keys_are_even_within_each_class(counts, seed):
    draw = np.random.default_rng(seed)
    labels = draw.permutation(np.repeat(np.arange(len(counts)), counts))
    offsets = draw.random(len(counts))
    keys = balanced_keys(labels, draw.random(len(labels)), offsets)
    for label, count in enumerate(counts):
        np.testing.assert_allclose(np.sort(keys[labels == label]), (np.arange(count) + offsets[label]) / max(count, 1))


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        ("symmetric(1.5)", "SymmetricNoise: rate must be in [0, 1], got 1.5."),
        (-0.1, "SymmetricNoise: rate must be in [0, 1], got -0.1."),
        ("symetric(0.2)", "make_noise: unknown noise 'symetric' in 'symetric(0.2)'; did you mean 'symmetric'?"),
        ("symmetric", "SymmetricNoise: missing a required argument: 'rate' in 'symmetric'."),
        ("asymmetric(0.2)", "AsymmetricNoise: pairs must be one [from, to] for each class that changes, got []."),
        ("asymmetric(0.2, [1, 1])", "AsymmetricNoise: a pair must be [from, to], the numbers of two classes, got [1, 1]."),
        ("matrix([0.5, 0.5])", "MatrixNoise: needs a square matrix of 2 classes at least, got rows of [2] numbers."),
        ("matrix([0.5, 0.5], [0.5, 0.6])", "MatrixNoise: row 1 must be shares that add up to 1, got [0.5, 0.6]."),
    ],
)
def test_wrong_noise(noise, message):
    with pytest.raises(ValueError) as error:
        make_noise(noise)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (MATRIX, "MatrixNoise: needs a row for each of 2 classes, got 3."),
        ("asymmetric(0.1, [0, 2])", "AsymmetricNoise: classes must be below 2, got 2."),
        ("within-groups(0.1)", "WithinGroupsNoise: toy has no coarse groups of classes; give them by groups=."),
    ],
)
def test_noise_that_does_not_fit_the_data(noise, message):
    with pytest.raises(ValueError) as error:
        corrupted(noise, toy([5, 5]))
    assert str(error.value) == message


def test_wrong_types():
    assert str(make_noise(np.float32(0.25))) == "symmetric(0.25)"
    for wrong in (True, None, [0.1]):
        with pytest.raises(TypeError, match="make_noise: noise must be text or a rate, got"):
            make_noise(wrong)
    with pytest.raises(ValueError, match="SymmetricNoise: seed must be an integer >= 0, got -1"):
        make_noise(0.1).corrupt(DIGITS, DIGITS.train, -1)
