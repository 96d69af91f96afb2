"""Differences that hang on a setting, and those that do not."""

import numpy as np
import pandas as pd
import pytest

from lossmith.statistics.differences.overlapping import Overlap
from lossmith.statistics.differences.paired_tests import paired_difference
from lossmith.statistics.setting_dependence import RULES, setting_checks, what_it_hangs_on
from study_frames import trials_frame

SMALLEST_RATE, LARGEST_RATE, SMALLEST_DECAY, _, SECOND = (rule.words for rule in RULES)


def wine(seeds: int = 5):
    """Two losses that are alike at rate 0.1, at which validation rows cannot tell; chance gives ce the rate 0.01 instead."""
    trials = trials_frame({"ce": [0.6], "bi-tempered": [0.6]}, rates=(0.01, 0.1), noise=["none"], seeds=seeds, spread=0.001)
    small, ce = trials["learning_rate"] == 0.01, trials["loss"] == "ce"
    trials["accuracy"] = np.where(small, 0.58, 0.60) + np.random.default_rng(0).normal(0, 0.001, len(trials))
    trials["validation_score"] = np.where(ce == small, 0.601, 0.600)
    return trials.assign(counts=ce == small)


def test_a_difference_that_comes_from_the_choice_of_a_rate_is_seen():
    checks = setting_checks(wine(), "bi-tempered", "ce", "accuracy", rows=200)
    worst = what_it_hangs_on(checks, "none")
    assert worst["chosen"] == pytest.approx(0.02, abs=0.002)
    table = checks.set_index(["changed", "rule"])["difference"]
    assert abs(table["ce", LARGEST_RATE]) < 0.003
    assert abs(table["bi-tempered", SMALLEST_RATE]) < 0.003
    assert table["ce", SMALLEST_RATE] == pytest.approx(0.02, abs=0.002)
    assert worst["difference"] == table.min()


def test_with_many_validation_rows_only_one_setting_is_good():
    checks = setting_checks(wine(), "bi-tempered", "ce", "accuracy", rows=1_000_000)
    assert what_it_hangs_on(checks, "none") is None
    assert np.allclose(checks["difference"], checks["chosen"])


def test_a_difference_at_all_good_settings_holds():
    trials = trials_frame({"ce": [0.8, 0.6], "gce": [0.85, 0.7]})
    checks = setting_checks(trials, "gce", "ce", "accuracy", rows=150)
    assert len(checks) == 2 * 2 * len(RULES)
    assert what_it_hangs_on(checks, "none") is None
    assert what_it_hangs_on(checks, "symmetric(0.4)") is None


def test_a_worse_loss_is_judged_alike():
    checks = setting_checks(wine(), "ce", "bi-tempered", "accuracy", rows=200)
    worst = what_it_hangs_on(checks, "none")
    assert worst["chosen"] < 0
    assert worst["difference"] > -0.003


def test_rules_take_what_they_say():
    trials = trials_frame({"ce": [0.9], "gce": [0.9]}, noise=["none"], seeds=3, spread=0.003, needs_tuning={"ce": 0.01})
    checks = setting_checks(trials, "ce", "gce", "accuracy", rows=100, overlap=Overlap(0.2)).set_index(["changed", "rule"])
    taken = {SMALLEST_RATE: [], SMALLEST_DECAY: [], SECOND: []}
    theirs = []
    for _, cell in trials.query("loss == 'ce'").groupby("seed"):
        best = cell["validation_score"].max()
        near = cell[cell["validation_score"] >= best - np.sqrt(best * (1 - best) / 100)]
        assert len(near) > 2
        taken[SMALLEST_RATE].append(near.loc[near["learning_rate"].idxmin(), "accuracy"])
        taken[SMALLEST_DECAY].append(near.loc[near["weight_decay"].idxmin(), "accuracy"])
        taken[SECOND].append(near["accuracy"].nlargest(2).iloc[-1])
    for _, cell in trials.query("loss == 'gce'").groupby("seed"):
        theirs.append(cell.loc[cell["counts"], "accuracy"].item())
    for rule, values in taken.items():
        expected = paired_difference(np.array(values), np.array(theirs), overlap_ratio=0.2)
        row = checks.loc[("ce", rule), ["difference", "low", "high"]].to_numpy(float)
        np.testing.assert_allclose(row, [expected.mean, expected.low, expected.high])


def test_stopped_and_diverged_trials_are_no_choice():
    trials = wine()
    useless = trials.assign(counts=False, accuracy=0.0, learning_rate=100.0)
    for name in ("stopped", "diverged"):
        both = pd.concat([trials, useless.assign(**{name: True})], ignore_index=True)
        checks = setting_checks(both, "bi-tempered", "ce", "accuracy", rows=200)
        assert (checks["difference"] > -0.01).all()


def test_what_cannot_be_told_is_not_held_against_a_loss():
    checks = setting_checks(wine(seeds=1), "bi-tempered", "ce", "accuracy", rows=200)
    assert what_it_hangs_on(checks, "none") is None
    old = wine().drop(columns=["weight_decay", "counts", "stopped"])
    rules = set(setting_checks(old, "bi-tempered", "ce", "accuracy", rows=200)["rule"])
    assert rules == {SMALLEST_RATE, LARGEST_RATE, SECOND}
    assert setting_checks(old, "mae", "ce", "accuracy", rows=200).empty
