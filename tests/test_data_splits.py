"""Which rows serve for what."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lossmith.data import load_data
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
    table = pd.DataFrame({"x": np.arange(400.0), "label": labels, "part": np.tile(["train", "train", "train", "test"], 100)})
    data = load_data(table, target="label", split_column="part", rows=80)
    assert len(data.labels) == 80
    assert len(data.test) == 20
    assert np.bincount(data.labels).tolist() == [60, 20]
    assert "80 of 400 rows are used, drawn by chance" in data.notes
    again, other = (load_data(table, target="label", split_column="part", rows=80, seed=seed) for seed in (0, 1))
    assert data.fingerprint() == again.fingerprint() != other.fingerprint()
    assert len(load_data(table, target="label", rows=1000).labels) == 400
    with pytest.raises(ValueError, match=r"^load_data: rows must be >= 1, got 0\.$"):
        load_data(table, target="label", rows=0)
