"""Tables of papers: what counts of many runs, and what is made of it."""

from argparse import Namespace

import numpy as np
import pandas as pd
import pytest

from evidence.papers.__main__ import TABLES, state
from evidence.papers.battash import CONTROL, ranking
from evidence.papers.composed_images import composed, groups_of_five, halved
from evidence.papers.conventions import chosen
from evidence.papers.correlation import correlation, rank_correlation
from evidence.papers.paper_table import Piece, StudyTable, Workshop
from lossmith.data.sources.examples import Examples
from lossmith.studies.design.given_settings import settings_from

NOISY = "symmetric(0.4)"


def runs(scores):
    """Return runs of a loss by noise and rate, with the validation score and accuracy of each."""
    rows = [
        {"loss": "ce", "noise": noise, "seed": 0, "learning_rate": rate, "weight_decay": 0.0, "epoch": "last"}
        | dict(zip(("score", "accuracy"), both, strict=True))
        for (noise, rate), both in scores.items()
    ]
    return pd.DataFrame(rows)


def test_clean_takes_the_rate_of_clean_labels_and_noisy_that_of_noisy_ones():
    found = chosen(
        runs({("none", 0.1): (0.9, 0.91), ("none", 0.01): (0.8, 0.81), (NOISY, 0.1): (0.5, 0.51), (NOISY, 0.01): (0.6, 0.71)})
    )
    by_choice = found[found["noise"] == NOISY].set_index("choice")
    assert by_choice["learning_rate"].to_dict() == {"clean": 0.1, "noisy": 0.01}
    assert by_choice["accuracy"].to_dict() == {"clean": 0.51, "noisy": 0.71}
    assert set(found.loc[found["noise"] == "none", "accuracy"]) == {0.91}


def test_a_run_without_a_score_counts_last_and_of_one_noise_there_is_one_choice():
    found = chosen(runs({("none", 0.1): (np.nan, 0.1), ("none", 0.01): (0.2, 0.3)}))
    assert found[["choice", "accuracy"]].to_numpy().tolist() == [["noisy", 0.3]]


def workshop(folder, **options):
    given = {"replicates": None, "epochs": None, "train_rows": None, "losses": None, "only": None, "encoder": None}
    return Workshop(Namespace(folder=folder, results=folder / "results", workers=1, no_training=False, **(given | options)))


def test_a_table_goes_on_where_it_was_and_says_what_it_was_made_with(tmp_path, monkeypatch):
    monkeypatch.setattr("evidence.papers.paper_table.be_nice", lambda: None)  # it would last for all tests that follow
    settings = {"losses": ["ce", "gce"], "noise": ["0", "0.4"], "seeds": 1, "epochs": 2, "references": False, "model": "linear"}
    pieces = tuple(Piece(f"rate-{rate}", {**settings, "rates": [rate]}, "iris") for rate in (0.1, 0.01))
    table = StudyTable("small", "a paper", "iris", 1, "nothing", pieces)
    workshop(tmp_path, only="rate-0.1").finish(table)
    first = (tmp_path / "papers/small/rate-0.1/study.sqlite").stat().st_mtime_ns
    assert state(tmp_path / "results/papers/small").startswith("a trial in small")
    workshop(tmp_path).finish(table)
    assert (tmp_path / "papers/small/rate-0.1/study.sqlite").stat().st_mtime_ns == first
    found = pd.read_csv(tmp_path / "results/papers/small/accuracy.csv")
    assert len(found) == 2 * 2 * 2 * 2  # losses, noises, choices, epochs
    assert set(found["learning_rate"]) <= {0.1, 0.01}
    assert found.query("epoch == 'best'")["accuracy"].between(0, 1).all()
    assert state(tmp_path / "results/papers/small") == "done"


def test_every_study_of_every_table_has_settings_that_can_be_read():
    pieces = [(table.name, piece) for table in TABLES.values() for piece in getattr(table, "pieces", ())]
    assert len(pieces) > 100
    for name, piece in pieces:
        left = {key: value for key, value in piece.settings.items() if key not in ("encoder", "fine_tune")}
        plan = settings_from({"data": "iris", **left})
        assert plan.seeds >= 3, name
        plan.check_objectives({})
        if piece.data is not None and not name.startswith("battash"):
            assert not plan.searched, name  # one rate, so that every run is trained once and to its end


def test_costs_are_stated_and_bounded():
    assert all(0 < table.minutes <= 75 for table in TABLES.values())


def test_images_are_put_together_within_their_split(monkeypatch, tmp_path):
    images = np.repeat(np.arange(20, dtype=np.uint8), 16).reshape(20, 4, 4)
    split = np.array(["train"] * 10 + ["test"] * 10, dtype=object)
    examples = Examples("mnist", images, np.tile(np.arange(10), 2), split=split)
    monkeypatch.setattr("evidence.papers.composed_images.read_known_set", lambda _: examples)
    found = composed("mnist", 2, 50)(tmp_path)
    assert found["x_train"].shape == (50, 2, 4)
    pixels = found["x_train"][:, 0, [0, 2]].astype(int)
    assert (found["y_train"] == pixels[:, 0] * 10 + pixels[:, 1]).all()
    assert found["x_test"].min() >= 10
    assert halved(np.array([[[1, 3], [5, 7]]], np.uint8)).tolist() == [[[4]]]
    assert groups_of_five(100)[95:] == [19] * 5


def test_tables_are_ranked_without_the_control_which_has_its_difference():
    rows = [
        {"table": f"t{place}", "loss": loss, "accuracy": accuracy + place / 100}
        for place in range(5)
        for loss, accuracy in (("ce", 0.7), ("ce-el", 0.8), (CONTROL, 0.71))
    ]
    frames = ranking(pd.DataFrame(rows))
    found = frames["ranking"].set_index("loss")
    assert found.loc["ce-el", ["wins", "mean_rank"]].tolist() == [5, 1]
    assert found.loc[CONTROL, "mean_difference"] == pytest.approx(0.01)
    assert found.loc["ce-el", ["low", "high"]].tolist() == pytest.approx([0.1, 0.1])
    assert CONTROL not in frames["profile"]


def test_correlations_say_how_little_a_handful_shows():
    first = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    found = correlation(first, [2.0, 1.0, 4.0, 3.0, 6.0, 5.0])
    assert found["low"] < found["r"] < found["high"]
    assert found["r"] == pytest.approx(0.829, abs=1e-3)  # by hand: 14.5 / 17.5
    assert np.isnan(correlation([1.0, 1.0, 1.0, 1.0], first[:4])["r"])
    ranked = rank_correlation(first, [1.0, 4.0, 9.0, 16.0, 25.0, 30.0])
    assert (ranked["rho"], ranked["high"]) == (1.0, 1.0)
    mixed = rank_correlation(first, [3.0, 1.0, 6.0, 2.0, 5.0, 4.0])
    assert mixed["low"] < 0 < mixed["rho"] < mixed["high"]
