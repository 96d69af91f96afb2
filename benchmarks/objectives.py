"""Losses and heads of objectives beside their rivals in torch: ``python -m benchmarks.objectives``.

Forward and backward in single precision; each figure is the best time of many divided by ``F.cross_entropy``'s, or
``nn.Linear``'s, in the same run, and the median of that in several processes.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.measure import best_times, in_new_processes, machine, markdown_table, training_step
from lossmith import make_loss
from lossmith.objectives import CosineLinear, DropoutLinear

SHAPES = ((256, 1000), (4096, 1000))
NAMES = ("label-smoothing", "logit-penalty", "logit-norm", "sigmoid", "squared-error", "complement-entropy", "cot")


def smoothed(logits: Tensor, target: Tensor) -> Tensor:
    """Return torch's own label smoothing."""
    return F.cross_entropy(logits, target, label_smoothing=0.1)


def binary(logits: Tensor, target: Tensor) -> Tensor:
    """Return torch's own sigmoid cross-entropy, with the one-hot targets that it needs."""
    return F.binary_cross_entropy_with_logits(logits, F.one_hot(target, logits.shape[1]).to(logits.dtype))


def losses(shape: tuple[int, int], seconds: float, threads: int) -> dict[str, float]:
    """Return the times of all losses relative to cross-entropy."""
    torch.set_num_threads(threads)
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(shape, generator=generator).requires_grad_()
    target = torch.randint(shape[1], shape[:1], generator=generator)
    rivals = {"F.cross_entropy": F.cross_entropy, "  with label_smoothing": smoothed, "F.binary_cross_entropy_...": binary}
    steps = {name: training_step(loss, logits, target) for name, loss in (rivals | {n: make_loss(n) for n in NAMES}).items()}
    times = best_times(steps, seconds=seconds)
    return {name: time / times["F.cross_entropy"] for name, time in times.items()}


def heads(shape: tuple[int, int], seconds: float, threads: int) -> dict[str, float]:
    """Return the times of the heads, from 512 features, relative to a linear one."""
    torch.set_num_threads(threads)
    features = torch.randn(shape[0], 512, requires_grad=True)
    target = torch.empty(())

    def step(head: nn.Module) -> object:
        return training_step(lambda inputs, _: head(inputs).sum(), features, target)

    layers = {"nn.Linear": nn.Linear, "CosineLinear": CosineLinear, "DropoutLinear": DropoutLinear}
    times = best_times({name: step(layer(512, shape[1])) for name, layer in layers.items()}, seconds=seconds)
    return {name: time / times["nn.Linear"] for name, time in times.items()}


def main() -> None:
    """Measure everything and print it as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.7, help="per candidate and shape (default: 0.7)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="of torch (default: all)")
    parser.add_argument("--processes", type=int, default=5, help="whose median is printed (default: 5)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"{machine()}, forward + backward, float32, median of {options.processes} processes")
    for title, measure in (("loss", losses), ("head, 512 features", heads)):
        columns = [in_new_processes(measure, (shape, options.seconds, options.threads), options.processes) for shape in SHAPES]
        rows = [[name, *(f"{column[name]:.2f}" for column in columns)] for name in columns[0]]
        print("\n" + markdown_table([title, *map(str, SHAPES)], rows), flush=True)


if __name__ == "__main__":
    main()
