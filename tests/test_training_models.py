"""Models, optimisers, learning rates, and what the engine refuses."""

import dataclasses
import re
from itertools import pairwise

import numpy as np
import pytest
import torch

from lossmith.data.prepared import PreparedData
from lossmith.training.checks import check_jobs, check_recipe
from lossmith.training.job import Job
from lossmith.training.learning_rate_schedules import Moment, make_learning_rate_schedule
from lossmith.training.loop import train_stack
from lossmith.training.models.named_models import MODELS, make_backbone
from lossmith.training.recipe import Recipe
from lossmith.training.stacks.built_model import build_model
from lossmith.training.stacks.optimizers import OPTIMIZERS, StackedOptimizer
from lossmith.training.workers import train_all
from training_reference import OPTIMIZERS as TORCH_OPTIMIZERS
from training_reference import digits, job


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.takes == "images"])
@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 8, 8), (2, 5, 7)])
def test_backbones_for_images(name: str, shape: tuple[int, ...]) -> None:
    if min(shape[1:]) < MODELS[name].smallest:
        shape = (shape[0], 9, 11)
    backbone = make_backbone(name, shape).eval()
    assert backbone(torch.randn(2, *shape)).shape == (2, backbone.out_features)


@pytest.mark.parametrize(("name", "width"), [("linear", 24), ("mlp", 128), ("mlp1024", 512)])
def test_backbones_for_anything(name: str, width: int) -> None:
    backbone = make_backbone(name, (2, 3, 4))
    assert backbone.out_features == width
    assert backbone(torch.randn(5, 2, 3, 4)).shape == (5, width)


def test_lstm_ignores_what_comes_after_the_end() -> None:
    backbone = make_backbone("lstm", (5,), vocabulary=10)
    texts = torch.tensor([[3, 4, 0, 0, 0], [1, 2, 3, 4, 5], [0, 0, 0, 0, 0]])
    features = backbone(texts)
    torch.testing.assert_close(features[:1], backbone(torch.tensor([[3, 4]])))
    torch.testing.assert_close(features[1:2], backbone(texts[1:2]))
    assert features.shape == (3, backbone.out_features)


def words() -> PreparedData:
    """The class of a text is its first word."""
    own = torch.Generator().manual_seed(0)
    texts = torch.randint(1, 20, (240, 6), generator=own)
    labels = torch.randint(0, 3, (240,), generator=own)
    texts[:, 0] = labels + 1
    rows = torch.arange(240)
    return PreparedData("words", texts, labels, ("a", "b", "c"), rows[:140], rows[140:180], rows[180:])


def test_lstm_learns() -> None:
    data = words()
    jobs = [job_on(data, loss) for loss in ("ce", "gce")]
    recipe = Recipe(model="lstm", epochs=15, batch_size=16, optimizer="adam", keep=("features",))
    for trained in train_all(jobs, data, recipe, workers=1):
        assert trained.curves["test_accuracy"][-1] > 0.9
        assert trained.test_features is not None
        assert trained.test_features.shape == (60, 64)


def job_on(data: PreparedData, loss: str) -> Job:
    own = job(digits(), loss, rate=0.01)
    return dataclasses.replace(own, train_labels=data.labels[data.train], validation_labels=data.labels[data.validation])


@pytest.mark.parametrize(("model", "epochs"), [("small-cnn", 20), ("cnn", 8), ("resnet20", 8)])
def test_image_models_learn(model: str, epochs: int) -> None:
    data = digits(192, images=True)
    (trained,) = train_stack([job(data, "ce", rate=0.05, noise=0.0)], data, Recipe(model=model, epochs=epochs, batch_size=16))
    assert trained.curves["test_accuracy"][-1] > 0.8
    assert trained.curves["train_loss"][-1] < trained.curves["train_loss"][0] / 2


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_optimizers_make_the_steps_of_torch(name: str, decay: float) -> None:
    own = torch.Generator().manual_seed(1)
    start = torch.randn(3, 5, generator=own, dtype=torch.double)
    rates = torch.tensor([[0.3], [0.01], [1.0]], dtype=torch.double)
    decays = decay * torch.tensor([1.0, 1.0, 0.0, 3.0, 3.0], dtype=torch.double).expand(3, 5)
    stacked = start.clone()
    optimizer: StackedOptimizer = OPTIMIZERS[name](stacked, decays)
    plain = [[row[:2].clone(), row[2:3].clone(), row[3:].clone()] for row in start]
    theirs = [
        TORCH_OPTIMIZERS[name](
            [{"params": [part], "weight_decay": decay * factor} for part, factor in zip(parts, (1, 0, 3), strict=True)],
            lr=float(rate),
            momentum=0.9,
        )
        for parts, rate in zip(plain, rates, strict=True)
    ]
    for step in range(6):
        gradient = torch.randn(3, 5, generator=own, dtype=torch.double)
        for parts, row, their, rate in zip(plain, gradient, theirs, rates, strict=True):
            parts[0].grad, parts[1].grad, parts[2].grad = row[:2].clone(), row[2:3].clone(), row[3:].clone()
            for group in their.param_groups:
                group["lr"] = float(rate) * 0.9**step
            their.step()
        optimizer.step(gradient, rates * 0.9**step)
        torch.testing.assert_close(stacked, torch.stack([torch.cat(parts) for parts in plain]), rtol=1e-12, atol=1e-14)
    kept = torch.tensor([2, 0])
    rest = stacked[kept]
    optimizer.keep(kept, rest)
    gradient = torch.randn(2, 5, generator=own, dtype=torch.double)
    for number, row in zip(kept.tolist(), gradient, strict=True):
        for part, own_gradient in zip(plain[number], torch.split(row, [2, 1, 2]), strict=True):
            part.grad = own_gradient.clone()
        theirs[number].step()
        for group in theirs[number].param_groups:
            assert group["lr"] == pytest.approx(float(rates[number]) * 0.9**5)
    optimizer.step(gradient, rates[kept] * 0.9**5)
    torch.testing.assert_close(rest, torch.stack([torch.cat(plain[number]) for number in (2, 0)]), rtol=1e-12, atol=1e-14)


def test_learning_rates_are_those_of_the_papers() -> None:
    def factors(name: str, epochs: int, steps: int) -> list[float]:
        moments = [Moment(epoch, step, steps, epochs) for epoch in range(epochs) for step in range(steps)]
        return [make_learning_rate_schedule(name).factor(moment) for moment in moments]

    assert factors("constant", 2, 2) == [1, 1, 1, 1]
    np.testing.assert_allclose(factors("steps", 200, 1), [1.0] * 100 + [0.1] * 50 + [0.01] * 50)
    np.testing.assert_allclose(factors("steps(100, 150)", 200, 1), factors("steps(0.5, 0.75)", 200, 1))
    np.testing.assert_allclose(factors("steps(2, factor=0.5)", 3, 2), [1, 1, 1, 1, 0.5, 0.5])
    np.testing.assert_allclose(factors("steps(100, 150, epochs=200)", 8, 1), [1, 1, 1, 1, 0.1, 0.1, 0.01, 0.01])
    np.testing.assert_allclose(factors("exponential(0.5)", 3, 1), [1, 0.5, 0.25])
    np.testing.assert_allclose(factors("exponential", 3, 2), [1, 1, 0.95, 0.95, 0.9025, 0.9025])
    np.testing.assert_allclose(factors("cosine", 2, 2), [1, (1 + 0.5**0.5) / 2, 0.5, (1 - 0.5**0.5) / 2])
    warm = factors("warmup-cosine", 20, 5)
    np.testing.assert_allclose(warm[:6], np.arange(1, 7) / 6)
    assert warm[5] == 1.0
    assert all(earlier > later for earlier, later in pairwise(warm[5:]))
    assert warm[-1] == pytest.approx((1 + np.cos(np.pi * 94 / 95)) / 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "mlq"}, "Recipe: model must be one of linear, mlp, .*, got 'mlq'; did you mean 'mlp'?"),
        ({"optimizer": "sdg"}, "Recipe: optimizer must be one of sgd, adam, adamw, adadelta, got 'sdg'; did you mean 'sgd'?"),
        ({"schedule": "cosinus"}, "Recipe: unknown schedule 'cosinus' in 'cosinus'; did you mean 'cosine'?"),
        ({"schedule": "steps(50)"}, r"steps: milestones must come before the end, got 50 of 40 epochs; add epochs=N, of which"),
        ({"schedule": "steps(50, epochs=40)"}, r"steps: milestones must come before the end, got 50 of 40 epochs.$"),
        (
            {"schedule": "steps(0.5, 20)"},
            r"steps: milestones must be whole epochs > 0, or shares between 0 and 1, got ",
        ),
        ({"schedule": "steps(0.5, epochs=40)"}, r"steps: epochs belongs to milestones in whole epochs, got shares \[0.5\]."),
        ({"schedule": "steps(10, factor=2)"}, r"steps: factor must be in \(0, 1\], got 2.0."),
        ({"schedule": "steps(10, faktor=2)"}, r"Steps: unknown parameter 'faktor' in .*; did you mean 'factor'?"),
        ({"schedule": "warmup-cosine(1.0)"}, r"warmup-cosine: warmup must be in \(0, 1\), got 1.0."),
        ({"precision": "float16"}, "Recipe: precision must be one of float32, bfloat16, got 'float16'; did you mean 'bfloat16'?"),
        (
            {"augment": "crop,flop"},
            "Recipe: augment must be none, or some of crop, flip, policy, cutout, got 'flop'; did you mean",
        ),
        ({"augment": "flip"}, "Recipe: augment changes images, and the inputs of digits are none; got 'flip'."),
        ({"select": "first"}, "Recipe: select must be one of last, best, got 'first'"),
        ({"keep": ("gradients",)}, "Recipe: keep must be one of features, weights, got 'gradients'"),
        ({"epochs": 0}, r"Recipe: epochs must be in \[1, 1e\+06\], got 0."),
        ({"batch_size": 2.5}, r"Recipe: batch_size must be an integer in \[1, 1e\+09\], got float 2.5."),
        ({"averaging": 1.0}, r"Recipe: averaging must be in \[0, 1\), got 1.0."),
        ({"mixup": -1.0}, "Recipe: mixup must be >= 0, got -1.0."),
        ({"patience": -1}, r"Recipe: patience must be in \[0, 1e\+06\], got -1."),
    ],
)
def test_recipes_that_cannot_be_followed(changes: dict[str, object], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{message.replace('?', '[?]')}"):
        check_recipe(Recipe(**changes), digits())  # type: ignore[arg-type]


def test_recipes_that_do_not_fit_the_data() -> None:
    with pytest.raises(ValueError, match=re.escape("Recipe: mixup mixes numbers, and the inputs of words are words.")):
        check_recipe(Recipe(model="lstm", mixup=0.2), words())
    without = dataclasses.replace(digits(), validation=torch.empty(0, dtype=torch.long))
    with pytest.raises(ValueError, match="need a validation split, and digits has none"):
        check_recipe(Recipe(patience=3), without)


@pytest.mark.parametrize(
    ("name", "shape", "vocabulary", "message"),
    [
        (
            "cnn",
            (64,),
            0,
            "make_backbone: cnn takes images (channels, height, width) of at least 4 x 4, got inputs of shape (64,).",
        ),
        ("resnet20", (12,), 99, "make_backbone: resnet20 takes images (channels, height, width) of at least 4 x 4, got words"),
        ("cnn", (1, 3, 9), 0, "make_backbone: cnn takes images (channels, height, width) of at least 4 x 4, got inputs of shape"),
        ("lstm", (64,), 0, "make_backbone: lstm takes texts as numbers of words, got inputs of shape (64,)."),
        ("mlp", (12,), 99, "make_backbone: mlp takes numbers, got words in texts of length 12; only an lstm takes words."),
        ("resnet200", (3, 8, 8), 0, "make_backbone: unknown model 'resnet200'; did you mean 'resnet20'?"),
    ],
)
def test_models_refuse_what_they_cannot_take(name: str, shape: tuple[int, ...], vocabulary: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        make_backbone(name, shape, vocabulary=vocabulary)


def test_jobs_that_cannot_be_trained() -> None:
    data = digits()
    good = job(data, "ce")
    wrong = {
        "ce: train_labels must be 200 class indices, got torch.int64 of shape (3,).": {"train_labels": torch.zeros(3).long()},
        "ce: validation_labels must be in [0, 10), got 0 to 10.": {"validation_labels": torch.arange(100) % 11},
        "ce: learning_rate must be > 0, got -1.0.": {"run": good.run._replace(learning_rate=-1.0)},
    }
    for message, changes in wrong.items():
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            check_jobs([dataclasses.replace(good, **changes)], data)
    with pytest.raises(
        ValueError, match=r"^ce\(reduction=none\): reduction must be 'mean' or 'sum' to train with, got 'none'\.$"
    ):
        check_jobs([job(data, "ce(reduction=none)")], data)
    with pytest.raises(ValueError, match=r"^train_stack: runs must share an architecture, got 2"):
        train_stack([good, job(data, "dropout")], data, Recipe())


def test_weights_of_a_model_with_batch_normalisation_can_be_loaded() -> None:
    data = digits(64, images=True)
    recipe = Recipe(model="resnet20", epochs=1, batch_size=32, keep=("weights", "features"))
    own = job(data, "ce")
    (trained,) = train_stack([own], data, recipe)
    model = build_model(own, data, recipe).model
    model.load_state_dict(trained.weights)
    with torch.no_grad():
        logits = model.eval()(data.inputs[data.test])
    np.testing.assert_allclose(trained.test_logits, logits.numpy(), rtol=1e-4, atol=1e-5)
    assert trained.weights["backbone.stem.1.num_batches_tracked"] == 2
