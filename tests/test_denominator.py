"""Batches in pieces: with the denominator of the whole, the gradients of the pieces add up to that of the whole."""

import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._dynamo.testing import CompileCounterWithBackend

import two_processes
from cases import CASES
from lossmith import BinaryBiTemperedLoss, CrossEntropyLoss, make_loss
from lossmith.distributed import global_denominator

CLASSES = 5
ROWS = 12
WEIGHT = torch.tensor([0.5, 2.0, 1.0, 0.0, 3.0], dtype=torch.float64)


@st.composite
def batches(draw):
    """Draw logits, a target, weights of the examples, options, and where the batch is cut."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1 << 30)))
    shape = draw(st.sampled_from([(ROWS, CLASSES), (ROWS, CLASSES, 3)]))
    logits = 2 * torch.randn(shape, generator=generator, dtype=torch.float64)
    target = torch.randint(CLASSES, shape[:1] + shape[2:], generator=generator)
    if draw(st.booleans()):
        target = torch.softmax(torch.randn(shape, generator=generator, dtype=torch.float64), 1)
    elif draw(st.booleans()):
        target[draw(st.lists(st.integers(0, ROWS - 1), max_size=ROWS - 1))] = -100
        target[-1] = 0  # some row counts
    factors = torch.rand(shape[:1] + shape[2:], generator=generator, dtype=torch.float64) if draw(st.booleans()) else None
    options = {"weight": draw(st.sampled_from([None, WEIGHT])), "label_smoothing": draw(st.sampled_from([0.0, 0.2]))}
    return logits, target, factors, options, sorted(draw(st.sets(st.integers(1, ROWS - 1), max_size=3)))


def gradient(value, leaf):
    return torch.autograd.grad(value, leaf)[0]


@pytest.mark.parametrize("expression", CASES)
@settings(max_examples=10)
@given(batch=batches(), reduction=st.sampled_from(["mean", "sum"]), as_number=st.booleans())
def test_pieces_add_up_to_the_whole(expression, batch, reduction, as_number):
    logits, target, factors, options, cuts = batch
    logits.requires_grad_()
    whole = make_loss(expression, **options)(logits, target, sample_weight=factors)
    loss = make_loss(expression, reduction=reduction, **options)
    weights = [None] * (len(cuts) + 1) if factors is None else factors.tensor_split(cuts)
    targets = target.tensor_split(cuts)
    total = sum(loss.denominator(*piece[:1], sample_weight=piece[1]) for piece in zip(targets, weights, strict=True))
    total = total.item() if as_number else total
    pieces = zip(logits.tensor_split(cuts), targets, weights, strict=True)
    parts = [loss(rows, labels, sample_weight=weight, denominator=total) for rows, labels, weight in pieces]
    torch.testing.assert_close(sum(parts), whole, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(sum(gradient(part, logits) for part in parts), gradient(whole, logits), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"weight": WEIGHT.float()}])
def test_all_kinds_of_denominators_divide_the_sum(options):
    logits, target = torch.randn(6, CLASSES, requires_grad=True), torch.tensor([0, 1, 2, 4, 4, 0])
    expected = make_loss("gce", reduction="sum", **options)(logits, target) / 7
    expected_gradient = gradient(expected, logits)
    loss = make_loss("gce", **options)
    for denominator in (7, 7.0, torch.tensor(7), torch.tensor(7.0, dtype=torch.float64), torch.tensor(7.0, requires_grad=True)):
        value = loss(logits, target, denominator=denominator)
        assert value.dtype == torch.float32
        torch.testing.assert_close(value, expected)
        torch.testing.assert_close(gradient(value, logits), expected_gradient)
    wide = logits.detach().double().requires_grad_()
    denominator = torch.tensor(7.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, n: loss(x, target, denominator=n), (wide, denominator))
    assert torch.autograd.gradgradcheck(lambda x: loss(x, target, denominator=7), wide)


def test_a_denominator_of_nothing_is_torchs_division():
    logits, ignored = torch.randn(3, CLASSES), torch.full((3,), -100)
    loss = CrossEntropyLoss()
    assert loss(logits, ignored, denominator=5) == 0  # a piece in which nothing counts adds nothing to the whole
    assert loss(logits, ignored, denominator=loss.denominator(ignored)).isnan()
    assert loss(logits, torch.tensor([0, 1, 2]), denominator=torch.tensor(0)).isinf()


def test_sums_that_half_precision_cannot_hold_are_divided_first():
    logits, target = torch.full((1000, 2), 100.0, dtype=torch.float16), torch.zeros(1000, dtype=torch.long)
    logits[:, 0] = -100
    assert make_loss("ce", reduction="sum")(logits, target).isinf()
    assert make_loss("ce")(logits, target, denominator=2000) == 100


def test_one_graph_serves_all_denominators():
    torch._dynamo.reset()
    logits, target = torch.randn(6, CLASSES), torch.tensor([0, 1, 2, 3, 4, -100])
    backend = CompileCounterWithBackend("aot_eager")
    loss = make_loss("gce")
    compiled = torch.compile(loss, fullgraph=True, backend=backend)
    for number in (3, 16, 17, 18):
        torch.testing.assert_close(compiled(logits, target, denominator=number), loss(logits, target, denominator=number))
        tensor = torch.tensor(number)
        torch.testing.assert_close(compiled(logits, target, denominator=tensor), loss(logits, target, denominator=number))
    assert backend.frame_count <= 3  # one for tensors, one for the first number, one for all others


def test_export_and_vmap():
    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.loss = make_loss("gce")

        def forward(self, logits, target, denominator):
            return self.loss(logits, target, denominator=denominator)

    logits, target, step = torch.randn(3, 6, CLASSES), torch.tensor([0, 1, 2, 3, 4, -100]), Step()
    exported = torch.export.export(step, (logits[0], target, torch.tensor(4.0))).module()
    torch.testing.assert_close(exported(logits[0], target, torch.tensor(9.0)), step(logits[0], target, 9))
    numbers = torch.tensor([1.0, 2.0, 3.0])
    mapped = torch.func.vmap(step, in_dims=(0, None, 0))(logits, target, numbers)
    torch.testing.assert_close(mapped, torch.stack([step(*each) for each in zip(logits, [target] * 3, numbers, strict=True)]))


def test_binary_losses_have_it_too():
    loss, logits, target = BinaryBiTemperedLoss(), torch.randn(4, 3), torch.ones(4, 3)
    torch.testing.assert_close(loss(logits, target, denominator=24), loss(logits, target) / 2)


@pytest.mark.parametrize(
    ("denominator", "reduction", "message"),
    [
        (0, "mean", "CrossEntropyLoss: denominator must be > 0, got 0.0."),
        ("3", "mean", "CrossEntropyLoss: denominator must be a number > 0, got str '3'."),
        (3, "none", "CrossEntropyLoss: denominator must be left out where reduction is 'none', as there is no sum to divide."),
        (
            torch.ones(2),
            "mean",
            (
                "CrossEntropyLoss: denominator must be a number, or a tensor of one without dimensions,"
                " got torch.float32 of shape (2,)."
            ),
        ),
    ],
)
def test_errors(denominator, reduction, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        CrossEntropyLoss(reduction=reduction)(torch.zeros(2, 3), torch.tensor([0, 1]), denominator=denominator)
    assert str(caught.value) == message


def test_errors_of_denominators_of_targets():
    with pytest.raises(IndexError, match=r"global_denominator: target must lie in \[0, 4\] or be ignore_index=-100, got 5"):
        global_denominator(torch.tensor([5]), weight=WEIGHT)
    with pytest.raises(ValueError, match=r"CrossEntropyLoss: sample_weight must have shape \(2,\), got \(3,\)"):
        CrossEntropyLoss().denominator(torch.tensor([0, 1]), sample_weight=torch.ones(3))


def test_two_processes_have_the_gradient_of_the_whole_batch(tmp_path):
    meeting = tmp_path / "meeting"
    commands = [[sys.executable, two_processes.__file__, str(rank), str(meeting), str(tmp_path)] for rank in (0, 1)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]  # noqa: S603
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    found = [torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1)]
    for name, expected in two_processes.gradients_of_the_whole().items():
        torch.testing.assert_close(found[0][name], expected, rtol=1e-12, atol=1e-15)
        assert torch.equal(found[0][name], found[1][name])
