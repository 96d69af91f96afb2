"""Order in memory and precision: the same run, faster."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lossmith import torch_compat
from lossmith.studies.design import usual_training
from lossmith.studies.design.given_settings import settings_from
from lossmith.training.loop import train_stack
from lossmith.training.models.named_models import make_backbone
from lossmith.training.recipe import Recipe
from lossmith.training.stacks.arithmetic import takes_channels_last
from lossmith.training.stacks.built_model import build_model
from lossmith.training.stacks.stacked_model import StackedModel
from training_reference import digits, job, plain_loop

EIGHT_BITS = 2.0**-8


@pytest.mark.parametrize("model", ["small-cnn", "mlp"])
def test_bfloat16_is_the_same_run_to_its_rounding(model: str) -> None:
    data = digits(images=True)
    recipe = Recipe(model=model, epochs=3, batch_size=32, precision="bfloat16", keep=("weights", "features"))
    jobs = [job(data, "ce", seed, 0.02, 0.0) for seed in range(2)]
    for own, trained in zip(jobs, train_stack(jobs, data, recipe), strict=True):
        expected = plain_loop(own, data, recipe).test_logits[-1].numpy()
        # Three layers below the final one, each of which rounds inputs, weights and outputs by half of the last of eight bits,
        # forward and backward: 18 times 2**-9. Weights do not drift, as steps are added up in single precision.
        np.testing.assert_allclose(trained.test_logits, expected, atol=9 * EIGHT_BITS * abs(expected).max())
        assert not np.array_equal(trained.test_logits, expected)
        assert {weight.dtype for weight in trained.weights.values()} == {torch.float32}


def test_the_final_layer_and_what_comes_after_it_are_in_single_precision() -> None:
    data = digits(images=True)
    own = job(data, "ce")
    built = build_model(own, data, Recipe(model="small-cnn"))
    model = StackedModel([built], [0], "bfloat16")
    features = model.features(data.inputs, data.test, model.weights)
    assert torch.equal(features, features.bfloat16().float())
    logits = model.predict(data.inputs, data.test, model.weights)
    torch.testing.assert_close(logits[0], built.model.get_submodule("head")(features[0]))
    assert not torch.equal(logits, logits.bfloat16().float())


def test_predictions_are_tensors_like_any_other() -> None:
    data = digits(images=True)
    model = StackedModel([build_model(job(data, "ce"), data, Recipe(model="small-cnn"))], [0])
    logits = model.predict(data.inputs, data.test, model.weights)
    assert not logits.is_inference()
    assert not logits.requires_grad


class Viewing(nn.Module):
    """A user's model that looks at memory as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.final = nn.Conv2d(1, 4, 3), nn.Linear(144, 10)

    def forward(self, images: Tensor) -> Tensor:
        features = self.convolution(images).relu()
        return self.final(features.view(len(images), -1))


def test_models_that_cannot_have_channels_last_are_trained_without() -> None:
    data, recipe = digits(100, images=True), Recipe(epochs=2, batch_size=32)
    own = job(data, "ce")
    assert not build_model(own, data, recipe, lambda *_: Viewing()).channels_last
    (trained,) = train_stack([own], data, recipe, build=lambda *_: Viewing())
    expected = plain_loop(own, data, recipe, lambda *_: Viewing()).test_logits[-1].numpy()
    np.testing.assert_allclose(trained.test_logits, expected, atol=1e-5 * abs(expected).max())


@pytest.mark.parametrize(("model", "expected"), [("small-cnn", True), ("resnet20", True), ("mlp", False)])
def test_networks_with_convolutions_have_channels_last(model: str, expected: bool) -> None:
    network = make_backbone(model, (1, 8, 8))
    assert takes_channels_last(network, torch.randn(2, 1, 8, 8)) is expected


def test_pooling_before_the_relu_is_the_same() -> None:
    network = make_backbone("small-cnn", (3, 8, 8))
    layers = list(network.children())
    assert [type(layer) for layer in layers[:3]] == [nn.Conv2d, nn.MaxPool2d, nn.ReLU]
    usual = nn.Sequential(*(layers[place] for place in (0, 2, 1, 3, 5, 4)), *layers[6:])
    images = torch.randn(5, 3, 8, 8)
    gradients = [torch.autograd.grad(part(images).square().sum(), list(network.parameters())) for part in (network, usual)]
    assert torch.equal(network(images), usual(images))
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("native", [True, False])
def test_auto_is_bfloat16_where_the_processor_has_it_and_it_was_measured(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usual_training, "has_native_bfloat16", lambda: native)
    found = {
        model: settings_from({"model": model}).completed("mlp", 650).recipe.precision for model in ("small-cnn", "mlp", "mine")
    }
    assert found == {"small-cnn": "bfloat16" if native else "float32", "mlp": "float32", "mine": "float32"}
    assert settings_from({"model": "small-cnn", "precision": "float32"}).completed("mlp", 650).recipe.precision == "float32"


def test_a_study_goes_on_in_the_precision_it_began_with() -> None:
    stored = settings_from({"precision": "bfloat16"}).completed("mlp", 650)
    assert settings_from({}).as_before(stored).recipe.precision == "bfloat16"


def test_without_word_from_torch_there_is_no_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_compat, "_bfloat16_instructions", [None, lambda: False])
    assert not torch_compat.has_native_bfloat16()
    monkeypatch.setattr(torch_compat, "_bfloat16_instructions", [None, lambda: True])
    assert torch_compat.has_native_bfloat16()
