"""One of two processes that train on halves of a batch, of which one has more rows that count than the other."""

import sys

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from lossmith import make_loss
from lossmith.distributed import global_denominator

EXPRESSIONS = ("ce", "gce", "nce-mae", "bi-tempered", "logit-bias(mae)")
CLASSES = 4


def whole_batch() -> tuple[Tensor, Tensor, dict]:
    """Return inputs, targets of which one half ignores most, and options."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(16, 3, generator=generator, dtype=torch.float64)
    target = torch.randint(CLASSES, (16,), generator=generator)
    target[9:15] = -100
    return inputs, target, {"weight": torch.tensor([0.2, 3.0, 1.0, 0.7], dtype=torch.float64), "label_smoothing": 0.1}


def model() -> nn.Module:
    """Return the same model in every process."""
    torch.manual_seed(1)
    return nn.Linear(3, CLASSES).double()


def gradients_of_the_whole() -> dict[str, Tensor]:
    """Return the gradient of the mean over the batch by one process, for each loss."""
    inputs, target, options = whole_batch()
    linear = model()
    return {
        name: torch.autograd.grad(make_loss(name, **options)(linear(inputs), target), linear.weight)[0] for name in EXPRESSIONS
    }


def train(rank: int) -> dict[str, Tensor]:
    """Return the gradients that this process has after those of both were averaged, its half in two pieces."""
    inputs, target, options = whole_batch()
    own = slice(8 * rank, 8 * (rank + 1))
    inputs, target = inputs[own], target[own]
    found = {}
    for name in EXPRESSIONS:
        parallel, loss = DistributedDataParallel(model()), make_loss(name, **options)
        total = global_denominator(target, weight=loss.weight)
        with parallel.no_sync():
            loss(parallel(inputs[:3]), target[:3], denominator=total).backward()
        loss(parallel(inputs[3:]), target[3:], denominator=total).backward()
        found[name] = parallel.module.weight.grad
    added_up = global_denominator(target, weight=loss.weight, averaged=False)
    assert torch.equal(added_up, 2 * total)
    return found


if __name__ == "__main__":
    number, meeting, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=number, world_size=2)
    torch.save(train(number), f"{folder}/{number}.pt")
    distributed.destroy_process_group()
