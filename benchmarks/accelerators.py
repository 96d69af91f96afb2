"""What a training step moves and starts on an accelerator, counted and not timed: `python -m benchmarks.accelerators`.

Bytes are those of tensors as large as the logits, and of what kernels keep of each row, for operations of torch and for Triton's
kernels. `python -m benchmarks.compiled` counts what torch.compile makes of the losses.
"""

import argparse
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from lossmith import make_loss
from lossmith.kernels.graphs.recorded import graphs_of
from lossmith.kernels.triton.programs import LONGEST_RESIDENT, printed_program
from lossmith.losses.catalogue.ready import ready_losses

SHAPES = ((4096, 1000), (512, 128000))
LABEL = 8
NUMBER = 4
# They read one number of a row, and change nothing where they are views.
OF_ENTRIES = ("nll_loss_forward", "nll_loss_backward", "gather")
FREE = ("view", "detach", "unsqueeze", "squeeze", "expand", "select", "alias", "t", "_unsafe_view", "empty", "empty_like")


class Traffic(TorchDispatchMode):
    """Counts operations, and how many tensors as large as the logits they read and write."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self.operations = 0
        self.passes = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):  # type: ignore[no-untyped-def]
        """Run an operation and count it."""
        result = function(*arguments, **(options or {}))
        name = function.overloadpacket.__name__
        if name not in FREE:
            self.operations += 1
            read = () if name in OF_ENTRIES else arguments
            self.passes += sum(self._is_large(each) for each in (*read, *(result if isinstance(result, tuple) else (result,))))
        return result

    def _is_large(self, value: object) -> bool:
        return isinstance(value, Tensor) and value.numel() == self._size


def eager(loss: Callable[[Tensor, Tensor], Tensor]) -> tuple[int, int]:
    """Return operations and passes over tensors of the logits' size of a step in plain torch."""
    logits, target = torch.randn(6, 11, requires_grad=True), torch.arange(6)
    with Traffic(logits.numel()) as traffic:
        loss(logits, target).backward(torch.ones(()))
    return traffic.operations, traffic.passes


def by_kernels(expression: str, shape: tuple[int, int], itemsize: int) -> float | None:
    """Return the bytes that Triton's kernels move for each row, or None where a loss has none."""
    known = graphs_of(make_loss(expression).formula(), shape[1], has_factors=False, dtype=torch.float32)
    if known is None:
        return None
    program = printed_program(known[0], resident=shape[1] <= LONGEST_RESIDENT, has_gradient=True)
    return (program.walks + 2) * shape[1] * itemsize + 2 * (program.kept * NUMBER + LABEL)


def traffic_table(expressions: Sequence[str]) -> None:
    """Print what a step starts and moves, bytes as a multiple of those of F.cross_entropy."""
    reference, passes = eager(F.cross_entropy)
    titles = [f"kernels {shape}" for shape in SHAPES]
    print("| loss | operations of the formula | bytes of the formula | launches of kernels | " + " | ".join(titles) + " |")
    print("|---|---|---|---|" + "---|" * len(titles))
    print(f"| F.cross_entropy | {reference} | 1.00 | | " + " | ".join("" for _ in titles) + " |")
    for expression in expressions:
        formula = make_loss(expression).formula()
        operations, moved = eager(lambda logits, target, formula=formula: formula.losses(logits, target).mean())
        found = [by_kernels(expression, shape, NUMBER) for shape in SHAPES]
        whole = [passes * classes * NUMBER for _, classes in SHAPES]
        shares = ["" if each is None else f"{each / by_torch:.2f}" for each, by_torch in zip(found, whole, strict=True)]
        print(f"| {expression} | {operations} | {moved / passes:.2f} | {'' if found[0] is None else 3} | {' | '.join(shares)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("losses", nargs="*", default=ready_losses(), help="expressions; the catalogue by default")
    traffic_table(parser.parse_args().losses)
