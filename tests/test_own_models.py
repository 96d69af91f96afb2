"""Models of the user's own: modules that return logits, and backbones that leave the final layer to the objective."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import lossmith
from lossmith.training import Backbone, Recipe, xavier_uniform
from lossmith.training.loop import train_stack
from lossmith.training.stacks.built_model import build_model
from lossmith.training.stacks.stackable import can_be_stacked
from lossmith.training.workers import train_all
from training_reference import digits, job

OWN_LAYER = ["dropout", "cosine-softmax", "extra-l2"]


def logits(shape: tuple[int, ...], classes: int) -> nn.Module:
    return nn.Linear(shape[0], classes)


def features(shape: tuple[int, ...], classes: int) -> nn.Module:
    return Backbone(nn.Flatten(), nn.Linear(math.prod(shape), 32), nn.ReLU(), out_features=32, initialise=xavier_uniform)


@pytest.mark.parametrize("loss", OWN_LAYER)
def test_models_that_return_logits_leave_no_final_layer(loss: str) -> None:
    data = digits()
    with pytest.raises(
        ValueError, match=rf"^{loss}: needs a final layer of its own; give a lossmith\.training\.Backbone instead"
    ):
        train_all([job(data, loss)], data, Recipe(), build=logits)


@pytest.mark.parametrize("loss", [*OWN_LAYER, "sigmoid", "ce"])
def test_backbones_train_with_every_final_layer(loss: str) -> None:
    data = digits()
    own = job(data, loss, rate=0.03, noise=0.0)
    built = build_model(own, data, Recipe(), features)
    assert can_be_stacked(built, data)
    (trained,) = train_stack([own], data, Recipe(epochs=25, keep=("features",)), build=features)
    assert trained.curves["test_accuracy"][-1] > 0.75
    assert trained.test_features is not None
    assert trained.test_features.shape[1] == 32


def test_a_backbone_as_wide_as_there_are_classes_is_no_model_of_logits() -> None:
    data = digits()
    built = build_model(job(data, "ce"), data, Recipe(), lambda shape, classes: Backbone(logits(shape, classes), out_features=10))
    assert sum(parameter.numel() for parameter in built.model.parameters()) == 64 * 10 + 10 + 10 * 10 + 10


def test_losses_of_the_users_own_train_on_a_backbone_of_the_users_own() -> None:
    data = digits()
    own = job(data, "ce", rate=0.1, noise=0.0)
    theirs = type(own)(own.run, nn.CrossEntropyLoss(), own.train_labels, own.validation_labels)
    found = [train_stack([each], data, Recipe(epochs=3), build=features)[0] for each in (own, theirs)]
    np.testing.assert_allclose(found[0].test_logits, found[1].test_logits, rtol=1e-3, atol=1e-4)


def test_models_must_return_a_logit_for_each_class() -> None:
    data = digits()
    message = (
        r"^build: the model must return 10 logits for each row, or be a lossmith\.training\.Backbone, got \(2, 7\) for 2 rows\.$"
    )
    with pytest.raises(ValueError, match=message):
        train_all([job(data, "ce")], data, Recipe(), build=lambda shape, classes: nn.Linear(64, 7))
    with pytest.raises(ValueError, match=r"^build: the model fails on inputs of shape \(64,\): mat1 and mat2 shapes [^\n]*$"):
        train_all([job(data, "ce")], data, Recipe(), build=lambda shape, classes: nn.Linear(7, classes))


def test_backbones_must_return_the_features_that_they_promise() -> None:
    data = digits()
    with pytest.raises(ValueError, match=r"^build: the Backbone must return 8 features for each row, got \(2, 7\) for 2 rows\.$"):
        train_all([job(data, "ce")], data, Recipe(), build=lambda shape, classes: Backbone(nn.Linear(64, 7), out_features=8))


def test_features_of_a_model_that_returns_logits_are_unknown() -> None:
    data = digits()
    with pytest.raises(ValueError, match=r"^Recipe: keep='features' needs to know what the final layer sees; give a"):
        train_all([job(data, "ce")], data, Recipe(keep=("features",)), build=logits)


def test_a_study_with_a_backbone_of_the_users_own(tmp_path: Path) -> None:
    """It trains, is read again with its weights, and tells what the final layer saw."""
    study = lossmith.compare(
        "digits",
        losses=["ce", "cosine-softmax"],
        noise=[0],
        model=features,
        rates=[0.1],
        seeds=1,
        epochs=2,
        references=False,
        keep=["weights", "features"],
        output=tmp_path / "own",
        workers=1,
        progress=False,
    )
    (run,) = study.results.query("loss == 'cosine-softmax'")["run"]
    model = study.model(run)
    assert type(model.head).__name__ == "CosineLinear"
    with torch.no_grad():
        assert model(study.load().inputs[:2]).shape == (2, 10)
