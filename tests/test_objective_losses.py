"""The losses of output-layer objectives and complement training, against references that share no code with them."""

import math
from collections.abc import Callable

import mpmath
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lossmith import (
    ComplementObjective,
    CrossEntropyLoss,
    LabelSmoothingLoss,
    LogitNormLoss,
    LogitPenaltyLoss,
    SigmoidCrossEntropyLoss,
    SquaredErrorLoss,
    make_loss,
)
from lossmith.kernels.cpu.of_logits.norms import Directions
from lossmith.kernels.cpu.of_logits.sigmoid import _log2_e
from lossmith.losses import ClassificationLoss, ComplementEntropyLoss

EXPRESSIONS = [
    "label-smoothing(alpha=0.3)",
    "logit-penalty(beta=0.02)",
    "logit-norm(tau=0.3)",
    "sigmoid",
    "squared-error(kappa=3.0, target=2.0, scale=1.5)",
    "complement-entropy",
    "cot(gamma=0.7)",
]


def exact(expression: str, logits: list[float], y: int) -> mpmath.mpf:
    """The published formulas with fifty digits."""
    loss = make_loss(expression)
    z = [mpmath.mpf(x) for x in logits]
    K = len(z)
    if isinstance(loss, LogitNormLoss):
        length = mpmath.sqrt(sum(x * x for x in z))
        z = [x / (loss.tau * length) if length else x / loss.tau for x in z]
    total = sum(mpmath.exp(x) for x in z)
    log_p = [x - mpmath.log(total) for x in z]
    if isinstance(loss, LabelSmoothingLoss):  # equation 2
        alpha = mpmath.mpf(loss.alpha)
        return -sum(((1 - alpha) * (k == y) + alpha / K) * log_p[k] for k in range(K)) / (1 - alpha)
    if isinstance(loss, LogitPenaltyLoss):  # equation 5
        return -log_p[y] + mpmath.mpf(loss.beta) * sum(x * x for x in z)
    if isinstance(loss, SigmoidCrossEntropyLoss):  # equation 9
        return -z[y] + sum(mpmath.log1p(mpmath.exp(x)) for x in z)
    if isinstance(loss, SquaredErrorLoss):  # equation 10
        return loss.scale * sum(loss.kappa * (z[k] - loss.target) ** 2 if k == y else z[k] ** 2 for k in range(K)) / K
    others = sum(mpmath.exp(z[k]) for k in range(K) if k != y)
    shares = [mpmath.exp(z[k]) / others for k in range(K) if k != y]
    complement = sum(r * mpmath.log(r) for r in shares)
    if isinstance(loss, ComplementObjective):
        return -log_p[y] + loss.gamma * complement
    return complement if isinstance(loss, ComplementEntropyLoss) else -log_p[y]


def exact_gradient(expression: str, logits: list[float], y: int) -> list[float]:
    """Central differences: with 400 digits and steps of 1e-130 they are exact to far more digits than are compared."""
    gradient = []
    for k in range(len(logits)):
        step = mpmath.mpf(10) ** -130
        ahead, behind = (
            exact(expression, [mpmath.mpf(x) + sign * step * (i == k) for i, x in enumerate(logits)], y) for sign in (1, -1)
        )
        gradient.append(float((ahead - behind) / (2 * step)))
    return gradient


ROWS = [
    [0.3, -1.2, 2.0, 0.5],
    [30.0, 0.0, -3.0, 1.0],
    [-30.0, 2.0, 1.0, 0.0],
    [2.0, 40.0, 0.0, -1.0],
    [1e4, 0.0, 3.0, -1e4],
    [-1e4, 1e4, 5.0, 1e4 - 1],
    [1e4, 1e4, 1e4, 1e4],
    [1e-3, -1e-3, 2e-3, 0.0],
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("row", range(len(ROWS)))
def test_loss_and_gradient_equal_the_formula(expression: str, row: int) -> None:
    logits = ROWS[row]
    dtype = torch.float64
    rounded = torch.tensor(logits, dtype=dtype, requires_grad=True)
    loss = make_loss(expression)(rounded, torch.tensor(0))
    loss.backward()
    with mpmath.workdps(400):
        value, gradient = exact(expression, logits, 0), exact_gradient(expression, logits, 0)
    # A few dozen roundings; the complement's entropy and the sum with cross-entropy add terms of opposite sign.
    size = max(abs(float(value)), abs(float(exact("ce", logits, 0))) if expression.startswith("cot") else 0.0)
    assert abs(loss.item() - float(value)) <= 60 * torch.finfo(dtype).eps * size + 1e-300
    largest = max(abs(g) for g in gradient)
    tolerance = 200 * torch.finfo(dtype).eps * max(largest, scale_of(expression, logits))
    assert_rounding(rounded.grad, torch.tensor(gradient, dtype=dtype), tolerance)


def scale_of(expression: str, logits: list[float]) -> float:
    """The size of the terms whose difference the gradient is, where they can be larger than it."""
    if expression.startswith("logit-norm"):
        return 1 / (0.3 * math.hypot(*logits))
    return abs(float(exact(expression, logits, 0))) if expression == "complement-entropy" else 0.0


def assert_rounding(found: Tensor | None, expected: Tensor, tolerance: float) -> None:
    assert found is not None
    assert found.isfinite().all()
    assert (found - expected).abs().max().item() <= tolerance


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_derivatives(expression: str) -> None:
    torch.manual_seed(0)
    loss = make_loss(expression, reduction="none")
    logits = torch.randn(1, 3, 2, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([[0, 2]])
    probabilities = torch.softmax(torch.randn(1, 3, 2, dtype=torch.float64), 1).requires_grad_()
    assert torch.autograd.gradcheck(lambda z: loss(z, target), logits, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda z: loss(z, target), logits)
    assert torch.autograd.gradcheck(loss, (logits, probabilities), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(loss, (logits, probabilities))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_soft_targets_are_expected_class_weighted_losses(expression: str) -> None:
    torch.manual_seed(1)
    logits = 3 * torch.randn(5, 4, dtype=torch.float64)
    probabilities = torch.softmax(torch.randn(5, 4, dtype=torch.float64), 1)
    weight = torch.tensor([0.2, 1.0, 3.0, 0.7], dtype=torch.float64)
    loss = make_loss(expression, reduction="none", weight=weight)
    each = torch.stack([loss(logits, torch.full((5,), c)) for c in range(4)], 1)  # holds the weights already
    torch.testing.assert_close(loss(logits, probabilities), (probabilities * each).sum(1))
    target = torch.tensor([0, 3, 1, 2, 2])
    torch.testing.assert_close(loss(logits, F.one_hot(target, 4).double()), loss(logits, target))


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_finite_for_extreme_logits(expression: str, dtype: torch.dtype) -> None:
    logits = torch.tensor(
        [[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4], [0.0, 0.0, 0.0], [1e-30, 0.0, 0.0]], dtype=dtype, requires_grad=True
    )
    for target in (
        torch.tensor([0, 0, 1, 1]),
        torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]),
    ):
        loss = make_loss(expression, reduction="sum")(logits.float() if dtype.itemsize == 2 else logits, target)
        (gradient,) = torch.autograd.grad(loss, logits)
        assert loss.isfinite()
        assert gradient.isfinite().all()


@pytest.mark.parametrize(
    ("expression", "special"),
    [
        ("label-smoothing(alpha=0)", "ce"),
        ("logit-penalty(beta=0)", "ce"),
        ("cot(gamma=0)", "ce"),
        ("label-smoothing(alpha=0.2)", "1.25*ce(label_smoothing=0.2)"),
        ("cot(gamma=2)", "ce + 2*complement-entropy"),
    ],
)
def test_special_cases(expression: str, special: str) -> None:
    torch.manual_seed(2)
    logits, target = 5 * torch.randn(8, 6, dtype=torch.float64), torch.randint(6, (8,))
    torch.testing.assert_close(make_loss(expression)(logits, target), make_loss(special)(logits, target))


def test_squared_error_is_the_mean_squared_error_to_the_one_hot_vector() -> None:
    logits, target = torch.randn(8, 6, dtype=torch.float64), torch.randint(6, (8,))
    torch.testing.assert_close(SquaredErrorLoss()(logits, target), F.mse_loss(logits, F.one_hot(target, 6).double()))


def test_sigmoid_takes_multi_label_targets() -> None:
    torch.manual_seed(3)
    logits = 4 * torch.randn(8, 6, dtype=torch.float64)
    labels = torch.randint(2, (8, 6)).double()
    labels[0] = 0
    expected = F.binary_cross_entropy_with_logits(logits, labels, reduction="sum") / 8
    torch.testing.assert_close(SigmoidCrossEntropyLoss()(logits, labels), expected)
    torch.testing.assert_close(SigmoidCrossEntropyLoss(weight=torch.ones(6))(logits, labels), expected)
    # A present class has its own weight, an absent one the mean weight of the present.
    weight = torch.tensor([2.0, 5.0, 1.0], dtype=torch.float64)
    row, both = torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64), torch.tensor([[1.0, 1.0, 0.0]], dtype=torch.float64)
    softplus = torch.log1p(torch.exp(torch.tensor([-1.0, 2.0, 0.5], dtype=torch.float64)))
    expected = (torch.tensor([2.0, 5.0, 3.5], dtype=torch.float64) * softplus).sum()
    torch.testing.assert_close(SigmoidCrossEntropyLoss(weight=weight)(row, both), expected)


def test_sigmoid_probabilities_and_bias() -> None:
    loss, head = SigmoidCrossEntropyLoss(), nn.Linear(3, 50)
    loss.init_bias_(head)
    nn.init.zeros_(head.weight)
    assert torch.sigmoid(head(torch.ones(3))).tolist() == pytest.approx([1 / 51] * 50)
    logits = torch.tensor([[-200.0, -201.0], [300.0, 300.0]], dtype=torch.float64)
    ratio = math.exp(-1)
    expected = torch.tensor([[1 / (1 + ratio), ratio / (1 + ratio)], [0.5, 0.5]], dtype=torch.float64)
    torch.testing.assert_close(loss.predict_proba(logits), expected)
    with pytest.raises(TypeError, match="head must be a layer with biases, got ReLU"):
        loss.init_bias_(nn.ReLU())


def test_logit_norm_ignores_length_and_leaves_zero() -> None:
    loss = LogitNormLoss(tau=0.1)
    logits, target = torch.randn(6, 5), torch.randint(5, (6,))
    torch.testing.assert_close(loss(logits, target), loss(1e20 * logits, target))
    torch.testing.assert_close(loss.predict_proba(logits), torch.softmax(F.normalize(logits) / 0.1, 1))
    zero = torch.zeros(4, 5, requires_grad=True)
    value = loss(zero, torch.tensor([0, 1, 2, 3]))
    value.backward()
    assert value.item() == pytest.approx(math.log(5))
    torch.testing.assert_close(zero.grad, (torch.full((4, 5), 0.2) - torch.eye(5)[:4]) / 0.1 / 4)


@pytest.mark.parametrize("spread", [1.0, 15.0])
@pytest.mark.parametrize("classes", [100, 10_000])
def test_sigmoid_hides_no_infinite_logit_of_a_target(classes: int, spread: float) -> None:
    """Large batches and wide logits are looked at in other ways than small and moderate ones."""
    logits = (spread * torch.randn(8, classes)).requires_grad_()
    target = torch.randint(classes, (8,))
    with torch.no_grad():
        logits[3, target[3]] = torch.inf
    losses = make_loss("sigmoid", reduction="none")(logits, target)
    (gradient,) = torch.autograd.grad(losses.sum(), logits)
    expected = [row == 3 for row in range(8)]
    assert losses.isnan().tolist() == gradient.isnan().any(1).tolist() == expected


def test_sigmoid_does_not_depend_on_defaults() -> None:
    logits, target = torch.randn(3, 70), torch.tensor([0, 1, 2])
    expected = SigmoidCrossEntropyLoss()(logits, target)
    with torch.device("meta"):
        assert torch.equal(SigmoidCrossEntropyLoss()(logits, target), expected)
    before = torch.get_default_dtype()
    _log2_e.cache_clear()
    torch.set_default_dtype(torch.float16)
    try:
        assert torch.equal(SigmoidCrossEntropyLoss()(logits, target), expected)
    finally:
        torch.set_default_dtype(before)


def test_logit_norm_of_one_logit_far_ahead_of_many() -> None:
    # Squares that are added one after another to a large one are rounded each time, and 1 / tau multiplies what they lose.
    logits = torch.full((1, 1000), 0.00024)
    logits[0, 0] = 1.0
    expected = PLAIN["logit-norm(tau=0.2)"](logits.double(), torch.tensor([0])).item()
    assert LogitNormLoss(tau=0.2)(logits, torch.tensor([0])).item() == pytest.approx(expected, rel=2e-6)
    long = torch.full((1, 40_000), 1e-3)
    long[0, 0] = 1.0
    leaf, wide, target = long.clone().requires_grad_(), long.double().requires_grad_(), torch.tensor([39_999])
    LogitNormLoss(tau=0.2)(leaf, target).backward()
    (slopes,) = torch.autograd.grad(PLAIN["logit-norm(tau=0.2)"](wide, target).mean(), wide)
    assert leaf.grad is not None
    assert_rounding(leaf.grad.double(), slopes, 2e-6 * slopes.abs().max().item())


@pytest.mark.parametrize(("num_classes", "rounding"), [(100, 2e-6), (1000, 2**-17), (1024, 2**-17), (1025, 2e-6), (40_000, 2e-6)])
@pytest.mark.parametrize("others", [2.4e-4, 1e-3, 0.03, 1.0])
def test_pull_at_a_direction_in_the_worst_arrangement(num_classes: int, rounding: float, others: float) -> None:
    torch.manual_seed(0)
    logits = others * (1 + 0.1 * torch.rand(8, num_classes))
    logits[:, 0] = 1.0
    pull = torch.softmax(20 * torch.rand(8, 1) * logits, 1)
    pull[:, -1] -= 1
    with torch.no_grad():
        found = Directions(logits, 1.0).pull_back(pull, 1.0)
    z, g, length = logits.double(), pull.double(), logits.double().norm(dim=1, keepdim=True)
    expected = (g - z * ((z * g).sum(1, keepdim=True) / length.square())) / length
    terms = g.abs().amax(1, keepdim=True) / length
    assert ((found - expected).abs() <= rounding * terms).all()


@pytest.mark.parametrize("exponent", [-16, -12, -9, 9, 12, 16, 20, 30, 37])
def test_logit_norm_of_logits_of_any_size(exponent: int) -> None:
    logits, target = torch.randn(6, 5, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 3, 1, 2, 2, 4])
    results = []
    for scale in (1.0, 10.0**exponent):
        leaf = (logits * scale).requires_grad_()
        loss = LogitNormLoss(tau=0.5)(leaf, target)
        loss.backward()
        assert leaf.grad is not None
        results.append((loss.detach(), leaf.grad.double() * scale))
    # The scaled logits are rounded, which is all that tells them apart; the smallest gradients are subnormal numbers.
    torch.testing.assert_close(results[1][0], results[0][0], rtol=1e-6, atol=0)
    rounding = 2e-6 if exponent < 37 else 1e-2
    assert_rounding(results[1][1], results[0][1], rounding * results[0][1].abs().max().item())


@pytest.mark.parametrize("tau", [1.0, 0.2, 0.14, 0.04, 0.0279, 0.0277])
@pytest.mark.parametrize("num_classes", [2, 3, 65, 1000, 1025])
@pytest.mark.parametrize("values", ["normal", "right", "wrong"])
def test_logit_norm_of_every_confidence(tau: float, num_classes: int, values: str) -> None:
    torch.manual_seed(0)
    target = torch.randint(num_classes, (16,))
    logits = torch.randn(16, num_classes)
    if values != "normal":
        ahead = (target if values == "right" else (target + 1) % num_classes).unsqueeze(1)
        logits = (0.05 * logits).scatter(1, ahead, torch.logspace(-1, 1.5, 16).unsqueeze(1))
    leaf, wide = logits.clone().requires_grad_(), logits.double().requires_grad_()
    losses = LogitNormLoss(tau, reduction="none")(leaf, target)
    losses.sum().backward()
    scaled = F.normalize(wide) / tau
    others = torch.logsumexp(scaled.scatter(1, target.unsqueeze(1), -math.inf), 1)
    expected = F.softplus(others - scaled.gather(1, target.unsqueeze(1)).squeeze(1), threshold=700)
    (slopes,) = torch.autograd.grad(expected.sum(), wide)
    # Eight roundings of exponents that are 1 / tau in size; the gradient is a difference of terms of the size of what p leaves.
    rounding = 8 * max(1 / tau, 4) * 2**-24
    assert ((losses.double() - expected).abs() <= rounding * expected).all()
    terms = -torch.expm1(-expected) / (tau * wide.norm(dim=1))
    assert leaf.grad is not None
    assert ((leaf.grad.double() - slopes).abs() <= rounding * terms.unsqueeze(1)).all()


@pytest.mark.parametrize("tau", [1.0, 0.14, 0.04, 0.028])
@pytest.mark.parametrize("num_classes", [3, 1025])
@pytest.mark.parametrize("size", [1e-16, 1e-9, 1e-6, 1e5, 1e7, 1e10, 1e20, 1e27, 1e35])
def test_logit_norm_of_large_and_small_logits_of_many_rows(tau: float, num_classes: int, size: float) -> None:
    torch.manual_seed(0)
    logits = torch.randn(4096 if num_classes < 10 else 64, num_classes) * size
    leaf, wide, target = logits.clone().requires_grad_(), logits.double().requires_grad_(), logits.argmin(1)
    LogitNormLoss(tau)(leaf, target).backward()
    F.cross_entropy(F.normalize(wide, eps=0) / tau, target).backward()
    assert leaf.grad is not None
    assert wide.grad is not None
    terms = 1 / (tau * wide.detach().norm(dim=1, keepdim=True) * len(logits))
    rounding = 8 * max(1 / tau, 4) * 2**-24 * terms
    subnormal = 4 * 2**-149  # the smallest numbers are multiples of this, and four of them are added
    assert ((leaf.grad.double() - wide.grad).abs() <= rounding + subnormal).all()


def test_logit_norm_of_the_largest_logits_in_double_precision() -> None:
    logits = (torch.tensor([[3.0, -2.0, 1.0]], dtype=torch.float64) * 1e300).requires_grad_()
    LogitNormLoss(tau=0.04)(logits, torch.tensor([1])).backward()
    small = torch.tensor([[3.0, -2.0, 1.0]], dtype=torch.float64, requires_grad=True)
    LogitNormLoss(tau=0.04)(small, torch.tensor([1])).backward()
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad * 1e300, small.grad)


PLAIN: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "label-smoothing": lambda z, y: F.cross_entropy(z, y, label_smoothing=0.1, reduction="none") / 0.9,
    "logit-penalty(beta=0.01)": lambda z, y: F.cross_entropy(z, y, reduction="none") + 0.01 * z.square().sum(1),
    "logit-norm(tau=0.2)": lambda z, y: F.cross_entropy(F.normalize(z) / 0.2, y, reduction="none"),
    "sigmoid": lambda z, y: F.softplus(z, threshold=40).sum(1) - z.gather(1, y.unsqueeze(1)).squeeze(1),
    "squared-error": lambda z, y: (z - F.one_hot(y, z.shape[1])).square().mean(1),
}


@pytest.mark.parametrize("expression", PLAIN)
@pytest.mark.parametrize("num_classes", [3, 63, 64, 65, 66, 67, 1000, 1024, 1025, 3001, 40_000])
@pytest.mark.parametrize("values", ["normal", "equal", "two", "behind"])
def test_single_precision_with_many_classes(expression: str, num_classes: int, values: str) -> None:
    torch.manual_seed(0)
    target = torch.randint(num_classes, (6,))
    logits = {
        "normal": torch.randn(6, num_classes),
        "equal": (torch.rand(6, 1) + 0.1).expand(6, num_classes).contiguous(),
        "two": (torch.rand(6, 1) + 0.1) * torch.randint(2, (6, num_classes)).mul(2).sub(1),
        "behind": torch.randn(6, num_classes) - math.log(num_classes),  # as after init_bias_
    }[values]
    leaf, wide = logits.clone().requires_grad_(), logits.double().requires_grad_()
    losses = make_loss(expression, reduction="none")(leaf, target)
    expected = PLAIN[expression](wide, target)
    torch.testing.assert_close(losses.double(), expected, rtol=2e-6, atol=0)
    (slopes,) = torch.autograd.grad(expected.mean(), wide)
    largest = slopes.abs().max().item()
    assert_rounding(torch.autograd.grad(losses.mean(), leaf)[0].double(), slopes, 2e-6 * largest)
    assert_rounding(torch.autograd.grad(make_loss(expression)(leaf, target), leaf)[0].double(), slopes, 2e-6 * largest)


@pytest.mark.filterwarnings("ignore:.*have one class")
def test_complement_ignores_the_target_logit_and_few_classes() -> None:
    loss = ComplementEntropyLoss(reduction="none")
    logits = torch.randn(6, 5, dtype=torch.float64)
    moved = logits.clone()
    moved[:, 2] += 700.0  # here 1 - p_y underflows: p_j / (1 - p_y) would be 0 / 0
    target = torch.full((6,), 2)
    torch.testing.assert_close(loss(moved, target), loss(logits, target))
    assert loss(torch.randn(3, 2), torch.tensor([0, 1, 0])).tolist() == [0.0, 0.0, 0.0]
    assert loss(torch.randn(3, 1), torch.tensor([0, 0, 0])).tolist() == [0.0, 0.0, 0.0]
    assert loss(torch.zeros(1, 9), torch.tensor([4])).item() == pytest.approx(-math.log(8))


def test_two_passes_of_complement_training_add_up_to_the_single_one() -> None:
    objective = ComplementObjective(gamma=0.3, label_smoothing=0.1)
    logits, target = torch.randn(6, 5), torch.randint(5, (6,))
    first, second = objective.passes()
    torch.testing.assert_close(first(logits, target) + second(logits, target), objective(logits, target))
    assert repr(first) == "ce(label_smoothing=0.1)"


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_compiled_exported_and_mapped(expression: str) -> None:
    torch._dynamo.reset()  # graphs of other tests count towards the limit of recompilations
    torch.manual_seed(4)
    loss = make_loss(expression)
    logits, target = torch.randn(4, 5, requires_grad=True), torch.randint(5, (4,))
    expected = loss(logits, target)
    (gradient,) = torch.autograd.grad(expected, logits)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")(logits, target)
    torch.testing.assert_close(torch.autograd.grad(compiled, logits)[0], gradient)
    exported = torch.export.export(loss, (logits.detach(), target)).module()
    torch.testing.assert_close(exported(logits, target), expected)
    each = torch.func.vmap(torch.func.grad(loss))(logits.detach(), target)
    torch.testing.assert_close(each / 4, gradient)
    hessian = torch.func.hessian(loss)(logits[0].detach().double(), target[0])
    torch.testing.assert_close(hessian, hessian.T)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: LogitPenaltyLoss(beta=-1.0), "LogitPenaltyLoss: beta must be >= 0, got -1.0."),
        (lambda: LabelSmoothingLoss(alpha=1.0), r"LabelSmoothingLoss: alpha must be in \[0, 1\), got 1.0."),
        (lambda: LogitNormLoss(tau=0.0), "LogitNormLoss: tau must be > 0, got 0.0."),
        (lambda: SquaredErrorLoss(kappa=0), "SquaredErrorLoss: kappa must be > 0, got 0.0."),
        (lambda: ComplementObjective(gamma=-0.1), "ComplementObjective: gamma must be >= 0, got -0.1."),
    ],
)
def test_parameters_out_of_range(build: "type[ClassificationLoss]", message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("classes", [10, 100, 1000])
def test_presets_read_back(classes: int) -> None:
    for name in ("label-smoothing", "logit-penalty", "logit-norm", "squared-error", "cot"):
        loss = make_loss(f"{name}@{classes}")
        assert repr(make_loss(repr(loss))) == repr(loss)
    assert repr(make_loss("squared-error@1000")) == "squared-error(kappa=9.0, target=60.0, scale=10.0)"


def test_cross_entropy_is_the_reference_of_the_reference() -> None:
    logits = [0.1, 2.0, -1.0]
    assert float(exact("ce", logits, 1)) == pytest.approx(CrossEntropyLoss()(torch.tensor(logits), torch.tensor(1)).item())
