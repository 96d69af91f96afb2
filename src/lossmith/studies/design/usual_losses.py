"""The losses that are compared where none are named: those that are worth their time on data like this."""

import torch

from lossmith.data import PreparedData, make_noise
from lossmith.data.noise.class_noise import SymmetricNoise
from lossmith.studies.design.settings import CLEAN, LOSSES, Settings
from lossmith.theory.studied.loss_map import KINDS, shipped_map
from lossmith.theory.studied.similar_data import Task
from lossmith.theory.studied.worth_trying import Shortlist, worth_trying

__all__ = ["usual_losses"]

JUDGED_BY = ("accuracy", "balanced_accuracy")
"""What losses were judged by where they were studied."""


def usual_losses(settings: Settings, data: PreparedData) -> Shortlist:
    """Return what is compared where no losses are named.

    Losses were studied with symmetric noise, and tuned on rows as noisy as those of training. Of other studies nothing is known,
    and all usual losses are compared.

    Args:
        settings: With the noise, and what losses are judged by.
        data: The data.

    Returns:
        The losses, and why they are not the usual ones, or why they are.
    """
    shares = [found for noise in settings.noise if (found := _symmetric_share(noise)) is not None]
    is_alike = settings.metric in JUDGED_BY and settings.tune_on == "own" and len(shares) == len(settings.noise)
    if not is_alike or data.kind not in KINDS:
        return Shortlist(LOSSES)
    rows = min(len(data.train), settings.train_rows or len(data.train))
    imbalance = None if settings.metric == "accuracy" else _imbalance(data)
    tasks = [Task(data.num_classes, share, rows, data.kind, imbalance) for share in shares]
    return worth_trying(shipped_map().beside(data.name), tasks, LOSSES)


def _symmetric_share(noise: str) -> float | None:
    if noise == CLEAN:
        return 0.0
    made = make_noise(noise)
    return made.rate if isinstance(made, SymmetricNoise) else None


def _imbalance(data: PreparedData) -> float:
    """Return how many rows the rarest class has for each of the most frequent; those without any are not counted."""
    counts = torch.bincount(data.labels[data.train], minlength=data.num_classes)
    return float(counts[counts > 0].min() / counts.max())
