"""How speed and memory are measured: several candidates interleaved in one run, the best time of each."""

import gc
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import median

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

Step = Callable[[], object]


def training_step(loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, target: Tensor) -> Step:
    """Return one forward and backward pass; ``logits`` must require a gradient."""

    def step() -> None:
        loss(logits, target).backward()
        logits.grad = None

    return step


def best_times(steps: Mapping[str, Step], *, seconds: float = 1.0, least: int = 5) -> dict[str, float]:
    """Return the shortest time of each step; they take turns, so that a slow moment of the machine hits all alike."""
    _settle_memory()
    for step in steps.values():
        step()
    best = dict.fromkeys(steps, float("inf"))
    start, rounds = time.perf_counter(), 0
    while rounds < least or time.perf_counter() - start < seconds * len(steps):
        for name, step in steps.items():
            before = time.perf_counter()
            step()
            best[name] = min(best[name], time.perf_counter() - before)
        rounds += 1
    return best


def in_new_processes(measure: Callable[..., dict[str, float]], arguments: tuple[object, ...], times: int) -> dict[str, float]:
    """Return the median of what is measured in several processes, one after another.

    Some are slower as long as they run, presumably by the pages of memory that they got, which share the cache well or badly.
    """
    # A new process for each: in one that is used again the pages would be, too.
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        found = [pool.submit(measure, *arguments).result() for _ in range(times)]
    return {name: median(each[name] for each in found) for name in found[0]}


def _settle_memory() -> None:
    """Free a large buffer, as any training does: from then on the C library keeps smaller ones instead of returning them.

    Without it the figures would depend on how fast the system hands out pages, and on what was measured before.
    """
    torch.zeros(6 << 20)


def peak_memory(step: Step) -> int:
    """Return the most bytes that the step held at one time beyond what was there before."""
    step()
    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    changes = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = peak = 0
    for event in sorted(changes, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table that reads well as text, too."""
    table = [list(header), *map(list, rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in table]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def machine() -> str:
    """Return what the figures below were measured on."""
    return f"torch {torch.__version__}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}"
