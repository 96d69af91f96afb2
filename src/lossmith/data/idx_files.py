"""IDX files, in which MNIST and its relatives come: a few bytes that tell type and shape, then the numbers."""

import gzip
from pathlib import Path

import numpy as np

from lossmith.data.examples import Array, Examples, joined

__all__ = ["has_idx_files", "idx_examples", "read_idx"]

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_PREFIXES = {"train": ("train",), "validation": ("validation", "valid", "val"), "test": ("t10k", "test")}


def read_idx(path: Path) -> Array:
    """Read one IDX file, compressed or not."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            raw: bytes = file.read()
    except (EOFError, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: cannot be unpacked ({error}).") from error
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in _TYPES:
        raise ValueError(f"{path}: not an IDX file.")
    start = 4 + 4 * raw[3]
    shape = np.frombuffer(raw[4:start], dtype=">u4").astype(int)
    numbers = np.frombuffer(raw[start:], dtype=np.uint8)
    kind = np.dtype(_TYPES[raw[2]])
    if len(numbers) != shape.prod() * kind.itemsize:
        raise ValueError(f"{path}: the file must hold {shape.prod()} numbers, got {len(numbers) // kind.itemsize}.")
    return numbers.view(kind).astype(kind.newbyteorder("=")).reshape(shape)


def has_idx_files(place: Path) -> bool:
    """Return whether there are training images, in a folder or by the beginning of file names."""
    return _file(place, "train", "images") is not None or _whole(place, "images") is not None


def idx_examples(place: Path, name: str, classes: tuple[str, ...] | None = None) -> Examples:
    """Read the images and labels of a folder, or of all files whose names begin so; ``t10k`` and ``test`` are the test split."""
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
    found = sorted(path for path in place.glob(f"{prefix}[-_.]*") if content in path.name and "idx" in path.name)
    return found[0] if found else None


def _whole(prefix: Path, content: str) -> Path | None:
    """Return the file of a set that is not divided, such as ``emnist-images-idx3-ubyte`` for the prefix ``emnist``."""
    if prefix.is_dir() or not prefix.parent.is_dir():
        return None
    found = sorted(path for path in prefix.parent.glob(f"{prefix.name}*") if content in path.name and "idx" in path.name)
    return found[0] if found else None
