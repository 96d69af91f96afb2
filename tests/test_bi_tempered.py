"""The bi-tempered and Tsallis losses: values, gradients, the properties that the paper proves, and changing temperatures."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch._dynamo.testing import CompileCounterWithBackend
from torch.autograd import gradcheck, gradgradcheck

from cases import GRAPHS, only_by_kernels
from lossmith import BinaryBiTemperedLoss, BiTemperedLoss, GeneralizedCrossEntropyLoss, TsallisLoss, make_loss
from lossmith.numerics import log_t, tempered_softmax
from tempered_reference import divergence, divergence_gradient
from tempered_reference import tempered_softmax as reference_softmax

PAIRS = [(0.8, 1.2), (0.5, 4.0), (0.0, 0.0), (0.9, 1.05), (1.0, 1.0), (0.3, 0.7), (1.0, 1.3), (0.2, 1.0), (1.5, 1.5)]
ROUNDED_FAR_FROM_THE_TARGET = [(0.9, 1.05), (0.2, 1.0)]  # by the formula, see docs/numerics.md
ROWS = [
    [100.0, 0.0, 1.0, -1.0],
    [7.0] * 5,
    [1e4, 0.0, -1e4, 5e3],
    [1.0, 1.0, 0.0, 0.0],
    [1e-30, 0.0, 2e-30],
    [3.0, 1.0, -2.0, 0.5],
]


def rows(*shape: int, seed: int = 0, scale: float = 1.0) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * scale


def distributions(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.softmax(rows(*shape, seed=seed), -1)


@pytest.mark.parametrize(("t1", "t2"), PAIRS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_value_and_gradient_agree_with_many_digits(t1, t2, dtype):
    """The loss is a sum of positive terms, each a power of probabilities whose logarithm reaches 200: hence 2000 ulp."""
    only_by_kernels((t1, t2), ROUNDED_FAR_FROM_THE_TARGET)
    eps, tiny = torch.finfo(dtype).eps, torch.finfo(dtype).tiny
    for row in ROWS:
        reference = reference_softmax(torch.tensor(row, dtype=dtype).tolist(), t2)
        for label in (0, len(row) - 1):
            if t1 >= 1 and reference.probs[label] == 0:
                continue
            one_hot = [float(c == label) for c in range(len(row))]
            logits = torch.tensor([row], dtype=dtype, requires_grad=True)
            loss = BiTemperedLoss(t1, t2)(logits, torch.tensor([label]))
            (gradient,) = torch.autograd.grad(loss, logits)
            exact = divergence(one_hot, reference.probs, t1)
            assert abs(loss.item() - exact) <= 2000 * eps * exact + tiny, (row, label)
            exact_gradient = divergence_gradient(one_hot, reference, t1, t2)
            largest = max(map(abs, exact_gradient))
            for ours, wanted in zip(gradient[0].tolist(), exact_gradient, strict=True):
                assert abs(ours - wanted) <= 2000 * eps * largest + tiny, (row, label)


@pytest.mark.parametrize(("t1", "t2"), PAIRS)
@pytest.mark.parametrize("loss_class", [BiTemperedLoss, TsallisLoss])
def test_one_hot_targets_agree_with_indices(t1, t2, loss_class):
    logits, target = rows(6, 5, 2, scale=0.5).requires_grad_(), torch.randint(5, (6, 2))
    one_hot = F.one_hot(target, 5).movedim(-1, 1).double()
    loss = loss_class(t1, t2, weight=torch.tensor([1.0, 2.0, 0.5, 3.0, 1.0]), reduction="sum")
    hard, soft = loss(logits, target), loss(logits, one_hot)
    torch.testing.assert_close(hard, soft)
    torch.testing.assert_close(torch.autograd.grad(hard, logits), torch.autograd.grad(soft, logits))


@pytest.mark.parametrize(("t1", "t2"), [(0.8, 1.2), (0.5, 4.0), (1.0, 1.0), (0.7, 0.8), (1.5, 1.3)])
@pytest.mark.parametrize("loss_class", [BiTemperedLoss, TsallisLoss])
def test_derivatives(t1, t2, loss_class):
    loss = loss_class(t1, t2, label_smoothing=0.1)
    plain = loss_class(t1, t2)
    logits, soft = rows(3, 4, scale=0.3).requires_grad_(), distributions(3, 4).requires_grad_()
    target = torch.tensor([0, 2, 3])
    assert gradcheck(lambda x: plain(x, target), (logits,), check_forward_ad=True)
    assert gradgradcheck(lambda x: plain(x, target), (logits,))
    assert gradcheck(loss, (logits, soft), check_forward_ad=True)
    assert gradgradcheck(loss, (logits, soft))


def test_cross_entropy_and_its_relatives():
    logits, target, soft = rows(7, 5), torch.randint(5, (7,)), distributions(7, 5)
    torch.testing.assert_close(BiTemperedLoss(1.0, 1.0)(logits, target), F.cross_entropy(logits, target))
    entropy = -(soft * soft.log()).sum(1).mean()
    torch.testing.assert_close(BiTemperedLoss(1.0, 1.0)(logits, soft), F.cross_entropy(logits, soft) - entropy)
    torch.testing.assert_close(TsallisLoss(1.0, 1.0)(logits, target), F.cross_entropy(logits, target))
    torch.testing.assert_close(TsallisLoss(0.3, 1.0)(logits, target), GeneralizedCrossEntropyLoss(0.7)(logits, target))
    smooth = BiTemperedLoss(1.0, 1.0, label_smoothing=0.2)
    one_hot = F.one_hot(target, 5) * 0.8 + 0.04
    expected = F.cross_entropy(logits, target, label_smoothing=0.2) + (one_hot * one_hot.log()).sum(1).mean()
    torch.testing.assert_close(smooth(logits, target), expected)


@pytest.mark.parametrize("t2", [0.5, 1.0, 1.4])
def test_special_divergences(t2):
    logits, soft = rows(7, 5, scale=0.2), distributions(7, 5)
    probs = tempered_softmax(logits, t2)
    losses = {t1: BiTemperedLoss(t1, t2, reduction="none")(logits, soft) for t1 in (0.0, 1.0, 2.0)}
    torch.testing.assert_close(losses[0.0], (soft - probs).square().sum(1) / 2)
    torch.testing.assert_close(losses[1.0], (soft * (soft / probs).log()).sum(1))
    torch.testing.assert_close(losses[2.0], (soft / probs - (soft / probs).log() - 1).sum(1))


@pytest.mark.parametrize("t", [0.0, 0.4, 0.8, 0.95])
def test_bound_of_corollary_1(t):
    """Both sides of it, in the norm 2-t and in its dual."""
    logits, soft = (
        rows(200, 6, scale=3.0),
        torch.cat([distributions(100, 6), torch.eye(6, dtype=torch.float64)[torch.arange(100) % 6]]),
    )
    losses = BiTemperedLoss(t, 1.2, reduction="none")(logits, soft)
    probs = tempered_softmax(logits, 1.2)
    order = 2 - t
    largest = torch.maximum(soft.norm(order, 1), probs.norm(order, 1))
    low = (soft - probs).norm(order, 1) ** 2 / (2 * largest**t)
    dual_order = order / (1 - t)
    high = largest**t * (soft ** (1 - t) - probs ** (1 - t)).norm(dual_order, 1) ** 2 / (2 * (1 - t) ** 2)
    assert (losses >= low * (1 - 1e-12)).all()
    assert (losses <= high * (1 + 1e-12)).all()
    assert (losses <= 2 * largest ** (2 - t) / (1 - t) ** 2).all()
    extreme = BiTemperedLoss(t, 1.2)(torch.tensor([[1e4, -1e4]]), torch.tensor([1]))
    assert extreme <= 1 / (1 - t)


@pytest.mark.parametrize(("t1", "t2"), [(0.8, 1.2), (0.2, 4.0), (1.0, 1.0), (0.5, 1.0), (0.0, 0.5)])
def test_proper(t1, t2):
    """The expected loss over labels from a distribution is smallest, by the divergence, where that is predicted."""
    wanted, others = distributions(30, 4), distributions(30, 4, seed=7)
    expected = _expected_loss(BiTemperedLoss(t1, t2, reduction="none"), log_t(wanted, t2), wanted)
    elsewhere = _expected_loss(BiTemperedLoss(t1, t2, reduction="none"), log_t(others, t2), wanted)
    excess = BiTemperedLoss(t1, t2, reduction="none")(log_t(others, t2), wanted)
    torch.testing.assert_close(elsewhere - expected, excess)
    assert (excess > 0).all()


@pytest.mark.parametrize(("t1", "t2"), [(0.8, 1.2), (1.0, 1.0), (0.5, 1.0)])
def test_bayes_consistent(t1, t2):
    """Minimising the expected loss over the logits finds the distribution, hence its most probable class."""
    wanted = distributions(20, 4)
    logits = torch.zeros(20, 4, dtype=torch.float64, requires_grad=True)
    loss = BiTemperedLoss(t1, t2, reduction="none")
    optimizer = torch.optim.LBFGS([logits], max_iter=300, tolerance_grad=1e-10, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        value = _expected_loss(loss, logits, wanted).sum()
        value.backward()
        return value

    optimizer.step(closure)
    found = tempered_softmax(logits.detach(), t2)
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-3)
    assert (found.argmax(1) == wanted.argmax(1)).all()


def _expected_loss(loss: BiTemperedLoss, logits: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    labels = torch.arange(4).expand(len(logits), 4)
    return (wanted * torch.stack([loss(logits, labels[:, c]) for c in range(4)], 1)).sum(1)


def test_tsallis_is_not_proper():
    wanted = torch.tensor([0.7, 0.3], dtype=torch.float64)
    gaps = torch.linspace(-20, 20, 4001, dtype=torch.float64)
    logits = torch.stack([gaps, torch.zeros_like(gaps)], 1)
    costs = TsallisLoss(0.5, 1.0, reduction="none")(logits, wanted.expand_as(logits).contiguous())
    assert abs(torch.sigmoid(gaps[costs.argmin()]) - 0.7) > 0.1


@pytest.mark.parametrize("t", [0.5, 0.9, 1.0, 1.2, 2.0, 4.0])
def test_convex_in_the_logits_for_equal_temperatures(t):
    soft = distributions(300, 4)
    scale = 0.1 if t < 1 else 5.0
    first, second = rows(300, 4, seed=2, scale=scale), rows(300, 4, seed=3, scale=scale)
    loss = BiTemperedLoss(t, t, reduction="none")
    chord = (loss(first, soft) + loss(second, soft)) / 2 - loss((first + second) / 2, soft)
    assert (tempered_softmax(first, t) > 0).all()
    assert (chord >= -1e-13).all()


def test_not_convex_for_different_temperatures():
    logits = torch.tensor([[-20.0, 0.0], [-10.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    left, middle, right = BiTemperedLoss(0.5, 1.2, reduction="none")(logits, torch.tensor([0, 0, 0]))
    assert (left + right) / 2 < middle


def test_finite_for_any_finite_logits():
    logits = torch.tensor([[3e37, -3e37, 0.0], [1e4, 0.0, -1e4], [0.0, 0.0, 0.0]], requires_grad=True)
    for t1, t2 in ((0.8, 1.2), (0.5, 4.0), (0.0, 0.0), (0.9, 1.05), (0.8, 1.3), (0.9, 10.0)):
        for label in range(3):
            for loss_class in (BiTemperedLoss, TsallisLoss):
                loss = loss_class(t1, t2)(logits, torch.full((3,), label))
                (gradient,) = torch.autograd.grad(loss, logits)
                assert loss.isfinite()
                assert gradient.isfinite().all()


@pytest.mark.parametrize("one_hot", [False, True])
@pytest.mark.parametrize(
    ("loss", "spread"),
    [
        (BiTemperedLoss(0.8, 100.0), 1.0),
        (TsallisLoss(0.8, 100.0), 1.0),
        (TsallisLoss(45.0, 46.0), 1e-3),
        (BiTemperedLoss(1.5, 1.0), 200.0),
        (TsallisLoss(1.5, 1.0), 200.0),
    ],
)
def test_powers_without_a_place_in_single_precision_leave_a_gradient(loss, spread, one_hot):
    logits = spread * torch.tensor([[0.0, -0.3, -0.6, -1.0, -1.1, -1.2, -1.3]])
    target = torch.tensor([0])
    target = F.one_hot(target, 7).to(logits.dtype) if one_hot else target

    def gradient(dtype):
        wide = logits.to(dtype).requires_grad_()
        value = loss(wide, target.to(dtype) if one_hot else target)
        return torch.autograd.grad(value, wide)[0].float()

    torch.testing.assert_close(gradient(torch.float32), gradient(torch.float64), rtol=1e-3, atol=1e-35)


def test_classes_outside_of_the_support_have_no_gradient():
    logits = torch.tensor([[5.0, 0.0, 0.1]], dtype=torch.float64, requires_grad=True)
    loss = BiTemperedLoss(0.5, 0.0)(logits, torch.tensor([1]))
    assert loss.item() == pytest.approx(1 / 0.5)
    assert (torch.autograd.grad(loss, logits)[0] == 0).all()
    assert BiTemperedLoss(1.0, 0.0)(logits, torch.tensor([1])) == math.inf


@pytest.mark.parametrize("shape", [(), (7,), (4, 3)])
def test_binary_is_bce(shape):
    logits, target = rows(*shape, scale=20.0).requires_grad_(), (rows(*shape, seed=5) > 0).double()
    ours = BinaryBiTemperedLoss(1.0, 1.0)(logits, target)
    bce = F.binary_cross_entropy_with_logits(logits, target)
    torch.testing.assert_close(ours, bce)
    torch.testing.assert_close(torch.autograd.grad(ours, logits), torch.autograd.grad(bce, logits))


def test_binary_is_the_two_class_loss():
    logits, target = rows(9, scale=3.0), torch.arange(9) % 2
    pairs = torch.stack([torch.zeros_like(logits), logits], 1)
    for t1, t2 in PAIRS[:5]:
        binary = BinaryBiTemperedLoss(t1, t2, reduction="none")
        torch.testing.assert_close(binary(logits, target), BiTemperedLoss(t1, t2, reduction="none")(pairs, target))
        torch.testing.assert_close(binary.predict_proba(logits), tempered_softmax(pairs, t2)[:, 1])


def test_binary_weights():
    logits, target = rows(5, 3), (rows(5, 3, seed=6) > 0).double()
    weight, pos_weight = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64), torch.tensor([0.5, 1.0, 4.0], dtype=torch.float64)
    ours = BinaryBiTemperedLoss(1.0, 1.0, weight=weight, pos_weight=pos_weight, reduction="sum")
    expected = F.binary_cross_entropy_with_logits(logits, target, weight, pos_weight=pos_weight, reduction="sum")
    torch.testing.assert_close(ours(logits, target), expected)


@pytest.mark.parametrize("loss_class", [BiTemperedLoss, TsallisLoss])
def test_temperatures_change_without_compiling_anew(loss_class):
    torch._dynamo.reset()
    loss = loss_class(0.8, 1.2)
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(loss, fullgraph=True, backend=counter)
    logits, target = rows(8, 10).float().requires_grad_(), torch.arange(8)
    for t1, t2 in [(0.8, 1.2), (0.75, 1.25), (0.7, 1.3), (0.6, 1.5), (0.5, 2.0), (0.3, 4.0)]:
        loss.t1, loss.t2 = t1, t2
        (ours,) = torch.autograd.grad(compiled(logits, target), logits)
        (expected,) = torch.autograd.grad(loss(logits, target), logits)
        torch.testing.assert_close(ours, expected)
        assert counter.frame_count <= GRAPHS


@pytest.mark.parametrize(("t1", "t2", "backend"), [(0.8, 1.2, "inductor"), (0.8, 0.5, "aot_eager"), (1.0, 1.0, "aot_eager")])
def test_compiled(t1, t2, backend):
    torch._dynamo.reset()
    loss = BiTemperedLoss(t1, t2)
    logits, target = rows(4, 6).float().requires_grad_(), torch.arange(4)
    compiled = torch.compile(loss, fullgraph=True, backend=backend)
    torch.testing.assert_close(compiled(logits, target), loss(logits, target))
    (ours,) = torch.autograd.grad(compiled(logits, target), logits)
    torch.testing.assert_close(ours, torch.autograd.grad(loss(logits, target), logits)[0])


def test_prediction_and_written_form():
    logits = rows(3, 4, 2).float()
    loss = BiTemperedLoss(0.5, 4.0)
    torch.testing.assert_close(loss.predict_proba(logits), tempered_softmax(logits, 4.0, 1))
    assert loss.predict_proba(logits[0, :, 0]).shape == (4,)
    assert repr(make_loss("bi-tempered(t1=0.5, t2=4.0)")) == repr(loss)
    assert repr(make_loss("tsallis")) == "tsallis(t1=0.8, t2=1.2)"


def test_tsallis_value():
    logits, target = rows(5, 4), torch.arange(5) % 4
    probs = tempered_softmax(logits, 1.3).gather(1, target[:, None]).squeeze(1)
    torch.testing.assert_close(TsallisLoss(0.6, 1.3, reduction="none")(logits, target), -log_t(probs, 0.6))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: BiTemperedLoss(t1=-1.0), ValueError, r"BiTemperedLoss: t1 must be >= 0, got -1\.0\."),
        (lambda: TsallisLoss(t2=math.inf), ValueError, r"TsallisLoss: t2 must be >= 0, got inf\."),
        (lambda: BinaryBiTemperedLoss(t2=-2), ValueError, r"BinaryBiTemperedLoss: t2 must be >= 0, got -2\.0\."),
        (lambda: setattr(BiTemperedLoss(), "t2", "hot"), TypeError, r"BiTemperedLoss: t2 must be a number >= 0, got str 'hot'\."),
        (
            lambda: BiTemperedLoss()(torch.zeros(2, 3, dtype=torch.long), torch.tensor([0, 1])),
            TypeError,
            "logits must be floating",
        ),
        (
            lambda: BiTemperedLoss()(torch.zeros(2, 3), torch.tensor([0, 1, 2])),
            ValueError,
            "target of class indices",
        ),
        (
            lambda: BiTemperedLoss(2.0, 1.0)(torch.zeros(2, 3), torch.tensor([0, 1])),
            ValueError,
            r"BiTemperedLoss: t1 must be < 2 where target holds class indices, got 2\.0\.",
        ),
        (
            lambda: BiTemperedLoss(2.0, 1.0)(torch.zeros(1, 2), torch.tensor([[0.0, 1.0]])),
            ValueError,
            r"BiTemperedLoss: t1 must be < 2 where a target probability is 0, got 2\.0\.",
        ),
        (
            lambda: BiTemperedLoss()(torch.zeros(1, 2), torch.tensor([[-0.5, 1.5]])),
            ValueError,
            r"BiTemperedLoss: target must be in \[0, 1\], got 1\.5\.",
        ),
        (
            lambda: BinaryBiTemperedLoss()(torch.zeros(2), torch.zeros(3)),
            ValueError,
            r"BinaryBiTemperedLoss: target must have shape \(2,\), got \(3,\)\.",
        ),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_binary_weights_may_be_lists():
    logits, target = torch.randn(4, 3), torch.randint(2, (4, 3)).float()
    given = BinaryBiTemperedLoss(weight=[1.0, 2.0, 0.5], pos_weight=[3.0, 1.0, 1.0])
    same = BinaryBiTemperedLoss(weight=torch.tensor([1.0, 2.0, 0.5]), pos_weight=torch.tensor([3.0, 1.0, 1.0]))
    assert torch.equal(given(logits, target), same(logits, target))


@pytest.mark.parametrize("t1", [2.0, 2.5, 3.0])
def test_the_formula_is_infinite_where_a_probability_of_zero_costs_infinitely_much(t1):
    logits, target = torch.tensor([[1.0, 0.0, -1.0]]), torch.tensor([0])
    assert BiTemperedLoss(t1, 1.0).formula().losses(logits, target) == torch.inf
