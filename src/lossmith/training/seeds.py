"""Random numbers that depend on the seed of a run and on nothing else.

Every draw of a run has a purpose, and every purpose a generator of its own. So a run draws the same numbers alone and among
others, and runs of one seed share their initial weights and batches, whatever their losses.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["derived_seed", "generator", "seeded"]


def derived_seed(seed: int, purpose: str) -> int:
    """Return a seed for one purpose of a run.

    Args:
        seed: The seed of the run.
        purpose: What the numbers are drawn for.

    Returns:
        A number of 63 bits.

    >>> derived_seed(0, "batches") != derived_seed(0, "dropout") != derived_seed(1, "dropout")
    True
    """
    digest = hashlib.blake2b(f"{seed} {purpose}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1  # generators take 63 bits


def generator(seed: int, purpose: str) -> torch.Generator:
    """Return a generator for one purpose of a run.

    Args:
        seed: The seed of the run.
        purpose: What the numbers are drawn for.

    Returns:
        A generator at its start.
    """
    return torch.Generator().manual_seed(derived_seed(seed, purpose))


@contextmanager
def seeded(seed: int, purpose: str) -> Iterator[None]:
    """Seed torch's global generator for a while, because modules draw their initial weights and dropout masks from it.

    Args:
        seed: The seed of the run.
        purpose: What the numbers are drawn for.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(derived_seed(seed, purpose))
        yield
