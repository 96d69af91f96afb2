"""Augmentations by name, for the batches of many runs, each by the seed of its run."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lossmith.data.prepared import PreparedData
from lossmith.data.sparse_rows import as_tensor
from lossmith.expressions.nearest import nearest
from lossmith.expressions.quotes import quote
from lossmith.training.augmentation.framing import crop, cutout, flip
from lossmith.training.augmentation.policy import Policy
from lossmith.training.batches import Batch
from lossmith.training.devices import CPU
from lossmith.training.seeds import generator

__all__ = ["AUGMENTATIONS", "NONE", "Augmentation", "augmentations_of"]

NONE = "none"
AUGMENTATIONS = {"crop": 2, "flip": 1, "policy": 2, "cutout": 2}
"""By name, in the order in which they follow one another: how many numbers are drawn for each image."""
RANGE_ROWS = 4096
"""Training images in which the darkest and the brightest pixels are looked for."""


def augmentations_of(augment: str) -> tuple[str, ...]:
    """Return the augmentations of a list, in the order in which they follow one another.

    Args:
        augment: Names with commas between them, or ``none``.

    Returns:
        The names.

    Raises:
        ValueError: If a name is unknown.

    >>> augmentations_of("flip, crop"), augmentations_of("none")
    (('crop', 'flip'), ())
    >>> augmentations_of("crop,flop")
    Traceback (most recent call last):
    ValueError: Recipe: augment must be none, or some of crop, flip, policy, cutout, got 'flop'; did you mean 'flip'?
    """
    if augment.strip() == NONE:
        return ()
    given = [name.strip() for name in augment.split(",")]
    for name in given:
        if name not in AUGMENTATIONS:
            expected = f"none, or some of {', '.join(AUGMENTATIONS)}"
            raise ValueError(f"Recipe: augment must be {expected}, got {quote(name)}{nearest(name, AUGMENTATIONS)}")
    return tuple(name for name in AUGMENTATIONS if name in given)


class Augmentation:
    """Changes the images of a batch at random. What a run sees depends on its seed, not on what is trained beside it."""

    def __init__(self, augment: str, seeds: Sequence[int], data: PreparedData, device: torch.device = CPU) -> None:
        self._names = augmentations_of(augment)
        self._draws = [generator(seed, "augmentation") for seed in seeds]
        known = as_tensor(data.inputs[data.train[:RANGE_ROWS]]).to(device)
        policy = Policy(known.amin((0, 2, 3)).view(-1, 1, 1), known.amax((0, 2, 3)).view(-1, 1, 1))
        self._changes: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
            "crop": crop,
            "flip": flip,
            "policy": policy,
            "cutout": cutout,
        }

    def __call__(self, batch: Batch) -> Batch:
        """Return the batch with other images of the same things."""
        images = as_tensor(batch.inputs).flatten(0, 1)
        widths = [AUGMENTATIONS[name] for name in self._names]
        shape = batch.inputs.shape[1], sum(widths)
        drawn = torch.cat([torch.rand(shape, generator=own, dtype=images.dtype) for own in self._draws]).to(images.device)
        for name, draws in zip(self._names, torch.split(drawn, widths, 1), strict=True):
            images = self._changes[name](images, draws)
        return batch._replace(inputs=images.view(batch.inputs.shape))

    def keep(self, runs: Tensor) -> None:
        """Go on with some of the runs.

        Args:
            runs: Their places among those there are.
        """
        self._draws = [self._draws[run] for run in runs.tolist()]
