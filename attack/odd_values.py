"""Values that nobody expects."""

import random
from typing import Any

__all__ = ["odd_json", "odd_text"]

TEXTS = (
    "",
    " ",
    "\n",
    "\0",
    "é\u202e",
    "\x1b[31m",
    "-1",
    "1e999",
    "nan",
    "None",
    "true",
    "ce",
    "../..",
    "a" * 300,
    "'\"",
    "%s{}",
)
NUMBERS = (0, 1, -1, 2, 7, 0.5, -0.0, 1e-320, 1e308, 2**31, -(2**63), 10**30, float("nan"), float("inf"), float("-inf"))


def odd_text(chance: random.Random) -> str:
    """Return a text, most often a short one."""
    if chance.random() < 0.7:
        return chance.choice(TEXTS)
    return "".join(
        chr(chance.choice((chance.randrange(32, 127), chance.randrange(1, 0xD800)))) for _ in range(chance.randrange(9))
    )


def odd_json(chance: random.Random, depth: int = 0) -> Any:
    """Return a number, a text, a truth, nothing, or a list or dictionary of such."""
    if depth < 3 and chance.random() < 0.3:
        parts = [odd_json(chance, depth + 1) for _ in range(chance.randrange(4))]
        return parts if chance.random() < 0.5 else {odd_text(chance): part for part in parts}
    return chance.choice((None, True, False, odd_text(chance), chance.choice(NUMBERS)))
