"""Trials that compete: who goes on, what they stand for, and that competing changes no number."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from torch import nn

import training_reference as reference
from lossmith.training.job import Job
from lossmith.training.loop import train_stack
from lossmith.training.merit import Merit
from lossmith.training.race import Race
from lossmith.training.recipe import Recipe, Run
from lossmith.training.stacks.composition import compose_stacks
from training_reference import digits, job

double = pytest.fixture(autouse=True)(reference.double_precision)
RATES = (1e-4, 0.003, 0.01, 0.03, 0.1, 0.3)


def accuracy(probabilities: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean(probabilities.argmax(1) == labels))


def by_accuracy(probabilities: np.ndarray, labels: np.ndarray) -> Merit:
    return Merit(accuracy(probabilities, labels))


RACE = Race(epoch=2, kept=2, judge=by_accuracy)


def trials(data, losses=("ce", "gce"), seed: int = 0) -> list[Job]:
    return [job(data, loss, seed, rate) for loss in losses for rate in RATES]


def test_the_best_and_one_of_the_others_go_on() -> None:
    runs = [Run("ce", "none", 0, rate) for rate in RATES] + [Run("gce", "none", 0, rate) for rate in RATES]
    merits = [Merit(score) for score in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, math.nan, 0.9, 0.9, 0.1, 0.2, math.nan)]
    standing = RACE.stands_for(runs, merits)
    assert standing[4:6] == [1, 1]
    assert sorted(standing[:4]) == [0, 0, 0, 4]
    assert standing[7:9] == [1, 1]
    assert sorted([*standing[6:7], *standing[9:]]) == [0, 0, 0, 4]
    assert standing == RACE.stands_for(runs, merits)


def test_who_goes_on_in_the_place_of_the_others_is_drawn_by_chance() -> None:
    merits = [Merit(score) for score in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)]
    drawn = [RACE.stands_for([Run("ce", "none", seed, rate) for rate in RATES], merits).index(4) for seed in range(200)]
    counts = np.bincount(drawn, minlength=4)
    # Binomial with 200 draws of a quarter each: 50 +- 6; four standard deviations on both sides.
    assert counts.min() > 25
    assert counts.max() < 75


@pytest.mark.parametrize("layer", [None, partial(nn.Dropout, 0.2), partial(nn.BatchNorm1d, 10)])
def test_what_goes_on_gives_the_numbers_it_gives_without_a_race(layer: Callable[[], nn.Module] | None) -> None:
    data, recipe = digits(100), Recipe(epochs=6, batch_size=16)
    build = None if layer is None else (lambda *_: nn.Sequential(nn.Linear(64, 10), layer()))
    jobs = trials(data)
    whole = train_stack(jobs, data, recipe, build=build)
    raced = train_stack(jobs, data, recipe, build=build, race=RACE)
    assert sum(trained.stopped for trained in raced) == 2 * 3
    for own, full in zip(raced, whole, strict=True):
        assert own.run == full.run
        if own.stopped:
            assert own.stands_for == 0
            assert np.isnan(own.curves["train_loss"][2:]).all()
            np.testing.assert_allclose(own.curves["train_loss"][:2], full.curves["train_loss"][:2], rtol=1e-9)
            assert accuracy(own.test_probabilities, data.labels[data.test].numpy()) == own.curves["test_accuracy"][1]
        else:
            np.testing.assert_allclose(own.test_logits, full.test_logits, rtol=1e-8, atol=1e-8)
    for cell in ("ce", "gce"):
        assert sum(own.stands_for for own in raced if own.run.loss == cell) == len(RATES)


def test_those_who_go_on_were_best_on_their_validation_rows() -> None:
    data, recipe = digits(200), Recipe(epochs=6, batch_size=16)
    whole = train_stack(trials(data, ["ce"]), data, recipe)
    raced = train_stack(trials(data, ["ce"]), data, recipe, race=RACE)
    at_rung = [trained.curves["validation_accuracy"][1] for trained in whole]
    best = sorted((own.curves["validation_accuracy"][1] for own in raced if own.stands_for == 1), reverse=True)
    assert best == sorted(at_rung, reverse=True)[:2]


def test_a_cell_stays_in_one_stack() -> None:
    data = digits(50)
    jobs = [own for seed in range(7) for own in trials(data, ("ce", "gce", "dropout"), seed)]
    stacks = compose_stacks(jobs, data, Recipe(), by_cell=True)
    places = [{jobs[number].run.cell for number in stack} for stack in stacks]
    assert sum(map(len, places)) == 3 * 7
    assert max(map(len, stacks)) == 5 * len(RATES)


def test_a_race_is_told_in_runs_that_train() -> None:
    data, told = digits(50), []
    train_stack(trials(data, ["ce"]), data, Recipe(epochs=4), race=RACE, on_epoch=lambda runs, epoch: told.append((runs, epoch)))
    assert told == [(6, 1), (6, 2), (3, 3), (3, 4)]
