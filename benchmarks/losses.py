"""Time and memory of every loss beside ``F.cross_entropy``: ``python -m benchmarks.losses`` (``make bench``).

Forward and backward in single precision; each figure is the best time of many divided by cross-entropy's in the same run, and the
median of that in several processes.
"""

import argparse
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.measure import best_times, in_new_processes, machine, markdown_table, peak_memory, training_step
from lossmith import make_loss
from lossmith.losses import LOSSES
from lossmith.losses.catalogue.ready import ready_expression

SHAPES = ((128, 10), (256, 100), (256, 1000), (4096, 1000), (512, 32000))
# These have benchmarks of their own, beside rivals of their own.
ELSEWHERE = ("bi-tempered", "tsallis", "smooth-topk", "hard-topk")
BASELINE = "F.cross_entropy"
Loss = Callable[[Tensor, Tensor], Tensor]


def measured_losses() -> list[str]:
    """Return the losses of the catalogue that are measured here."""
    return [ready_expression(name) for name in LOSSES if name not in ELSEWHERE]


def inputs(shape: tuple[int, int], kind: str) -> tuple[Tensor, Tensor]:
    """Return logits as a fresh network gives them, and targets."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(shape, generator=generator).requires_grad_()
    if kind == "probabilities":
        return logits, torch.softmax(torch.randn(shape, generator=generator), 1)
    return logits, torch.randint(shape[1], shape[:1], generator=generator)


def ratios(losses: dict[str, Loss], shape: tuple[int, int], kind: str, seconds: float) -> dict[str, float]:
    """Return the time of each loss, relative to cross-entropy on the same inputs."""
    logits, target = inputs(shape, kind)
    times = best_times({name: training_step(loss, logits, target) for name, loss in losses.items()}, seconds=seconds)
    return {name: time / times[BASELINE] for name, time in times.items()}


def eager_ratios(names: list[str], shape: tuple[int, int], kind: str, seconds: float, threads: int) -> dict[str, float]:
    """Return the same, for a new process."""
    torch.set_num_threads(threads)
    return ratios(with_baseline(names), shape, kind, seconds)


def with_baseline(names: list[str]) -> dict[str, Loss]:
    """Return the losses after cross-entropy."""
    losses: dict[str, Loss] = {BASELINE: F.cross_entropy}
    return losses | {name: make_loss(name) for name in names}


def compiled(losses: dict[str, Loss]) -> dict[str, Loss]:
    """Return the losses compiled anew, for one shape."""
    torch._dynamo.reset()
    torch._dynamo.config.recompile_limit = len(losses) + 1  # they share their code, which counts as compiling it again
    return {name: torch.compile(loss, fullgraph=True, dynamic=False) for name, loss in losses.items()}


def buffers(losses: dict[str, Loss], shape: tuple[int, int], kind: str) -> dict[str, float]:
    """Return the peak of extra memory in multiples of the logits' size."""
    logits, target = inputs(shape, kind)
    size = logits.numel() * logits.element_size()
    return {name: peak_memory(training_step(loss, logits, target)) / size for name, loss in losses.items()}


def print_table(title: str, columns: dict[str, dict[str, float]]) -> None:
    """Print one row per loss and one column per shape."""
    names = list(next(iter(columns.values())))
    rows = [[name, *(f"{column[name]:.2f}" for column in columns.values())] for name in names]
    print(f"\n## {title}\n\n{markdown_table(['loss', *columns], rows)}", flush=True)


def main() -> None:
    """Measure everything and print it as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.7, help="per loss and shape (default: 0.7)")
    parser.add_argument("--losses", default=",".join(measured_losses()), help="names or expressions, separated by commas")
    parser.add_argument("--compiled", action="store_true", help="compile cross-entropy and the losses")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="of torch (default: all)")
    parser.add_argument("--processes", type=int, default=3, help="whose median is printed, if not compiled (default: 3)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    names = options.losses.split(",")
    losses = with_baseline(names)
    print(machine())
    if options.compiled:
        columns = {str(shape): ratios(compiled(losses), shape, "indices", options.seconds) for shape in SHAPES}
        print_table("Compiled, class indices: time relative to compiled F.cross_entropy", columns)
        return
    for kind in ("indices", "probabilities"):
        how = kind, options.seconds, options.threads
        columns = {str(shape): in_new_processes(eager_ratios, (names, shape, *how), options.processes) for shape in SHAPES}
        columns["memory"] = buffers(losses, (4096, 1000), kind)
        what = "class indices" if kind == "indices" else "class probabilities"
        print_table(f"Eager, {what}: time relative to F.cross_entropy, memory in buffers of the logits' size", columns)


if __name__ == "__main__":
    main()
