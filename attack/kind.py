"""A kind of attack, and how it is repeated."""

import random
import shutil
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Failure", "Kind", "Tally", "assault"]


class Failure(Exception):  # noqa: N818 - it is no error of the attack
    """The attack succeeded, in a sentence."""


@dataclass(frozen=True)
class Kind:
    """One way to attack."""

    name: str
    attempt: Callable[[random.Random, Path, Any], None]
    """Attacks once, in an empty folder, as chance has it; raises Failure where Lossmith did not stand it."""
    prepare: Callable[[Path], Any] = lambda _: None
    """Makes what all attempts need, once, in a folder of its own."""
    share: float = 1.0
    """Of the time."""


@dataclass
class Tally:
    """What became of the attempts of one kind."""

    kind: str
    attempts: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)
    """The number of the attempt, and what happened."""


def assault(kind: Kind, folder: Path, *, seed: int = 0, seconds: float = 600.0, first: int = 0, most: int | None = None) -> Tally:
    """Attack until the time is over, or ``most`` times.

    An attempt depends on the seed, the kind and its number alone, so that each can be repeated by itself.
    """
    tally, end = Tally(kind.name), time.monotonic() + seconds
    (folder / "prepared").mkdir(parents=True)
    prepared = kind.prepare(folder / "prepared")
    number = first
    while time.monotonic() < end and (most is None or number < first + most):
        said = _attempted(kind, random.Random(f"{seed} {kind.name} {number}"), folder / str(number), prepared)
        tally.attempts += 1
        tally.failures += [(number, said)] if said else []
        number += 1
    return tally


def _attempted(kind: Kind, chance: random.Random, folder: Path, prepared: Any) -> str:
    """Attack once, and return what went wrong; nothing where Lossmith stood it."""
    folder.mkdir()
    try:
        kind.attempt(chance, folder, prepared)
    except Failure as failure:
        return str(failure)
    except Exception:  # noqa: BLE001 - what escaped from Lossmith is what is sought
        return traceback.format_exc()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return ""
