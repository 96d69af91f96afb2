"""Hundreds of classes made of real images: two or three of them side by side, whose classes together are the class."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lossmith.data.sources.known_sets import read_known_set

__all__ = ["composed", "groups_of_five"]

TEST_ROWS = 10_000


def composed(name: str, places: int, rows: int) -> Callable[[Path], dict[str, Any]]:
    """Return a function that makes the data: images of ten classes, half as large, ``places`` of them in a row.

    What is put together for training comes from training images alone, and for the test from test images.

    Args:
        name: ``mnist`` or ``fashion-mnist``.
        places: How many images stand in a row: 2 for a hundred classes, 3 for a thousand.
        rows: Training rows.

    Returns:
        A function of a folder, which is not needed, that returns arrays by name.
    """

    def make(_: Path) -> dict[str, Any]:
        examples = read_known_set(name)
        images, labels = halved(np.asarray(examples.inputs)), np.asarray(examples.labels, np.int64)
        random, found = np.random.default_rng(0), {}
        for split, count in (("train", rows), ("test", TEST_ROWS)):
            of_split = np.flatnonzero(examples.split == split)
            drawn = random.choice(of_split, (count, places))
            found[f"x_{split}"] = np.concatenate([images[drawn[:, place]] for place in range(places)], axis=2)
            found[f"y_{split}"] = (labels[drawn] * 10 ** np.arange(places - 1, -1, -1)).sum(1)
        return found

    return make


def halved(images: np.ndarray) -> np.ndarray:
    """Return images of half the height and width, each pixel the mean of four."""
    count, height, width = images.shape
    parts = images.reshape(count, height // 2, 2, width // 2, 2)
    return np.asarray(parts.mean(axis=(2, 4), dtype=np.float32).round().astype(np.uint8))


def groups_of_five(classes: int) -> list[int]:
    """Return the coarse group of each class: five neighbours, which differ in their last image alone.

    >>> groups_of_five(20)[3:7]
    [0, 0, 1, 1]
    """
    return [number // 5 for number in range(classes)]
