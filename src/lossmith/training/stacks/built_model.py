"""The model of one run, as its seed initialises it."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from lossmith.data.prepared import PreparedData
from lossmith.losses import CrossEntropyLoss
from lossmith.objectives.objective import Objective
from lossmith.training.job import Build, Job
from lossmith.training.models.backbone import Backbone
from lossmith.training.models.named_models import backbone_for
from lossmith.training.models.sparse_layers import fitting_inputs
from lossmith.training.recipe import Recipe
from lossmith.training.seeds import seeded
from lossmith.training.stacks.arithmetic import takes_channels_last

__all__ = ["Built", "build_model", "learned_parameters"]


class Built(NamedTuple):
    """The model of one run, as its seed initialises it."""

    model: nn.Module
    decay: dict[str, float]
    """Weight decay by the name of a parameter."""
    channels_last: bool = False
    """Whether it has convolutions, which are faster with the channels of images last in memory."""


def build_model(job: Job, data: PreparedData, recipe: Recipe, build: Build | None = None) -> Built:
    """Return the model of a job with the initial weights of its seed.

    Args:
        job: The run.
        data: What it is trained on.
        recipe: Which model it is, if ``build`` is not given.
        build: Makes a user's own model.

    Returns:
        The model, and the weight decay of its parameters.

    Raises:
        ValueError: If a user's own model does not return what it should, or less than the study needs.
    """
    built = _initialised(job, data, recipe, build)
    return built._replace(channels_last=takes_channels_last(built.model, data.inputs[data.train[:2]]))


def _initialised(job: Job, data: PreparedData, recipe: Recipe, build: Build | None) -> Built:
    with seeded(job.seed, "weights"):
        if build is None:
            network = backbone_for(recipe.model, data)
        else:
            network = build(data.input_shape, data.num_classes)
            _check_outputs(network, data)
        if build is None or isinstance(network, Backbone):
            return _with_final_layer(job, network, data.num_classes, recipe)
    _check_logits_suffice(job.objective, recipe)
    published = job.objective.weight_decay if isinstance(job.objective, Objective) else 0.0
    decay = job.run.weight_decay or published
    parameters = learned_parameters(network).items()
    return Built(network, {name: decay if recipe.decay_vectors or each.dim() > 1 else 0.0 for name, each in parameters})


def _with_final_layer(job: Job, backbone: nn.Module, num_classes: int, recipe: Recipe) -> Built:
    objective = job.objective if isinstance(job.objective, Objective) else Objective(CrossEntropyLoss())
    decay = job.run.weight_decay or None
    trainable = objective.build(backbone, num_classes, weight_decay=decay, decay_vectors=recipe.decay_vectors)
    decays = {id(weight): group["weight_decay"] for group in trainable.groups for weight in group["params"]}
    return Built(trainable.model, {name: decays[id(weight)] for name, weight in learned_parameters(trainable.model).items()})


def _check_outputs(network: nn.Module, data: PreparedData) -> None:
    """Raise an error unless a user's own model returns features, where it says so, or logits."""
    try:
        with torch.no_grad():
            shape = tuple(network.eval()(fitting_inputs(network, data.inputs[data.train[:2]])).shape)
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"build: the model fails on inputs of shape {data.input_shape}: {reason}") from error
    if isinstance(network, Backbone):
        if shape[1:] != (network.out_features,):
            raise ValueError(
                f"build: the Backbone must return {network.out_features} features for each row, got {shape} for 2 rows."
            )
    elif shape[1:] != (data.num_classes,):
        expected = f"{data.num_classes} logits for each row, or be a lossmith.training.Backbone"
        raise ValueError(f"build: the model must return {expected}, got {shape} for 2 rows.")


def _check_logits_suffice(objective: Objective | nn.Module, recipe: Recipe) -> None:
    """Raise an error if a study needs more of a model than logits."""
    instead = "give a lossmith.training.Backbone instead of a model that returns logits"
    if isinstance(objective, Objective) and (objective.head is not nn.Linear or objective.final_weight_decay):
        raise ValueError(f"{objective}: needs a final layer of its own; {instead}.")
    if "features" in recipe.keep:
        raise ValueError(f"Recipe: keep='features' needs to know what the final layer sees; {instead}.")


def learned_parameters(model: nn.Module) -> dict[str, Tensor]:
    """Return what training changes, by name.

    Args:
        model: Any module.

    Returns:
        The parameters that have a gradient.
    """
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
