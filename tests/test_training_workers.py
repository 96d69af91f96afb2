"""Stacks in worker processes: the same numbers, and a clean end whatever happens."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lossmith.training.engines import crew
from lossmith.training.recipe import Recipe, Trained
from lossmith.training.stacks.composition import compose_stacks
from lossmith.training.workers import Progress, train_all
from training_reference import digits, job

RECIPE = Recipe(epochs=2, batch_size=32)


def all_trained(*args: object, **options: object) -> dict[object, Trained]:
    return {trained.run: trained for trained in train_all(*args, **options)}  # type: ignore[arg-type]


def test_numbers_do_not_depend_on_the_workers() -> None:
    data = digits(100)
    jobs = [job(data, loss, seed) for loss in ("ce", "dropout", "gce", "two-pass-cot") for seed in range(2)]
    one, two = (all_trained(jobs, data, RECIPE, workers=count) for count in (1, 2))
    assert set(one) == set(two) == {own.run for own in jobs}
    for run, trained in one.items():
        assert np.array_equal(trained.test_logits, two[run].test_logits)
        assert trained.curves == {name: pytest.approx(curve, nan_ok=True, abs=0) for name, curve in two[run].curves.items()}


def test_threads_of_this_process_are_put_back() -> None:
    data = digits(50)
    torch.set_num_threads(2)
    try:
        list(train_all([job(data, "ce")], data, RECIPE, workers=1))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_stacks_share_an_architecture_and_keep_equal_losses_together() -> None:
    data = digits(50)
    jobs = [job(data, loss, seed) for seed in range(5) for loss in ("ce", "gce", "dropout", "mae", "bi-tempered")]
    stacks = compose_stacks(jobs, data, RECIPE)
    named = [[jobs[number].run.loss for number in stack] for stack in stacks]
    assert named == [["ce"] * 5 + ["gce"] * 5, ["mae"] * 5 + ["bi-tempered"] * 5, ["dropout"] * 5]
    assert sorted(number for stack in stacks for number in stack) == list(range(25))


def test_what_cannot_be_stacked_runs_one_by_one() -> None:
    data = digits(50, images=True)
    jobs = [job(data, "ce", seed) for seed in range(3)]
    assert compose_stacks(jobs, data, Recipe(model="resnet20")) == [[0], [1], [2]]
    # Three million weights, of which a stack takes four.
    assert compose_stacks(
        jobs, data, Recipe(), lambda *_: nn.Sequential(nn.Flatten(), nn.Linear(64, 46875), nn.Linear(46875, 10))
    ) == [
        [0],
        [1],
        [2],
    ]


def test_progress_reaches_the_parent() -> None:
    data, told = digits(50), []
    jobs = [job(data, loss, seed) for loss in ("ce", "dropout") for seed in range(3)]
    list(train_all(jobs, data, RECIPE, workers=2, on_progress=told.append))
    assert sorted(told) == [Progress(stack, 3, epoch, 2) for stack in range(2) for epoch in (1, 2)]


def test_finished_runs_are_left_out_and_change_nothing() -> None:
    data = digits(50)
    jobs = [job(data, loss, seed) for loss in ("ce", "dropout") for seed in range(3)]
    everything = all_trained(jobs, data, RECIPE, workers=1)
    finished = [own.run for own in jobs[:2]] + [own.run for own in jobs[3:]]
    rest = all_trained(jobs, data, RECIPE, workers=1, finished=finished)
    assert list(rest) == [jobs[2].run]
    assert np.array_equal(rest[jobs[2].run].test_logits, everything[jobs[2].run].test_logits)
    assert list(train_all(jobs, data, RECIPE, finished=[own.run for own in jobs])) == []


class Dies(nn.Module):
    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        os.kill(os.getpid(), signal.SIGKILL)
        return logits.sum()


class Raises(nn.Module):
    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        raise ValueError("UsersLoss: no such luck.")


@pytest.mark.parametrize(
    ("loss", "error", "message"),
    [
        (Dies(), ChildProcessError, r"compare: a worker process died with exit code -9 in task \d of 2; -9 mostly means"),
        (Raises(), ValueError, r"^UsersLoss: no such luck\.\nIn a worker process:"),
    ],
)
def test_a_worker_that_fails_is_an_error_here(loss: nn.Module, error: type[Exception], message: str) -> None:
    data = digits(50)
    jobs = [job(data, loss), job(data, "dropout")]
    with pytest.raises(error, match=message):
        list(train_all(jobs, data, RECIPE, workers=2))
    assert multiprocessing.active_children() == []


def test_closing_the_iterator_ends_the_workers() -> None:
    data = digits(50)
    jobs = [job(data, "ce"), job(data, "dropout"), job(data, "two-pass-cot")]
    results = train_all(jobs, data, Recipe(epochs=60), workers=2)
    next(results)
    assert multiprocessing.active_children()
    results.close()
    assert multiprocessing.active_children() == []


def test_a_model_that_cannot_be_pickled_trains_in_workers_or_here(monkeypatch: pytest.MonkeyPatch) -> None:
    data = digits(50)
    jobs = [job(data, "ce", seed) for seed in range(2)]

    def build(shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.Linear(64, classes), nn.BatchNorm1d(classes))

    forked = all_trained(jobs, data, RECIPE, build=build, workers=2)
    monkeypatch.setattr("lossmith.training.engines.crew.sys.platform", "darwin")  # where processes are spawned
    here = all_trained(jobs, data, RECIPE, build=build, workers=2)
    for run, trained in forked.items():
        assert np.array_equal(trained.test_logits, here[run].test_logits)


def test_workers_can_be_spawned() -> None:
    data = digits(50)
    jobs = [job(data, loss) for loss in ("ce", "dropout(loss=gce)")]
    forked = all_trained(jobs, data, RECIPE, workers=2)
    spawned = all_trained(jobs, data, RECIPE, workers=2, threads=2)
    for run, trained in forked.items():
        np.testing.assert_allclose(trained.test_logits, spawned[run].test_logits, rtol=1e-4, atol=1e-4)


def test_a_worker_that_died_before_it_was_given_more_is_an_error_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def assign_to_the_dead(self: crew._Worker, *args: object) -> None:
        self.process.kill()
        self.process.join()
        assign(self, *args)

    assign = crew._Worker.assign
    monkeypatch.setattr(crew._Worker, "assign", assign_to_the_dead)
    data = digits(50)
    with pytest.raises(ChildProcessError, match=r"^compare: a worker process died with exit code -9 in task 1 of 2;.*\.$"):
        list(train_all([job(data, "ce"), job(data, "dropout")], data, RECIPE, workers=2))
    assert multiprocessing.active_children() == []


def test_a_worker_that_died_in_the_middle_of_a_message_is_an_error_here() -> None:
    ours, theirs = multiprocessing.Pipe()
    os.write(theirs.fileno(), (1000).to_bytes(4, "big") + b"less than that")
    theirs.close()
    process = multiprocessing.get_context("fork").Process(target=os._exit, args=(9,))
    process.start()
    worker = crew._Worker(process, ours)
    with pytest.raises(ChildProcessError, match="a worker process died with exit code 9 in no task"):
        worker.receive()
    worker.end()


def test_a_stopped_worker_can_be_ended() -> None:
    data = digits(50)
    results = train_all([job(data, "ce"), job(data, "dropout"), job(data, "mae", 1)], data, Recipe(epochs=60), workers=2)
    next(results)
    for worker in multiprocessing.active_children():
        os.kill(worker.pid, signal.SIGSTOP)
    results.close()
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("where", ["after_in_parent", "after_in_child"])
def test_an_interrupt_in_the_moment_of_a_fork_is_one_interrupt(
    where: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt() -> None:
        while armed:
            armed.clear()
            sys.unraisablehook = sys.__unraisablehook__  # the one of pytest prints nothing in a worker
            os.kill(os.getpid(), signal.SIGINT)  # any thread may get it, as from a terminal
            time.sleep(0.1)

    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)  # put back afterwards
    armed: list[int] = []
    os.register_at_fork(**{where: interrupt})
    data, leave = digits(50), threading.Event()
    bystander = threading.Thread(target=leave.wait)
    bystander.start()
    armed.append(1)
    try:
        with pytest.raises(KeyboardInterrupt) if where == "after_in_parent" else nullcontext():
            list(train_all([job(data, "ce"), job(data, "dropout")], data, RECIPE, workers=2))
    finally:
        armed.clear()
        leave.set()
        bystander.join()
    assert capfd.readouterr().err == ""
    assert multiprocessing.active_children() == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


INTERRUPTED = """
import sys, time
sys.path[:0] = {paths!r}
from torch import nn
from lossmith.training.recipe import Recipe
from lossmith.training.workers import train_all
from training_reference import digits, job

class Sleeps(nn.Module):
    def forward(self, logits, target):
        time.sleep(2)
        return logits.sum()

data = digits(20)
jobs = [job(data, "dropout"), job(data, Sleeps() if {idle} else "ce")]
try:
    recipe = Recipe(epochs=2 if {idle} else 100000)
    for _ in train_all(jobs, data, recipe, workers=2, on_progress=lambda _: print("epoch", flush=True)):
        print("run", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize(("number", "idle"), [(signal.SIGINT, False), (signal.SIGKILL, False), (signal.SIGKILL, True)])
def test_no_worker_outlives_its_parent(number: signal.Signals, idle: bool) -> None:
    paths = [str(Path(__file__).parent), *sys.path]
    command = [sys.executable, "-c", INTERRUPTED.format(paths=paths, idle=idle)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, start_new_session=True) as process:  # noqa: S603 - our own script
        assert process.stdout is not None
        awaited = "run\n" if idle else "epoch\n"  # after its run, a worker has nothing to do
        assert any(line == awaited for line in iter(process.stdout.readline, ""))
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # what a terminal does for Ctrl-C
        else:
            process.kill()
        # The workers hold the same streams: reading to the end waits for all of them.
        output, errors = process.communicate(timeout=60)
    assert errors == ""
    assert ("interrupted" in output) is (number == signal.SIGINT)
    deadline = time.monotonic() + 10
    while _group_exists(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _group_exists(process.pid)


BUSY = """
import os, sys, time
sys.path[:0] = {paths!r}
import torch
from torch import nn
from lossmith.training.recipe import Recipe
from lossmith.training.engines import parent_watch
from lossmith.training.workers import train_all
from training_reference import digits, job

if {without_linux}:
    parent_watch._ask_linux = lambda: None

class Long(nn.Module):
    def forward(self, logits, target):
        if "{doing}" == "computing":
            print("ready", os.getpid(), flush=True)
            for _ in range(100):
                torch.linalg.svd(torch.ones(600, 600))
        return logits.sum()

def build(shape, classes):
    return nn.Sequential(nn.Linear(64, 46875), nn.Linear(46875, classes))  # too much for one stack, and for any pipe

def stop(_):
    print("ready", os.getpid(), flush=True)
    time.sleep(600)

data = digits(20)
jobs = [job(data, Long(), seed) for seed in range(2)]
list(train_all(jobs, data, Recipe(epochs=1, keep=("weights",)), build=build, workers=2, on_progress=stop))
"""


@pytest.mark.parametrize("without_linux", [False, True])
@pytest.mark.parametrize("doing", ["computing", "sending"])
def test_no_worker_outlives_a_stopped_and_killed_parent(doing: str, without_linux: bool) -> None:
    """The parent stops while its workers compute, or send more than the pipe takes; later it is killed."""
    paths = [str(Path(__file__).parent), *sys.path]
    code = BUSY.format(paths=paths, doing=doing, without_linux=without_linux)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], **pipes, start_new_session=True) as process:  # noqa: S603 - our own script
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("ready")
            process.send_signal(signal.SIGSTOP)
            time.sleep(1.5)  # for workers to fill their pipes; that fewer do makes the test no less right
            process.kill()
            process.wait()
            assert _seconds_until(lambda: not _group_exists(process.pid), 30) < 30
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        assert process.stderr is not None
        assert process.stderr.read() == ""


def _seconds_until(happens: Callable[[], bool], most: float) -> float:
    begin = time.monotonic()
    while not happens() and time.monotonic() < begin + most:
        time.sleep(0.05)
    return time.monotonic() - begin


def _group_exists(group: int) -> bool:
    """Return whether a process of the group lives; a dead one may wait for long until the system's first process has noticed."""
    listed = subprocess.run(["ps", "-A", "-o", "pgid=,stat="], capture_output=True, text=True, check=True).stdout  # noqa: S607
    return any(int(own) == group and not state.startswith("Z") for own, state in map(str.split, listed.splitlines()))
