"""Data from anywhere, prepared for training."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from lossmith.data.encoding.array_inputs import Encoded, encode_array
from lossmith.data.encoding.columns import encode_table
from lossmith.data.encoding.labels import class_groups, classes_of
from lossmith.data.encoding.pretrained import TextEncoding, text_encoding
from lossmith.data.fewer_rows import at_most
from lossmith.data.inspection import data_notes
from lossmith.data.long_tails import LongTail, long_tailed, make_long_tail
from lossmith.data.prepared import PreparedData
from lossmith.data.restated_target import restating_notes
from lossmith.data.sources.column_roles import Roles, column_named, examples_of_table
from lossmith.data.sources.examples import Array, Examples, Groups, joined
from lossmith.data.sources.given_arrays import examples_of_arrays, examples_of_pair, looks_like_arrays, read_npz
from lossmith.data.sources.idx_files import has_idx_files, idx_examples
from lossmith.data.sources.image_folders import image_examples
from lossmith.data.sources.known_sets import read_known_set
from lossmith.data.sources.row_labels import with_labels
from lossmith.data.sources.table_files import TABLE_SUFFIXES, Table, read_table, tidy_columns
from lossmith.data.splits import Shares, Splits, make_splits
from lossmith.encoders.text_features import OnTexts
from lossmith.expressions.limits import Limits
from lossmith.expressions.nearest import nearest
from lossmith.expressions.quotes import quote

__all__ = ["load_data"]

_PACKED = (".gz", ".bz2", ".xz")
_TEXTS = ("ngrams", "words")


def load_data(
    source: Any,
    *,
    target: str | int | None = None,
    true_label: str | None = None,
    validation: Any = None,
    test: Any = None,
    split_column: str | None = None,
    groups: Groups | None = None,
    validation_share: float = 0.15,
    test_share: float = 0.2,
    seed: int = 0,
    replicate: int = 0,
    rows: int | None = None,
    imbalance: str | float | None = None,
    text: str = "ngrams",
    encoder: str | Path | None = None,
    fine_tune: bool = False,
    cache: str | Path | None = None,
    resize: int | tuple[int, int] | None = None,
    folder: str | Path | None = None,
    name: str | None = None,
    on_texts: OnTexts | None = None,
    device: str | torch.device = "cpu",
) -> PreparedData:
    """Read data, divide it and turn it into tensors. Whatever is fitted on the way is fitted on training rows alone.

    Args:
        source: A file (CSV or the like, Parquet, NPZ), a folder of images with a folder for each class, a folder of IDX files or
            how their names begin, a known name such as ``digits``, a data frame, ``(X, y)``, a dictionary of arrays, or data
            that is prepared already and is returned as it is.
        target: The column that holds the classes; guessed only where one column is called target, label, class or y, or else,
            if nothing contradicts, category, species or the like, or the last column is the only one that is not numbers.
        true_label: A column that holds the true classes, where those in ``target`` are noisy already.
        validation: A source of its own for the validation split; rows of ``source`` otherwise.
        test: A source of its own for the test split; rows of ``source`` otherwise.
        split_column: A column that says train, validation or test.
        groups: The coarse group of each class, for noise within groups: by class, in the order of classes, or a column.
        validation_share: Share of the rows to divide that become the validation split, where the source has none.
        test_share: The same of the test split.
        seed: Decides which rows these are. Every class is divided in the same proportion.
        replicate: Divides the same rows in another way for each number; every five test all rows once, with the usual share.
        rows: How many rows to use at most, drawn in the proportions of classes; those marked as test are all used besides.
        imbalance: Makes a long tail of the training and validation rows: the ratio of the rarest class to the most frequent, in
            (0, 1], ``exponential(RATIO)`` or ``step(RATIO)``; test rows stay as they are.
        text: Whether texts become weighted ``ngrams``, beside all other columns, or ``words`` in their order, alone.
        encoder: The folder of a pretrained model (transformers, safetensors), whose vectors of texts take the place of ngrams.
        fine_tune: Whether the encoder is to be trained, too: inputs are the tokens of the texts, alone.
        cache: Where vectors are kept; by default in the folder of the environment variable ``LOSSMITH_CACHE``, or the user's.
        resize: One side, or height and width, for images of different sizes.
        folder: Where to look for known data first; the environment variable ``LOSSMITH_DATA`` does the same.
        name: What to call the data; the name of the file or folder if not given.
        on_texts: Called with how many texts have been encoded, and of how many.
        device: What an encoder computes on.

    Returns:
        The data with its splits.

    Raises:
        OSError: If the source cannot be read.
        TypeError: If an argument is of a type that is never right.
        ValueError: If no losses can be compared on what is read, or an argument does not fit it.

    >>> data = load_data("iris")
    >>> data.inputs.shape, data.classes, len(data.train), len(data.validation), len(data.test)
    (torch.Size([150, 4]), ('setosa', 'versicolor', 'virginica'), 96, 24, 30)
    """
    if isinstance(source, PreparedData):
        return source
    _check_arguments(source, text, seed, replicate, folder)
    tail = make_long_tail(imbalance)
    encoding = text_encoding(encoder, fine_tune, cache, on_texts, device)
    roles = Roles(target, true_label, split_column, groups)
    parts = {"": source, "validation": validation, "test": test}
    # What was read has no name here, so that it can be let go of while it is encoded.
    return _prepared(
        at_most(rows, with_labels(_together(_all_opened(parts, resize, folder), roles, name or _name(source))), seed),
        Shares(validation_share, test_share),
        (seed, replicate),
        encoding or text,
        tail,
    )


def _check_arguments(source: Any, text: Any, seed: Any, replicate: Any, folder: Any) -> None:
    if source is None:
        raise TypeError("load_data: source must be a path, a name, a data frame or arrays, got None.")
    if text not in _TEXTS:
        raise ValueError(f"load_data: text must be 'ngrams' or 'words', got {quote(text)}.")
    for name, number in (("seed", seed), ("replicate", replicate)):
        Limits(0, whole=True).check(name, number, owner="load_data")
    if folder is not None and not isinstance(folder, str | Path):
        raise TypeError(f"load_data: folder must be a path, got {quote(folder)}.")


def _checked_sides(resize: Any) -> int | tuple[int, int] | None:
    """Return one side, or height and width."""
    sides = resize if isinstance(resize, tuple | list) else (resize,)
    if resize is None:
        return None
    if len(sides) not in (1, 2):
        raise ValueError(f"load_data: resize must be one side, or height and width, got {quote(resize)}.")
    checked = [Limits(1, 1e6, whole=True).check("resize", side, owner="load_data") for side in sides]
    height, width = int(checked[0] or 0), int(checked[-1] or 0)
    return (height, width) if len(sides) == 2 else height


def _prepared(
    examples: Examples, shares: Shares, drawn: tuple[int, int], text: str | TextEncoding, tail: LongTail | None
) -> PreparedData:
    classes = classes_of(examples)
    splits, left_out = long_tailed(make_splits(classes.labels, examples.split, shares, *drawn), classes.labels, tail, sum(drawn))
    if len(np.unique(classes.labels[splits.train])) < 2:
        raise ValueError(f"{examples.name}: training rows must have two classes at least, got {len(splits.train)} rows of one.")
    for name, rows, share in (("validation", splits.validation, shares.validation), ("test", splits.test, shares.test)):
        if share and not len(rows):
            raise ValueError(f"{examples.name}: no class has enough rows, 3 at least, to leave any for the {name} split.")
    inputs = _by_column(examples.inputs)
    warnings = restating_notes(inputs, classes.labels, splits.train) if isinstance(inputs, dict) else []
    examples = replace(examples, inputs=np.empty(0))  # lets go of a table whose columns are encoded one by one
    encoded = _encoded(inputs, splits, text, examples.name)
    return PreparedData(
        examples.name,
        encoded.inputs,
        torch.from_numpy(classes.labels),
        classes.names,
        *splits,
        true_labels=None if classes.true_labels is None else torch.from_numpy(classes.true_labels),
        groups=class_groups(examples.groups, classes.names, examples.name),
        notes=(*warnings, *examples.notes, *left_out, *encoded.notes, *data_notes(encoded.inputs, classes, splits)),
        texts=encoded.texts,
    )


def _by_column(inputs: pd.DataFrame | Array) -> dict[str, pd.Series] | Array:
    return {column: inputs[column] for column in inputs.columns} if isinstance(inputs, pd.DataFrame) else inputs


def _encoded(inputs: dict[str, pd.Series] | Array, splits: Splits, text: str | TextEncoding, owner: str) -> Encoded:
    if isinstance(inputs, dict):
        return encode_table(inputs, splits.train, text=text, owner=owner)
    if isinstance(text, TextEncoding):
        raise ValueError(f"{owner}: an encoder needs texts, got numbers of shape {inputs.shape}.")
    return encode_array(inputs, splits.train, owner=owner, words=text == "words")


def _together(opened: Mapping[str, Table | Examples], roles: Roles, name: str) -> Examples:
    """Join a source with sources of their own for validation and test."""
    tables = {split: part for split, part in opened.items() if isinstance(part, Table)}
    arrays = {split: part for split, part in opened.items() if isinstance(part, Examples)}
    if tables and arrays:
        raise ValueError(f"{name}: all splits must be tables, or none, got {len(tables)} tables and {len(arrays)} others.")
    if tables:
        return _together_tables(tables, roles, name)
    for what, role in (("target", roles.target), ("true_label", roles.true_label), ("split_column", roles.split)):
        if role is not None:
            raise ValueError(f"{name}: {what} names a column of a table, and this is none, got {role!r}.")
    _check_given_once({split: part.split for split, part in arrays.items()}, name)
    examples = joined(arrays) if len(arrays) > 1 else arrays[""]
    return replace(examples, name=name, groups=examples.groups if roles.groups is None else roles.groups)


def _together_tables(tables: Mapping[str, Table], roles: Roles, name: str) -> Examples:
    first = tables[""].frame
    for split, table in tables.items():
        absent = [column for column in first.columns if column not in table.frame.columns and column != roles.split]
        if absent:
            raise ValueError(f"{name}: the {split} table must have the same columns, got none called {absent[0]!r}.")
    if len(tables) > 1:
        frame = pd.concat([table.frame for table in tables.values()], ignore_index=True)[list(first.columns)]
    else:
        frame = first.copy(deep=False)  # a copy of a large table takes as much memory again
    notes = tuple(dict.fromkeys(note for table in tables.values() for note in table.notes))
    extra = np.concatenate([np.full(len(table.frame), split, dtype=object) for split, table in tables.items()])
    if roles.split is not None and len(tables) > 1:
        column = column_named(frame, roles.split, name)
        frame[column] = frame[column].astype(object).where(extra == "", extra)
    examples = examples_of_table(Table(frame, notes, tables[""].target), roles, name)
    _check_given_once(
        {"": None if examples.split is None else examples.split[extra == ""], **dict.fromkeys(set(tables) - {""})}, name
    )
    return examples if examples.split is not None else replace(examples, split=extra)


def _check_given_once(splits: Mapping[str, Array | None], name: str) -> None:
    own = splits[""]
    for split in splits:
        if split and own is not None and np.any(own == split):
            raise ValueError(f"{name}: {split} is given, but the data has rows marked as {split} already.")


def _all_opened(
    parts: Mapping[str, Any], resize: int | tuple[int, int] | None, folder: str | Path | None
) -> dict[str, Table | Examples]:
    resize = _checked_sides(resize)
    return {split: _opened(part, resize, folder) for split, part in parts.items() if part is not None}


def _opened(source: Any, resize: int | tuple[int, int] | None, folder: str | Path | None) -> Table | Examples:
    if resize is not None and not _is_image_folder(source):
        raise ValueError(f"load_data: resize is for folders of images, got it for {_name(source)}.")
    if isinstance(source, str | Path):
        return _opened_path(source, resize, folder)
    if isinstance(source, pd.DataFrame):
        return tidy_columns(source, "table")
    if isinstance(source, Mapping):
        return examples_of_arrays(source, "arrays") if looks_like_arrays(source) else tidy_columns(pd.DataFrame(source), "table")
    if isinstance(source, tuple | list):
        return examples_of_pair(tuple(source), "arrays")
    raise TypeError(f"load_data: source must be a path, a name, a data frame or arrays, got {type(source).__name__}.")


def _is_image_folder(source: Any) -> bool:
    if not isinstance(source, str | Path):
        return False
    path = Path(source).expanduser()
    return path.is_dir() and not has_idx_files(path)  # whose images have one size already


def _opened_path(source: str | Path, resize: int | tuple[int, int] | None, folder: str | Path | None) -> Table | Examples:
    path = Path(source).expanduser()
    if has_idx_files(path):
        return idx_examples(path, path.name)
    if path.is_dir():
        return image_examples(path, path.name, resize)
    if not path.exists():
        return _named(source, path, folder)
    if not path.is_file():  # a pipe, which would never end, or a device
        raise ValueError(f"{path}: must be a file or a folder, got neither.")
    kind = Path(path.stem).suffix.lower() if path.suffix.lower() in _PACKED else path.suffix.lower()
    if kind == ".npz":
        return read_npz(path, path.name)
    if kind in TABLE_SUFFIXES:
        return read_table(path)
    readable, got = ", ".join((*TABLE_SUFFIXES, ".npz")), path.suffix or "no type"
    raise ValueError(f"{path}: must be a folder of images or IDX files, or a file of type {readable}, got {got}.")


def _named(source: str | Path, path: Path, folder: str | Path | None) -> Examples:
    """Read known data, unless the name is that of a file which is not there."""
    if isinstance(source, Path) or path.suffix or len(path.parts) > 1:
        beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        raise ValueError(f"{path}: no such file or folder{nearest(path.name, beside, alike=0.7)}")
    return read_known_set(source, None if folder is None else Path(folder))


def _name(source: Any) -> str:
    if isinstance(source, str | Path):
        return Path(source).name or str(source)
    return "table" if isinstance(source, pd.DataFrame) else "arrays"
