"""Studies written down in TOML, with settings of the wrong kind, size and form: each is planned, or refused in one line."""

import json
import math
import random
from dataclasses import fields
from pathlib import Path
from typing import Any

from attack.command import run
from attack.kind import Kind
from attack.odd_values import odd_json
from lossmith.studies.design.given_settings import LOADING
from lossmith.studies.design.settings import Settings
from lossmith.training.recipe import Recipe

__all__ = ["SETTINGS"]

SMALL = {"data": "iris", "losses": ["ce"], "noise": [0], "seeds": 1, "rates": [0.1], "epochs": 1, "rows": 60, "model": "linear"}
NAMES = sorted({each.name for each in (*fields(Settings), *fields(Recipe))} | set(LOADING) - {"folder", "data"})
VALUES: tuple[Any, ...] = (
    *(
        "linear",
        "mlp",
        "sgd",
        "adam",
        "cosine",
        "best",
        "own",
        "clean",
        "balanced",
        "macro-f1",
        "features",
        "ngrams",
        "species",
        "ce,gce",
        "pair(0.3)",
        "0.2",
    ),
    *(0, 1, 2, 3, 0.5, 0.999, True, [], [0.1, 0.3], ["ce", "ce"], [[1]], ["features"], {"a": 1}),
)


def attempt(chance: random.Random, folder: Path, _: object) -> None:
    """Write settings, a few of them odd, and plan the study."""
    odd = {chance.choice(NAMES): chance.choice((chance.choice(VALUES), odd_json(chance))) for _ in range(chance.randint(1, 3))}
    text = "\n".join(f"{name} = {_toml(value)}" for name, value in {**SMALL, **odd}.items())
    content = bytearray(text.encode("utf-8", "replace"))
    if chance.random() < 0.3:
        place = chance.randrange(len(content))
        content[place : place + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
    file = folder / "study.toml"
    file.write_bytes(content)
    run(["compare", file, "--dry-run", "--workers", "1", "--output", folder / "study"], folder)


def _toml(value: Any) -> str:
    """Return a value as TOML writes it; nothing, which TOML does not know, as it would not."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {_toml(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value)


SETTINGS = Kind("settings", attempt)
