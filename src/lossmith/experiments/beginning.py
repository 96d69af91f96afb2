"""How a comparison begins: by settings, by the folder of a study that was stopped, or in Python."""

import os
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from typing import Any

from torch import nn

from lossmith.data import PreparedData, load_data
from lossmith.experiments.checks import check_recipe
from lossmith.experiments.comparison import Comparison
from lossmith.experiments.job import Build
from lossmith.experiments.progress import progress_display
from lossmith.experiments.rehearsal import check_splits, rehearse
from lossmith.experiments.settings import Settings, settings_from, split_list
from lossmith.experiments.store import StoreError
from lossmith.experiments.study import Study, open_study
from lossmith.losses import ClassificationLoss
from lossmith.objectives import Objective, make_objective

__all__ = ["compare", "planned", "resumed"]

Loss = str | nn.Module | Objective
Losses = Loss | Iterable[Loss] | Mapping[str, Loss]

STUDIES = Path("studies")
ROOM_FOR_CONVOLUTIONS = 16  # pixels a side


def planned(settings: Settings, *, output: Path | None = None, workers: int | None = None) -> Comparison:
    """Return the comparison that the settings describe, with its data read and everything checked, but nothing trained."""
    settings.check_objectives({})
    data = load_data(settings.data, **settings.loading)
    return _with_model(settings, data, output, workers=workers)


def _with_model(settings: Settings, data: PreparedData, output: Path | None, **own: Any) -> Comparison:
    settings = settings.completed(suitable_model(data), data.num_classes)
    check_recipe(settings.recipe, data, own_model=own.get("build") is not None)
    check_splits(settings, data)
    comparison = Comparison(settings, data, output or STUDIES / Path(data.name).stem, **own)
    rehearse(settings, data, comparison.objectives(), comparison.build)
    if not output:
        return _in_free_folder(comparison)
    comparison.check_folder()
    return comparison


def suitable_model(data: PreparedData) -> str:
    """Return the model that suits the data: an lstm for words, a small cnn for images that have room for it, else an mlp."""
    if not data.inputs.is_floating_point():
        return "lstm"
    return "small-cnn" if data.inputs.dim() == 4 and min(data.input_shape[1:]) >= ROOM_FOR_CONVOLUTIONS else "mlp"


def _in_free_folder(comparison: Comparison) -> Comparison:
    """Return the comparison in the first folder of its name that is free or holds the very same study."""
    first = comparison.folder
    for number in count(2):
        try:
            comparison.check_folder()
        except StoreError:
            comparison.folder = first.with_name(f"{first.name}-{number}")
        else:
            break
    return comparison


def resumed(folder: Path, *, workers: int | None = None) -> Comparison:
    """Return the comparison of a study that was stopped."""
    study = open_study(folder)
    if study.store.meta("from_python"):
        brought = study.store.meta("from_python")
        raise ValueError(f"{folder} was begun in Python with {brought}; resume it there, by the same call of compare.")
    return Comparison(study.plan, study.load(), study.folder, workers=workers)


def compare(
    data: Any = "digits",
    *,
    losses: Losses | None = None,
    noise: Iterable[Any] | float | str | None = None,
    model: str | Build | None = None,
    seeds: int | None = None,
    output: str | Path | None = None,
    workers: int | None = None,
    progress: bool = True,
    **settings: Any,
) -> Study:
    """Train losses on data, under label noise, over seeds, and return the study.

    ``data`` is whatever :func:`lossmith.data.load_data` reads: a file, a folder, the name of a data set, a data frame, arrays.
    ``losses`` are expressions, objectives or modules of your own, ``model`` is a name or a function ``(input shape, number of
    classes) -> module``. Further settings are those of ``lossmith compare``, with underscores. Runs that the study in ``output``
    has finished already are not trained again.

    >>> study = compare("digits", losses=["ce", "gce"], noise=[0.4], seeds=3, epochs=20)  # doctest: +SKIP
    >>> print(study.table())  # doctest: +SKIP
    """
    named = _named_losses(losses)
    _check_brought(named, model)
    own = {name: make_objective(loss) if isinstance(loss, str) else loss for name, loss in named.items() if loss != name}
    build = model if callable(model) else None
    given = {
        "data": os.fspath(data) if isinstance(data, str | Path) else "",
        "losses": list(named) or None,
        "noise": noise,
        "model": build.__name__ if build else model,
        "seeds": seeds,
        **settings,
    }
    plan = settings_from({name: value for name, value in given.items() if value is not None})
    plan.check_objectives(own)
    read = load_data(data, **plan.loading)
    comparison = _with_model(plan, read, Path(output) if output else None, losses=own, build=build, workers=workers)
    with progress_display() if progress else nullcontext() as display:
        return comparison.train(display)


def _check_brought(losses: Mapping[str, Any], model: Any) -> None:
    """Raise an error that says what was expected of losses and a model of the user's own."""
    for name, loss in losses.items():
        if not isinstance(loss, str | nn.Module | Objective):
            raise TypeError(f"compare: losses must be expressions, objectives or modules, got {name!r}, a {type(loss).__name__}.")
    if isinstance(model, nn.Module):
        expected = "a name or a function (input shape, number of classes) -> module"
        raise TypeError(f"compare: model must be {expected}, as every run begins with a new one, got a {type(model).__name__}.")


def _named_losses(losses: Losses | None) -> dict[str, Loss]:
    """Return the losses by name: a module of our own is known by its expression, another one by its class."""
    if losses is None:
        return {}
    if isinstance(losses, str):
        losses = split_list(losses)
    elif isinstance(losses, nn.Module | Objective):
        losses = [losses]
    named = dict(losses) if isinstance(losses, Mapping) else {_name_of(loss): loss for loss in losses}
    if not named:
        raise ValueError("compare: losses must name at least one, got none; leave them out for the usual ten.")
    return {name: repr(loss) if isinstance(loss, ClassificationLoss) else loss for name, loss in named.items()}


def _name_of(loss: object) -> str:
    return str(loss) if isinstance(loss, str | Objective) else repr(loss).split("\n")[0]
