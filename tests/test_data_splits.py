"""Which rows serve for what."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight

from lossmith import make_loss
from lossmith.data import class_weights, load_data
from lossmith.data.class_balance import imbalance_notes
from lossmith.data.splits import Shares, make_splits


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=8).filter(sum),
    st.floats(0, 0.45),
    st.floats(0, 0.45),
    st.integers(0, 10),
)
def test_every_row_is_in_one_split_and_every_class_is_divided_alike(counts, validation, test, seed):
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    splits = make_splits(labels, None, Shares(validation, test), seed)
    assert sorted(torch.cat(splits).tolist()) == list(range(len(labels)))
    for label, count in enumerate(counts):
        sizes = [int((labels[rows.numpy()] == label).sum()) for rows in splits]
        assert sizes[0] >= min(count, 1)
        if count <= 2:
            assert sizes[0] == count
        else:
            for size, share in zip(sizes[1:], (validation, test), strict=True):
                assert abs(size - share * count) <= 1
                assert (size > 0) == (share > 0)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 40), min_size=2, max_size=8), st.sampled_from([0.1, 0.2, 0.25, 0.3, 0.5, 0.7]), st.integers(0, 3))
def test_replicates_take_turns_in_testing_every_row(counts, test, rounds):
    labels = np.repeat(np.arange(len(counts)), counts)
    turns = int(1 / test)
    replicates = range(rounds * turns, (rounds + 1) * turns)
    tested = torch.cat([make_splits(labels, None, Shares(0.15, test), 3, replicate).test for replicate in replicates])
    assert len(tested.unique()) == len(tested)
    for label, count in enumerate(counts):
        left_out = count - int((labels[tested.numpy()] == label).sum())
        assert left_out == count if count <= 2 else left_out <= (1 - turns * test) * count + 1
    first, next_round = (make_splits(labels, None, Shares(0.15, test), 3, turns * (rounds + more)) for more in (0, 1))
    assert sum(counts) < 60 or not torch.equal(first.test, next_round.test)


def test_replicates_shuffle_anew_where_the_test_split_is_given():
    given = np.where(np.arange(100) < 20, "test", "").astype(object)
    splits = [make_splits(np.arange(100) % 2, given, Shares(), 0, replicate) for replicate in range(6)]
    assert all(one.test.tolist() == list(range(20)) for one in splits)
    assert len({tuple(one.validation.tolist()) for one in splits}) == len(splits)


def test_the_seed_decides():
    first, again, other = (load_data("iris", seed=seed) for seed in (0, 0, 1))
    assert first.fingerprint() == again.fingerprint()
    assert not torch.equal(first.test, other.test)


def test_rare_classes_stay_in_training_and_are_reported():
    labels = ["often"] * 40 + ["seldom"] * 2 + ["once"]
    data = load_data((np.random.default_rng(0).random((43, 3)), np.array(labels)))
    assert data.classes == ("often", "once", "seldom")
    assert {40, 41, 42} <= set(data.train.tolist())
    assert "rare classes, by training rows: 'once' 1, 'seldom' 2" in data.notes
    assert "classes 'once', 'seldom' are in no test row, having too few rows" in data.notes


def test_arrays_of_their_own_for_the_test_split(tmp_path):
    generator = np.random.default_rng(0)
    inputs, labels = generator.normal(size=(60, 3)).astype(np.float32), np.arange(60) % 3
    np.savez(tmp_path / "train.npz", X=inputs[:40], y=labels[:40])
    np.savez(tmp_path / "test.npz", X=inputs[40:], y=labels[40:])
    train, test = ({"X": inputs[part], "y": labels[part]} for part in (slice(40), slice(40, 60)))
    for first, second in ((tmp_path / "train.npz", tmp_path / "test.npz"), (train, test), (train, tuple(test.values()))):
        for seed in (0, 1):
            data = load_data(first, test=second, seed=seed)
            assert data.test.tolist() == list(range(40, 60))
            assert data.labels[data.test].tolist() == labels[40:].tolist()


def test_classes_only_in_the_test_are_reported():
    train = (np.random.default_rng(0).random((40, 3)), [0, 1] * 20)
    test = (np.random.default_rng(1).random((6, 3)), [0, 1, 2] * 2)
    data = load_data(train, test=test)
    assert data.classes == ("0", "1", "2")
    assert "classes '2' are in no training row, so no model can learn them" in data.notes


def test_shares_must_leave_something():
    with pytest.raises(ValueError, match=r"validation_share and test_share must leave rows to train on, got \(0.5, 0.5\)."):
        load_data("iris", validation_share=0.5, test_share=0.5)


def test_fewer_rows_keep_the_proportions_of_classes_and_given_splits():
    labels = np.repeat(["a", "b"], [300, 100])
    parts = np.tile(["train", "train", "validation", "test"], 100)
    table = pd.DataFrame({"x": np.arange(400.0), "label": labels, "part": parts})
    data = load_data(table, target="label", split_column="part", rows=60)
    whole = load_data(table, target="label", split_column="part")
    assert (len(data.train), len(data.validation)) == (40, 20)
    assert np.bincount(data.labels[data.train]).tolist() == [30, 10]
    assert torch.equal(data.labels[data.test], whole.labels[whole.test])
    assert "60 of 300 rows are used, drawn by chance, and all 100 test rows" in data.notes
    without = load_data(table.drop(columns="part"), target="label", rows=60)
    assert len(without.labels) == 60
    assert np.bincount(without.labels).tolist() == [45, 15]
    assert "60 of 400 rows are used, drawn by chance" in without.notes
    again, other = (load_data(table, target="label", split_column="part", rows=60, seed=seed) for seed in (0, 1))
    assert data.fingerprint() == again.fingerprint() != other.fingerprint()
    assert len(load_data(table, target="label", rows=1000).labels) == 400
    assert len(load_data(table, target="label", split_column="part", rows=300).labels) == 400
    with pytest.raises(ValueError, match=r"^load_data: rows must be >= 1, got 0\.$"):
        load_data(table, target="label", rows=0)


def test_a_test_table_of_its_own_stays_whole():
    train = pd.DataFrame({"x": np.arange(400.0), "label": np.tile(["a", "b"], 200)})
    test = pd.DataFrame({"x": np.arange(50.0), "label": np.tile(["a", "b"], 25)})
    data = load_data(train, test=test, target="label", rows=40)
    assert len(data.test) == 50
    assert len(data.train) + len(data.validation) == 40


@pytest.mark.parametrize("counts", [[5, 5], [1, 99], [0, 3, 7], [4, 0, 0, 400, 30]])
def test_class_weights_are_those_of_scikit_learn(counts):
    labels = np.repeat(np.arange(len(counts)), counts)
    weights = class_weights(torch.from_numpy(labels), len(counts))
    present = np.flatnonzero(counts)
    expected = compute_class_weight("balanced", classes=present, y=labels)
    np.testing.assert_allclose(weights[present], expected, rtol=1e-6)
    assert (weights[np.array(counts) == 0] == 0).all()
    assert float(weights[labels].mean()) == pytest.approx(1)
    assert make_loss("gce", weight=weights)(torch.zeros(len(labels), len(counts)), torch.from_numpy(labels)).isfinite()


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        (torch.tensor([0.0, 1.0]), 2, "labels must be a tensor of integers, got torch.float32."),
        ([0, 1], 2, "labels must be a tensor of integers, got list."),
        (torch.tensor([0, 2]), 2, "labels must be classes from 0 to 1, got 2."),
        (torch.tensor([-1, 1]), 2, "labels must be classes from 0 to 1, got -1."),
        (torch.tensor([], dtype=torch.long), 2, "labels must be one or more in a row, got shape (0,)."),
        (torch.tensor([0, 1]), 1, "num_classes must be >= 2, got 1."),
    ],
)
def test_class_weights_say_what_is_wrong(labels, classes, message):
    with pytest.raises((TypeError, ValueError)) as error:
        class_weights(labels, classes)
    assert str(error.value) == f"class_weights: {message}"


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([610, 200, 180, 10], "classes are uneven: 'a' 61 %, 'd' 1 % of training rows; accuracy hides the rare ones:"),
        ([1000, 2], "classes are uneven: 'a' 100 %, 'b' 0.2 % of training rows"),
        ([760, 80, 80, 80], "classes are uneven: 'a' 76 %, 'b' 8 % of training rows"),
        ([740, 90, 90, 80], None),
        ([900, 100], None),
        ([94, 1000, 1000, 1000], "classes are uneven: 'b' 32 %, 'a' 3 % of training rows"),
    ],
)
def test_uneven_classes_are_named(counts, expected):
    notes = imbalance_notes(np.repeat(np.arange(len(counts)), counts), "abcd"[: len(counts)])
    assert (notes == []) if expected is None else notes[0].startswith(expected)


def test_uneven_classes_are_told_by_training_rows():
    labels = np.repeat([0, 1], [285, 15])
    data = load_data((np.random.default_rng(0).random((300, 2)), labels))
    assert [note for note in data.notes if note.startswith("classes are uneven: '0' 95 %, '1' 5 % of training rows")]
    assert not [note for note in load_data("digits").notes if "uneven" in note]
