"""Stacks of runs against a plain loop for each of them."""

import math
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import training_reference as reference
from lossmith.data.prepared import PreparedData
from lossmith.losses.catalogue.ready import ready_losses
from lossmith.training.job import Job
from lossmith.training.loop import train_stack
from lossmith.training.recipe import Recipe, Run, Trained
from lossmith.training.records import CURVES, places_of_curves
from lossmith.training.stacks.built_model import build_model
from lossmith.training.stacks.dropout_masks import DropoutMasks
from lossmith.training.stacks.stackable import can_be_stacked
from training_reference import PlainRun, digits, job, plain_loop

MIXED = (
    "ce",
    "gce",
    "bi-tempered",
    "label-smoothing",
    "nce-mae",
    "sigmoid",
    "smooth-topk",
    "extra-l2(0.05)",
    "gce(weight=[1, 2, 3, 4, 5, 6, 7, 8, 9, 10])",
    "ce(reduction=sum)",
    "ce(label_smoothing=0.2, weight=[1, 2, 3, 4, 5, 6, 7, 8, 9, 10])",
    "logit-bias(mae, epsilon=1)",
    "scheduled(ce-el, focus=linear(0, 0.5))",
    "scheduled(nce-mae, beta=linear(20, 5))",
    "label-smoothing@cifar-10",
)
double = pytest.fixture(autouse=True)(reference.double_precision)


def rate(loss: str) -> float:
    return 0.002 if "nce" in loss or "sum" in loss else 0.1


def mixed_jobs(data: PreparedData, decay: float) -> list[Job]:
    """Losses, seeds, noise and learning rates of all kinds, out of order."""
    losses = [*((loss, 3) for loss in MIXED), *((loss, 11) for loss in MIXED[::4])]
    return [
        job(data, loss, seed, rate(loss) * (1 + seed / 20), noise=0.2 if seed == 3 else 0.4, decay=decay * (1 + seed % 3))
        for loss, seed in losses
    ]


def assert_same_run(trained: Trained, plain: PlainRun, tolerance: float = 1e-9) -> None:
    for name in CURVES:
        np.testing.assert_allclose(trained.curves[name], getattr(plain, name), rtol=tolerance, atol=tolerance, err_msg=name)
    expected = plain.test_logits[trained.epoch - 1].numpy()
    np.testing.assert_allclose(trained.test_logits, expected, rtol=tolerance, atol=tolerance * abs(expected).max())


RECIPES = {
    "sgd": Recipe(epochs=3, batch_size=16),
    "small batches": Recipe(epochs=1, batch_size=7, momentum=0.0, schedule="constant"),
    "decay": Recipe(epochs=4, batch_size=16, schedule="steps"),
    "as in old papers": Recipe(epochs=2, batch_size=16, nesterov=False, decay_vectors=False),
    "adam": Recipe(epochs=2, batch_size=16, optimizer="adam", schedule="exponential"),
    "adamw": Recipe(epochs=2, batch_size=16, optimizer="adamw"),
    "adadelta": Recipe(epochs=2, batch_size=16, optimizer="adadelta", schedule="constant"),
    "mixup": Recipe(epochs=2, batch_size=16, mixup=0.3),
    "averaging": Recipe(epochs=2, batch_size=16, averaging=0.8),
    "linear": Recipe(model="linear", epochs=2, batch_size=16),
    "tabular": Recipe(model="tabular", epochs=2, batch_size=16, optimizer="adamw"),
    "everything": Recipe(epochs=3, batch_size=32, mixup=1.0, averaging=0.9, select="best"),
}


DECAYS = {"decay": 0.01, "as in old papers": 0.1, "adam": 0.01, "adamw": 0.1, "tabular": 0.1, "everything": 1e-3}


@pytest.mark.parametrize("name", RECIPES)
def test_each_run_of_a_stack_is_the_plain_loop(name: str) -> None:
    data, recipe = digits(70), RECIPES[name]
    jobs = mixed_jobs(data, DECAYS.get(name, 0.0))
    for own, trained in zip(jobs, train_stack(jobs, data, recipe), strict=True):
        assert trained.run == own.run
        assert_same_run(trained, plain_loop(own, data, recipe))


@pytest.mark.parametrize("loss", ["dropout(keep=0.6)", "cosine-softmax(tau=0.1)", "two-pass-cot", "ce", "dropout(loss=gce)"])
@pytest.mark.parametrize("name", ["sgd", "everything", "tabular"])
def test_heads_and_passes_alone_and_together(loss: str, name: str) -> None:
    data, recipe = digits(70), RECIPES[name]
    slowest = 0.002 if recipe.optimizer == "adamw" else 0.05  # larger steps of AdamW make more of rounding than is allowed here
    jobs = [job(data, loss, seed, slowest * (1 + seed)) for seed in range(3)]
    for own, trained in zip(jobs, train_stack(jobs, data, recipe), strict=True):
        plain = plain_loop(own, data, recipe)
        assert_same_run(trained, plain)
        (alone,) = train_stack([own], data, recipe)
        assert_same_run(alone, plain)


def test_single_precision_agrees_to_its_own_rounding() -> None:
    torch.set_default_dtype(torch.float32)
    data, recipe = digits(), Recipe(epochs=2, batch_size=32)
    jobs = [job(data, loss, seed) for loss in ("ce", "gce", "mae") for seed in range(2)]
    for own, trained in zip(jobs, train_stack(jobs, data, recipe), strict=True):
        expected = plain_loop(own, data, recipe).test_logits[-1].numpy()
        assert trained.test_logits.dtype == np.float32
        # 14 steps, each adding some roundings of 6e-8 relative to the largest logits.
        np.testing.assert_allclose(trained.test_logits, expected, atol=1e-5 * abs(expected).max())


class Convolutions(nn.Sequential):
    """A model that cannot be stacked: convolutions and batch normalisation."""

    def __init__(self) -> None:
        super().__init__(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.3), nn.Linear(144, 10))


class Dropping(nn.Sequential):
    """A model whose dropout layers draw by the seed of each run, the first for a number of entries that no eight divide."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(64, 7), nn.Mish(), nn.Dropout(0.15), nn.Sequential(nn.Linear(7, 20), nn.Dropout(0.5)))
        self.append(nn.Linear(20, 10))


class HiddenDropout(nn.Module):
    """A model with a dropout layer that draws what the seed of the first run of a stack would say."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.dropout = nn.Linear(64, 10), nn.AlphaDropout(0.2)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layer(self.dropout(inputs))


class Gated(nn.Module):
    """A model that torch.func must map, as it is no sequence of layers; with a parameter that is never used."""

    def __init__(self) -> None:
        super().__init__()
        self.values, self.gates, self.final = nn.Linear(64, 20), nn.Linear(64, 20), nn.Linear(20, 10, bias=False)
        self.unused = nn.Parameter(torch.ones(3))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.final(self.values(inputs) * torch.sigmoid(self.gates(inputs)))


class Branching(nn.Linear):
    """A model whose path depends on its inputs, which torch.func cannot map."""

    def __init__(self) -> None:
        super().__init__(64, 10)

    def forward(self, inputs: Tensor) -> Tensor:
        return super().forward(inputs if inputs.sum() > 0 else -inputs)


class Forgetful(nn.Linear):
    """A model that draws random numbers without a module for it."""

    def __init__(self) -> None:
        super().__init__(64, 10)

    def forward(self, inputs: Tensor) -> Tensor:
        return super().forward(nn.functional.dropout(inputs, 0.5, self.training))


class Frozen(nn.Sequential):
    """A model whose first layer is not trained."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(64, 20), nn.ReLU(), nn.Linear(20, 10))
        self[0].requires_grad_(False)


@pytest.mark.parametrize(
    ("model", "stackable"),
    [
        *((Convolutions, False), (Dropping, True), (HiddenDropout, False), (Gated, True), (Branching, False)),
        *((Forgetful, False), (Frozen, True)),
    ],
)
@pytest.mark.parametrize("averaging", [0.0, 0.9])
def test_models_that_users_bring(model: type[nn.Module], stackable: bool, averaging: float) -> None:
    data = digits(100, images=model is Convolutions)
    recipe = Recipe(epochs=2, batch_size=32, averaging=averaging)
    jobs = [job(data, loss, seed, decay=1e-3) for loss in ("ce", "gce") for seed in (0, 1)]
    assert can_be_stacked(build_model(jobs[0], data, recipe, lambda *_: model()), data) is stackable
    for own, trained in zip(jobs, train_stack(jobs, data, recipe, build=lambda *_: model()), strict=True):
        assert_same_run(trained, plain_loop(own, data, recipe, build=lambda *_: model()))


class UsersLoss(nn.Module):
    """Keeps something between its calls, so that every run needs one of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        self.calls += 1
        return nn.functional.cross_entropy(logits, target) * (1 + 0.1 * self.calls)


def test_losses_that_users_bring() -> None:
    data, recipe = digits(100), Recipe(epochs=2, batch_size=32)
    loss = UsersLoss()
    jobs = [job(data, loss, seed) for seed in range(3)]
    for own, trained in zip(jobs, train_stack(jobs, data, recipe), strict=True):
        expected = Job(own.run, UsersLoss(), own.train_labels, own.validation_labels)

        def build(shape: tuple[int, ...], classes: int, expected: Job = expected) -> nn.Module:
            return build_model(expected, data, recipe).model

        assert_same_run(trained, plain_loop(expected, data, recipe, build))
        np.testing.assert_allclose(trained.test_probabilities, torch.tensor(trained.test_logits).softmax(1))
    assert loss.calls == 0


def test_runs_of_one_seed_share_initial_weights_and_batches() -> None:
    data, recipe = digits(), Recipe()
    first = build_model(job(data, "ce", seed=1), data, recipe).model.state_dict()
    for loss in ("gce", "dropout", "cosine-softmax"):
        other = build_model(job(data, loss, seed=1), data, recipe).model.state_dict()
        assert torch.equal(first["backbone.1.weight"], other["backbone.1.weight"])
        assert torch.equal(first["head.weight"], other["head.weight"])
    assert not torch.equal(
        first["head.weight"], build_model(job(data, "ce", seed=2), data, recipe).model.state_dict()["head.weight"]
    )


def test_dropout_keeps_the_mean_and_the_share() -> None:
    masks = DropoutMasks([0, 1])
    dropped = masks.drop(torch.ones(2, 100, 101), 0.15)
    shares = (dropped == 0).double().mean((1, 2))
    # Of 10,100 entries 38/256 = 0.1484 are dropped, with a deviation of 0.0035: five of them either way.
    assert ((shares - 38 / 256).abs() < 0.018).all()
    assert not torch.equal(dropped[0], dropped[1])
    torch.testing.assert_close(dropped[0].max(), torch.tensor(256 / 218))
    assert torch.equal(masks.drop(torch.ones(2, 3), 1.0), torch.zeros(2, 3))


def test_masks_after_a_race_are_those_of_the_runs_that_go_on() -> None:
    whole, part = DropoutMasks([3, 4, 5]), DropoutMasks([5])
    inputs = torch.ones(3, 4, 9)
    whole.drop(inputs, 0.5), part.drop(inputs[:1], 0.5)
    whole.keep(torch.tensor([2]))
    assert torch.equal(whole.drop(inputs[:1], 0.5), part.drop(inputs[:1], 0.5))


def test_global_random_numbers_are_left_alone() -> None:
    data = digits(100)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train_stack([job(data, "dropout")], data, Recipe(epochs=1))
    assert torch.equal(torch.rand(3), expected)


def test_a_run_that_diverges_disturbs_no_other() -> None:
    data, recipe = digits(), Recipe(epochs=3, batch_size=32)
    good = [job(data, loss, 0) for loss in ("bi-tempered", "ce", "gce", "smooth-topk")]
    bad = [job(data, loss, 1, rate=1e300) for loss in ("bi-tempered", "ce", "gce", "smooth-topk")]
    together = train_stack([own for pair in zip(good, bad, strict=True) for own in pair], data, recipe)
    for own, trained in zip(good, together[::2], strict=True):
        assert not trained.diverged
        assert_same_run(trained, plain_loop(own, data, recipe))
    diverged = [trained for trained in together[1::2] if trained.diverged]
    assert {trained.run.loss for trained in diverged} >= {"ce", "smooth-topk"}
    for trained in diverged:
        assert all(math.isnan(value) for value in trained.curves["test_accuracy"][trained.epoch :])
        assert len(trained.curves["train_loss"]) == recipe.epochs
        assert np.isfinite(trained.test_logits).all()


def test_divergence_late_in_training_keeps_what_was_before() -> None:
    class Explodes(UsersLoss):
        def forward(self, logits: Tensor, target: Tensor) -> Tensor:
            return super().forward(logits, target) * (math.nan if self.calls >= 17 else 1)

    data, recipe = digits(), Recipe(epochs=4, batch_size=32)  # 7 batches an epoch
    explodes, steady = job(data, Explodes()), job(data, UsersLoss())
    first, second = train_stack([explodes, steady], data, recipe)
    assert (first.diverged, first.epoch, second.diverged, second.epoch) == (True, 2, False, 4)
    assert first.curves["test_accuracy"][:2] == second.curves["test_accuracy"][:2]
    assert np.isnan(first.curves["test_accuracy"][2:]).all()


def test_every_loss_survives_its_divergence() -> None:
    data = digits(64)
    jobs = [job(data, name, rate=1e300) for name in ready_losses()]
    for trained in train_stack(jobs, data, Recipe(epochs=2, batch_size=32)):
        assert np.isfinite(trained.test_logits).all()


def test_best_epoch_and_patience() -> None:
    data = digits()
    recipe = Recipe(epochs=10, batch_size=32, select="best", patience=2)
    jobs = [job(data, loss, seed, 0.2, noise=0.4) for loss in ("ce", "gce") for seed in range(3)]
    stopped = []
    for own, trained in zip(jobs, train_stack(jobs, data, recipe), strict=True):
        plain = plain_loop(own, data, recipe)
        accuracy = plain.validation_accuracy
        best, last = 0, recipe.epochs - 1
        for epoch in range(recipe.epochs):
            if accuracy[epoch] > accuracy[best]:
                best = epoch
            if epoch - best == recipe.patience:
                last = epoch
                break
        stopped.append(last)
        assert trained.epoch == best + 1
        np.testing.assert_allclose(trained.test_logits, plain.test_logits[best].numpy(), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(trained.curves["validation_accuracy"][: last + 1], accuracy[: last + 1])
        assert np.isnan(trained.curves["validation_accuracy"][last + 1 :]).all()
    assert len(set(stopped)) > 1
    assert min(stopped) < recipe.epochs - 1


def test_what_is_kept_belongs_to_the_chosen_epoch() -> None:
    data = digits()
    recipe = Recipe(epochs=5, batch_size=16, select="best", averaging=0.5, keep=("features", "weights"))
    jobs = [job(data, loss, seed, 0.3) for loss in ("ce", "tsallis") for seed in range(2)]
    for own, trained in zip(jobs, train_stack(jobs, data, recipe), strict=True):
        model = build_model(own, data, recipe).model
        model.load_state_dict(trained.weights)
        features = model.backbone(data.inputs[data.test])
        logits = model.head(features)
        assert trained.test_features is not None
        np.testing.assert_allclose(trained.test_features, features.detach().numpy(), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(trained.test_logits, logits.detach().numpy(), rtol=1e-9, atol=1e-9)
        expected = own.objective.loss.predict_proba(logits.detach())
        np.testing.assert_allclose(trained.test_probabilities, expected.numpy(), rtol=1e-7, atol=1e-9)


def test_clean_labels_have_no_false_label_accuracy() -> None:
    data = digits(100)
    (trained,) = train_stack([job(data, "ce", noise=0.0)], data, Recipe(epochs=1))
    assert math.isnan(trained.curves["false_label_accuracy"][0])
    assert math.isnan(trained.curves["memorised"][0])


def test_true_labels_of_the_data_judge() -> None:
    clean = digits(100)
    data = PreparedData(
        "noisy", clean.inputs, reference.noisy(clean.labels, 0.3, 0), clean.classes, clean.train, clean.validation, clean.test,
        true_labels=clean.labels,
    )  # fmt: skip
    own = Job(Run("ce", "given", 0, 0.1), job(clean, "ce").objective, data.labels[data.train], data.labels[data.validation])
    (trained,) = train_stack([own], data, Recipe(epochs=2))
    expected = job(clean, "ce", noise=0.3)
    (reference_run,) = train_stack([expected], clean, Recipe(epochs=2))
    assert trained.curves == reference_run.curves


def test_epochs_are_told_and_runs_can_be_interrupted() -> None:
    data, told = digits(100), []
    train_stack([job(data, "ce")], data, Recipe(epochs=3), on_epoch=lambda *moment: told.append(moment))
    assert told == [(1, 1), (1, 2), (1, 3)]

    def interrupt(epoch: int, epochs: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_stack([job(data, "ce")], data, Recipe(epochs=3), on_epoch=interrupt)


def test_a_last_batch_of_one_row_is_left_out() -> None:
    data = digits(65, images=True)
    recipe = Recipe(epochs=1, batch_size=32)
    (trained,) = train_stack([job(data, "ce")], data, recipe, build=lambda *_: Convolutions())
    assert math.isfinite(trained.curves["train_loss"][0])


def test_seconds_add_up_to_the_time_of_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = count()
    clock = SimpleNamespace(perf_counter=lambda: float(next(looks)))  # a second at each look
    monkeypatch.setattr("lossmith.training.loop.time", clock)
    data = digits(100)
    jobs = [job(data, "ce", seed) for seed in range(4)]
    together = train_stack(jobs, data, Recipe(epochs=2))
    # Each of two epochs is timed from one look to the next, and so is writing it down; four runs share that time.
    assert [trained.seconds for trained in together] == [2 * (1 + 1) / 4] * 4


def test_curves_of_many_training_rows_are_of_some_of_them(monkeypatch):
    """Evenly from all parts; what is learnt and predicted is the same."""
    data, recipe = digits(), Recipe(epochs=2, batch_size=16)
    (whole,) = train_stack([job(data, "ce", 3, 0.1, noise=0.4)], data, recipe)
    monkeypatch.setattr("lossmith.training.records.MOST_FITTED", 10)
    (part,) = train_stack([job(data, "ce", 3, 0.1, noise=0.4)], data, recipe)
    places = places_of_curves(data)[0].tolist()
    assert len(places) == 10
    assert places[0] == 0
    assert max(np.diff(places)) - min(np.diff(places)) <= 1
    np.testing.assert_array_equal(part.test_logits, whole.test_logits)
    assert part.curves["test_accuracy"] == whole.curves["test_accuracy"]
    assert all((10 * share) % 1 == pytest.approx(0.0, abs=1e-9) for share in part.curves["train_accuracy"])
