"""Search spaces of losses in the real Optuna and Ray Tune."""

import pytest

import lossmith
from lossmith.objectives import search_space, with_parameters

LOSSES = ("gce", "nce + 20*logit-bias(gce)", "smooth-topk(k=3)", "dropout(loss=focal)", "bi-tempered")


@pytest.mark.parametrize("loss", LOSSES)
def test_optuna_has_the_same_ranges(loss):
    pytest.importorskip("optuna", reason="make test-integrations has Optuna")
    from lossmith.integrations import optuna

    for (name, distribution), (path, range_) in zip(optuna.search_space(loss).items(), search_space(loss).items(), strict=True):
        assert name == f"{loss}: {path}"
        assert (distribution.low, distribution.high, distribution.log) == (range_.low, range_.high, range_.log)


def test_optuna_chooses_among_losses_and_their_parameters():
    optuna = pytest.importorskip("optuna", reason="make test-integrations has Optuna")
    from lossmith.integrations.optuna import search_space, suggest_loss

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    seen = []

    def objective(trial):
        loss = suggest_loss(trial, trial.suggest_categorical("loss", ["gce", "agce", "truncated-gce"]))
        seen.append(repr(loss))
        return abs(loss.q - 0.3)

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=20)
    best = study.best_params
    assert best[f"{best['loss']}: q"] == pytest.approx(0.3, abs=0.1)
    assert len({text.partition("(")[0] for text in seen}) == 3
    asked = study.ask(search_space("gce"))
    assert 0 <= asked.params["gce: q"] <= 1


@pytest.mark.parametrize("loss", LOSSES)
def test_ray_tune_draws_what_losses_take(loss):
    pytest.importorskip("ray.tune", reason="make test-integrations has Ray Tune")
    from lossmith.integrations import ray_tune

    space = ray_tune.search_space(loss)
    assert list(space) == list(search_space(loss))
    for _ in range(20):
        drawn = {name: domain.sample() for name, domain in space.items()}
        lossmith.make_objective(with_parameters(loss, drawn))
    for name, range_ in search_space(loss).items():
        drawn = [space[name].sample() for _ in range(200)]
        assert range_.low <= min(drawn) <= max(drawn) <= range_.high
        assert not range_.whole or set(drawn) == set(range(int(range_.low), int(range_.high) + 1))
