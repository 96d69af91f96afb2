"""Some rows of many, of which every class keeps its share."""

import numpy as np
import torch
from torch import Tensor

from lossmith.data import PreparedData
from lossmith.training.seeds import derived_seed

__all__ = ["stratified_rows"]


def stratified_rows(data: PreparedData, split: Tensor, most: int, seed: int) -> Tensor:
    """Return so many rows of a split at most, of each class in proportion and one at least.

    Args:
        data: The data.
        split: Row numbers.
        most: How many.
        seed: Draws them.

    Returns:
        Row numbers, in ascending order.
    """
    if len(split) <= most:
        return split
    rows, labels = split.numpy(), data.labels[split].numpy()
    generator = np.random.default_rng(derived_seed(seed, "training rows"))
    order = generator.permutation(len(rows))
    # The place of each row among those of its class, as a share: the smallest shares make up a sample of even proportions.
    places = np.empty(len(rows))
    for label in np.unique(labels):
        own = order[labels[order] == label]
        places[own] = np.arange(len(own)) / len(own)
    return torch.from_numpy(np.sort(rows[np.argsort(places, kind="stable")[:most]]))
