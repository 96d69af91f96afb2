"""What a step of a small batch is made of, where nearly everything is call overhead: ``python -m benchmarks.small_batches``.

Forward and backward at (128, 10) in single precision: microseconds, and multiples of ``F.cross_entropy`` in the same run; the
best of many, in turns, and the median of several processes.
"""

import argparse
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.losses import inputs
from benchmarks.measure import Step, best_times, in_new_processes, machine, markdown_table, training_step
from lossmith import kernels, make_loss
from lossmith.kernels.cpu import engine as cpu
from lossmith.kernels.native import engine as native

SHAPE = (128, 10)
BASELINE = "F.cross_entropy"


class Nothing(torch.autograd.Function):
    """An operation that computes nothing, and has a gradient."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        """Keep the logits."""
        ctx.save_for_backward(logits)
        return torch.scalar_tensor(1.0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # noqa: ARG004
        """Return what was kept."""
        kept: Tensor = ctx.saved_tensors[0]
        return kept.detach()


def kernel_alone(formula: kernels.Formula, logits: Tensor, target: Tensor, name: str) -> Step:
    """Return loss and gradient by the kernel that an engine has for a loss."""
    if name == "native":
        compiled, result = native.kernel_for(formula, logits, target), torch.empty(())
        if compiled is not None:
            return lambda: compiled.run(logits, target, 1 / SHAPE[0], result, has_gradient=True)
    else:
        kernel = cpu.kernel_for(formula, target)
        if kernel is not None:
            return lambda: kernel(logits, target, 1 / SHAPE[0])
    raise ValueError(f"losses must have kernels of their own, got {formula}.")


def steps(expression: str, name: str) -> dict[str, Step]:
    """Return the steps that are measured, from nothing to the whole call."""
    kernels.use(name)
    logits, target = inputs(SHAPE, "indices")
    loss, leaf = make_loss(expression), logits.detach()
    formula = loss.formula()
    return {
        BASELINE: training_step(F.cross_entropy, logits, target),
        "an operation in Python that computes nothing": training_step(lambda logits, _: Nothing.apply(logits), logits, target),
        f"{expression}: value and gradient, without a graph": kernel_alone(formula, leaf, target, name),
        f"{expression}: as one operation": training_step(lambda *rows: kernels.mean(formula, *rows, None), logits, target),
        f"{expression}: as it is called": training_step(loss, logits, target),
    }


def microseconds(expression: str, name: str, seconds: float) -> dict[str, float]:
    """Return the time of each step."""
    return {name: 1e6 * time for name, time in best_times(steps(expression, name), seconds=seconds).items()}


def main() -> None:
    """Measure and print a table for each loss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("losses", nargs="*", default=["ce", "gce"], help="expressions (default: ce gce)")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each step (default: 0.3)")
    parser.add_argument("--processes", type=int, default=3, help="whose median is printed (default: 3)")
    parser.add_argument(
        "--kernels", nargs="+", default=["auto", "native"], help="engines (default: auto, and native, which needs a C compiler)"
    )
    options = parser.parse_args()
    print(machine())
    for name in options.kernels:
        for expression in options.losses:
            times = in_new_processes(microseconds, (expression, name, options.seconds), options.processes)
            rows = [[step, f"{time:.0f}", f"{time / times[BASELINE]:.2f}"] for step, time in times.items()]
            header = [f"step, LOSSMITH_KERNELS={name}", "microseconds", "of F.cross_entropy"]
            print(f"\n{markdown_table(header, rows)}", flush=True)


if __name__ == "__main__":
    main()
