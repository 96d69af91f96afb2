"""Arrays as people hand them over: pairs, dictionaries and NPZ files."""

import math
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import torch
from numpy.lib import format as npy

from lossmith.data.sources.array_names import array_names, role_of
from lossmith.data.sources.examples import Array, Examples, joined
from lossmith.data.sources.size_limit import check_size
from lossmith.data.sources.table_files import unique_columns
from lossmith.expressions.lists import quoted

__all__ = ["examples_of_arrays", "examples_of_pair", "looks_like_arrays", "read_npz"]


def read_npz(path: Path, name: str) -> Examples:
    """Read arrays that ``numpy.savez`` saved: X and y, or x_train, y_train, x_test, y_test, and the like.

    Args:
        path: The file.
        name: What to call the data.

    Returns:
        Inputs and labels by their names.

    Raises:
        ValueError: If it is no NPZ file, holds anything but arrays, lacks inputs or labels, or takes too much memory.
    """
    try:
        _check_headers(path)
        with np.load(path, allow_pickle=False) as stored:
            return examples_of_arrays(stored, name)
    except (zipfile.BadZipFile, zlib.error, EOFError, AttributeError, TypeError, NotImplementedError) as error:
        raise ValueError(f"{path}: not a readable NPZ file.") from error
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise ValueError(f"{path}: must hold arrays of numbers or text, got Python objects or no NPZ file.") from error
        raise


def _check_headers(path: Path) -> None:
    """Raise an error for arrays that are shorter than they claim to be, or would take too much memory together."""
    size = 0
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if entry.filename.endswith(".npy"):
                with archive.open(entry) as file:
                    claimed = _claimed_bytes(file)
                size += max(claimed, entry.file_size)
                check_size(size, path)
                if claimed > entry.file_size:
                    raise ValueError(f"{path}: {entry.filename} must hold {claimed:,} bytes, got {entry.file_size:,}.")


def _claimed_bytes(file: IO[bytes]) -> int:
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, kind = read(file)
    return 0 if kind.hasobject else math.prod(shape) * kind.itemsize  # the size of objects is not told by their number


def looks_like_arrays(parts: Mapping[Any, Any]) -> bool:
    """Return whether a dictionary holds inputs and labels, rather than columns of a table.

    Args:
        parts: A dictionary that a user gave.

    Returns:
        True if one key is that of inputs, and every key has a role or the inputs have more than one number a row.
    """
    roles = {key: role_of(key)[1] for key in parts}
    inputs = [parts[key] for key, role in roles.items() if role == "inputs"]
    return bool(inputs) and (None not in roles.values() or any(np.ndim(array) > 1 for array in inputs))


def examples_of_arrays(parts: Mapping[Any, Any], name: str) -> Examples:
    """Put together what belongs together by name: the split (train, validation, test) and the role (x, y, ...).

    Args:
        parts: Arrays by name, such as ``x_train`` and ``y_train``. Those that are no inputs and no labels are not looked at.
        name: What the data is called.

    Returns:
        The examples, with the splits that the names tell, and a note on arrays that are not used.

    Raises:
        ValueError: If inputs or labels are missing, come twice, or do not belong together.
    """
    keys = {str(key): key for key in parts}
    splits, unused = array_names(keys, name)
    arrays = {split: {role: parts[keys[key]] for role, key in roles.items()} for split, roles in splits.items()}
    examples = joined({split: _examples(name, **roles) for split, roles in arrays.items()})
    truth = [roles["true_labels"] for roles in splits.values() if "true_labels" in roles]
    notes = [f"true labels: {quoted(truth)}"] if truth else []
    notes += [f"arrays that are not used, being neither inputs nor labels: {quoted(unused)}"] if unused else []
    return replace(examples, notes=(*examples.notes, *notes))


def examples_of_pair(pair: tuple[Any, ...], name: str) -> Examples:
    """Take inputs and labels.

    Args:
        pair: Inputs and labels, equally many.
        name: What the data is called.

    Returns:
        The examples.

    Raises:
        ValueError: If it is not a pair, or their lengths differ.
    """
    if len(pair) != 2:
        raise ValueError(f"{name}: arrays must be a pair (X, y), got {len(pair)}.")
    return _examples(name, *pair)


def _examples(name: str, inputs: Any, labels: Any, true_labels: Any = None) -> Examples:
    try:
        features = _array(inputs)
    except ValueError as error:
        raise ValueError(f"{name}: inputs must all have one shape.") from error
    truth = None if true_labels is None else _label_array(true_labels, name)
    found = _label_array(labels, name)
    for what, given in (("labels", found), ("true labels", truth)):
        if given is not None and len(given) != len(features):
            raise ValueError(f"{name}: inputs and {what} must be equally many, got {len(features)} and {len(given)}.")
    table = isinstance(inputs, pd.DataFrame) or features.dtype.kind in "OUS"
    return Examples(name, _columns(inputs, features) if table else features, found, true_labels=truth)


def _array(given: Any) -> Array:
    if isinstance(given, torch.Tensor):
        return np.asarray((given.float() if given.dtype == torch.bfloat16 else given).detach().cpu().numpy())
    return np.asarray(given.toarray() if hasattr(given, "toarray") else given)


def _columns(given: Any, inputs: Array) -> pd.DataFrame:
    """Return texts, or rows of text and numbers, as a table; a table as it is."""
    if isinstance(given, pd.DataFrame):
        return unique_columns(given).frame
    frame = pd.DataFrame(inputs).infer_objects()
    return frame.set_axis(["text"] if frame.shape[1] == 1 else [f"column{place + 1}" for place in frame.columns], axis=1)


def _label_array(given: Any, name: str) -> Array:
    """Return one label an example, from a column, or from one-hot rows."""
    labels = _array(given)
    if labels.ndim == 2 and labels.shape[1] == 1:
        return labels[:, 0]
    if (
        labels.ndim == 2
        and labels.dtype.kind in "biuf"
        and np.array_equal(np.sort(labels, 1)[:, -1], labels.sum(1))
        and (labels.max(1) == 1).all()
    ):
        return np.asarray(labels.argmax(1))
    if labels.ndim != 1:
        raise ValueError(f"{name}: labels must be one for each example, got shape {labels.shape}.")
    return labels
