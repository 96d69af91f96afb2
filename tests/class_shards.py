"""One of several processes that each have some of the classes: every loss is that of one process with all of them."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, distributed
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import loss_parallel
from torch.nn import functional as F

from cases import CASES
from lossmith import linear_loss, make_loss
from lossmith.distributed import sharded_loss
from lossmith.losses import ClassificationLoss

DONE = "every loss is that of the whole"
CLASSES, ROWS, WIDTH = 7, 6, 9
GENERATOR = torch.Generator().manual_seed(0)
LOGITS = 3 * torch.randn(ROWS, CLASSES, generator=GENERATOR, dtype=torch.float64)
LOGITS[0, 2] = 40.0  # one class has all but 1e-17 of the probability
TIED = LOGITS.index_fill(1, torch.tensor([1, 5]), 50.0)  # two classes of different processes are ahead
INDICES = torch.tensor([2, -100, 0, 5, 6, 3])
PROBABILITIES = torch.softmax(torch.randn(ROWS, CLASSES, generator=GENERATOR, dtype=torch.float64), 1)
WEIGHT = torch.rand(CLASSES, generator=GENERATOR, dtype=torch.float64) + 0.1
SAMPLE_WEIGHT = torch.rand(ROWS, generator=GENERATOR, dtype=torch.float64)
CALLS = (
    ({}, INDICES, {}),
    ({"weight": WEIGHT, "label_smoothing": 0.2}, INDICES, {"sample_weight": SAMPLE_WEIGHT}),
    ({"weight": WEIGHT, "reduction": "none"}, PROBABILITIES, {}),
)
LAYER = [torch.randn(shape, generator=GENERATOR, dtype=torch.float64) for shape in ((ROWS, WIDTH), (CLASSES, WIDTH), (CLASSES,))]


def own_classes() -> slice:
    """Return the classes of this process."""
    size = -(-CLASSES // distributed.get_world_size())
    return slice(distributed.get_rank() * size, min(CLASSES, (distributed.get_rank() + 1) * size))


def with_gradients(function: Callable[..., Tensor], *inputs: Tensor) -> list[Tensor]:
    """Return a loss and its gradients."""
    leaves = [each.detach().clone().requires_grad_() for each in inputs]
    value = function(*leaves)
    return [value.detach(), *torch.autograd.grad(value, leaves, torch.full_like(value, 1.5))]


def check_every_loss() -> None:
    """Compare value and gradient of the loss of the whole and of its parts."""
    for expression in (each for each in CASES if "matrix=" not in each):  # which needs all classes in one place
        for own_options, target, options in CALLS if distributed.get_world_size() == 2 else CALLS[1:2]:
            compare(make_loss(expression, **own_options), LOGITS, target, options)
    for expression in ("ce", "nce", "nf", "complement-entropy", "bi-tempered"):
        compare(make_loss(expression), TIED, INDICES, {})


def compare(loss: ClassificationLoss, logits: Tensor, target: Tensor, options: dict) -> None:
    """Compare a loss of the whole and of its parts."""
    own = own_classes()
    value, gradient = with_gradients(lambda logits: loss(logits, target, **options), logits)
    found = with_gradients(lambda logits: sharded_loss(logits, target, loss, num_classes=CLASSES, **options), logits[:, own])
    torch.testing.assert_close(found, [value, gradient[:, own]], rtol=1e-10, atol=1e-13, msg=lambda text: f"{loss}: {text}")


def check_images() -> None:
    """Compare losses of logits with further dimensions, and of probabilities of which each process has its part."""
    own, logits = own_classes(), LOGITS.reshape(2, 3, CLASSES).movedim(2, 1)
    for expression in ("ce", "nf-mae", "bi-tempered", "label-smoothing"):
        loss = make_loss(expression)
        for whole, part in ((INDICES.view(2, 3),) * 2, (torch.softmax(-logits, 1), torch.softmax(-logits, 1)[:, own])):
            found = sharded_loss(logits[:, own], part, loss, num_classes=CLASSES)
            torch.testing.assert_close(found, loss(logits, whole), rtol=1e-10, atol=1e-13)


def check_second_derivatives() -> None:
    """Compare the gradient of a function of the gradient."""
    own = own_classes()

    def curvature(loss: Callable[[Tensor], Tensor], logits: Tensor, direction: Tensor) -> Tensor:
        leaf = logits.clone().requires_grad_()
        (slope,) = torch.autograd.grad(loss(leaf), leaf, create_graph=True)
        return torch.autograd.grad(slope, leaf, direction)[0]

    for expression in ("gce", "nce", "logit-norm", "bi-tempered", "sigmoid"):
        loss = make_loss(expression)
        expected = curvature(lambda logits, loss=loss: loss(logits, INDICES), LOGITS, WEIGHT.expand_as(LOGITS))
        found = curvature(
            lambda logits, loss=loss: sharded_loss(logits, INDICES, loss, num_classes=CLASSES),
            LOGITS[:, own],
            WEIGHT[own].expand(ROWS, -1),
        )
        torch.testing.assert_close(found, expected[:, own], rtol=1e-8, atol=1e-12, msg=lambda m: f"{expression}: {m}")  # noqa: B023


def whole_of(part: Tensor, mesh: DeviceMesh, place: Shard, like: Tensor) -> DTensor:
    """Return parts as one tensor; they may differ in size."""
    return DTensor.from_local(part, mesh, [place], shape=like.shape, stride=like.stride()).requires_grad_()


def check_dtensors() -> None:
    """Compare losses of a ``DTensor``, and cross-entropy beside torch's own."""
    own, mesh = own_classes(), init_device_mesh("cpu", (distributed.get_world_size(),))
    target = INDICES.clamp(min=0)
    for expression in ("ce", "gce", "logit-norm"):
        logits = whole_of(LOGITS[:, own].clone(), mesh, Shard(1), LOGITS)
        found = make_loss(expression)(logits, target)
        assert found.placements == (Replicate(),)
        found.backward()
        value, gradient = with_gradients(lambda logits, name=expression: make_loss(name)(logits, target), LOGITS)
        torch.testing.assert_close(found.to_local(), value)
        torch.testing.assert_close(logits.grad.to_local(), gradient[:, own] / 1.5)
        if expression == "ce":
            other = logits.detach().requires_grad_()
            with loss_parallel():
                theirs = F.cross_entropy(other, target)
                theirs.backward()
            torch.testing.assert_close(theirs.to_local(), found.to_local())
            torch.testing.assert_close(other.grad.to_local(), logits.grad.to_local())


def check_linear_layers() -> None:
    """Compare a linear layer of which each process has the weights of its classes."""
    own, mesh = own_classes(), init_device_mesh("cpu", (distributed.get_world_size(),))
    features, weight, bias = LAYER
    for expression in ("gce", "nce-mae", "smooth-topk(k=2)"):
        for own_options, target, options in CALLS:
            loss = make_loss(expression, **own_options)
            value, *gradients = with_gradients(lambda *layer, loss=loss: loss(F.linear(*layer), target, **options), *LAYER)  # noqa: B023
            expected = [value, gradients[0], gradients[1][own], gradients[2][own]]
            found = with_gradients(
                lambda x, w, b, loss=loss: linear_loss(x, w, target, loss, bias=b, num_classes=CLASSES, chunk=2, **options),  # noqa: B023
                *(features, weight[own], bias[own]),
            )
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)
    spread = DTensor.from_local(
        weight[own].clone(), mesh, [Shard(0)], shape=weight.shape, stride=weight.stride()
    ).requires_grad_()
    linear_loss(features, spread, INDICES, make_loss("gce"), chunk=2).backward()
    expected = with_gradients(lambda weight: make_loss("gce")(features @ weight.T, INDICES), weight)[1][own] / 1.5
    torch.testing.assert_close(spread.grad.to_local(), expected)


@contextmanager
def sent() -> Iterator[dict[str, int]]:
    """Count the bytes that this process hands to the others."""
    count = {"bytes": 0, "calls": 0}
    originals = {name: getattr(distributed, name) for name in ("all_reduce", "all_gather")}

    def counted(name: str) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            tensor = arguments[0] if name == "all_reduce" else arguments[1]
            count["bytes"] += tensor.numel() * tensor.element_size()
            count["calls"] += 1
            return originals[name](*arguments, **options)

        return call

    for name in originals:
        setattr(distributed, name, counted(name))
    try:
        yield count
    finally:
        for name, original in originals.items():
            setattr(distributed, name, original)


def check_bytes() -> None:
    """Check that what is sent does not grow with the number of classes, unless a loss is asked for one after another."""
    for expression in (each for each in CASES if "matrix=" not in each and "backward-correction(logit-bias" not in each):
        found = []
        for classes in (16, 1600):
            logits = torch.zeros(ROWS, classes // distributed.get_world_size(), requires_grad=True)
            with sent() as count:
                sharded_loss(logits, INDICES, make_loss(expression)).backward()
            found.append((count["bytes"], count["calls"]))
        is_solved = "tempered" in expression or "tsallis" in expression  # by Newton's method, in as many steps as it takes
        assert found[0] == found[1] or is_solved, (expression, found)
        assert max(found)[0] <= 60 * 8 * ROWS, (expression, found)
        if expression in ("ce", "gce", "focal"):  # the largest, the sum and the target's logit, and nothing for the gradient
            assert found[0] == (3 * 4 * ROWS, 2), found


if __name__ == "__main__":
    number, processes, meeting = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=number, world_size=processes)
    check_every_loss()
    if processes == 2:
        check_images()
        check_second_derivatives()
        check_bytes()
    check_dtensors()
    check_linear_layers()
    distributed.barrier()
    print(DONE, flush=True)  # noqa: T201
    os._exit(0)  # threads of gloo that are still there when Python ends now and then abort the process
