"""What torch.compile makes of the losses, counted and not timed: ``python -m benchmarks.compiled``, which takes minutes.

Kernels are those that Inductor generates for a training step on the processor of this machine, by its own count. Graphs are
those that it compiles while each number of a loss that a schedule may change takes four values. A break of a graph would be an
error.
"""

import argparse
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._dynamo.utils import counters

from lossmith import make_loss
from lossmith.losses.catalogue.ready import ready_losses
from lossmith.losses.contract.adjustable import AdjustableNumber, adjustable_numbers

SHAPE = (256, 100)
VALUES = 4
# Numbers that are special to a formula, as a q of 0 is, are not met.
STEP = 0.0625


def generated_kernels(loss: Callable[[Tensor, Tensor], Tensor]) -> int:
    """Return how many kernels Inductor generates for a step."""
    from torch._inductor import metrics

    torch._dynamo.reset()
    metrics.reset()
    logits, target = torch.randn(SHAPE, requires_grad=True), torch.randint(SHAPE[1], SHAPE[:1])
    torch.compile(loss, fullgraph=True)(logits, target).backward()  # type: ignore[no-untyped-call]
    return int(metrics.generated_kernel_count)


def values_of(number: AdjustableNumber) -> list[float]:
    """Return a few values, from the one that the number has towards where it has more room."""
    limits, start = number.limits(), number.get()
    high = limits.high if limits.high is not None else float("inf")
    step = STEP if start + VALUES * STEP < high else -STEP
    return [start + step * (i + 0.5) for i in range(VALUES)]


def compiled_graphs(expression: str, name: str) -> int:
    """Return how many graphs are compiled while a number of a loss changes."""
    torch._dynamo.reset()
    counters.clear()
    loss = make_loss(expression)
    number = adjustable_numbers(loss)[name]
    compiled = torch.compile(loss, fullgraph=True)
    logits, target = torch.randn(SHAPE, requires_grad=True), torch.randint(SHAPE[1], SHAPE[:1])
    for value in values_of(number):
        number.set(value)
        compiled(logits, target).backward()
    return int(counters["stats"]["unique_graphs"])


def graphs(expression: str) -> str:
    """Return the graphs for each number of a loss."""
    names = [name for name in adjustable_numbers(make_loss(expression)) if name != "label_smoothing"]
    return ", ".join(f"{name} {compiled_graphs(expression, name)}" for name in names)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("losses", nargs="*", default=ready_losses(), help="expressions; the catalogue by default")
    parser.add_argument("--kernels", action="store_true", help="count kernels only, which takes seconds for each loss")
    chosen = parser.parse_args()
    torch._inductor.config.force_disable_caches = True  # what comes from a cache is not counted
    print("| loss | kernels | graphs |\n|---|---|---|")
    print(f"| F.cross_entropy | {generated_kernels(F.cross_entropy)} | |", flush=True)
    for expression in chosen.losses:
        numbers = "" if chosen.kernels else graphs(expression)
        print(f"| {expression} | {generated_kernels(make_loss(expression))} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
