"""What a study's file says of the study, each part checked against the others; and what can be made again from it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from lossmith.data import PreparedData
from lossmith.expressions.limits import is_whole
from lossmith.objectives.named_objectives import make_objective
from lossmith.objectives.objective import Objective
from lossmith.studies.brought import read_data
from lossmith.studies.design.settings import Settings
from lossmith.studies.design.trials import expression_of
from lossmith.studies.storage.store import Store
from lossmith.studies.storage.stored_content import StoreError, check_kinds, check_texts
from lossmith.studies.storage.study_file import OLD_FORMAT
from lossmith.training.job import Build
from lossmith.training.models.backbone import Backbone
from lossmith.training.models.named_models import backbone_for

__all__ = [
    "data_again",
    "planned_runs",
    "source_again",
    "stored_data",
    "stored_settings",
    "stored_test_labels",
    "trained_model",
]

PATHS = ("validation", "test", "folder", "encoder")
"""The settings of the data that name files or folders, besides the data itself."""


def stored_settings(store: Store) -> Settings:
    """Return the settings of a study.

    Args:
        store: The study's file.

    Returns:
        The settings it was begun with.

    Raises:
        StoreError: If they are damaged.
    """
    stored = store.meta("settings")
    with store.explained("table meta, settings"):
        settings = Settings.from_json(stored)
        check_texts("data and losses", (settings.data, *settings.losses))
        return settings


def stored_data(store: Store) -> dict[str, Any]:
    """Return what is known of a study's data without reading it again.

    Args:
        store: The study's file.

    Returns:
        Its source, name, rows of each split, classes and notes.

    Raises:
        StoreError: If any of it is damaged.
    """
    about: dict[str, Any] = store.meta("data")
    with store.explained("table meta, data"):
        check_kinds(about, {"source": str, "name": str, "rows": dict, "classes": list, "notes": list})
        check_kinds(about["rows"], dict.fromkeys(("train", "validation", "test"), int))
        for name in ("classes", "notes"):
            check_texts(name, about[name])
        rows = about.setdefault("class_rows", [])
        check_kinds(about, {"class_rows": list})
        if rows and (len(rows) != len(about["classes"]) or not all(is_whole(each) and each >= 0 for each in rows)):
            raise ValueError("class_rows must be a whole number for each class")
    return about


def stored_test_labels(store: Store, num_classes: int, seed: int) -> np.ndarray:
    """Return the true classes of the test split of a replicate.

    Args:
        store: The study's file.
        num_classes: The number of classes of the study's data.
        seed: The replicate.

    Returns:
        A class for each row of the split.

    Raises:
        StoreError: If there are none, or others than the data has.
    """
    stored = store.replicate(seed)
    if stored is None:
        raise StoreError(f"{store.file} has no replicate {seed}.")
    with store.explained(f"table replicate, seed {seed}"):
        if not num_classes and not len(stored.labels):  # a training of the user's own that returns measures alone
            return stored.labels
        if not len(stored.labels) or not (0 <= stored.labels.min() <= stored.labels.max() < num_classes):
            raise ValueError(f"labels must be classes from 0 to {num_classes - 1}")
    return stored.labels


def planned_runs(store: Store, settings: Settings) -> list[dict[str, Any]]:
    """Return the finished runs of a study, each of which its settings must know.

    Args:
        store: The study's file.
        settings: Those of the study.

    Returns:
        The runs, in the order in which they were finished.

    Raises:
        StoreError: If a run is damaged, or is not among the settings.
    """
    runs = store.runs()
    for run in runs:
        with store.explained(f"table run, run {run['id']}"):
            noises = {*settings.noise, *settings.tuned_noise}
            if run["loss"] not in settings.losses or run["noise"] not in noises or run["seed"] < 0:
                raise ValueError("its loss, noise or seed is not among the settings of the study")
            if missing := {"accuracy", "validation_accuracy", "validation_score"} - run.keys():
                raise ValueError(f"measures must hold {missing.pop()}")
    return runs


def data_again(store: Store, settings: Settings, source: Any = None) -> PreparedData:
    """Read the data of a study again, as its first replicate has it, and make sure that it is the same.

    Args:
        store: The study's file.
        settings: Those of the study.
        source: What to read it from, where that is at hand; otherwise what the settings name.

    Returns:
        The data with its splits.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it has changed since, or was given in Python.
    """
    folder = store.file.parent
    source, settings = source_again(store, settings, source)
    data = read_data(source, settings.loading)
    if data.fingerprint() != store.meta("fingerprint"):
        differently = ", or this lossmith reads it differently" if store.format == OLD_FORMAT else ""
        raise ValueError(f"{folder}: the data {settings.data!r} has changed since the study began{differently}.")
    return data


def source_again(store: Store, settings: Settings, source: Any = None) -> tuple[Any, Settings]:
    """Return what to read the data of a study from, wherever the program runs now.

    Args:
        store: The study's file.
        settings: Those of the study.
        source: Where the data is at hand; otherwise it is what the settings name.

    Returns:
        The source, and the settings with the paths that have been found.

    Raises:
        ValueError: If the data was given in Python, and is not at hand.
    """
    if source is None and not settings.data:
        raise ValueError(f"{store.file.parent}: the study was begun in Python with data of its own, which it does not hold.")
    loading = {name: _found(store, value) if name in PATHS else value for name, value in settings.loading.items()}
    return _found(store, settings.data) if source is None else source, replace(settings, loading=loading)


def _found(store: Store, value: Any) -> Any:
    """Return a file by its place below the directory that the study was begun in, if it is there; else what was given."""
    place = Path(store.meta("directory") or "", value) if isinstance(value, str) else None
    return str(place) if place is not None and place.exists() else value


def trained_model(store: Store, settings: Settings, run: int, data: PreparedData, build: Build | None = None) -> nn.Module:
    """Return the trained model of a run, in evaluation mode, where the study keeps weights.

    Args:
        store: The study's file.
        settings: Those of the study.
        run: The number of the run.
        data: That of the run's replicate, which says how many inputs and classes there are.
        build: The model of the user's own, where the study has one.

    Returns:
        The module, which turns inputs into logits.

    Raises:
        StoreError: If there is no such run, no weights were kept, or they do not fit the model.
        ValueError: If the model was the user's own, and is not at hand.
    """
    weights = store.weights(run)
    network = _untrained_network(store, settings, data) if build is None else build(data.input_shape, data.num_classes)
    if build is None or isinstance(network, Backbone):
        network = _objective_of(store, settings, run).build(network, data.num_classes).model
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise StoreError(f"{store.file}: table array, weights of run {run} do not fit the model: {error}") from error
    return network.eval()


def _untrained_network(store: Store, settings: Settings, data: PreparedData) -> nn.Module:
    if "a model of its own" in (store.meta("from_python") or ""):
        raise ValueError(f"{store.file.parent}: the study was begun in Python with a model of its own, which it does not hold.")
    return backbone_for(settings.recipe.model, data)


def _objective_of(store: Store, settings: Settings, run: int) -> Objective:
    found = next(each for each in planned_runs(store, settings) if each["id"] == run)
    brought = found["loss"] in (store.meta("brought") or {})
    # A loss of the user's own has a plain final layer.
    return make_objective("ce" if brought else expression_of(found["loss"], found["parameters"]))
