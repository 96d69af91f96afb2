"""What columns are for: targets, numbers of rows, and the target in other words."""

import numpy as np
import pandas as pd
import pytest

from lossmith.data import load_data
from score_tables import scores


@pytest.mark.parametrize("name", ["intent", "Category", "sentiment", "species", "outcome"])
def test_likely_targets_are_found_where_the_rest_is_clear(name):
    frame = scores(city=["Roma", "Paris"] * 60).rename(columns={"kind": name})[[name, "city", "score", "other"]]
    data = load_data(frame)
    assert data.classes == ("x", "y", "z")
    assert f"target: column {name!r}, by its name" in data.notes


@pytest.mark.parametrize(
    "columns",
    [
        {"topic": ["a", "b"] * 60, "genre": ["c", "d"] * 60, "size": range(120)},  # two that may be it
        {"quality": np.linspace(0, 1, 120), "city": ["Roma", "Paris"] * 60, "size": range(120)},  # a quantity
        {"result": [1, 2] * 60, "score": np.linspace(0, 1, 120), "verdict": ["yes", "no", "no", "yes"] * 30},  # so may the last
        {"spam": ["only"] * 120, "city": ["Roma", "Paris"] * 60, "size": range(120)},
    ],
)
def test_unclear_targets_are_asked_for(columns):
    frame = pd.DataFrame(columns)
    with pytest.raises(ValueError, match="table: target must be given, the column that holds the classes"):
        load_data(frame)


def test_a_certain_name_goes_before_a_likely_one():
    frame = scores(topic=["a", "b"] * 60).rename(columns={"kind": "label"})
    assert "target: column 'label', by its name" in load_data(frame).notes


DRAWN = np.random.default_rng(2)


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("PassengerId", DRAWN.permutation(10_000)[:120]),
        ("customerID", DRAWN.permutation(10_000)[:120]),
        ("userid", DRAWN.permutation(10_000)[:120]),
        ("id", DRAWN.permutation(10_000)[:120].astype(float)),
        ("row", np.arange(120)),
        ("anything", np.arange(5, 125)),
        ("shuffled", DRAWN.permutation(120)),
        ("from one on", 1 + DRAWN.permutation(120)),
        ("handed out", np.cumsum(DRAWN.integers(1, 9, 120)) + 100_000),
        ("handed out", (np.cumsum(DRAWN.integers(1, 9, 120)) + 100_000).astype(str)),
    ],
)
def test_numbers_of_rows_are_no_features(name, numbers):
    data = load_data(scores(**{name: numbers}), target="kind")
    assert f"{name!r}: dropped, different in (nearly) every row, like a name or number of it" in data.notes
    assert data.input_shape == (2,)


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("income", DRAWN.permutation(10_000)[:120]),
        ("timestamp", np.cumsum(DRAWN.integers(1, 9, 120)) + 100_000),
        ("count", DRAWN.integers(0, 120, 120)),
        ("acid", DRAWN.permutation(10_000)[:120]),
        ("grown", np.cumsum(DRAWN.integers(0, 9, 120))),
        ("measured", np.cumsum(DRAWN.random(120))),
    ],
)
def test_other_whole_numbers_are_features(name, numbers):
    assert load_data(scores(**{name: numbers}), target="kind").input_shape == (3,)


def restating(notes):
    return [note for note in notes if note.startswith("WARNING, column")]


@pytest.mark.parametrize(
    "restated",
    [
        lambda labels: labels.map({"x": "nine", "y": "ten", "z": "eleven"}),
        lambda labels: labels.map({"x": 3, "y": 1, "z": 2}),
        lambda labels: labels.map({"x": 3.0, "y": None, "z": 2.0}),
        lambda labels: labels.astype("category"),
        lambda labels: labels.where(labels.index != 0, "typo"),
        lambda labels: labels + np.tile(["1", "2", "3"], 400),  # finer classes
        lambda labels: labels.where(labels.index % 300 != 7, "x"),  # now and then another one
    ],
)
def test_columns_that_restate_the_target_are_pointed_out(restated):
    frame = scores(1200)
    frame.insert(1, "code", restated(frame["kind"]))
    notes = load_data(frame, target="kind").notes
    assert len(restating(notes)) == 1
    assert notes[0].startswith("WARNING, column 'code' restates the target: it alone tells ")
    assert notes[0].endswith("of the training labels; unless it is known when the model is used, leave it out")


@pytest.mark.parametrize(
    "feature",
    [
        lambda labels: labels.where(labels.index % 20 != 7, "x"),  # a strong one
        lambda labels: labels.map({"x": 0, "y": 100, "z": 200}) + np.arange(1200) % 100,  # a quantity
        lambda labels: labels.map({"x": 0.5, "y": 1.5, "z": 2.5}) + np.arange(1200) / 1e4,
        lambda labels: [f"{label} is number {place}" for place, label in enumerate(labels)],  # texts
        lambda labels: ["same"] * 1200,
    ],
)
def test_strong_features_do_not_restate_the_target(feature):
    frame = scores(1200)
    frame.insert(1, "code", feature(frame["kind"]))
    assert restating(load_data(frame, target="kind").notes) == []


def test_a_rare_class_is_not_restated_by_what_never_tells_it():
    labels = np.where(np.arange(3000) % 300 == 0, "rare", "usual")
    frame = pd.DataFrame({"coin": np.tile(["heads", "tails", "edge"], 1000), "score": np.random.default_rng(0).random(3000)})
    assert restating(load_data(frame.assign(label=labels)).notes) == []
