"""The bi-tempered loss beside cross-entropy and the implementation of pytorch-toolbelt: ``python -m benchmarks.tempered``.

pytorch-toolbelt is optional: ``pip install --no-deps pytorch-toolbelt`` adds its column. Only the one file is loaded, because
the package needs more than it.
"""

import argparse
import importlib.util
import runpy
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.measure import best_times, machine, markdown_table, peak_memory, training_step
from lossmith import BiTemperedLoss, TsallisLoss

Loss = Callable[[Tensor, Tensor], Tensor]

SHAPES = ((256, 1000), (4096, 1000))
TEMPERATURES = ((0.8, 1.2), (0.9, 1.05), (0.5, 1.5), (0.5, 4.0), (0.8, 1.3))


def toolbelt_loss(t1: float, t2: float) -> Loss | None:
    """Return the loss of pytorch-toolbelt, or None where it is not installed."""
    package = importlib.util.find_spec("pytorch_toolbelt")
    if package is None or package.origin is None:
        return None
    file = Path(package.origin).parent / "losses" / "bitempered_loss.py"
    loss: Loss = runpy.run_path(str(file))["BiTemperedLogisticLoss"](t1=t1, t2=t2)
    return loss


def candidates(t1: float, t2: float, compiled: bool) -> dict[str, Loss]:
    """Return what is timed together; cross-entropy is the unit."""
    ours = BiTemperedLoss(t1, t2)
    losses: dict[str, Loss] = {"ce": nn.CrossEntropyLoss(), "eager": ours, "tsallis": TsallisLoss(t1, t2)}
    if compiled:
        losses["compiled"] = torch.compile(ours, fullgraph=True)
    rival = toolbelt_loss(t1, t2)
    return losses if rival is None else losses | {"toolbelt": rival}


def row(shape: tuple[int, int], t1: float, t2: float, options: argparse.Namespace) -> list[str]:
    """Return one line of the table."""
    torch.compiler.reset()
    logits = torch.randn(shape, requires_grad=True)
    target = torch.randint(shape[1], shape[:1])
    losses = candidates(t1, t2, options.compiled)
    times = best_times({name: training_step(loss, logits, target) for name, loss in losses.items()}, seconds=options.seconds)
    memory = {name: peak_memory(training_step(losses[name], logits, target)) for name in ("ce", "eager")}
    buffers = (memory["eager"] - memory["ce"]) / (logits.numel() * logits.element_size())
    ratios = [
        f"{times[name] / times['ce']:.1f}" if name in times else "" for name in ("eager", "compiled", "tsallis", "toolbelt")
    ]
    return [str(shape), f"({t1}, {t2})", f"{times['ce'] * 1e3:.2f}", *ratios, f"{buffers:.1f}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each candidate (default: 1)")
    parser.add_argument("--compiled", action="store_true", help="time torch.compile, too")
    parser.add_argument("--first", action="store_true", help="only the first pair of temperatures")
    options = parser.parse_args()
    torch.manual_seed(0)
    pairs = TEMPERATURES[:1] if options.first else TEMPERATURES
    rows = [row(shape, t1, t2, options) for shape in SHAPES for t1, t2 in pairs]
    header = ("shape", "(t1, t2)", "CE, ms", "eager / CE", "compiled / CE", "tsallis / CE", "toolbelt / CE", "extra buffers")
    print(machine(), markdown_table(header, rows), sep="\n\n")


if __name__ == "__main__":
    main()
