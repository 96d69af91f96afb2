"""What a study's file holds, checked as it is read: a disk may have damaged it, and anybody may have written it."""

import io
import json
import math
import reprlib
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "Row",
    "Shape",
    "StoreError",
    "check_kinds",
    "check_texts",
    "explained",
    "inflated_array",
    "inflated_labels",
    "packed",
    "read_json",
    "read_weights",
    "square_matrix",
]

Row = Mapping[str, Any]
Shape = tuple[int | None, ...]

ROOM = 2**28
"""Bytes that an array may always take; a larger one must not be much larger than what it was packed into."""
MOST_TIMES_LARGER = 100
LARGEST = 1e100
STEP = 2**20


class StoreError(ValueError):
    """A study's file that cannot be read or written, in one line."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(line.strip() for line in message.splitlines()))


@contextmanager
def explained(file: object, place: str) -> Iterator[None]:
    """Turn whatever a content that does not fit gives rise to into one line that names its place.

    >>> with explained("a.sqlite", "run 3"):
    ...     int("x")
    Traceback (most recent call last):
    ...
    lossmith.studies.storage.stored_content.StoreError: a.sqlite: run 3 is damaged (invalid literal for int() with base 10: 'x');
    it was left as it is.
    """
    try:
        yield
    except StoreError:
        raise
    except Exception as error:
        words = str(error).partition("\n")[0].rstrip(".")
        told = words if words and isinstance(error, ValueError) else f"{type(error).__name__} {words}".rstrip()
        raise StoreError(f"{file}: {place} is damaged ({told}); it was left as it is.") from error


def check_kinds(row: Row, kinds: Mapping[str, type | tuple[type, ...]]) -> None:
    """Raise an error for a value of another type than its column is for: SQLite takes any type in any column.

    Numbers are no larger than sums and squares of them have room for; where nothing but a number will do, it is finite.
    """
    for name, kind in kinds.items():
        value = row[name]
        if not isinstance(value, kind):
            raise ValueError(f"{name} must be {_kind_name(kind)}, got {reprlib.repr(value)}")
        if isinstance(value, int | float) and (LARGEST < abs(value) < math.inf or (kind is float and not math.isfinite(value))):
            raise ValueError(f"{name} must be a finite number below {LARGEST:g}, got {reprlib.repr(value)}")


def check_texts(name: str, values: object) -> None:
    """Raise an error for what is no list of texts."""
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} must be texts, got {reprlib.repr(values)}")


def _kind_name(kind: type | tuple[type, ...]) -> str:
    return " or ".join(each.__name__ for each in (kind if isinstance(kind, tuple) else (kind,)))


def read_json(text: object, kind: type | tuple[type, ...]) -> Any:
    """Return what a text of JSON says, which must be of a kind, or of one of several."""
    if not isinstance(text, str):
        raise ValueError(f"must be JSON, got {reprlib.repr(text)}")
    value = json.loads(text)
    if not isinstance(value, kind):
        raise ValueError(f"must be {_kind_name(kind)}, got {reprlib.repr(value)}")
    return value


def square_matrix(text: object) -> np.ndarray:
    """Return a matrix of numbers with as many columns as rows."""
    matrix = np.asarray(read_json(text, list), float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"matrix must be square, got shape {matrix.shape}")
    return matrix


def packed(array: np.ndarray) -> tuple[str, str, bytes]:
    """Return the shape, the type and the content of an array as they are stored."""
    return json.dumps(array.shape), str(array.dtype), zlib.compress(np.ascontiguousarray(array).tobytes(), 1)


def inflated_array(row: Row, expected: Shape | None = None) -> np.ndarray:
    """Return an array that was packed, of the ``expected`` shape, in which None stands for any length.

    Everything is checked before anything is inflated, so that a small file cannot fill the memory.
    """
    shape, kind = _shape(row["shape"]), _number_type(row["type"])
    if expected is not None and not _fits(shape, expected):
        raise ValueError(f"shape must be {tuple(length or 'any' for length in expected)}, got {shape}")
    return _inflated(row["content"], math.prod(shape) * kind.itemsize).view(kind).reshape(shape)


def inflated_labels(content: bytes) -> np.ndarray:
    """Return labels that were packed without their number, as many as there are, but not more than there is room for."""
    inflater = zlib.decompressobj()
    found = inflater.decompress(_blob(content), ROOM)
    if not inflater.eof or len(found) % 4:
        raise ValueError("labels must be whole numbers of 4 bytes")
    return np.frombuffer(found, np.int32).astype(np.int64)


def _shape(text: object) -> tuple[int, ...]:
    shape = tuple(read_json(text, list))
    if not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"shape must be whole numbers, got {reprlib.repr(shape)}")
    return shape


def _number_type(name: object) -> np.dtype[Any]:
    kind = np.dtype(name if isinstance(name, str) else "")
    if kind.kind not in "fiub":
        raise ValueError(f"type must be one of numbers, got {reprlib.repr(name)}")
    return kind


def _fits(shape: tuple[int, ...], expected: Shape) -> bool:
    return len(shape) == len(expected) and all(want in (None, got) for got, want in zip(shape, expected, strict=True))


def _blob(content: object) -> bytes:
    if not isinstance(content, bytes):
        raise ValueError(f"content must be bytes, got {reprlib.repr(content)}")
    return content


def _inflated(content: object, size: int) -> np.ndarray:
    """Return exactly ``size`` bytes, inflated into their place."""
    packed_bytes = _blob(content)
    if size > max(ROOM, MOST_TIMES_LARGER * len(packed_bytes)):
        raise ValueError(f"{size} bytes cannot come from {len(packed_bytes)}")
    found, filled = np.empty(size, np.uint8), 0
    inflater, rest = zlib.decompressobj(), packed_bytes
    while not inflater.eof and (part := inflater.decompress(rest, min(STEP, size - filled + 1))):
        if filled + len(part) > size:
            raise ValueError(f"content must inflate to {size} bytes, got more")
        found[filled : filled + len(part)] = np.frombuffer(part, np.uint8)
        filled, rest = filled + len(part), inflater.unconsumed_tail
    if filled != size or not inflater.eof:
        raise ValueError(f"content must inflate to {size} bytes, got {filled}")
    return found


def read_weights(content: np.ndarray) -> dict[str, Tensor]:
    """Return the ``state_dict`` that ``torch.save`` wrote; no code in it is run, and nothing in it is inflated."""
    stream = io.BytesIO(content.tobytes())
    with ZipFile(stream) as archive:
        parts = archive.infolist()
        if any(part.compress_type != ZIP_STORED for part in parts) or sum(part.file_size for part in parts) > len(content):
            raise ValueError("weights must be stored as they are, got some that are packed")
    stream.seek(0)
    state = torch.load(stream, map_location="cpu", weights_only=True)
    if not isinstance(state, dict) or not all(isinstance(name, str) and isinstance(state[name], Tensor) for name in state):
        raise ValueError("weights must be tensors by name")
    return dict(state)
