"""Time, memory and exactness of the smooth top-k loss: ``python -m benchmarks.top_k``.

The authors' loss is measured where ``difftopk`` can be imported: ``pip install --no-deps difftopk diffsort``, no dependency.
"""

import argparse
import importlib
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.measure import Step, best_times, machine, markdown_table, peak_memory, training_step
from lossmith import SmoothTopKLoss, kernels
from lossmith.theory import sensible_tau

Loss = Callable[[Tensor, Tensor], Tensor]
SHAPES = ((256, 100), (256, 1000), (256, 10000))
K = 5
KS = (1, 2, 5, 10, 20, 40, 80)
BATCHES = 8


def authors_loss(num_classes: int, tau: float) -> Loss | None:
    """Return the loss that the paper's authors published, as ``difftopk`` has it, or None if that is not installed."""
    try:
        loss: Loss = importlib.import_module("difftopk").SmoothTopKLoss(num_classes, K, tau)
    except ImportError:
        return None
    return loss


def batch(rows: int, classes: int, *, spread: float = 1.0, seed: int = 0, soft: bool = False) -> tuple[Tensor, Tensor]:
    """Return scores like a fresh network's, times ``spread``, and targets, or probabilities as targets."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, classes, generator=generator) * spread
    if soft:
        return logits.requires_grad_(), torch.softmax(torch.randn(rows, classes, generator=generator), 1)
    return logits.requires_grad_(), torch.randint(classes, (rows,), generator=generator)


def steps_in_turn(loss: Loss, batches: Sequence[tuple[Tensor, Tensor]]) -> Step:
    """Return a training step on one batch after the other: where the largest of a batch are, a processor learns by heart."""
    turns = cycle([training_step(loss, logits, target) for logits, target in batches])

    def step() -> None:
        next(turns)()

    return step


def ratios(losses: Mapping[str, Loss | None], batches: Sequence[tuple[Tensor, Tensor]], seconds: float) -> list[str]:
    """Return the time of cross-entropy in microseconds, and those of the losses as multiples of it."""
    steps = {"ce": steps_in_turn(F.cross_entropy, batches)}
    steps |= {name: steps_in_turn(loss, batches) for name, loss in losses.items() if loss is not None}
    times = best_times(steps, seconds=seconds)
    return [f"{times['ce'] * 1e6:.0f}", *(f"{times[name] / times['ce']:.1f}" if name in times else "-" for name in losses)]


def time_table(seconds: float, *, soft: bool = False) -> str:
    """Return the cost at tau = 1, where no score dominates, at taus so small that some do, and of the authors' code."""
    rows = []
    for shape in SHAPES:
        batches = [batch(*shape, seed=seed, soft=soft) for seed in range(BATCHES)]
        small = sensible_tau(K, shape[1])
        ours = ratios({f"{tau}": SmoothTopKLoss(K, tau) for tau in (1.0, small, 0.1, 0.01)}, batches, seconds)
        # By itself, because the others would get few turns beside a step that takes half a second.
        authors = "-" if soft else ratios({"authors": authors_loss(shape[1], 1.0)}, batches[:1], seconds)[1]
        rows.append([str(shape), *ours, authors, f"{small:.3f}"])
    header = ["shape", "CE, microseconds", "tau = 1", "sensible tau", "0.1", "0.01", "authors' code, tau = 1", "(sensible tau)"]
    return markdown_table(header, rows)


def growth_table(seconds: float) -> str:
    """Return the cost by k at (256, 1000)."""
    batches = [batch(256, 1000, seed=seed) for seed in range(BATCHES)]
    rows = [[str(k), *ratios({"1": SmoothTopKLoss(k), "0.1": SmoothTopKLoss(k, 0.1)}, batches, seconds)] for k in KS]
    return markdown_table(["k", "CE, microseconds", "times CE, tau = 1", "tau = 0.1"], rows)


def gradient_error(loss: Loss, logits: Tensor, target: Tensor, tau: float) -> str:
    """Return the largest error of a row's gradient, relative to its largest entry, against double precision."""
    exact = logits.detach().double().requires_grad_()
    (expected,) = torch.autograd.grad(SmoothTopKLoss(K, tau)(exact, target), exact)
    (gradient,) = torch.autograd.grad(loss(logits, target), logits)
    error = (gradient.double() - expected).abs().amax(1) / expected.abs().amax(1).clamp(min=1e-37)
    return f"{error.nan_to_num(nan=torch.inf).max():.0e}"


def error_table() -> str:
    """Return how far the gradients are from exact."""
    logits, target = batch(256, 1000, spread=3.0)
    rows = []
    for tau in (1.0, 0.1, 0.01, 0.001):
        authors = authors_loss(1000, tau)
        theirs = "-" if authors is None else gradient_error(authors, logits, target, tau)
        rows.append([f"{tau:g}", gradient_error(SmoothTopKLoss(K, tau), logits, target, tau), theirs])
    return markdown_table(["tau", "Lossmith", "authors' code"], rows)


def memory_table() -> str:
    """Return the most that a training step holds beyond its inputs, in units of the logits."""
    rows = []
    for k in (5, 20, 40):
        logits, target = batch(256, 10000)
        held = peak_memory(training_step(SmoothTopKLoss(k), logits, target)) / (logits.numel() * logits.element_size())
        rows.append([str(k), f"{held:.2f}"])
    return markdown_table(["k", "buffers of the logits' size"], rows)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each candidate (default: 1)")
    parser.add_argument("--kernels", default="auto", choices=kernels.ENGINES, help="what runs the losses (default: auto)")
    options = parser.parse_args()
    kernels.use(options.kernels)
    seconds = options.seconds
    print(f"Smooth top-k loss, k = {K}, forward and backward, float32; kernels: {options.kernels}; {machine()}\n")
    print(time_table(seconds), "\n\nTargets that are probabilities:\n")
    print(time_table(seconds, soft=True), "\n\nGrowth in k, (256, 1000):\n")
    print(growth_table(seconds), "\n\nError of the gradient, (256, 1000), scores of standard deviation 3:\n")
    print(error_table(), "\n\nMemory, (256, 10000):\n")
    print(memory_table())


if __name__ == "__main__":
    main()
