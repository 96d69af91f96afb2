"""Encoders that are trained further: one run at a time, through races and kills, from the weights of their folder."""

import numpy as np
import pandas as pd
import pytest
import torch

from lossmith.command_line import main
from lossmith.data import load_data
from lossmith.encoders.encoder import load_encoder
from lossmith.objectives.named_objectives import make_objective
from lossmith.studies.study import open_study
from lossmith.training.job import Job
from lossmith.training.loop import train_stack
from lossmith.training.merit import Merit
from lossmith.training.one_by_one import forget_waiting, train_one_by_one
from lossmith.training.race import Race
from lossmith.training.recipe import Recipe, Run
from lossmith.training.stacks.built_model import build_model
from lossmith.training.workers import stack_tasks
from tiny_encoder import reviews, tiny_encoder

RECIPE = Recipe(model="encoder", epochs=3, batch_size=16, optimizer="adamw", schedule="warmup-cosine", clipping=1.0)
RACE = Race(1, 1, lambda probabilities, labels: Merit(float((probabilities.argmax(1) == labels).mean())))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    place = tmp_path_factory.mktemp("encoder")
    return load_data(reviews(), encoder=tiny_encoder(place / "tiny"), fine_tune=True, cache=place / "cache")


def jobs_for(data, *losses, rates=(1e-3,), seed=0):
    labels = (data.labels[data.train], data.labels[data.validation])
    return [Job(Run(loss, "none", seed, rate), make_objective(loss), *labels) for loss in losses for rate in rates]


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert (one.run, one.stopped, one.stands_for, one.epoch) == (other.run, other.stopped, other.stands_for, other.epoch)
        for name, curve in one.curves.items():
            np.testing.assert_array_equal(curve, other.curves[name])
        np.testing.assert_array_equal(one.test_logits, other.test_logits)


def test_inputs_are_tokens(data):
    assert not data.inputs.is_floating_point()
    assert (data.kind, data.encoder.path.name) == ("text", "tiny")
    assert data.texts.vectors.shape == (60, 16)  # for models beside


def test_training_begins_with_the_weights_of_the_folder_and_a_head_by_seed(data):
    first, other = (build_model(jobs_for(data, "ce", seed=seed)[0], data, RECIPE).model for seed in (0, 1))
    own = load_encoder(data.encoder).state_dict()
    for name, weight in first.backbone.state_dict().items():
        assert torch.equal(weight, own[name])
        assert torch.equal(weight, other.backbone.state_dict()[name])
    assert not torch.equal(first.head.weight, other.head.weight)


def test_runs_that_wait_give_what_runs_in_memory_give(data, tmp_path):
    jobs = jobs_for(data, "ce", rates=(1e-4, 1e-3, 3e-3))
    expected = train_stack(jobs, data, RECIPE, race=RACE)
    assert sum(one.stopped for one in expected) == 1
    assert_same(train_one_by_one(jobs, data, RECIPE, tmp_path / "waiting", race=RACE), expected)
    assert_same(train_one_by_one(jobs[:1], data, RECIPE, tmp_path / "other"), train_stack(jobs[:1], data, RECIPE))


def test_learning_changes_the_encoder(data, tmp_path):
    (trained,) = train_one_by_one(
        jobs_for(data, "ce", rates=(3e-3,)),
        data,
        Recipe(**{**vars(RECIPE), "epochs": 20, "batch_size": 8, "keep": ("weights",)}),
        tmp_path,
    )
    before = load_encoder(data.encoder).state_dict()
    changed = {name for name, weight in before.items() if not torch.equal(trained.weights[f"backbone.{name}"], weight)}
    assert any("word_embeddings" in name for name in changed)
    assert trained.curves["train_accuracy"][-1] > 0.9


@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("epochs", [1, 2, 4, 6])
def test_a_training_that_was_killed_goes_on(data, tmp_path, epochs, earlier):
    jobs = jobs_for(data, "dropout", rates=(1e-4, 1e-3, 3e-3))  # whose masks are drawn on and on
    expected = train_stack(jobs, data, RECIPE, race=RACE)
    done = []

    def killed(runs, epoch):
        done.append(epoch)
        if len(done) == epochs:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_one_by_one(jobs, data, RECIPE, tmp_path, race=RACE, on_epoch=killed)
    for file in tmp_path.glob("*.part"):  # as a kill in the middle of writing leaves it
        file.unlink()
    for file in tmp_path.glob("*.pt") if earlier else ():  # as an earlier version wrote it
        state = torch.load(file, weights_only=True)
        merit = state.pop("merit")
        torch.save(state | {"score": None if merit is None else merit[0]}, file)
    assert_same(train_one_by_one(jobs, data, RECIPE, tmp_path, race=RACE, on_epoch=lambda *_: done.append(0)), expected)
    assert len(done) == 8  # 3 runs to the race, 2 of them for two epochs more, and the epoch that was lost
    forget_waiting(tmp_path)
    assert not tmp_path.exists()


def test_a_damaged_file_is_trained_again(data, tmp_path):
    jobs = jobs_for(data, "ce")
    expected = train_one_by_one(jobs, data, RECIPE, tmp_path)
    (file,) = tmp_path.iterdir()
    for content in (b"", file.read_bytes()[:1000], b"nonsense"):
        file.write_bytes(content)
        assert_same(train_one_by_one(jobs, data, RECIPE, tmp_path), expected)


@pytest.mark.parametrize(
    "loss", ["logit-bias(mae, num_classes=2)", "bi-tempered", "cot", "cosine-softmax", "extra-l2", "sigmoid"]
)
def test_every_kind_of_objective_trains(data, tmp_path, loss):
    (task,) = stack_tasks(jobs_for(data, loss), data, RECIPE, waiting=tmp_path)
    (trained,) = task(lambda _: None)
    assert np.isfinite(trained.curves["train_loss"]).all()


def test_gradients_are_clipped():
    data = load_data("iris")
    recipe = Recipe(model="linear", epochs=1, batch_size=len(data.train), momentum=0.0, schedule="constant", keep=("weights",))
    job = Job(Run("ce", "none", 0, 0.5), make_objective("ce"), data.labels[data.train], data.labels[data.validation])
    before = build_model(job, data, recipe).model.state_dict()

    def moved(clipping):
        (trained,) = train_stack([job], data, Recipe(**{**vars(recipe), "clipping": clipping}))
        return torch.cat([(trained.weights[name] - weight).flatten() for name, weight in before.items()])

    free, clipped = moved(0.0), moved(0.01)
    assert free.norm() > 0.1
    assert clipped.norm().item() == pytest.approx(0.5 * 0.01, rel=1e-3)
    torch.testing.assert_close(clipped / clipped.norm(), free / free.norm(), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(moved(100.0), free)


def test_a_study_from_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lossmith.training.engines.local.processors", lambda: 1)
    tiny_encoder(tmp_path / "tiny")
    texts, labels = reviews(40)
    pd.DataFrame({"review": texts, "rating": labels}).to_csv("reviews.csv", index=False)
    given = ["compare", "reviews.csv", "--target", "rating", "--encoder", "tiny", "--fine-tune", "--cache", "cache"]
    assert main([*given, "--model", "mlp"]) == 2
    assert "model must be encoder where an encoder is trained (fine_tune), got mlp" in capsys.readouterr().err
    few = ["--losses", "ce,gce", "--noise", "0", "--seeds", "1", "--epochs", "1", "--rates", "1e-3", "--output", "study"]
    assert main([*given, *few, "--no-report"]) == 0
    study = open_study(tmp_path / "study")
    recipe = study.settings.recipe
    assert (recipe.model, recipe.optimizer, recipe.schedule, recipe.batch_size) == ("encoder", "adamw", "warmup-cosine", 32)
    assert recipe.clipping == 1.0
    assert len(study.store.finished()) == 2
    assert not (tmp_path / "study" / "waiting").exists()
    assert "logistic regression, encoder" in {row["name"] for row in study.store.references()}


def test_encoders_compute_in_bfloat16(data, tmp_path):
    recipe = Recipe(**{**vars(RECIPE), "precision": "bfloat16", "epochs": 1})
    jobs = jobs_for(data, "ce")
    (rough,), (fine,) = (train_one_by_one(jobs, data, one, tmp_path) for one in (recipe, Recipe(**{**vars(RECIPE), "epochs": 1})))
    np.testing.assert_allclose(rough.test_logits, fine.test_logits, atol=0.2)
    assert not np.array_equal(rough.test_logits, fine.test_logits)
