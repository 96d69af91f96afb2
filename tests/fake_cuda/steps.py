"""Every step of training with fake CUDA tensors, which know their device, refuse to be mixed, and hold no numbers.

``tests/test_devices.py`` runs this in a process of its own, with a CUDA device that does nothing.
"""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from cases import CASES
from lossmith import make_loss
from lossmith.data.prepared import PreparedData
from lossmith.training import loop
from lossmith.training.job import Job
from lossmith.training.loop import Training
from lossmith.training.models.named_models import make_backbone
from lossmith.training.recipe import Recipe
from lossmith.training.records import epoch_shares
from lossmith.training.stacks.built_model import build_model
from training_reference import digits, job

ELSEWHERE = torch.device("cuda", 0)
LOSSES = (
    *("gce", "bi-tempered", "label-smoothing", "sigmoid", "two-pass-cot", "logit-bias(mae)", "smooth-topk"),
    *("dropout", "cosine-softmax", "1 * nce + 2 * mae"),
)
"""Those that a stack treats each in its own way."""


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
def test_a_stacked_step_of_each_kind_of_loss_stays_on_its_device(monkeypatch, loss):
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


def test_a_step_in_bfloat16_stays_on_its_device(monkeypatch):
    # Autocast asks whether there is a GPU, and which.
    monkeypatch.setattr("torch.cuda.amp.common.amp_definitely_not_available", lambda: False)
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda *_, **__: True)
    with torch.autocast("cuda", torch.bfloat16):
        assert torch.is_autocast_enabled("cuda")
    data = digits(40)
    train_elsewhere(monkeypatch, [job(data, "gce", seed) for seed in range(2)], data, Recipe(precision="bfloat16"))


@pytest.mark.parametrize("expression", CASES)
def test_each_loss_alone_stays_on_its_device(expression):
    loss = make_loss(expression)
    with FakeTensorMode(allow_non_fake_inputs=True):
        for target in (torch.zeros(6, dtype=torch.long, device=ELSEWHERE), torch.empty(6, 10, device=ELSEWHERE)):
            logits = torch.empty(6, 10, device=ELSEWHERE, requires_grad=True)
            loss(logits, target).backward()
            assert logits.grad.device == ELSEWHERE
        assert loss.predict_proba(logits).device == ELSEWHERE


@pytest.mark.parametrize("name", ["cnn", "resnet18", "all-cnn-c", "pooled-cnn", "wrn-16-8", "densenet-40-12"])
def test_each_kind_of_network_stays_on_its_device(name):
    network = make_backbone(name, (3, 32, 32))
    with FakeTensorMode(allow_non_fake_inputs=True):
        features = network.to(ELSEWHERE)(torch.empty(2, 3, 32, 32, device=ELSEWHERE))
        features.sum().backward()
        assert {own.grad.device for own in network.parameters() if own.requires_grad} == {ELSEWHERE}


class OnTheProcessor(nn.Module):
    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        return (logits * torch.linspace(0, 1, logits.shape[1])).sum() + 0 * target.sum()


def test_a_tensor_in_the_wrong_place_is_found(monkeypatch):
    data = digits(40)
    with pytest.raises(RuntimeError, match="at least two devices, cuda:0 and cpu"):
        train_elsewhere(monkeypatch, [job(data, OnTheProcessor())], data, Recipe())
