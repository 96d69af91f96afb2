"""Which losses are compared where none are named."""

import numpy as np
import pytest

from lossmith import compare
from lossmith.command_line import main
from lossmith.data import load_data
from lossmith.studies.design import usual_losses as module
from lossmith.studies.design.given_settings import settings_from
from lossmith.studies.design.settings import LOSSES
from lossmith.studies.design.usual_losses import usual_losses
from lossmith.theory.studied.loss_map import LossMap, StudiedSet
from lossmith.theory.studied.similar_data import Task
from lossmith.theory.studied.worth_trying import worth_trying

USUAL = ("ce", "gce", "focal", "sce")


def known(*, uneven=False, **leads):
    """Return a map of six tables: leads over cross-entropy without noise and with 20 % wrong labels, by loss."""
    sets = []
    for place in range(6):
        accuracy = {
            noise: {"ce": 0.8, **{loss: 0.8 + lead[at] + 0.001 * place for loss, lead in leads.items()}}
            for at, noise in enumerate((0.0, 0.2))
        }
        imbalance = 0.05 if uneven else None
        sets.append(StudiedSet(f"table{place}", "table", 200 + 50 * place, 2 + place, imbalance, accuracy))
    return LossMap(tuple(sets))


def shortlist(studied, *noises, usual=USUAL, imbalance=None):
    return worth_trying(studied, [Task(3, noise, 300, "table", imbalance) for noise in noises], usual)


def test_what_is_behind_at_every_noise_is_left_out():
    studied = known(gce=(-0.02, 0.03), focal=(-0.02, -0.03), sce=(-0.001, -0.002))
    found = shortlist(studied, 0.0, 0.2)
    assert found.losses == ("ce", "gce", "sce")
    assert found.reason.startswith("focal is left out, -1.8 points (-1.9 to -1.6) and -2.8 points (-2.9 to -2.6)")
    assert shortlist(studied, 0.0).losses == ("ce", "sce")


def test_what_is_ahead_is_taken_too():
    studied = known(gce=(0.0, 0.0), agce=(-0.05, 0.02))
    assert shortlist(studied, 0.0, 0.2).losses == (*USUAL, "agce")
    assert "agce is taken" in shortlist(studied, 0.2).reason
    assert shortlist(studied, 0.0).losses == USUAL


def test_where_nothing_is_known_or_clear_the_usual_losses_are_compared():
    studied = known(focal=(-0.02, -0.03))
    assert worth_trying(studied, [Task(3, 0.0, 300, "text")], USUAL).losses == USUAL
    assert worth_trying(studied, [Task(3, 0.0, 300, "text")], USUAL).reason == ""
    assert shortlist(known(gce=(0.0, 0.0)), 0.0).reason.startswith("none of the usual losses was behind ce")


def test_a_loss_with_class_weights_is_none_that_could_be_named():
    studied = known(uneven=True, **{"ce, balanced weights": (0.1, 0.1), "balanced-softmax": (0.1, 0.1)})
    assert shortlist(studied, 0.0, imbalance=0.05).losses == (*USUAL, "balanced-softmax")


@pytest.fixture
def table(monkeypatch):
    studied = known(**dict.fromkeys(("focal", "sce"), (-0.05, -0.05)))
    monkeypatch.setattr(module, "shipped_map", lambda: studied)
    random = np.random.default_rng(0)
    return {"x": random.normal(size=(300, 4)), "y": random.integers(3, size=300)}


def test_only_studies_that_are_like_those_of_the_map_go_by_it(table):
    data = load_data(table)
    assert "focal" not in usual_losses(settings_from({"noise": "0.2"}), data).losses
    for other in ({"noise": "0.4"}, {"noise": "pair(0.2)"}, {"metric": "nll"}, {"noise": "0,0.2", "tune_on": "clean"}):
        assert usual_losses(settings_from(other), data).losses == LOSSES


def test_a_study_says_which_losses_it_left_out(table, tmp_path, capsys):
    np.savez(tmp_path / "own.npz", **table)
    assert main(["compare", str(tmp_path / "own.npz"), "--noise", "0.2", "--dry-run", "--minutes", "1"]) == 0
    printed = capsys.readouterr().out
    assert "focal is left out" in printed
    assert "losses    ce, label-smoothing, gce, bi-tempered, logit-bias(mae)\n" in printed
    assert main(["compare", str(tmp_path / "own.npz"), "--losses", "ce,focal", "--noise", "0.2", "--dry-run"]) == 0
    assert "left out" not in capsys.readouterr().out


def test_a_study_keeps_the_losses_that_it_began_with(table, tmp_path, monkeypatch):
    quick = {"seeds": 1, "trials": 1, "epochs": 1, "model": "linear", "references": False, "progress": False, "noise": "0.2"}
    first = compare(table, output=tmp_path / "study", **quick)
    monkeypatch.setattr(module, "shipped_map", lambda: LossMap(()))
    again = compare(table, output=tmp_path / "study", **quick)
    assert first.settings.losses == again.settings.losses == ("ce", "label-smoothing", "gce", "bi-tempered", "logit-bias(mae)")
