"""Devices: every step of training with fake tensors of another device than the processor, which find what is in the wrong place.

torch's builds without CUDA differentiate no CUDA tensors, not even fake ones. The device is hence torch's ``meta``: fake tensors
refuse to be mixed with those of the processor there as anywhere, and what decides by device takes it for an accelerator.
"""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from lossmith.data.prepared import PreparedData
from lossmith.training import devices, loop
from lossmith.training.devices import chosen_device, devices_for
from lossmith.training.engines.local import LocalEngine
from lossmith.training.engines.workplace import Workplace
from lossmith.training.job import Job
from lossmith.training.loop import Training
from lossmith.training.recipe import Recipe
from lossmith.training.records import epoch_shares
from lossmith.training.stacks.built_model import build_model
from training_reference import digits, job

ELSEWHERE = torch.device("meta")
LOSSES = (
    *("ce", "gce", "mae", "sce", "focal", "nce", "bi-tempered", "label-smoothing", "logit-penalty", "logit-norm", "sigmoid"),
    *("squared-error", "cot", "two-pass-cot", "logit-bias(mae)", "smooth-topk", "dropout", "cosine-softmax", "1 * nce + 2 * mae"),
)


@pytest.fixture(autouse=True)
def modules_take_fake_tensors() -> Iterator[None]:
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    yield
    torch.__future__.set_overwrite_module_params_on_conversion(False)


def train_elsewhere(monkeypatch: pytest.MonkeyPatch, jobs: list[Job], data: PreparedData, recipe: Recipe) -> None:
    """Make the steps of one epoch, and predict, on a device that is not there; models begin where they always do."""
    built = {id(own): build_model(own, data, recipe) for own in jobs}
    monkeypatch.setattr(loop, "build_model", lambda own, *_: built[id(own)])
    with FakeTensorMode(allow_non_fake_inputs=True):
        training = Training(jobs, data, recipe, None, None, inputs=data.inputs.to(ELSEWHERE))
        assert training.train_epoch(1).device == ELSEWHERE
        predicted = training.model.classes(training.inputs, training.rows, training.model.weights)
        assert {share.device for share in epoch_shares(predicted, training.answers).values()} == {ELSEWHERE}
        rows = data.test.to(ELSEWHERE)
        assert training.model.predict(training.inputs, rows, training.chosen).device == ELSEWHERE
        assert training.model.features(training.inputs, rows, training.chosen).device == ELSEWHERE


@pytest.mark.parametrize("loss", LOSSES)
def test_a_stacked_step_of_each_loss_stays_on_its_device(monkeypatch, loss):
    data = digits(40)
    train_elsewhere(monkeypatch, [job(data, loss, seed) for seed in range(2)], data, Recipe(batch_size=16))


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(model="tabular", optimizer="adamw", averaging=0.9, clipping=1.0),
        Recipe(model="linear", optimizer="adam", mixup=0.3),
        Recipe(model="mlp", optimizer="adadelta", schedule="warmup-cosine"),
    ],
)
def test_steps_of_each_optimizer_stay_on_their_device(monkeypatch, recipe):
    data = digits(40)
    train_elsewhere(monkeypatch, [job(data, "gce", seed, decay=0.1) for seed in range(2)], data, recipe)


@pytest.mark.parametrize("recipe", [Recipe(model="small-cnn", augment="crop,flip,cutout"), Recipe(model="resnet20")])
def test_a_step_of_one_run_alone_stays_on_its_device(monkeypatch, recipe):
    data = digits(40, images=True)
    train_elsewhere(monkeypatch, [job(data, "gce")], data, recipe)


class OnTheProcessor(nn.Module):
    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        return (logits * torch.linspace(0, 1, logits.shape[1])).sum() + 0 * target.sum()


def test_a_tensor_in_the_wrong_place_is_found(monkeypatch):
    data = digits(40)
    with pytest.raises(RuntimeError, match="at least two devices, meta and cpu"):
        train_elsewhere(monkeypatch, [job(data, OnTheProcessor())], data, Recipe())


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "", None, 3])
def test_names_that_no_device_has(name):
    with pytest.raises(ValueError, match="device must be auto, cpu, cuda, cuda:N or mps, got"):
        Workplace(device=name).make_engine()


def test_a_device_that_is_not_there_is_one_line(monkeypatch):
    for name, count, words in (("cuda", 0, "no cuda device"), ("cuda:2", 2, "2 cuda devices"), ("mps", 0, "no mps device")):
        monkeypatch.setattr(devices, "_count_of", lambda _, count=count: count)
        with pytest.raises(ValueError, match=f"one that is there, got '{name}'; this machine has {words}\\.$"):
            chosen_device(name)


def test_several_gpus_take_a_trial_each(monkeypatch):
    monkeypatch.setattr(devices, "_count_of", lambda kind: 4 * (kind == "cuda"))
    monkeypatch.setattr("lossmith.training.engines.local.processors", lambda: 16)
    assert chosen_device("auto") == torch.device("cuda")
    assert [str(each) for each in devices_for(chosen_device("cuda"))] == ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]
    assert devices_for(chosen_device("cuda:1")) == [torch.device("cuda", 1)]
    engine = Workplace(device="cuda").make_engine()
    assert (engine.slots(), engine.slots(processes=2)) == (4, 2)
    assert LocalEngine(device=torch.device("cuda"), gpus=0.5).slots() == 8
    assert LocalEngine(device=torch.device("cuda", 1)).slots() == 1
