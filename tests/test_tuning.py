"""Equal tuning: which settings are tried, which counts, what is tried beyond, and what a study costs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lossmith.command_line import main
from lossmith.data import load_data
from lossmith.studies import compare
from lossmith.studies.budget.cost import LONGEST_SECONDS, Cost, _Sample, trainings_of
from lossmith.studies.budget.time_plan import plan_in_time
from lossmith.studies.design.given_settings import settings_from
from lossmith.studies.design.settings import Settings
from lossmith.studies.design.trials import drawn_settings, expression_of
from lossmith.studies.design.usual_training import RATES, UNFINISHED
from lossmith.studies.protocol.procedure import race_of
from lossmith.studies.protocol.replicates import Replicates, overlap_of
from lossmith.studies.protocol.tuning import best_trial, edge_runs, second_chance_runs, trials_that_may_count
from lossmith.training.recipe import Cell, Recipe

CELL = Cell("ce", "none", 0)
SETTINGS = Settings(recipe=Recipe(epochs=30), noise=("0", "0.2", "0.4"), seeds=5, trials=9, losses=("ce", "gce"))


def trial(rate: float, score: float, **more) -> dict:
    plain = {"weight_decay": 0.0, "parameters": "", "epochs": 0, "stopped": False, "stands_for": 1.0, "diverged": False}
    return {"learning_rate": rate, "validation_score": score, **plain, **more}


def test_trials_fill_their_range_evenly_and_differ_between_replicates():
    low, high = RATES["sgd"]
    for seed in range(20):
        drawn = drawn_settings(SETTINGS, "ce", seed)
        places = sorted(np.log([setting.learning_rate / low for setting in drawn]) / np.log(high / low) * 9)
        # Rates are rounded to three digits, half a percent at most: a hundredth of a ninth of the range.
        assert all(number - 0.01 <= place <= number + 1.01 for number, place in enumerate(places))
        assert sum(setting.weight_decay == 0 for setting in drawn) == 3
        assert drawn == drawn_settings(SETTINGS, "gce", seed)
    assert drawn_settings(SETTINGS, "ce", 0) != drawn_settings(SETTINGS, "ce", 1)


def test_rates_and_decays_that_the_user_gives_are_a_grid():
    given = replace(SETTINGS, rates=(0.1, 0.3), decays=(0.0, 1e-3))
    assert [tuple(setting)[:2] for setting in drawn_settings(given, "ce", 3)] == [(0.1, 0), (0.1, 1e-3), (0.3, 0), (0.3, 1e-3)]
    assert given.trials_of_a_cell == 4
    assert race_of(given) is None
    only_decays = replace(SETTINGS, decays=(0.0, 1e-3))
    assert {setting.weight_decay for setting in drawn_settings(only_decays, "ce", 0)} == {0.0, 1e-3}


def test_parameters_are_tuned_where_asked_for():
    tuned = replace(SETTINGS, tune=("parameters",))
    drawn = drawn_settings(tuned, "gce", 0)
    assert len({setting.parameters for setting in drawn}) == 9
    assert all(expression_of("gce", setting.parameters).startswith("gce(q=") for setting in drawn)
    assert {setting.parameters for setting in drawn_settings(tuned, "ce", 0)} == {""}
    assert {setting.parameters for setting in drawn_settings(tuned, "mine", 0, own=True)} == {""}


def test_the_best_trial_was_trained_to_the_end_and_did_not_diverge():
    trials = [trial(0.1, 0.9, stopped=True), trial(0.2, 0.8), trial(0.3, 0.95, diverged=True), trial(0.4, 0.8)]
    assert best_trial(trials)["learning_rate"] == 0.2


def test_of_trials_that_accuracy_cannot_tell_apart_the_likelihood_takes_one():
    rows = {"validation_error": 0.04}
    near = [trial(0.1, 0.80, validation_likelihood=-0.7, **rows), trial(0.2, 0.77, validation_likelihood=-0.6, **rows)]
    far = trial(0.3, 0.75, validation_likelihood=-0.1, **rows)
    assert best_trial([*near, far])["learning_rate"] == 0.2
    # Of a study of an earlier version no likelihood is known: then the score alone counts, for all trials of the cell.
    assert best_trial([*near, trial(0.4, 0.79)])["learning_rate"] == 0.1


def test_whatever_may_still_count_is_kept():
    rows = {"validation_error": 0.04}
    first = [trial(0.1, 0.85, validation_likelihood=-0.5, **rows), trial(0.2, 0.88, validation_likelihood=-0.6, **rows)]
    behind = trial(0.3, 0.84, validation_likelihood=-0.7, **rows)
    kept = trials_that_may_count([*first, behind])
    assert kept == first
    assert best_trial(kept)["learning_rate"] == 0.1
    # A further trial raises the highest score, and the second one, which was not the best, becomes so.
    assert best_trial([*kept, trial(0.4, 0.91, validation_likelihood=-0.8, **rows)])["learning_rate"] == 0.2


@pytest.mark.parametrize(
    ("scores", "beyond"), [([0.7, 0.8, 0.9], [0.6, 1.2]), ([0.9, 0.8, 0.7], [0.05, 0.025]), ([0.7, 0.9, 0.8], [])]
)
def test_a_best_rate_at_the_edge_is_followed(scores, beyond):
    trials = [trial(rate, score) for rate, score in zip((0.1, 0.2, 0.3), scores, strict=True)]
    assert [run.learning_rate for run in edge_runs(SETTINGS, CELL, trials)] == beyond
    assert edge_runs(replace(SETTINGS, rates=(0.1, 0.2, 0.3)), CELL, trials) == []


def test_an_edge_is_followed_twice_at_most():
    trials = [trial(rate, rate) for rate in (0.1, 0.2, 0.3)]
    for rounds in (1, 2):
        further = edge_runs(SETTINGS, CELL, trials)
        assert len(further) == 2, rounds
        trials += [trial(run.learning_rate, run.learning_rate, stands_for=0.0) for run in further]
    assert edge_runs(SETTINGS, CELL, trials) == []


def test_a_second_chance_has_more_epochs_and_a_larger_rate():
    runs = second_chance_runs(SETTINGS, CELL, trial(0.1, 0.2, weight_decay=1e-3))
    assert [(run.learning_rate, run.weight_decay, run.epochs) for run in runs] == [(0.1, 1e-3, 90), (0.3, 1e-3, 90)]


def test_trials_that_are_stopped_count_for_what_they_trained():
    # 9 trials for 10 of 30 epochs, then 3 and one more for the other 20: 9/3 + 4 * 2/3.
    of_cell = 9 / 3 + 4 * 2 / 3
    assert trainings_of(SETTINGS) == pytest.approx(2 * 3 * of_cell)
    assert trainings_of(replace(SETTINGS, tune_on="clean")) == pytest.approx(2 * (of_cell + 2))


def cost_of(row: float, rows: int, references: float = 0.0) -> Cost:
    return Cost(0.0, row, 0.0, (rows, rows // 4, rows // 3), ((rows, references),), 2)


def plan(cost: Cost, **given):
    return plan_in_time(replace(SETTINGS, seeds=0, trials=0, **given), cost, asked=UNFINISHED)


def test_quick_studies_have_more_replicates():
    found = plan(cost_of(2e-7, 500))
    assert found.settings.seeds == 20
    assert found.settings.trials == 9
    assert found.shrunk == ""


def test_long_studies_are_shrunk_rows_first():
    found = plan(cost_of(1e-4, 50_000, 10.0))
    assert found.settings.seeds == 5
    assert 500 <= found.settings.train_rows < 50_000
    assert found.seconds <= LONGEST_SECONDS
    assert f"{found.settings.train_rows} of 50000 training rows in each replicate" in found.shrunk
    assert found.shrunk.endswith("h")
    longer = plan(cost_of(2e-3, 50_000, 10.0))
    assert longer.settings.trials < 9
    assert longer.settings.train_rows == 500
    assert longer.settings.recipe.batch_size == 32  # as suits 500 rows, not 50,000


def test_what_costs_more_than_any_data_here_fits_by_fewer_epochs():
    found = plan(cost_of(4e-3, 50_000, 10.0))
    assert found.seconds <= LONGEST_SECONDS
    assert 5 <= found.settings.recipe.epochs < 30
    assert f"{found.settings.recipe.epochs} of 30 epochs" in found.shrunk


def test_a_plan_that_cannot_be_small_enough_says_so():
    found = plan(cost_of(1e-2, 50_000), minutes=0.5)
    assert found.seconds > 30
    assert found.too_long == "longer than the 0.5 min there are"


def test_rows_that_are_only_looked_at_cost_time():
    seen = Cost(0.0, 1e-4, 1e-4, (1000, 1000, 9000), (), 1)
    # 100 rows to learn from and to look at, as many validation rows, 500 of the test.
    assert seen.of_epoch(100, 10) == pytest.approx(1e-4 * (100 + 100 + 100 + 500))
    assert replace(seen, step=0.01).of_epoch(100, 10) == pytest.approx(0.1 + 0.08)


def test_references_cost_what_was_measured_near_so_many_rows():
    cost = Cost(0.0, 0.0, 0.0, (9000, 1, 1), ((500, 1.0), (1500, 2.0)), 1)
    assert [cost.of_references(rows) for rows in (500, 1000, 1500, 3000)] == pytest.approx([1.0, 1.5, 2.0, 4.0])


def test_minutes_decide_how_many_replicates_there_are():
    cost = cost_of(1e-5, 1000, 0.5)
    few, many = plan(cost, minutes=2.0), plan(cost, minutes=4.0)
    assert 5 <= few.settings.seeds < many.settings.seeds <= 20
    assert few.seconds <= 120
    assert many.seconds <= 240


def test_what_the_user_gave_is_not_shrunk():
    settings = replace(SETTINGS, seeds=7, trials=12, train_rows=3000)
    found = plan_in_time(settings, cost_of(2e-3, 50_000, 10.0), asked=settings.recipe)
    assert found.settings == settings
    assert found.shrunk == ""


def test_training_rows_are_drawn_by_class():
    data = load_data("digits")
    settings = replace(SETTINGS, data="digits", train_rows=200)
    for seed in (0, 1):
        own = Replicates(settings, "digits", data).data(seed)
        counts = torch.bincount(own.labels[own.train])
        assert len(own.train) == 200
        assert counts.min() >= 18
        assert len(own.validation) == 200  # no more to choose by than to learn from
        assert counts.max() <= 22


def test_replicates_overlap_by_what_they_share():
    data = [load_data("digits", seed=seed) for seed in (0, 1)]
    assert overlap_of(*data).ratio == pytest.approx(len(data[0].test) / (1797 - len(data[0].test)))
    fixed = [replace(one, test=data[0].test) for one in data]
    assert overlap_of(*fixed).rows
    assert overlap_of(*fixed).ratio == pytest.approx(len(data[0].validation) / len(data[0].train))
    assert overlap_of(data[0], data[0]).ratio == 0


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    options = {"losses": "ce,mae", "noise": [0, 0.2], "seeds": 2, "epochs": 6, "trials": 6, "workers": 1, "progress": False}
    return compare("wine", output=tmp_path_factory.mktemp("wine"), **options)


def test_a_whole_procedure(tuned):
    trials = tuned.trials
    for key, cell in trials.groupby(["loss", "noise", "seed"]):
        drawn = cell[cell.stopped | (cell.weight > 0)]
        assert len(drawn) == 6, key
        assert drawn.weight.sum() == 6
        assert drawn.stopped.sum() == 3
        assert cell.counts.sum() == 1
        assert not cell[cell.counts].stopped.any()
    rates = trials[trials.stopped | (trials.weight > 0)].groupby(["seed", "loss", "noise"]).learning_rate.agg(frozenset)
    assert rates.groupby("seed").nunique().eq(1).all()
    assert {"largest class", "logistic regression"} < set(tuned.references.reference)
    assert len(tuned.references) == tuned.references.reference.nunique() * 4


def test_predictions_are_kept_of_what_counts_alone(tuned):
    counting = set(tuned.results.run)
    for run in tuned.trials.run:
        assert bool(tuned.store.kept(run)) is (run in counting)


def test_clean_labels_choose_for_all_noises_where_asked(tmp_path):
    options = {"losses": "ce", "seeds": 1, "epochs": 4, "trials": 4, "references": False, "progress": False, "workers": 1}
    study = compare("wine", noise=[0, 0.4], tune_on="clean", output=tmp_path, **options)
    counting = study.results.set_index("noise")
    same = ["learning_rate", "weight_decay"]
    assert counting.loc["none", same].tolist() == counting.loc["symmetric(0.4)", same].tolist()
    assert len(study.trials[study.trials.noise == "symmetric(0.4)"]) in (1, 3)  # with its second chance


def test_one_rate_and_one_seed_train_once(tmp_path):
    study = compare("wine", losses="ce", noise=0, seeds=1, rates=0.1, epochs=2, output=tmp_path, progress=False, workers=1)
    assert len(study.trials) == 1


def test_what_was_left_open_stays_as_it_was_found(tmp_path):
    options = {"losses": "ce", "noise": 0, "minutes": 1e-6, "references": False, "progress": False, "workers": 1}
    first = compare("iris", output=tmp_path, **options)
    again = compare("iris", output=tmp_path, **options)
    assert again.settings == first.settings
    assert first.settings.seeds == 5
    assert first.settings.trials <= 9
    more = compare("iris", output=tmp_path, **{**options, "seeds": 6})
    assert more.results.seed.nunique() == 6


def test_classes_can_be_weighed(tmp_path):
    generator = np.random.default_rng(0)
    labels = np.repeat([0, 1], [360, 40])
    frame = pd.DataFrame({"x": generator.normal(size=400) + 1.5 * labels, "y": labels})
    options = {"noise": 0, "seeds": 2, "epochs": 10, "trials": 4, "references": False, "progress": False, "workers": 1}
    found = {
        how: compare(
            frame, target="y", losses="ce", class_weight=how, metric="balanced-accuracy", output=tmp_path / how, **options
        )
        for how in ("none", "balanced")
    }
    means = {how: study.results.balanced_accuracy.mean() for how, study in found.items()}
    assert means["balanced"] > means["none"] + 0.05


def test_settings_are_read_by_the_names_they_have_on_the_command_line():
    settings = settings_from({"metric": "balanced-accuracy", "tune": "settings,parameters", "decays": [0, 0.1], "minutes": 3})
    assert settings.metric == "balanced_accuracy"
    assert settings.tune == ("settings", "parameters")
    assert settings.decays == (0.0, 0.1)


def test_fewer_rows_are_the_same_rows_in_every_replicate():
    first, second = (load_data("digits", rows=300, replicate=number) for number in (0, 1))
    assert torch.equal(first.labels, second.labels)
    assert not torch.equal(first.test, second.test)


def test_a_study_that_is_added_to_still_says_what_was_made_smaller(monkeypatch, tmp_path):
    monkeypatch.setattr("lossmith.studies.prepared_comparison.measured_cost", lambda *_, **__: cost_of(1.0, 1169))
    options = {"losses": ["ce"], "noise": [0], "references": False, "workers": 1, "progress": False, "output": tmp_path / "study"}
    first = compare("digits", seeds=1, **options).provenance["shrunk"]
    assert first.startswith("to fit into the time: 500 of 1169 training rows")
    assert compare("digits", seeds=2, **options).provenance["shrunk"] == first


@pytest.mark.parametrize(("epochs", "is_short"), [(1, True), (100_000, False)])
def test_a_study_of_a_moment_is_not_measured_for_longer(epochs, is_short, monkeypatch):
    """Its first rows tell enough; of a long one more is trained, until it lasts long enough to be trusted."""
    measured = []
    seconds_of_epoch = _Sample._seconds_of_epoch

    def noted(sample, *arguments, **options):
        measured.append((sample.rows, sample.epochs))
        return seconds_of_epoch(sample, *arguments, **options)

    monkeypatch.setattr(_Sample, "_seconds_of_epoch", noted)
    options = (
        f"--losses ce --noise 0 --seeds 2 --rates 0.1 --no-references --workers 1 --minutes 1000 --epochs {epochs} --dry-run"
    )
    assert main(["compare", "digits", *options.split()]) == 0
    assert measured[0] == (256, 1)
    assert (len(measured) == 1) == is_short
