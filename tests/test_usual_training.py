"""What a study fills in where the user leaves it open, model by model."""

import pytest

from lossmith.studies.design.given_settings import settings_from
from lossmith.studies.design.trials import drawn_settings
from lossmith.studies.design.usual_training import HABITS, Habit, completed_recipe, suitable_epochs


@pytest.fixture
def habit(monkeypatch):
    own = Habit("adamw", "warmup-cosine", epochs=0.5, rates=(1e-3, 2e-3), decays=(0.5, 0.6))
    monkeypatch.setitem(HABITS, "mlp", own)
    return own


def test_a_model_is_trained_by_its_habit(habit):
    whole = settings_from({}).completed("mlp", 650).recipe
    assert (whole.optimizer, whole.schedule, whole.epochs) == ("adamw", "warmup-cosine", 20)
    other = settings_from({"model": "linear"}).completed("mlp", 650).recipe
    assert (other.optimizer, other.schedule, other.epochs) == ("sgd", "cosine", 40)


def test_what_the_user_says_goes_before_the_habit(habit):
    given = {"optimizer": "adam", "schedule": "constant", "epochs": 7, "batch_size": 5}
    whole = settings_from(given).completed("mlp", 650).recipe
    assert {name: getattr(whole, name) for name in given} == given


def test_rates_and_decays_of_a_habit_belong_to_its_optimizer(habit):
    tried = drawn_settings(settings_from({}).completed("mlp", 650), "ce", 0)
    assert all(1e-3 <= setting.learning_rate <= 2e-3 for setting in tried)
    assert {setting.weight_decay > 0.49 for setting in tried if setting.weight_decay} == {True}
    sgd = drawn_settings(settings_from({"optimizer": "sgd"}).completed("mlp", 650), "ce", 0)
    assert max(setting.learning_rate for setting in sgd) > 0.1


def test_a_study_that_goes_on_keeps_how_it_was_trained(habit):
    stored = settings_from({"optimizer": "adam", "schedule": "steps"}).completed("mlp", 650)
    again = settings_from({}).as_before(stored).recipe
    assert (again.optimizer, again.schedule) == ("adam", "steps")


def test_epochs_stay_in_their_range(habit):
    assert suitable_epochs(10**9, "mlp") == 8
    assert completed_recipe(settings_from({}).recipe, "mlp", 1).epochs == 200
