"""The catalogue of losses and objectives, written for people."""

import inspect
import re
from collections.abc import Callable
from textwrap import shorten, wrap

from lossmith.commands.printing.colour import painted
from lossmith.expressions.nearest import nearest
from lossmith.expressions.printed_form import printed_call
from lossmith.losses import LOSSES, ClassificationLoss, WeightedSum, make_loss
from lossmith.losses.catalogue import OTHER_NAMES
from lossmith.losses.catalogue.purposes import losses_by_purpose
from lossmith.objectives.named_objectives import OBJECTIVES, PRESETS_OF_A_LOSS, make_objective
from lossmith.objectives.named_schedules import SCHEDULES, make_schedule
from lossmith.objectives.published import DATA_SETS, PRESETS
from lossmith.recipes import RECIPES, PublishedRecipe

__all__ = ["description", "listing"]

NARROW = 30  # columns, less than which tell nothing


def listing(columns: int = 160) -> str:
    """Return a line of at most ``columns`` characters for each loss, by its purpose, objective, schedule and recipe."""
    written_out = columns >= 120
    purposes = {
        _heading(purpose): [(repr(LOSSES[name]()) if written_out else name, _summary(LOSSES[name])) for name in names]
        for purpose, names in losses_by_purpose().items()
    }
    objectives = [(_call(name) if written_out else name, _summary(factory)) for name, factory in OBJECTIVES.items()]
    schedules = [(name, _summary(schedule).removeprefix("Return ")) for name, schedule in SCHEDULES.items()]
    recipes = [(name, recipe.summary) for name, recipe in RECIPES.items()]
    groups = {
        **purposes,
        "Objectives, for lossmith.make_objective, which takes every loss, too": objectives,
        "Schedules of parameters, for scheduled(LOSS, PARAMETER=SCHEDULE) and lossmith.LossScheduler": schedules,
        "Recipes of papers, for lossmith compare --recipe NAME": recipes,
    }
    width = max(len(written) for rows in (*purposes.values(), objectives) for written, _ in rows)
    return "\n\n".join(f"{_title(title, columns)}\n{_lines(rows, width, columns)}" for title, rows in groups.items())


def _heading(purpose: str) -> str:
    return f"Losses {purpose}"


def _title(title: str, columns: int) -> str:
    return "\n".join(painted(line, "bold") for line in wrap(f"{title}:", columns))


def _lines(rows: list[tuple[str, str]], width: int, columns: int) -> str:
    """Return a line for each row; where a terminal is too narrow for names and words side by side, the words below."""
    width = max(width, *(len(name) for name, _ in rows))
    room = columns - width - 2
    if room < NARROW:
        return "\n".join(f"{painted(name, 'cyan')}\n  {shorten(words, columns - 2, placeholder=' ...')}" for name, words in rows)
    return "\n".join(
        f"{painted(name, 'cyan')}{' ' * (width - len(name))}  {shorten(words, room, placeholder=' ...')}" for name, words in rows
    )


def _call(objective: str) -> str:
    """Return the name of an objective with the parameters that have a default."""
    parameters = inspect.signature(OBJECTIVES[objective]).parameters.values()
    return printed_call(objective, {each.name: each.default for each in parameters if isinstance(each.default, int | float)})


def description(expression: str) -> str:
    """Return the documentation of one loss with its parameters, their values and ranges, or of an objective or a recipe."""
    if expression.strip() in RECIPES:
        return _recipe_description(RECIPES[expression.strip()])
    name = expression.partition("(")[0].partition("@")[0].strip()
    if name in OBJECTIVES:
        return _objective_description(name, expression.strip())
    if name in SCHEDULES:
        return _schedule_description(expression.strip(), SCHEDULES[name])
    if re.fullmatch(r"[a-z][\w-]*", name) and name not in LOSSES | OTHER_NAMES:
        hint = nearest(name, [*LOSSES, *OTHER_NAMES, *OBJECTIVES, *SCHEDULES, *RECIPES])
        raise ValueError(f"unknown loss, objective, schedule or recipe {name!r}{hint} 'lossmith list' names all.")
    made = make_objective(expression).loss if name in PRESETS else make_loss(expression)
    loss, name = type(made), made.name
    parts = [painted(f"{made}: lossmith.{loss.__name__}", "bold"), _without_arguments(_documentation(loss)), _parameters(made)]
    return "\n\n".join(part for part in (*parts, _published_by_classes(name, loss), _published(name)) if part)


def _objective_description(name: str, expression: str) -> str:
    if name != expression:
        make_objective(expression)  # for its errors
    parts = [f"{expression}: an objective, for lossmith.make_objective and lossmith compare", _documentation(OBJECTIVES[name])]
    parameters = [f"  {_objective_parameter(each)}" for each in inspect.signature(OBJECTIVES[name]).parameters.values()]
    if parameters:
        parts.append("\n".join(["Parameters and their defaults:", *parameters]))
    if name in PRESETS_OF_A_LOSS:
        parts.append(_published_by_classes(name, PRESETS_OF_A_LOSS[name]))
    return "\n\n".join(part for part in (*parts, _published(name)) if part)


def _schedule_description(expression: str, made_by: Callable[..., object]) -> str:
    if expression.endswith(")"):
        make_schedule(expression)  # for its errors
    title = f"{expression}: a schedule, for lossmith.objectives.make_schedule and scheduled(LOSS, PARAMETER={expression})"
    return f"{title}\n\n{_documentation(made_by).removeprefix('Return ')}"


def _recipe_description(recipe: PublishedRecipe) -> str:
    data = f"on {recipe.data}" if recipe.data else "on data of your own"
    losses = [f"  {loss.expression}{_trained_with(loss.rate, loss.decay)}" for loss in recipe.losses]
    settings = [f"  {name} = {_listed(value)}" for name, value in recipe.settings.items()]
    differs = [f"  - {difference}" for difference in recipe.differs]
    parts = (
        [f"{recipe.name}: a recipe, for lossmith compare --recipe {recipe.name}, {data}", f"{recipe.summary}."],
        ["Losses:", *losses],
        ["Settings, of which every option that is given replaces one:", *settings],
        ["Where it differs from the paper, and what the paper does not say:", *differs] if differs else [],
        [f"Reference: {recipe.reference}."],
    )
    return "\n\n".join("\n".join(part) for part in parts if part)


def _trained_with(rate: float | None, decay: float | None) -> str:
    known = {"learning rate": rate, "weight decay": decay}
    words = ", ".join(f"{name} {number:g}" for name, number in known.items() if number is not None)
    return f": {words}" if words else ""


def _listed(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _objective_parameter(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.VAR_KEYWORD:
        return "PARAMETER=SCHEDULE, for any numeric parameters of the loss"
    if parameter.default is None:
        return f"{parameter.name}, any; its default if not given"
    return parameter.name if parameter.default is parameter.empty else f"{parameter.name} = {parameter.default!r}"


def _published_by_classes(name: str, loss: type[ClassificationLoss]) -> str:
    """Return how the presets for numbers of classes are written, and what they stand for; nothing where there are none."""
    written = {classes: repr(loss.for_classes(classes)).removeprefix(loss.name) for classes in loss.presets}
    lines = [f"  {name}@{classes} = {name}{parameters}" for classes, parameters in written.items()]
    return "\n".join(["Published for a number of classes:", *lines]) if lines else ""


def _published(name: str) -> str:
    """Return how the presets for data sets are written, and what they stand for; nothing where there are none."""
    if name not in PRESETS:
        return ""
    lines = [f"  {name}@{data}: {_preset(name, data)}" for data in DATA_SETS]
    return "\n".join(["Published for a data set, for lossmith.make_objective and lossmith compare:", *lines])


def _preset(name: str, data: str) -> str:
    preset = PRESETS[name][list(DATA_SETS).index(data)]
    of_loss = LOSSES[name].presets.get(DATA_SETS[data], {}) if name in LOSSES else {}
    training = {"learning_rate": preset.learning_rate, "weight_decay": preset.weight_decay}
    return ", ".join(f"{parameter} {value:.4g}" for parameter, value in {**of_loss, **preset.parameters, **training}.items())


def _summary(made_by: Callable[..., object]) -> str:
    return _documentation(made_by).split("\n\n")[0].replace("\n", " ")


def _documentation(made_by: Callable[..., object]) -> str:
    """Return the docstring as a terminal shows it best."""
    return (inspect.getdoc(made_by) or "").replace("``", "")


def _without_arguments(documentation: str) -> str:
    """Leave out the section ``Args:``, where a list of the parameters with their values and ranges follows."""
    return "\n\n".join(part for part in documentation.split("\n\n") if not part.startswith("Args:"))


def _parameters(loss: ClassificationLoss) -> str:
    own = {} if type(loss) is WeightedSum else loss.parameters_in_order()
    lines = [
        f"  {name} = {value!r}, {loss.limits[name]}" if name in loss.limits else f"  {name} = {value!r}"
        for name, value in own.items()
    ]
    return "\n".join(["Parameters:", *lines]) if lines else ""
