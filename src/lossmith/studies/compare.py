"""How a comparison begins: by settings, by the folder of a study that was stopped, or in Python."""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from torch import nn

from lossmith.data import PreparedData, load_data
from lossmith.expressions.quotes import quote
from lossmith.losses import ClassificationLoss
from lossmith.objectives.named_objectives import make_objective
from lossmith.objectives.objective import Objective
from lossmith.studies.brought import SPLITS, brought_data, read_data
from lossmith.studies.comparison import Comparison
from lossmith.studies.design.given_settings import settings_from
from lossmith.studies.design.setting_checks import split_list
from lossmith.studies.design.settings import LOSSES, OWN, Settings
from lossmith.studies.design.suitable_model import suitable_model
from lossmith.studies.design.usual_losses import usual_losses
from lossmith.studies.design.usual_training import suitable_augmentation
from lossmith.studies.own_training.own_comparison import OwnComparison, function_from
from lossmith.studies.prepared_comparison import PreparedComparison
from lossmith.studies.progress import progress_display, texts_display
from lossmith.studies.rehearsal import check_splits, rehearse
from lossmith.studies.storage.store import Store, StoreError
from lossmith.studies.storage.stored_study import source_again, stored_settings
from lossmith.studies.study import FILE, Study, open_study
from lossmith.training.checks import check_recipe
from lossmith.training.engines.workplace import Workplace, take_workplace
from lossmith.training.job import Build
from lossmith.training.own.trial_task import TrainFunction

__all__ = ["compare", "planned", "resumed"]

Loss = str | nn.Module | Objective
Losses = Loss | Iterable[Loss] | Mapping[str, Loss]

STUDIES = Path("studies")


def planned(settings: Settings, *, output: Path | None = None, workplace: Workplace | None = None) -> Comparison:
    """Return the comparison that the settings describe, with its data read and everything checked, but nothing trained.

    Args:
        settings: What the study is to do.
        output: Its folder; by default one below ``studies`` that is free.
        workplace: Where it is trained; by default on this machine.

    Returns:
        The comparison, ready to train.

    Raises:
        OSError: If the data cannot be read.
        ValueError: If a setting does not suit the data, or the folder holds another study.
    """
    settings.check_objectives({})
    workplace = workplace or Workplace()
    engine = workplace.make_engine()
    if settings.is_own:
        return _by_function(settings, function_from(settings.data), output, engine=engine)
    with texts_display() as on_texts:
        data = load_data(settings.data, **settings.loading, on_texts=on_texts, device=workplace.device_here())
    return _with_model(settings, data, output, engine=engine)


def _with_model(settings: Settings, data: PreparedData, output: Path | None, **own: Any) -> Comparison:
    return _placed(output, Path(data.name).stem, lambda folder: _in_folder(settings, data, folder, **own))


def _placed(output: Path | None, name: str, make: Callable[[Path], Comparison]) -> Comparison:
    """Return the comparison in its folder: the one given, or the first of its name that is free or holds the same study."""
    first = output or STUDIES / name
    for number in count(2):
        try:
            return make(first if number == 2 else first.with_name(f"{first.name}-{number - 1}"))
        except StoreError:
            if output:
                raise
    raise AssertionError("there is always a free folder")


def _by_function(settings: Settings, function: TrainFunction, output: Path | None, **own: Any) -> Comparison:
    """Return the comparison in which a function of the user's own trains."""
    whole = replace(settings, losses=settings.losses or LOSSES, references=False)
    if not settings.losses and not settings.num_classes:
        whole = replace(whole, losses=tuple(loss for loss in LOSSES if "logit-bias" not in loss))
    name = getattr(function, "__name__", type(function).__name__)
    return _placed(output, name, lambda folder: _own_in_folder(whole, function, folder, **own))


def _own_in_folder(settings: Settings, function: TrainFunction, folder: Path, **own: Any) -> Comparison:
    stored = stored_settings(Store(folder / FILE)) if (folder / FILE).is_file() else None
    known = settings if stored is None else settings.as_before(stored)
    comparison = OwnComparison(settings=known, folder=folder, function=function, **own)
    comparison.check_folder()
    return comparison


def _in_folder(settings: Settings, data: PreparedData, folder: Path, **own: Any) -> Comparison:
    """Return the comparison with everything filled in that was left open: as the folder has it, or as it fits into the time."""
    stored = stored_settings(Store(folder / FILE)) if (folder / FILE).is_file() else None
    known = settings if stored is None else settings.as_before(stored)
    rows = min(len(data.train), known.train_rows or len(data.train))
    losses = known.losses or usual_losses(known, data).losses
    whole = known.completed(suitable_model(data), rows, suitable_augmentation(data.name), losses)
    check_recipe(whole.recipe, data, own_model=own.get("build") is not None)
    check_splits(whole, data)
    comparison = PreparedComparison(settings=whole, data=data, folder=folder, **own)
    comparison.check_folder()
    if stored is None:
        rehearse(whole, data, comparison.objectives(), comparison.build)
        comparison.make_plan(settings.recipe)
    return comparison


def resumed(folder: Path, *, workplace: Workplace | None = None) -> Comparison:
    """Return the comparison of a study that was stopped.

    Args:
        folder: The folder of the study.
        workplace: Where it is trained; by default on this machine, wherever it was begun.

    Returns:
        The comparison, ready to train further.

    Raises:
        ValueError: If there is no study, it was begun in Python with parts of its own, or its data has changed.
    """
    study = open_study(folder)
    if study.is_old:
        raise ValueError(f"{folder} is a study of an older lossmith, which can be read but not gone on with; compare anew.")
    if study.store.meta("from_python"):
        brought = study.store.meta("from_python")
        raise ValueError(f"{folder} was begun in Python with {brought}; resume it there, by the same call of compare.")
    engine = (workplace or Workplace()).make_engine()
    if study.settings.is_own:
        function = function_from(source_again(study.store, study.settings)[0])
        return OwnComparison(settings=study.settings, folder=study.folder, function=function, engine=engine)
    source, reading = source_again(study.store, study.settings)
    own = {"folder": study.folder, "engine": engine, "source": source, "reading": reading}
    return PreparedComparison(settings=study.settings, data=study.load(), **own)


def compare(
    data: Any = None,
    *,
    losses: Losses | None = None,
    noise: Iterable[Any] | float | str | None = None,
    model: str | Build | None = None,
    train: TrainFunction | None = None,
    seeds: int | None = None,
    output: str | Path | None = None,
    workers: int | None = None,
    engine: str = "local",
    device: str = "auto",
    progress: bool = True,
    **settings: Any,
) -> Study:
    """Train losses on data, under label noise, over seeds, and return the study.

    ``data`` is whatever :func:`lossmith.data.load_data` reads: a file, a folder, the name of a data set, a data frame, arrays.
    ``losses`` are expressions, objectives or modules of your own, ``model`` is a name or a function ``(input shape, number of
    classes) -> module``. Further settings are those of ``lossmith compare``, with underscores. Runs that the study in ``output``
    has finished already are not trained again.

    Args:
        data: A file, a folder, the name of a data set, a data frame, or arrays; by default digits, or the data of the ``recipe``.
        losses: What is compared, by name or as a list; the first is the baseline; by default seven, less those that were behind
            ``ce`` on data like this.
        noise: Kinds or rates of label noise.
        model: The name of a model, or a function that makes one.
        train: A training of your own in the place of data and model: a function from a :class:`lossmith.training.Trial` to a
            dictionary of predictions or measures.
        seeds: How many replicates of the whole procedure; by default as many as fit, five at least.
        output: The folder of the study; by default one below ``studies`` that is free.
        workers: How many processes train; by default one a core.
        engine: ``local``, processes of this machine, or ``ray``, a cluster (``ray_address``).
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1`` or ``mps``.
        progress: Whether to show a progress bar.
        **settings: All others, such as ``recipe``, ``trials``, ``metric``, ``minutes``, ``epochs`` or ``keep``, and
            ``ray_address``, ``trial_cpus`` and ``trial_gpus`` of where it is trained.

    Returns:
        The study, with its results.

    Raises:
        OSError: If the data cannot be read, or the folder cannot be written to.
        TypeError: If a loss or the model is of a kind that cannot be trained.
        ValueError: If a setting is unknown or does not suit the data, or ``output`` holds another study.

    >>> study = compare("digits", losses=["ce", "gce"], noise=[0.4], seeds=3, epochs=20)  # doctest: +SKIP
    >>> print(study.table())  # doctest: +SKIP
    """
    named = _named_losses(losses)
    _check_brought(named, model)
    _check_output(output)
    data = _checked_data(data, train, {"model": model, **{name: settings.get(name) for name in SPLITS}})
    own = {name: make_objective(loss) if isinstance(loss, str) else loss for name, loss in named.items() if loss != name}
    if train is None:
        data, settings = brought_data(data, settings)
    workplace, others = take_workplace({"workers": workers, "engine": engine, "device": device, **settings})
    given = {"losses": list(named) or None, "noise": noise, "seeds": seeds, **others}
    plan = _plan(data, model, train, given)
    plan.check_objectives(own)
    where = {"output": Path(output) if output else None, "engine": workplace.make_engine()}
    brought: dict[str, Any] = {"losses": own, **where}
    if plan.is_own:
        comparison = _by_function(plan, train or function_from(plan.data), **brought)
    else:
        source = plan.data if data is None else data
        with texts_display() if progress else nullcontext() as on_texts:
            read = read_data(source, plan.loading, on_texts=on_texts, device=workplace.device_here())
        comparison = _with_model(plan, read, build=model if callable(model) else None, source=source, **brought)
    with progress_display() if progress else nullcontext() as display:
        return comparison.train(display)


def _checked_data(data: Any, train: Any, others: Mapping[str, Any]) -> Any:
    """Return what is compared on: nothing where a function trains, which has data and model of its own."""
    if train is None:
        return data
    if not callable(train):
        raise TypeError(f"compare: train must be a function of a trial, got a {type(train).__name__}.")
    for name, given in {"data": data, **others}.items():
        if given is not None:
            raise TypeError(f"compare: {name} belongs to train where a function trains, got {quote(given)}.")
    return ""


def _plan(data: Any, model: Any, train: Any, given: Mapping[str, Any]) -> Settings:
    """Return the settings of what was given in Python."""
    name = None if data is None else os.fspath(data) if isinstance(data, str | Path) else ""
    of_model = OWN if train is not None else model.__name__ if callable(model) else model
    values = {"data": name, "model": of_model, **given}
    return settings_from({name: value for name, value in values.items() if value is not None})


def _check_brought(losses: Mapping[str, Any], model: Any) -> None:
    """Raise an error that says what was expected of losses and a model of the user's own."""
    for name, loss in losses.items():
        if not isinstance(loss, str | nn.Module | Objective):
            raise TypeError(
                f"compare: losses must be expressions, objectives or modules, got {quote(name)}, a {type(loss).__name__}."
            )
    if isinstance(model, nn.Module):
        expected = "a name or a function (input shape, number of classes) -> module"
        raise TypeError(f"compare: model must be {expected}, as every run begins with a new one, got a {type(model).__name__}.")


def _check_output(output: object) -> None:
    if output is not None and not isinstance(output, str | Path):
        raise TypeError(f"compare: output must be the path of a folder, got {quote(output)}.")


def _named_losses(losses: Losses | None) -> dict[str, Loss]:
    """Return the losses by name: a module of our own is known by its expression, another one by its class."""
    if losses is None:
        return {}
    if isinstance(losses, str):
        losses = split_list(losses)
    elif isinstance(losses, nn.Module | Objective):
        losses = [losses]
    elif not isinstance(losses, Iterable):
        raise TypeError(f"compare: losses must be expressions, objectives or modules, got {quote(losses)}.")
    named = dict(losses) if isinstance(losses, Mapping) else {_name_of(loss): loss for loss in losses}
    if not named:
        raise ValueError("compare: losses must name at least one, got none; leave them out for the usual seven.")
    return {name: repr(loss) if isinstance(loss, ClassificationLoss) else loss for name, loss in named.items()}


def _name_of(loss: object) -> str:
    return str(loss) if isinstance(loss, str | Objective) else repr(loss).split("\n")[0]
