"""What arrays are for, by their names."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from lossmith.data.sources.column_roles import split_name
from lossmith.expressions.lists import quoted

__all__ = ["ArrayNames", "array_names", "role_of"]

_WORDS = {
    "inputs": ("x", "data", "images", "image", "inputs", "features"),
    "labels": ("y", "labels", "label", "target", "targets", "class", "classes"),
}
_LISTS_OF_CLASSES = ("class", "classes")
_TRUE = ("true", "clean", "truth", "gt")
_NOISY = ("noisy", "corrupted")
_OF_CLASSES_OR_COLUMNS = ("name", "names")  # not of examples


class ArrayNames(NamedTuple):
    """Names of arrays by what they hold, and those that hold nothing of use."""

    roles: dict[str, dict[str, str]]
    """For each split, ``""`` where the names say none, the names by role: inputs, labels, true_labels."""
    unused: list[str]


def array_names(names: Iterable[str], owner: str) -> ArrayNames:
    """Sort the names of arrays by split and role.

    Where there are labels that are called noisy, the plain ones beside them are the true labels.

    Args:
        names: The names.
        owner: Whom the error names.

    Returns:
        The names by role, and the others.

    Raises:
        ValueError: If several arrays have one role, or a split lacks inputs or labels.

    >>> array_names(["x", "y_noisy", "y", "ids"], "data.npz")
    ArrayNames(roles={'': {'inputs': 'x', 'labels': 'y_noisy', 'true_labels': 'y'}}, unused=['ids'])
    """
    names = list(names)
    found, unused = _by_role(names, owner)
    splits = {split: _with_noisy(roles, split, owner) for split, roles in found.items()}
    missing = [role for roles in splits.values() for role in ("inputs", "labels") if role not in roles]
    if not splits or missing or ("" in splits and len(splits) > 1) or ("" not in splits and "train" not in splits):
        raise ValueError(f"{owner}: needs X and y, or x_train, y_train and perhaps x_test, y_test, got {', '.join(names)}.")
    return ArrayNames(splits, unused)


def _by_role(names: list[str], owner: str) -> ArrayNames:
    """Find a role for every name; ``classes`` beside other labels is a list of them."""
    found: dict[str, dict[str, str]] = {}
    unused = []
    for name in sorted(names, key=lambda name: name.lower() in _LISTS_OF_CLASSES):
        split, role = role_of(name)
        roles = found.get(split, {})
        if role is None or (role in roles and name.lower() in _LISTS_OF_CLASSES):
            unused.append(name)
        elif role in roles:
            what = f"{role.replace('_', ' ')} must be in one array{_of(split)}"
            raise ValueError(f"{owner}: {what}, got {roles[role]!r} and {name!r}.")
        else:
            found.setdefault(split, {})[role] = name
    return ArrayNames(found, unused)


def role_of(name: object) -> tuple[str, str | None]:
    """Return the split and the role that a name tells.

    Args:
        name: The name of an array.

    Returns:
        One of the splits, or ``""``; and inputs, labels, true_labels or noisy_labels, or None.

    >>> role_of("x_train"), role_of("val_labels"), role_of("true_y"), role_of("ids")
    (('train', 'inputs'), ('validation', 'labels'), ('', 'true_labels'), ('', None))
    """
    words = [word for word in re.split(r"[^a-z]+", str(name).lower()) if word]
    split = next(filter(None, map(split_name, words)), "")
    if any(word in _OF_CLASSES_OR_COLUMNS for word in words):
        return split, None
    holds = {role: any(word in known for word in words) for role, known in _WORDS.items()}
    for role, known in (("true_labels", _TRUE), ("noisy_labels", _NOISY)):
        if any(word in known for word in words):
            return split, None if holds["inputs"] else role
    return split, next((role for role, does in holds.items() if does), None)


def _with_noisy(roles: dict[str, str], split: str, owner: str) -> dict[str, str]:
    """Take noisy labels for the labels, and plain ones beside them for the true ones."""
    if "noisy_labels" not in roles:
        return roles
    if "labels" in roles and "true_labels" in roles:
        every = [roles[role] for role in ("labels", "noisy_labels", "true_labels")]
        raise ValueError(f"{owner}: labels must be in two arrays at most{_of(split)}, noisy and true ones, got {quoted(every)}.")
    truth = roles.get("labels", roles.get("true_labels"))
    known = {"inputs": roles.get("inputs"), "labels": roles["noisy_labels"], "true_labels": truth}
    return {role: name for role, name in known.items() if name is not None}


def _of(split: str) -> str:
    return f" of the {split} split" if split else ""
