"""Losses and gradients against 400-digit arithmetic, to the last digits that their precision allows."""

import itertools

import mpmath
import pytest
import torch

from cases import ROUNDED_FAR_FROM_THE_TARGET, ROUNDED_IN_LONG_SUMS, ROUNDED_WITH_PROBABILITIES, only_by_kernels
from lossmith import make_loss
from lossmith.losses import LOSSES
from references import OF_LOGITS, REFERENCES, softmax

TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-13}


def rows() -> list[list[float]]:
    """Logits whose first class has a probability from 1e-300 to 1 - 1e-16, and others of any size and arrangement."""
    two = [[gap, 0.0] for gap in (-690.0, -300.0, -87.3, -40.0, -3.3, -1e-3, 0.0, 1e-3, 0.7, 3.3, 16.1, 22.22, 36.8)]
    many = [[gap, 0.37, -0.11, 0.05, 0.37] for gap in (-650.0, -90.5, -17.3, -1.1, 0.37, 1.9, 8.8, 15.3, 27.7, 37.7)]
    scales = [[scale * number for number in (0.31, -0.77, 0.52, 0.99)] for scale in (1e-3, 1.0, 10.0, 1e2, 1e3, 1e4)]
    shifted = [[1e4, 9999.5, 9990.0], [-1e4, -9999.5, -9990.0], [9000.125, 9037.25, 9000.0]]
    rival = [[0.21, 30.3, 0.1], [25.1, 0.2, -3.0], [5.0, 5.0, -20.0]]
    return two + many + scales + shifted + rival


def reference(expression: str, logits: list[float]) -> tuple[mpmath.mpf, list[mpmath.mpf]]:
    """Return the loss of class 0 and its gradient, by differences that are exact to about 30 digits."""

    def loss(numbers: list[mpmath.mpf]) -> mpmath.mpf:
        return REFERENCES[expression](softmax(numbers), 0)

    with mpmath.workdps(420):
        exact = [mpmath.mpf(logit) for logit in logits]
        step = mpmath.mpf(10) ** -40
        slopes = []
        for position in range(len(exact)):
            ahead, behind = list(exact), list(exact)
            ahead[position] += step
            behind[position] -= step
            slopes.append((loss(ahead) - loss(behind)) / (2 * step))
        return loss(exact), slopes


def tolerance(kind: str, logits: torch.Tensor) -> float:
    """With probability targets log p is kept in the working precision, and its rounding is a relative error of powers of p."""
    rounding = torch.finfo(logits.dtype).eps / 2 * float(logits.max() - logits.min()) if kind == "probabilities" else 0.0
    return TOLERANCE[logits.dtype] + rounding


def cancelled_pulls(expression: str, kind: str, logits: torch.Tensor) -> float:
    """The pulls ``1 / sum_c f_c`` of numerator and denominator of a normalised loss, where their difference is rounded.

    With class indices it is not a difference; with probability targets, and in the form printed in the paper, it is.
    """
    if not expression.startswith("n") or (kind == "indices" and "printed" not in expression):
        return 0.0
    return float(1 / -torch.log_softmax(logits.double(), 0).sum())


def at_a_kink(expression: str, logits: torch.Tensor) -> bool:
    """Where the loss has no gradient but a choice of them."""
    top = logits.topk(2)
    tied = bool(top.values[0] == top.values[1])
    return tied and (expression == "mpce" or (expression.startswith("truncated") and len(logits) == 2))


def as_floats(numbers: list[mpmath.mpf]) -> torch.Tensor:
    return torch.tensor([float(number) for number in numbers], dtype=torch.float64)


@pytest.mark.parametrize("expression", REFERENCES)
def test_value_and_gradient(expression):
    for dtype, row in itertools.product(TOLERANCE, rows()):
        logits = torch.tensor(row, dtype=dtype)
        exact = reference(expression, logits.tolist())
        for kind in ("indices", "probabilities"):
            check_value_and_gradient(expression, kind, logits, *exact)


def check_value_and_gradient(
    expression: str, kind: str, logits: torch.Tensor, value: mpmath.mpf, slopes: list[mpmath.mpf]
) -> None:
    dtype = logits.dtype
    target = torch.tensor(0) if kind == "indices" else torch.eye(len(logits), dtype=dtype)[0]
    leaf = logits.clone().requires_grad_()
    loss = make_loss(expression)(leaf, target)
    (gradient,) = torch.autograd.grad(loss, leaf)
    expected = as_floats(slopes)
    about = f"{expression} of {logits.tolist()} in {dtype}"
    if _is_normal(float(value), dtype):
        error = abs(loss.item() / float(value) - 1)
        assert error <= tolerance(kind, logits), f"{about}: {error / TOLERANCE[dtype]:.1f} times the tolerance"
    largest = max(float(expected.abs().max()), cancelled_pulls(expression, kind, logits))
    if _is_normal(largest, dtype) and not at_a_kink(expression, logits):
        error = (gradient.double() - expected).abs().max() / largest
        assert error <= tolerance(kind, logits), f"{about}: {error / TOLERANCE[dtype]:.1f} times the tolerance"


def _is_normal(number: float, dtype: torch.dtype) -> bool:
    """Whether full relative accuracy can be asked for: smaller numbers have fewer digits, zero has none."""
    return abs(number) > 64 * torch.finfo(dtype).tiny


def test_every_loss_has_a_reference():
    assert {expression.partition("(")[0] for expression in (*REFERENCES, *OF_LOGITS)} == set(LOSSES)


@pytest.mark.parametrize("expression", OF_LOGITS)
def test_losses_of_logits_are_their_formulas(expression):
    generator = torch.Generator().manual_seed(0)
    for classes, scale in itertools.product((4, 5, 7), (0.1, 1.0, 6.0)):
        row = scale * torch.randn(classes, generator=generator, dtype=torch.float64)
        for target in range(classes):
            found = make_loss(expression)(row, torch.tensor(target)).item()
            assert found == pytest.approx(float(OF_LOGITS[expression](row.tolist(), target)), rel=1e-13, abs=1e-14)


def test_logit_bias_is_the_loss_of_biased_logits():
    logits = torch.randn(8, 4, dtype=torch.float64)
    target = torch.randint(4, (8,))
    biased = logits.clone()
    biased[torch.arange(8), target] += 2.5
    expected = make_loss("mae")(biased, target)
    torch.testing.assert_close(make_loss("logit-bias(mae, epsilon=2.5)")(logits, target), expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("expression", REFERENCES)
def test_single_precision_follows_double_on_large_batches(expression, seed):
    """The fast path, the blocks and the exact path must all be right: rows of every confidence, in one batch and in many."""
    generator = torch.Generator().manual_seed(seed)
    scale = 10 ** (4 * torch.rand(600, 1, generator=generator) - 2)
    logits = (scale * torch.randn(600, 300, generator=generator)).requires_grad_()
    target = torch.where(
        torch.rand(600, generator=generator) < 0.5, logits.argmax(1), torch.randint(300, (600,), generator=generator)
    )
    loss = make_loss(expression, reduction="none")
    losses = loss(logits, target)
    (gradient,) = torch.autograd.grad(losses.sum(), logits)
    wide = logits.detach().double().requires_grad_()
    exact = loss(wide, target)
    (exact_gradient,) = torch.autograd.grad(exact.sum(), wide)
    normal = exact > 64 * torch.finfo(torch.float32).tiny
    assert ((losses.double() - exact).abs() <= 2e-6 * exact)[normal].all()
    largest = exact_gradient.abs().amax(1, keepdim=True)
    if "printed" in expression:
        largest = torch.maximum(largest, 1 / -torch.log_softmax(wide.detach(), 1).sum(1, keepdim=True))
    normal = (largest > 64 * torch.finfo(torch.float32).tiny).expand_as(gradient)
    assert ((gradient.double() - exact_gradient).abs() <= 2e-6 * largest)[normal].all()


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0, 20.0, 100.0, 1000.0])
# The squared error multiplies the sum of the probabilities, which is rounded, with squares of logits.
@pytest.mark.parametrize(("expression", "rounded"), [("mpce", 0.0), ("sigmoid", 0.0), ("squared-error", 2**-24)])
def test_class_probabilities_in_single_precision(expression, rounded, scale):
    only_by_kernels(expression, ROUNDED_WITH_PROBABILITIES)
    generator = torch.Generator().manual_seed(0)
    loss = make_loss(expression, reduction="none")
    for classes, sharpness in itertools.product((2, 3, 10, 100), (1.0, 5.0, 30.0)):
        logits = scale * torch.randn(50, classes, generator=generator)
        target = torch.softmax(sharpness * torch.randn(50, classes, generator=generator), 1)
        values, gradients = [], []
        for dtype in (torch.float32, torch.float64):
            leaf = logits.to(dtype).requires_grad_()
            values.append(loss(leaf, target.to(dtype)))
            gradients.append(torch.autograd.grad(values[-1].sum(), leaf)[0].double())
        slack = 1e-30 + rounded * logits.square().amax().item()
        torch.testing.assert_close(values[0].double(), values[1], rtol=2e-6, atol=slack)
        largest = gradients[1].abs().amax(1, keepdim=True)
        cancelled = 2**-23 * sigmoid_terms(logits, target) if expression == "sigmoid" else 0.0
        assert ((gradients[0] - gradients[1]).abs() <= 2e-6 * largest + cancelled + 1e-30).all()


def sigmoid_terms(logits, target):
    """The gradient is the difference of these, each rounded in the sigmoid and in the product; near the optimum it is smaller."""
    absent, present = (1 - target) * torch.sigmoid(logits), target * torch.sigmoid(-logits)
    return torch.maximum(absent, present).double()


@pytest.mark.parametrize("lead", [0.0, 6.0, 10.25, 13.5])
@pytest.mark.parametrize("shape", [(1000,), (30000,), (100, 3), (1000, 3)])
@pytest.mark.parametrize("expression", ["ce", "gce", "focal", "agce", "nce", "nce-mae", "nf"])
def test_many_classes_behind_a_single_one(expression, shape, lead):
    """Exponentials that are all alike are all rounded to the same side when they are added to a large one."""
    only_by_kernels(expression, ROUNDED_IN_LONG_SUMS)
    logits = torch.zeros(2, *shape)
    logits[:, 0] = lead
    target = torch.zeros(2, *shape[1:], dtype=torch.long)
    target[1] = 1
    loss = make_loss(expression, reduction="none")
    single, double = (value_and_gradient(loss, logits.to(dtype), target) for dtype in (torch.float32, torch.float64))
    torch.testing.assert_close(single[0].double(), double[0], rtol=2e-6, atol=0)
    error = (single[1].double() - double[1]).abs().amax(1) / double[1].abs().amax(1)
    assert error.max() <= 2e-6


@pytest.mark.parametrize("scale", [3.0, 16.0, 25.0, 80.0, 1e3, 1e4])
@pytest.mark.parametrize("classes", [2, 3, 4, 12, 13, 14, 100])
@pytest.mark.parametrize("expression", ["ce", "gce", "focal", "nce", "nf", "nce-mae", "nce-agce", "nf-mae", "nce + 2*nf"])
def test_targets_far_ahead_and_far_behind(expression, classes, scale):
    """Every entry of a gradient may be as small as the difference of two logits makes it, and entries of ties may cancel."""
    only_by_kernels(expression, ROUNDED_FAR_FROM_THE_TARGET)
    generator = torch.Generator().manual_seed(classes)
    nearly_alike = 1e-2 * torch.randn(3, 40, classes, generator=generator) + torch.randn(3, 40, 1, generator=generator) * scale
    target = torch.randint(classes, (3, 40), generator=generator)
    target_moved = torch.zeros_like(nearly_alike).scatter(2, target.unsqueeze(2), scale)
    logits = torch.cat((nearly_alike[0] + target_moved[0], nearly_alike[1] - target_moved[1], nearly_alike[2] + target_moved[2]))
    target[2] = (target[2] + 1) % classes
    loss = make_loss(expression, reduction="none")
    single, double = (value_and_gradient(loss, logits.to(dtype), target.flatten()) for dtype in (torch.float32, torch.float64))
    tiny = 64 * torch.finfo(torch.float32).tiny
    assert ((single[0].double() - double[0]).abs() <= 2e-6 * double[0] + tiny).all()
    assert ((single[1].double() - double[1]).abs() <= 2e-6 * double[1].abs().amax(1, keepdim=True) + tiny).all()


@pytest.mark.parametrize("shape", [(9, 1), (32, 2), (64,), (65,), (255,), (256,), (257,)])
@pytest.mark.parametrize("expression", ["ce", "el", "gce", "focal", "nce", "nf", "agce(b=1e-5, q=0.5)"])
def test_ties_far_ahead_of_many_alike(expression, shape):
    """The rounding of torch's softmax is a common error of all probabilities, which may count twice."""
    only_by_kernels(expression, ROUNDED_IN_LONG_SUMS)
    loss = make_loss(expression, reduction="none")
    for lead in (6.0, 13.5, 15.9, 16.6):
        logits = torch.zeros(2, *shape)
        logits[0, :2] = lead
        logits[1, 1] = lead
        target = torch.zeros(2, *shape[1:], dtype=torch.long)
        single, double = (value_and_gradient(loss, logits.to(dtype), target) for dtype in (torch.float32, torch.float64))
        torch.testing.assert_close(single[0].double(), double[0], rtol=2e-6, atol=0)
        error = (single[1].double() - double[1]).abs().amax(1) / double[1].abs().amax(1)
        assert error.max() <= 2e-6, lead


@pytest.mark.parametrize("shape", [(100,), (1000,), (30000,), (1000, 3), (30000, 3)])
@pytest.mark.parametrize("expression", ["logit-penalty(beta=0.1)", "squared-error"])
def test_sums_of_many_equal_squares(expression, shape):
    loss = make_loss(expression, reduction="none")
    for level in (0.7, 3.3):
        logits, target = torch.full((1, *shape), level), torch.zeros(1, *shape[1:], dtype=torch.long)
        torch.testing.assert_close(loss(logits, target).double(), loss(logits.double(), target), rtol=2e-6, atol=0)


def test_a_row_of_no_numbers_spoils_no_other():
    logits = torch.tensor([[2.0, 0.0, 0.0], [torch.nan, 0.0, 0.0], [30.0, 0.0, 0.0]])
    target = torch.tensor([[1.0, 0.0, 0.0]]).expand(3, 3)
    loss = make_loss("gce(q=1e-4)", reduction="none")
    clean = [0, 2]
    torch.testing.assert_close(loss(logits, target)[clean], loss(logits[clean], target[clean]), rtol=1e-6, atol=0)


def value_and_gradient(loss, logits, target):
    leaf = logits.requires_grad_()
    losses = loss(leaf, target)
    return losses.detach(), torch.autograd.grad(losses.sum(), leaf)[0]
