"""Everything once, on a few rows: what cannot work fails before anything is trained."""

from torch import Tensor, nn

from lossmith.data import PreparedData, make_noise
from lossmith.data.noise.class_noise import SymmetricNoise
from lossmith.losses import ClassificationLoss
from lossmith.objectives.objective import Objective
from lossmith.studies.design.settings import Settings
from lossmith.studies.measures import GUESSES
from lossmith.training.job import Build, Job
from lossmith.training.models.sparse_layers import fitting_inputs
from lossmith.training.recipe import Run
from lossmith.training.stacks.built_model import build_model

__all__ = ["check_splits", "rehearse", "warnings_about"]

ROWS = 2


def check_splits(settings: Settings, data: PreparedData) -> None:
    """Raise an error if a split is empty that the study needs, or there are too few classes for its metric."""
    if not len(data.test):
        raise ValueError(f"compare: {data.name} has no test split to compare losses on; give a test_share above 0.")
    if settings.metric == "top5" and data.num_classes <= GUESSES:
        raise ValueError(f"compare: metric top5 needs more than {GUESSES} classes, got {data.num_classes}.")
    if settings.searched and not len(data.validation):
        trials = settings.trials_of_a_cell
        raise ValueError(f"compare: {data.name} has no validation split to choose by; give one of --rates, got {trials} trials.")


def rehearse(settings: Settings, data: PreparedData, objectives: dict[str, Objective | nn.Module], build: Build | None) -> None:
    """Make each label noise once, and pass a few rows through each model and loss, so that each can raise its error now."""
    for noise in settings.noise:
        make_noise(noise).corrupt(data, data.train, 0)
    rows = data.train[:ROWS]
    for name, objective in objectives.items():
        run = Run(name, settings.noise[0], 0, 0.01)
        job = Job(run, objective, data.labels[data.train], data.labels[data.validation])
        model = build_model(job, data, settings.recipe, build).model.eval()
        _check_value(name, objective, model(fitting_inputs(model, data.inputs[rows])), data.labels[rows])


def _check_value(name: str, objective: Objective | nn.Module, logits: Tensor, target: Tensor) -> None:
    loss = objective.loss if isinstance(objective, Objective) else objective
    try:
        value = loss(logits, target)
    except Exception as error:
        if isinstance(loss, ClassificationLoss):
            raise
        words = str(error).partition("\n")[0]
        raise ValueError(f"compare: the loss {name} must take logits {tuple(logits.shape)} and class indices: {words}") from error
    if not isinstance(value, Tensor) or value.numel() != 1:
        got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise ValueError(f"{name}: a loss must return one number, got {got}.")


def warnings_about(settings: Settings, data: PreparedData) -> list[str]:
    """Return what can be tried, but will hardly do what was meant."""
    symmetric = [noise for noise in map(make_noise, settings.noise) if isinstance(noise, SymmetricNoise)]
    hopeless = [noise for noise in symmetric if noise.rate > 1 - 1 / data.num_classes]
    return [f"noise {noise}: of {data.num_classes} classes the true one is no longer the commonest label" for noise in hopeless]
