"""What a training function of the user's own returned, checked and in the form that a study keeps."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lossmith.data.noise.label_noise import RealisedNoise
from lossmith.expressions.nearest import nearest
from lossmith.expressions.quotes import quote
from lossmith.losses import ClassificationLoss
from lossmith.training.own.trial import Curves, Trial
from lossmith.training.recipe import CURVES, Run, Trained

__all__ = ["OwnTrained", "Predictions", "failed", "outcome_of"]

PREDICTIONS = ("logits", "probabilities", "labels")
VALIDATION = "validation_"
NUMBERS = ("accuracy", "top5", "balanced_accuracy", "macro_f1", "nll", "ece", "brier")
"""The measures that may be given by name, and with ``validation_`` in front."""
ROWS = "train_rows"
TEST_ROWS = "test_rows"
_KEYS = (
    *PREDICTIONS,
    *(VALIDATION + name for name in PREDICTIONS),
    *NUMBERS,
    *(VALIDATION + name for name in NUMBERS),
    ROWS,
    TEST_ROWS,
    "classes",
)
_SUM_OF_PROBABILITIES = 1e-3  # half precision rounds a sum of thousands by no more
_LARGEST = {"nll": math.inf, "brier": 2.0}
"""The measures that are no shares."""
_NOTHING = np.empty((0, 0), np.float32)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Logits or probabilities of some rows, and their labels."""

    logits: np.ndarray
    """``(rows, classes)``; ``(0, 0)`` where only probabilities are known."""
    probabilities: np.ndarray
    labels: np.ndarray


@dataclass
class OwnTrained(Trained):
    """What a trial of the user's own training gave."""

    test_labels: np.ndarray | None = None
    """Of the test rows, where predictions are known."""
    validation_labels: np.ndarray | None = None
    numbers: dict[str, float] = field(default_factory=dict)
    """Measures that were given by name."""
    noise_made: RealisedNoise | None = None
    noisy_labels: np.ndarray | None = None
    train_rows: int = 0
    """How many rows were learnt from, validation rows among them; 0 where that was not said."""
    test_rows: np.ndarray | None = None
    """The numbers of the test rows in the data, by which replicates know what they share; None where that was not said."""
    classes: tuple[str, ...] = ()
    failure: str = ""
    """In one line why there is nothing to judge."""


def failed(run: Run, why: str, curves: Curves | None = None, seconds: float = 0.0) -> OwnTrained:
    """Return what is kept of a trial that gave nothing to judge.

    Args:
        run: The trial.
        why: The reason, which is cut to one line.
        curves: What it reported before.
        seconds: How long it took.

    Returns:
        A run that counts as diverged, with its reason.
    """
    line = " ".join(why.split())[:500]
    return OwnTrained(run, curves or {name: [] for name in CURVES}, 0, _NOTHING, _NOTHING, seconds, diverged=True, failure=line)


def outcome_of(trial: Trial, returned: Any, seconds: float) -> OwnTrained:
    """Return what a trial gave, checked.

    Args:
        trial: The trial, with all that it reported.
        returned: What the function returned.
        seconds: How long it took.

    Returns:
        Its predictions and numbers.

    Raises:
        TypeError: If it is no dictionary.
        ValueError: If a name is unknown, or what it stands for cannot be.
    """
    if not isinstance(returned, Mapping):
        expected = "a dictionary of logits or probabilities with labels, or of measures by name"
        raise TypeError(f"train must return {expected}, got {quote(returned)}.")
    for name in returned:
        if name not in _KEYS:
            raise ValueError(f"train returned the unknown {quote(name)}{nearest(str(name), _KEYS)}")
    test = _predictions(returned, "", trial.loss)
    if test is None and "accuracy" not in returned:
        raise ValueError(
            f"train must return predictions with labels, or an accuracy, got only {', '.join(returned) or 'nothing'}."
        )
    validation = _predictions(returned, VALIDATION, trial.loss)
    if trial.noise_made is None and trial.noise != "none":
        raise ValueError(f"train never called trial.labels, so that the noise {trial.noise} was not made.")
    empty = Predictions(_NOTHING, _NOTHING, np.empty(0, np.int64))
    of_test, of_validation = test or empty, validation or empty
    return OwnTrained(
        trial.run,
        trial.curves,
        max(len(trial.curves["train_loss"]), 1),
        of_test.logits,
        of_test.probabilities,
        seconds,
        of_validation.probabilities,
        test_labels=None if test is None else of_test.labels,
        validation_labels=None if validation is None else of_validation.labels,
        numbers=_numbers(returned),
        noise_made=trial.noise_made,
        noisy_labels=trial.noisy_labels,
        train_rows=_row_count(returned.get(ROWS, 0)),
        test_rows=_row_numbers(returned.get(TEST_ROWS), len(of_test.labels)),
        classes=tuple(map(str, returned.get("classes", ()))),
    )


def _numbers(returned: Mapping[str, Any]) -> dict[str, float]:
    names = [name for name in returned if name.removeprefix(VALIDATION) in NUMBERS]
    numbers = {name: _finite(name, returned[name]) for name in names}
    for name, number in numbers.items():
        largest = _LARGEST.get(name.removeprefix(VALIDATION), 1.0)
        if not 0 <= number <= largest:
            raise ValueError(f"train must return {name} in [0, {largest:g}], got {number:g}.")
    return numbers


def _finite(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"train must return a number for {name}, got {quote(value)}.") from None
    if not math.isfinite(number):
        raise ValueError(f"train must return a finite number for {name}, got {number}.")
    return number


def _row_count(value: Any) -> int:
    number = _finite(ROWS, value)
    if number < 0 or not number.is_integer():
        raise ValueError(f"train must return a whole number >= 0 for {ROWS}, got {quote(value)}.")
    return int(number)


def _row_numbers(value: Any, rows: int) -> np.ndarray | None:
    if value is None:
        return None
    array = _array(TEST_ROWS, value)
    if array.shape != (rows,) or array.dtype.kind not in "iu" or (rows and array.min() < 0):
        raise ValueError(f"train must return {rows} row numbers for {TEST_ROWS}, got {array.dtype} of shape {array.shape}.")
    return array.astype(np.int64)


def _predictions(returned: Mapping[str, Any], prefix: str, loss: nn.Module) -> Predictions | None:
    """Return the predictions of the test rows, or of the validation rows; None where there are none."""
    given = {name: returned[prefix + name] for name in PREDICTIONS if returned.get(prefix + name) is not None}
    if not given.keys() & {"logits", "probabilities"}:
        return None
    if "labels" not in given:
        raise ValueError(f"train must return {prefix}labels with {prefix}{next(iter(given))}, got none.")
    labels = _array(prefix + "labels", given["labels"])
    logits = _matrix(prefix + "logits", given["logits"]) if "logits" in given else _NOTHING
    if "probabilities" in given:
        probabilities = _distributions(prefix + "probabilities", given["probabilities"])
    else:
        probabilities = _probabilities_of(logits, loss)
    _check_labels(prefix, labels, probabilities)
    if len(logits) and logits.shape != probabilities.shape:
        raise ValueError(
            f"train must return {prefix}logits of shape {probabilities.shape}, as the probabilities, got {logits.shape}."
        )
    return Predictions(logits, probabilities, labels.astype(np.int64))


def _probabilities_of(logits: np.ndarray, loss: nn.Module) -> np.ndarray:
    """Return the probabilities that belong to the loss."""
    tensor = torch.from_numpy(logits)
    with torch.no_grad():
        found: Tensor = loss.predict_proba(tensor) if isinstance(loss, ClassificationLoss) else torch.softmax(tensor, 1)
    return found.float().numpy()


def _array(name: str, value: Any) -> np.ndarray:
    try:
        if isinstance(value, Tensor):
            tensor = value.detach().cpu()
            return tensor.float().numpy() if tensor.is_floating_point() else tensor.numpy()
        return np.asarray(value)
    except (TypeError, ValueError):
        raise ValueError(f"train must return an array for {name}, got {quote(value)}.") from None


def _matrix(name: str, value: Any) -> np.ndarray:
    array = _array(name, value)
    if array.ndim != 2 or array.shape[1] < 2 or not len(array) or array.dtype.kind not in "fiu":
        raise ValueError(f"train must return numbers (rows, classes) for {name}, got {array.dtype} of shape {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"train must return finite {name}, got {int((~np.isfinite(array)).sum())} that are not.")
    return np.ascontiguousarray(array, dtype=np.float32)


def _distributions(name: str, value: Any) -> np.ndarray:
    array = _matrix(name, value)
    if array.min() < 0 or abs(array.sum(1) - 1).max() > _SUM_OF_PROBABILITIES:
        raise ValueError(f"train must return {name} >= 0 that sum to 1 in every row, got sums up to {array.sum(1).max():g}.")
    return np.asarray(array / array.sum(1, keepdims=True))


def _check_labels(prefix: str, labels: np.ndarray, probabilities: np.ndarray) -> None:
    rows, classes = probabilities.shape
    whole = labels.dtype.kind in "iu" or (labels.dtype.kind == "f" and np.array_equal(labels, np.floor(labels)))
    if labels.shape != (rows,) or not whole:
        raise ValueError(
            f"train must return {rows} class indices for {prefix}labels, got {labels.dtype} of shape {labels.shape}."
        )
    if labels.min() < 0 or labels.max() >= classes:
        raise ValueError(f"train must return {prefix}labels in [0, {classes}), got {int(labels.min())} to {int(labels.max())}.")
