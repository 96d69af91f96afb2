"""Recipes of papers: what they set, what replaces it, what they say of themselves, and that each can be trained."""

from pathlib import Path

import numpy as np
import pytest

import lossmith
from lossmith.command_line import main
from lossmith.recipes import RECIPES
from lossmith.studies.design.given_settings import settings_from
from lossmith.studies.design.settings_file import read_settings
from lossmith.studies.design.settings_words import command, deviations
from lossmith.studies.design.trials import drawn_settings
from lossmith.training.checks import check_recipe
from training_reference import digits


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_is_a_study(name: str) -> None:
    settings = settings_from({"recipe": name, "data": "digits"})
    settings.check_objectives({})
    check_recipe(settings.completed("mlp", 1000).recipe, digits(images=True))
    assert len(settings.losses) == len(RECIPES[name].losses)
    for loss in RECIPES[name].losses:
        tried = drawn_settings(settings, loss.expression, 0)
        if loss.rate is not None:
            assert [setting.learning_rate for setting in tried] == [loss.rate]
        if loss.decay is not None:
            assert [setting.weight_decay for setting in tried] == [loss.decay]
    assert command(settings, Path("x")) == f"lossmith compare digits --recipe {name} --output x"


def images(size: int, channels: int = 1) -> dict[str, np.ndarray]:
    """Ten classes of images, each with a bright row or column of its own, and a test split."""
    generator = np.random.default_rng(0)
    labels = np.arange(60) % 10
    pictures = generator.normal(size=(60, channels, size, size)).astype(np.float32)
    for row, label in enumerate(labels):
        pictures[row, :, label % size] += 3
    return {"x_train": pictures[:40], "y_train": labels[:40], "x_test": pictures[40:], "y_test": labels[40:]}


def table() -> tuple[np.ndarray, np.ndarray]:
    labels = np.arange(60) % 3
    return np.random.default_rng(0).normal(size=(60, 4)) + labels[:, None], labels


TINY = {
    "staats-fashion": (images(8), {"noise": [0.4], "losses": ["ce", "mae", "nf-mae@10"]}),
    "amid-mnist": (images(8), {"noise": [0], "trials": 1}),
    "kornblith-cifar": (images(9, 3), {"losses": ["ce", "cosine-softmax@cifar-10"]}),
    "berrada-cifar": (images(4, 3), {"noise": ["uniform-within-groups(1.0)"], "groups": [0] * 5 + [1] * 5}),
    "battash-uci": (table(), {}),
}


@pytest.mark.parametrize("name", TINY)
def test_each_recipe_trains(name: str, tmp_path: Path) -> None:
    data, given = TINY[name]
    usual = {"recipe": name, "seeds": 1, "epochs": 1, "batch_size": 16, "references": False, "workers": 1, "progress": False}
    study = lossmith.compare(data, output=tmp_path / "study", **{**usual, **given})
    assert len(study.results) == len(study.settings.losses) * len(study.settings.noise)
    assert not study.results["diverged"].any()
    assert study.settings.published == name
    assert lossmith.open_study(tmp_path / "study").settings == study.settings
    rates = {loss.expression: loss.rate for loss in RECIPES[name].losses}
    for _, run in study.results.iterrows():
        if rates.get(run["loss"]) is not None:
            assert run["learning_rate"] == rates[run["loss"]]


def test_what_is_given_replaces_what_the_recipe_sets() -> None:
    settings = settings_from({"recipe": "staats-fashion", "losses": "ce,gce", "epochs": 10, "noise": "0,0.4"})
    assert settings.data == "fashion-mnist"
    assert settings.recipe.epochs == 10
    assert settings.recipe.model == "mlp1024"
    assert settings.noise == ("none", "symmetric(0.4)")
    assert settings.loss_rates == {"ce": (0.005,), "gce": (0.01,)}  # gce means gce(q=0.7), however it is written
    assert "epochs: 10 instead of 100" in deviations(settings)
    assert "loss_rates" not in "".join(deviations(settings_from({"recipe": "staats-fashion", "epochs": 10})))
    words = "lossmith compare fashion-mnist --recipe staats-fashion --losses ce,gce --noise 'none,symmetric(0.4)' "
    assert command(settings, Path("mine")).startswith(words)


@pytest.mark.parametrize("given", [{"trials": 4}, {"rates": "0.1,0.2"}, {"loss_rates": {"ce": 0.1, "focal": 0.2}}])
def test_rates_of_ones_own_replace_those_of_all_losses(given: dict[str, object]) -> None:
    settings = settings_from({"recipe": "staats-fashion", "losses": "ce,focal", **given})
    assert settings.trials_of_a_cell == {"trials": 4, "rates": 2}.get(next(iter(given)), 1)
    assert settings.decays == (0.0,)
    assert 0.005 not in [setting.learning_rate for setting in drawn_settings(settings, "ce", 0)]


def test_a_decay_goes_with_its_rate() -> None:
    published = settings_from({"recipe": "kornblith-cifar", "losses": "softmax"})
    assert published.loss_rates == {"softmax": (0.1778,)}
    assert published.loss_decays == {"softmax": (0.001,)}
    assert not settings_from({"recipe": "kornblith-cifar", "losses": "softmax", "trials": 3}).loss_decays


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"recipe": "staats"}, "compare: recipe must be one of amid-mnist, .*, got 'staats'; did you mean 'staats-"),
        ({"recipe": 3}, "compare: recipe must be one of amid-mnist, .*, got 3."),
        ({"recipe": "battash-uci"}, "compare: recipe battash-uci needs data of your own, got none."),
        (
            {"recipe": "staats-fashion", "losses": "ce,focal"},
            "compare: recipe staats-fashion has no rate for 'focal'; give rates, ",
        ),
        ({"recipe": "staats-fashion", "lossess": "ce"}, "compare: unknown setting 'lossess'; did you mean 'losses'?"),
        ({"losses": "ce,gce", "loss_rates": "ce=0.1"}, "compare: loss_rates and loss_decays must give every loss as many trials"),
        (
            {"losses": "ce,gce", "loss_rates": "ce=0.1,gcd=0.1"},
            "compare: loss_rates must name losses of the study, got 'gcd'; did",
        ),
    ],
)
def test_what_cannot_be_followed(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message.replace('?', '[?]')}"):
        settings_from(given)


def test_rates_by_loss_in_a_file_and_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text('losses = ["ce", "gce(q=0.5)"]\n[loss_rates]\nce = 0.1\n"gce(q=0.5)" = [0.3]\n', encoding="utf-8")
    written = settings_from({"losses": "ce,gce(q=0.5)", "loss_rates": "ce=0.1, gce(q=0.5)=0.3"})
    assert settings_from(read_settings(file)) == written
    assert "--loss-rates 'ce=0.1,gce(q=0.5)=0.3'" in command(written, Path("x"))


def test_a_recipe_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text('recipe = "amid-mnist"\nepochs = 5\n', encoding="utf-8")
    settings = settings_from(read_settings(file))
    assert (settings.published, settings.recipe.optimizer, settings.recipe.epochs) == ("amid-mnist", "adadelta", 5)


@pytest.mark.parametrize("name", RECIPES)
def test_show_tells_what_a_recipe_is(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["show", name])
    shown = capsys.readouterr().out
    assert shown.startswith(f"{name}: a recipe")
    for loss in RECIPES[name].losses:
        assert f"  {loss.expression}" in shown
    for difference in RECIPES[name].differs:
        assert difference in shown


def test_the_plan_says_where_it_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--epochs", "3", "--seeds", "2", "--losses", "ce,el", "--no-references", "--workers", "1", "--dry-run"]
    main(["compare", "wine", "--recipe", "battash-uci", *options, "--output", str(tmp_path / "study")])
    plan = capsys.readouterr().out
    assert "recipe    battash-uci: " in plan
    assert "differs   the optimiser is not published" in plan
    assert "epochs: 3 instead of 50" in plan
