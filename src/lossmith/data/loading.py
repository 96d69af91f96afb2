"""Data from anywhere, prepared for training."""

import numpy as np
import torch

from lossmith.data.arrays import encode_array
from lossmith.data.examples import Examples
from lossmith.data.labels import class_groups, class_name, classes_of
from lossmith.data.prepared import PreparedData
from lossmith.data.splits import Shares, make_splits

__all__ = ["load_data"]


def load_data(source, *, validation_share: float = 0.15, test_share: float = 0.2, seed: int = 0) -> PreparedData:
    if isinstance(source, PreparedData):
        return source
    from sklearn.datasets import load_digits

    digits = load_digits()
    examples = Examples("digits", digits.images.astype(np.float32), digits.target)
    classes = classes_of(examples)
    splits = make_splits(classes.labels, examples.split, Shares(validation_share, test_share), seed)
    encoded = encode_array(examples.inputs, splits.train, owner=examples.name)
    return PreparedData(examples.name, encoded.inputs, torch.from_numpy(classes.labels), classes.names, *splits)
