"""What classes that are spread over processes need: ``python -m benchmarks.shards``.

First, what each loss sends for each row, counted on two processes of this machine. Then what a linear layer and its loss need for
each device with 10 and 100 million classes, computed; the same formula is checked against the memory of two processes here.
"""

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed._functional_collectives as functional_collectives
import torch.nn.functional as F
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import loss_parallel
from torch.multiprocessing import get_context

from benchmarks.measure import markdown_table, peak_memory
from lossmith import linear_loss, make_loss
from lossmith.distributed import sharded_loss
from lossmith.linear.call import Precision
from lossmith.linear.chunks import CACHED_ELEMENTS, Layer, rows_at_a_time
from lossmith.losses import LOSSES
from lossmith.losses.catalogue.ready import needs_no_data

NUMBER = 4
ROWS, WIDTH = 4096, 512
SIZES = ((10_000_000, 8), (10_000_000, 64), (100_000_000, 64), (100_000_000, 512))
CHECKED = (1024, 64, 200_000)
CLASSES = 1000


def sent_by(step: Callable[[], object]) -> tuple[int, int]:
    """Return how many bytes a process hands to the others in a step, and how often."""
    sizes: list[int] = []

    def counting(send: Callable[..., object], place: int) -> Callable[..., object]:
        def counted_send(*arguments: Any, **options: object) -> object:
            sizes.append(arguments[place].numel() * arguments[place].element_size())
            return send(*arguments, **options)

        return counted_send

    # What is sent is the first argument, or the second after a place for what comes.
    with (
        patch.object(distributed, "all_reduce", counting(distributed.all_reduce, 0)),
        patch.object(distributed, "all_gather", counting(distributed.all_gather, 1)),
        patch.object(functional_collectives, "all_reduce", counting(functional_collectives.all_reduce, 0)),
    ):
        step()
    return sum(sizes), len(sizes)


def counted(names: list[str]) -> dict[str, list[tuple[int, int]]]:
    """Return what is sent forward, and backward, for logits of one process in single precision; by torch's own loss first."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(16, 2 * CLASSES, generator=generator)
    target = torch.randint(2 * CLASSES, (16,), generator=generator)
    own = logits[:, distributed.get_rank() * CLASSES :][:, :CLASSES].clone().requires_grad_()
    with loss_parallel():
        found = {"torch's loss_parallel": sent_forward_and_backward(lambda: F.cross_entropy(spread(own), target))}
    for name in names:
        found[name] = sent_forward_and_backward(lambda name=name: sharded_loss(own, target, make_loss(name)))
    return found


def spread(own: torch.Tensor) -> DTensor:
    """Return the logits of all processes as one tensor."""
    mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
    return DTensor.from_local(own, mesh, [Shard(1)])


def sent_forward_and_backward(loss: Callable[[], torch.Tensor]) -> list[tuple[int, int]]:
    """Return what computing a loss sends, and what its gradient does."""
    values: list[torch.Tensor] = []
    return [sent_by(lambda: values.append(loss())), sent_by(values[0].backward)]


def memory() -> int:
    """Return the most bytes that a training step of a linear layer holds in a process with half of the classes."""
    rows, width, classes = CHECKED
    features, weight = torch.randn(rows, width).requires_grad_(), torch.zeros(classes // 2, width).requires_grad_()
    target = torch.arange(rows)

    def step() -> None:
        linear_loss(features, weight, target, make_loss("gce"), num_classes=classes).backward()
        features.grad = weight.grad = None

    return peak_memory(step)


def needed(rows: int, width: int, classes: int, device: str) -> tuple[int, int]:
    """Return the bytes of the weights of a device, and of what a training step holds beside them, their gradient among it."""
    layer = Layer(
        torch.empty(rows, width, device="meta"), torch.empty(classes, width, device="meta"), None, Precision(device, None)
    )
    chunk = rows_at_a_time(layer, None)
    seen = max(1, CACHED_ELEMENTS // classes) if device == "cpu" else chunk
    # The formula of a loss, differentiated by autograd, keeps about eight tensors of the rows that it sees.
    logits = chunk * classes + 8 * seen * classes
    return NUMBER * width * classes, NUMBER * (width * (classes + rows) + logits)


def run(rank: int, meeting: str, names: list[str], answers: object) -> None:
    """Be one of two processes."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    found = counted(names), memory()
    if rank == 0:
        answers.put(found)  # type: ignore[attr-defined]
    distributed.barrier()
    distributed.destroy_process_group()


def on_two_processes(names: list[str]) -> tuple[dict[str, list[tuple[int, int]]], int]:
    """Return what the first of two processes found."""
    context = get_context("spawn")
    answers = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        processes = [context.Process(target=run, args=(rank, f"{folder}/meeting", names, answers)) for rank in range(2)]
        for process in processes:
            process.start()
        found = answers.get(timeout=300)
        for process in processes:
            process.join()
    return found


def main() -> None:
    """Count, compute and check, and print it as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--losses", default=",".join(filter(needs_no_data, LOSSES)), help="names, separated by commas")
    found, peak = on_two_processes(parser.parse_args().losses.split(","))
    rows = [[name, *(f"{part // 16}" for pair in sent for part in (pair[0], 16 * pair[1]))] for name, sent in found.items()]
    print(markdown_table(["loss", "bytes of a row, forward", "calls", "backward", "calls"], rows))
    table = []
    for classes, devices in SIZES:
        weights, step = needed(ROWS, WIDTH, classes // devices, "cuda")
        gib = partial("{:.1f} GiB".format)
        table.append(
            [
                f"{classes:,}",
                str(devices),
                gib(weights / 2**30),
                gib(2 * weights / 2**30),
                gib(step / 2**30),
                gib((3 * weights + step) / 2**30),
            ]
        )
    header = ["classes", "devices", "weights", "state of Adam", "a training step", "together"]
    print(f"\n{ROWS} rows of {WIDTH} features, single precision, for each device:\n\n{markdown_table(header, table)}")
    rows_here, width, classes = CHECKED
    _, step = needed(rows_here, width, classes // 2, "cpu")
    print(f"\n{CHECKED} on two processes here: {step / 1e6:.0f} MB computed, {peak / 1e6:.0f} MB measured.")


if __name__ == "__main__":
    main()
