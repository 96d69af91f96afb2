"""What is taken for what among training rows, for losses that are corrected by it."""

import numpy as np
import torch
from torch import Tensor

from lossmith.analysis.labels.suspects import estimate_noise
from lossmith.data import PreparedData
from lossmith.losses.correction.matrices import SymmetricMatrix
from lossmith.studies.design.suitable_model import suitable_model
from lossmith.studies.labels.cross_validation import FOLDS, CrossValidation
from lossmith.training.recipe import Recipe

__all__ = ["any_matrix", "estimated_matrix"]


def estimated_matrix(data: PreparedData, labels: Tensor, recipe: Recipe, seed: int) -> np.ndarray:
    """Return the shares of each true class that carry each label, from cross-validated predictions of the training rows.

    Args:
        data: Whose training rows these are.
        labels: Their labels, as a loss would see them.
        recipe: How a study trains, for its epochs; the network is the one that suits the data.
        seed: Of folds, initial weights and batches.

    Returns:
        ``(classes, classes)``.
    """
    folds = min(FOLDS, len(labels))
    trained = CrossValidation(data, data.train, labels, suitable_model(data), folds=folds, epochs=recipe.epochs, seed=seed)
    probabilities = np.mean(list(trained.probabilities().values()), 0)
    return np.array(estimate_noise(probabilities, labels.numpy()).transition)


def any_matrix(num_classes: int) -> Tensor:
    """Return a matrix that stands for one that has not been estimated.

    Args:
        num_classes: How many classes there are.

    Returns:
        ``(classes, classes)``.
    """
    return SymmetricMatrix(0.2).of(num_classes, torch.zeros((), dtype=torch.float64))
