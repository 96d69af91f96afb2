"""A linear layer with its loss, beside the two ways of torch: ``python -m benchmarks.linear``.

Time of a training step, forward and backward in single precision, as a multiple of ``F.cross_entropy(x @ weight.T)`` and of
``F.linear_cross_entropy``, where torch has it; the best of several, taking turns. Memory is the most that a step holds beyond the
gradients of features and weights, as a share of that of the logits.
"""

import argparse
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.measure import Step, best_times, machine, markdown_table, peak_memory
from lossmith import linear_loss, make_loss

SHAPES = ((2048, 512, 32000), (512, 512, 128000))
LOSSES = ("ce", "gce", "nce-mae", "label-smoothing")
UNFUSED, TORCHS = "F.cross_entropy(x @ weight.T)", "F.linear_cross_entropy"
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


def candidates(names: list[str]) -> dict[str, Loss]:
    """Return the ways of torch that there are, and the losses by chunks."""
    known: dict[str, Loss] = {UNFUSED: lambda features, weight, target: F.cross_entropy(features @ weight.T, target)}
    if hasattr(F, "linear_cross_entropy"):
        known[TORCHS] = F.linear_cross_entropy
    return known | {name: partial(_by_chunks, make_loss(name)) for name in names}


def _by_chunks(loss: Callable[..., Tensor], features: Tensor, weight: Tensor, target: Tensor) -> Tensor:
    return linear_loss(features, weight, target, loss)


def steps(losses: dict[str, Loss], shape: tuple[int, int, int]) -> dict[str, Step]:
    """Return one forward and backward pass of each, on the same inputs."""
    rows, width, classes = shape
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(rows, width, generator=generator).requires_grad_()
    weight = (torch.randn(classes, width, generator=generator) / width**0.5).requires_grad_()
    target = torch.randint(classes, (rows,), generator=generator)

    def step(loss: Loss) -> None:
        loss(features, weight, target).backward()
        features.grad = weight.grad = None

    return {name: partial(step, loss) for name, loss in losses.items()}


def measured(names: list[str], shape: tuple[int, int, int], seconds: float) -> list[list[str]]:
    """Return a row of the table for each candidate."""
    rows, width, classes = shape
    all_steps = steps(candidates(names), shape)
    times = best_times(all_steps, seconds=seconds, least=2)
    gradients, logits = 4 * width * (rows + classes), 4 * rows * classes
    memory = {name: (peak_memory(step) - gradients) / logits for name, step in all_steps.items()}
    return [
        [
            name,
            f"{time:.2f} s",
            f"{time / times[UNFUSED]:.2f}",
            f"{time / times.get(TORCHS, torch.nan):.2f}",
            f"{memory[name]:.3f}",
        ]
        for name, time in times.items()
    ]


def main() -> None:
    """Measure everything and print it as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--losses", default=",".join(LOSSES), help="names or expressions, separated by commas")
    parser.add_argument("--seconds", type=float, default=4.0, help="per candidate and shape (default: 4)")
    parser.add_argument("--shape", type=int, choices=range(len(SHAPES)), help="only one of the shapes, by its place")
    options = parser.parse_args()
    print(machine())
    for shape in SHAPES if options.shape is None else [SHAPES[options.shape]]:
        header = ["loss", "time", f"of {UNFUSED}", f"of {TORCHS}", "memory of the logits"]
        print(
            f"\n### {shape}\n\n{markdown_table(header, measured(options.losses.split(','), shape, options.seconds))}", flush=True
        )


if __name__ == "__main__":
    main()
