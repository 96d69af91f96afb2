"""Parents and workers killed at any moment: none survives, nothing is lost, and the study ends as it would have ended."""

import json
import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from attack.command import Command, Ended, run
from attack.kind import Failure, Kind

__all__ = ["KILLS", "contents"]

OPTIONS = (
    *("--losses", "ce,dropout(keep=0.7),cosine-softmax", "--noise", "0,0.4", "--seeds", "2", "--trials", "4"),
    *("--epochs", "6", "--rows", "400", "--keep", "features,weights", "--no-report", "--workers", "2"),
)
SECONDS_TO_FOLLOW = 5.0
"""That a worker may live longer than its parent."""
MOST_KILLS = 3


class Reference(NamedTuple):
    """The study that nobody disturbed."""

    contents: dict[str, Any]
    seconds: float


def undisturbed(folder: Path) -> Reference:
    """Do the study once in peace."""
    begin = time.monotonic()
    ended = run(["compare", "digits", *OPTIONS, "--output", folder / "study"], folder)
    if ended.code:
        raise RuntimeError(ended.err)
    return Reference(contents(folder / "study" / "study.sqlite"), time.monotonic() - begin)


def contents(file: Path) -> dict[str, Any]:
    """Return all that must not depend on what happened: every choice, curve, measure, logit, feature and weight, by its run."""
    key = ("loss", "noise", "seed", "learning_rate", "weight_decay", "parameters", "epochs")
    run_key = " || '/' || ".join(f"run.{name}" for name in key)
    queries = {
        "run": f"SELECT {run_key}, epoch, diverged, stopped, stands_for, measures FROM run",
        "choice": f"SELECT {run_key}, untrained FROM choice JOIN run ON run.id = choice.run",
        "reference": "SELECT name, noise, seed, settings, measures FROM reference",
        "replicate": "SELECT * FROM replicate",
        "curve": f"SELECT {run_key}, curve.* FROM curve JOIN run ON run.id = curve.run",
        "array": f"SELECT {run_key}, name, shape, type, content FROM array JOIN run ON run.id = array.run",
        "noise": "SELECT * FROM noise",
    }
    with closing(sqlite3.connect(file)) as connection:
        rows = {table: connection.execute(query).fetchall() for table, query in queries.items()}
    rows["run"] = [(*row[:-1], _without_memory(row[-1])) for row in rows["run"]]
    rows["curve"] = [(row[0], *row[2:]) for row in rows["curve"]]  # without the number of the run, which is that of its storing
    return {table: sorted(map(repr, found)) for table, found in rows.items()}


def _without_memory(measures: str) -> str:
    """Return the measures of a run but for the memory of its process, which depends on what that did before."""
    return repr({name: value for name, value in json.loads(measures).items() if name != "memory"})


def attempt(chance: random.Random, folder: Path, reference: Reference) -> None:
    """Disturb a study a few times, go on with it, and compare it with the one in peace."""
    words = ["compare", "digits", *OPTIONS, "--output", folder / "study"]
    for _ in range(chance.randint(1, MOST_KILLS)):
        with Command(words, folder) as command:
            time.sleep(chance.uniform(0.0, 1.1 * reference.seconds))
            way = chance.choice(WAYS)
            way(chance, command)
            _check_end(command, command.wait(), way.__name__)
    run(words, folder)
    found = contents(folder / "study" / "study.sqlite")
    for table, rows in reference.contents.items():
        if found[table] != rows:
            raise Failure(f"after {way.__name__} the table {table} differs from that of the study in peace")


def _check_end(command: Command, ended: Ended, way: str) -> None:
    begin = time.monotonic()
    while command.anybody_left():
        if time.monotonic() > begin + SECONDS_TO_FOLLOW:
            raise Failure(f"after {way} a worker outlived its parent by {SECONDS_TO_FOLLOW:.0f} s")
        time.sleep(0.01)
    if "Traceback" in ended.err or "should not have happened" in ended.err:
        raise Failure(f"after {way}: {ended.err[-400:]}")
    if ended.code not in (0, 1, 130, -signal.SIGKILL, -signal.SIGINT):
        raise Failure(f"after {way}: exit code {ended.code}, {ended.err[-400:]}")
    if ended.code == 1 and "a worker process died" not in ended.err.splitlines()[-1]:
        raise Failure(f"after {way}: {ended.err[-400:]}")


def kill_parent(_: random.Random, command: Command) -> None:
    """The parent is killed."""
    command.signal(signal.SIGKILL)


def stop_and_kill_parent(chance: random.Random, command: Command) -> None:
    """The parent is stopped, so that workers wait for it, and killed later."""
    command.signal(signal.SIGSTOP)
    time.sleep(chance.uniform(0.0, 2.0))
    command.signal(signal.SIGKILL)


def interrupt_all(_: random.Random, command: Command) -> None:
    """What a terminal does for Ctrl-C."""
    for pid in (*command.children(), command.pid):
        _signal(pid, signal.SIGINT)


def kill_worker(chance: random.Random, command: Command) -> None:
    """A worker is killed, as where memory runs out."""
    for pid in chance.sample(workers := command.children(), min(1, len(workers))):
        _signal(pid, signal.SIGKILL)


def stop_worker_and_kill_parent(_: random.Random, command: Command) -> None:
    """The workers are stopped when their parent is killed."""
    for pid in command.children():
        _signal(pid, signal.SIGSTOP)
    command.signal(signal.SIGKILL)


def stop_worker_and_interrupt(_: random.Random, command: Command) -> None:
    """The workers are stopped when their parent wants to end them."""
    for pid in command.children():
        _signal(pid, signal.SIGSTOP)
    command.signal(signal.SIGINT)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


WAYS: tuple[Callable[[random.Random, Command], None], ...] = (
    kill_parent,
    stop_and_kill_parent,
    interrupt_all,
    kill_worker,
    stop_worker_and_kill_parent,
    stop_worker_and_interrupt,
)
KILLS = Kind("kills", attempt, undisturbed, share=3.0)
