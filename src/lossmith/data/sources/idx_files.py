"""IDX files, in which MNIST and its relatives come: a few bytes that tell type and shape, then the numbers."""

import gzip
import math
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from lossmith.data.sources.examples import Array, Examples, joined
from lossmith.data.sources.size_limit import check_size

__all__ = ["has_idx_files", "idx_examples", "read_idx"]

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_PREFIXES = {"train": ("train",), "validation": ("validation", "valid", "val"), "test": ("t10k", "test")}


def read_idx(path: Path) -> Array:
    """Read one IDX file, compressed or not.

    Args:
        path: The file.

    Returns:
        Its numbers in their shape.

    Raises:
        ValueError: If it is not an IDX file, is longer or shorter than it says, or takes too much memory.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            kind, shape = _header(file, path)
            size = math.prod(shape) * kind.itemsize
            check_size(size, path)
            raw: bytes = file.read(size + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: cannot be unpacked ({error}).") from error
    if len(raw) != size:
        found = "more" if len(raw) > size else len(raw) // kind.itemsize
        raise ValueError(f"{path}: the file must hold {math.prod(shape)} numbers, got {found}.")
    return np.frombuffer(raw, dtype=kind).astype(kind.newbyteorder("=")).reshape(shape)


def _header(file: IO[bytes] | gzip.GzipFile, path: Path) -> tuple[np.dtype[Any], tuple[int, ...]]:
    start = file.read(4)
    if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _TYPES:
        raise ValueError(f"{path}: not an IDX file.")
    sides = file.read(4 * start[3])
    if len(sides) < 4 * start[3]:
        raise ValueError(f"{path}: not an IDX file.")
    return np.dtype(_TYPES[start[2]]), tuple(int(side) for side in np.frombuffer(sides, dtype=">u4"))


def has_idx_files(place: Path) -> bool:
    """Return whether there are training images, in a folder or by the beginning of file names.

    Args:
        place: A folder, or the beginning of paths.

    Returns:
        True if there are.
    """
    return _file(place, "train", "images") is not None or _whole(place, "images") is not None


def idx_examples(place: Path, name: str, classes: tuple[str, ...] | None = None) -> Examples:
    """Read the images and labels of a folder, or of all files whose names begin so; ``t10k`` and ``test`` are the test split.

    Args:
        place: A folder, or the beginning of paths.
        name: What the data is called.
        classes: The names of the classes, where known.

    Returns:
        The examples, with their splits where files have one.

    Raises:
        ValueError: If a file is not an IDX file, or labels are missing.
    """
    whole = _whole(place, "images")
    if whole is not None:
        return _examples(whole, _whole(place, "labels"), name, classes)
    parts = {}
    for split, prefixes in _PREFIXES.items():
        images = next(filter(None, (_file(place, prefix, "images") for prefix in prefixes)), None)
        labels = next(filter(None, (_file(place, prefix, "labels") for prefix in prefixes)), None)
        if images is not None:
            parts[split] = _examples(images, labels, name, classes)
    return joined(parts)


def _examples(images: Path, labels: Path | None, name: str, classes: tuple[str, ...] | None) -> Examples:
    if labels is None:
        raise ValueError(f"{images}: no file of labels beside it.")
    inputs, numbers = read_idx(images), read_idx(labels)
    if len(inputs) != len(numbers):
        raise ValueError(f"{images}: {len(inputs)} images but {len(numbers)} labels in {labels.name}.")
    return Examples(name, inputs, numbers.reshape(len(numbers)), classes=classes)


def _file(place: Path, prefix: str, content: str) -> Path | None:
    if not place.is_dir():
        return None
    found = sorted(path for path in place.glob(f"{prefix}[-_.]*") if _holds(path, content))
    return found[0] if found else None


def _whole(prefix: Path, content: str) -> Path | None:
    """Return the file of a set that is not divided, such as ``emnist-images-idx3-ubyte`` for the prefix ``emnist``."""
    if prefix.is_dir() or not prefix.parent.is_dir():
        return None
    found = sorted(path for path in prefix.parent.glob(f"{prefix.name}*") if _holds(path, content))
    return found[0] if found else None


def _holds(path: Path, content: str) -> bool:
    return content in path.name and "idx" in path.name and path.is_file()
