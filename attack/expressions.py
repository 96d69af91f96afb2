"""Expressions of losses, objectives, noise and schedules, half right: each is read, or refused in one line."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attack.kind import Failure, Kind
from attack.odd_values import odd_text
from lossmith import make_loss
from lossmith.data import make_noise
from lossmith.data.noise.named import NOISES
from lossmith.losses import LOSSES, ClassificationLoss
from lossmith.objectives.named_objectives import OBJECTIVES, make_objective
from lossmith.objectives.named_schedules import SCHEDULES, make_schedule

__all__ = ["EXPRESSIONS"]

READERS: dict[Callable[[str], Any], tuple[str, ...]] = {
    make_loss: tuple(LOSSES),
    make_objective: (*OBJECTIVES, *LOSSES),
    make_noise: tuple(NOISES),
    make_schedule: tuple(SCHEDULES),
}
WORDS = ("q", "gamma", "t1", "loss", "focus", "num_classes", "epsilon", "at", "rate", "k", "weight", "reduction", "cifar-10", "0")
NUMBERS = ("0", "1", "-1", "0.5", "1e999", "1e-999", "3", "nan", "inf", "0.7", "1" * 400, "99999999999999999999", "1e400", "-0")
SIGNS: tuple[str, ...] = (*"()[],=+-*@.#'\"\\/ \n\t", "**", "((", "))", "\0", "é")
DEEP = 3000


def attempt(chance: random.Random, _: Path, __: object) -> None:
    """Read a text that is no expression, or nearly one, and write what was read again."""
    read = chance.choice(list(READERS))
    text = chance.choice(WAYS)(chance, READERS[read])
    try:
        found = read(text)
        if isinstance(found, ClassificationLoss) and repr(make_loss(repr(found))) != repr(found):
            raise Failure(f"{read.__name__}({text!r:.200}) is {found!r:.200}, which is read as {make_loss(repr(found))!r:.200}")
    except (ValueError, TypeError) as error:
        if "\n" in str(error) or not str(error):
            raise Failure(f"{read.__name__}({text!r:.200}) says {str(error)!r:.300}") from error


def rubbish(chance: random.Random, names: tuple[str, ...]) -> str:
    """Signs, words and names in any order."""
    parts = [
        chance.choice((chance.choice(names), chance.choice(WORDS), chance.choice(NUMBERS), chance.choice(SIGNS)))
        for _ in range(9)
    ]
    return "".join(parts[: chance.randint(1, 9)])


def call(chance: random.Random, names: tuple[str, ...], depth: int = 0) -> str:
    """A name with arguments, some of which are calls."""
    arguments = [_argument(chance, names, depth) for _ in range(chance.randrange(4))]
    written = f"{chance.choice(names)}({', '.join(arguments)})" if arguments else chance.choice(names)
    return f"{chance.choice(NUMBERS)}*{written} + {chance.choice(names)}" if chance.random() < 0.2 else written


def _argument(chance: random.Random, names: tuple[str, ...], depth: int) -> str:
    numbers = f"[{', '.join(chance.choices(NUMBERS, k=chance.randrange(4)))}]"
    value = call(chance, names, depth + 1) if depth < 3 and chance.random() < 0.3 else chance.choice((*NUMBERS, "true", numbers))
    return f"{chance.choice(WORDS)}={value}" if chance.random() < 0.6 else value


def nearly(chance: random.Random, names: tuple[str, ...]) -> str:
    """A call with one sign more, less or other."""
    text = call(chance, names)
    place = chance.randrange(len(text))
    return text[:place] + chance.choice(("", *SIGNS)) + text[place + chance.randrange(2) :]


def nested(chance: random.Random, names: tuple[str, ...]) -> str:
    """More brackets than anybody can count."""
    depth = chance.randrange(DEEP)
    return (
        chance.choice((f"{chance.choice(names)}(", "(", "[", "1*(")) * depth
        + chance.choice(names)
        + ")" * chance.choice((0, depth))
    )


def anything(chance: random.Random, _: tuple[str, ...]) -> str:
    """A text."""
    return odd_text(chance)


WAYS = (rubbish, call, nearly, nested, anything)
EXPRESSIONS = Kind("expressions", attempt)
