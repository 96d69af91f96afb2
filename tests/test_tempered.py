"""Tempered logarithm, exponential, softmax and sigmoid against 120 digits, at the edges, and through every torch transform."""

import math

import mpmath as mp
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import lossmith
from lossmith.numerics import normalizer
from lossmith.numerics.bregman import tempered_divergence_from_one
from tempered_reference import Reference
from tempered_reference import tempered_softmax as reference_softmax

TEMPERATURES = [0.0, 0.3, 0.5, 0.9, 1 - 1e-7, 1.0, 1 + 1e-7, 1.05, 1.2, 1.3, 1.5, 2.0, 4.0, 10.0]
ADVERSARIAL = {
    "one class": [3.0],
    "two": [0.5, -1.0],
    "dominating": [100.0, 0.0, 1.0, -1.0],
    "all equal": [7.0] * 10,
    "1e4 apart": [1e4, 0.0, -1e4, 5e3],
    "close at 1e4": [1e4, 1e4 - 1, 0.0, 1e4 - 10],
    "ties": [1.0, 1.0, 0.0, 0.0],
    "1e-30 apart": [1e-30, 0.0, 2e-30, 0.0],
    "ramp": [float(i) / 2 for i in range(10)],
}


def bounds(reference: Reference, eps: float) -> list[mp.mpf]:
    """Rounding of a probability and of its logarithm, and what rounding of the logits' distances and of t do to it."""
    rounding = [p * (1 + abs(mp.log(p)) + mp.log(p) ** 2 / 4) if p > 0 else mp.mpf(0) for p in reference.probs]
    return [4 * eps * (r + c) for r, c in zip(rounding, reference.condition, strict=True)]


@pytest.mark.parametrize("t", TEMPERATURES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_probabilities_agree_with_many_digits(t, dtype):
    eps = torch.finfo(torch.promote_types(dtype, torch.float32)).eps
    half = torch.finfo(dtype).eps if dtype in (torch.bfloat16, torch.float16) else 0.0
    for name, row in ADVERSARIAL.items():
        logits = torch.tensor(row, dtype=dtype)
        reference = reference_softmax(logits.tolist(), t)
        probs = lossmith.numerics.tempered_softmax(logits, t)
        assert probs.dtype == dtype
        tiny = torch.finfo(dtype).tiny
        for ours, exact, bound in zip(probs.tolist(), reference.probs, bounds(reference, eps), strict=True):
            assert abs(ours - exact) <= bound + half * exact + tiny, (name, t, ours, float(exact))


@pytest.mark.parametrize("t", TEMPERATURES)
def test_log_probabilities_keep_their_digits_near_one(t):
    eps = torch.finfo(torch.float64).eps
    for name, row in ADVERSARIAL.items():
        reference = reference_softmax(row, t)
        log_probs = lossmith.numerics.tempered_log_softmax(torch.tensor(row, dtype=torch.float64), t)
        for ours, exact, bound in zip(log_probs.tolist(), reference.probs, bounds(reference, eps), strict=True):
            if exact == 0:
                assert ours == -math.inf
                continue
            rest = 1 - exact
            relative = bound / exact if rest > 0.5 else 512 * eps * rest
            assert abs(ours - mp.log(exact)) <= relative, (name, ours, mp.nstr(mp.log(exact), 20))


@pytest.mark.parametrize("t", [0.0, 0.9, 1.0, 1.2, 1.3, 10.0])
def test_a_million_classes(t):
    values, counts = [0.0, -1.0, -30.0, -1e4], [1, 10, 999, 998_990]
    logits = torch.cat([torch.full((n,), a) for a, n in zip(values, counts, strict=True)])
    reference = reference_softmax(values, t, counts)
    first = [0, 1, 11, 1010]
    for dtype in (torch.float32, torch.float64):
        probs = lossmith.numerics.tempered_softmax(logits.to(dtype), t)
        assert abs(float(probs.double().sum()) - 1) <= 8 * torch.finfo(dtype).eps
        for ours, exact, bound in zip(
            probs[first].tolist(), reference.probs, bounds(reference, torch.finfo(dtype).eps), strict=True
        ):
            assert abs(ours - exact) <= 2 * bound + torch.finfo(dtype).tiny


@pytest.mark.parametrize("t", TEMPERATURES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_sums_to_one_within_a_few_ulp(t, dtype):
    generator = torch.Generator().manual_seed(0)
    for classes in (1, 2, 10, 1000):
        for scale in (1e-30, 1e-2, 1.0, 30.0, 1e4, 1e30):
            logits = torch.randn(16, classes, dtype=dtype, generator=generator) * scale
            spread = -scale * 10 ** (-8 * torch.rand(16, classes, dtype=dtype, generator=generator))
            for rows in (logits, spread):
                total = lossmith.numerics.tempered_softmax(rows, t).double().sum(1)
                assert ((total - 1).abs() <= 8 * torch.finfo(dtype).eps).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_continuous_through_one(dtype):
    """At 1 +- 1e-7, log p differs from that at 1 by at most 1e-7 (log p)**2 / 2 and the change of the normaliser."""
    logits = torch.randn(64, 100, dtype=dtype, generator=torch.Generator().manual_seed(1)) * 5
    expected = torch.log_softmax(logits, 1)
    for t in (1 - 1e-7, 1 + 1e-7):
        difference = (lossmith.numerics.tempered_log_softmax(logits, t, 1) - expected).abs()
        bound = 1e-7 * expected**2 + 1e-7 * (expected.exp() * expected**2).sum(1, keepdim=True)
        assert (difference <= bound + 4 * torch.finfo(dtype).eps * (1 + expected.abs())).all()
    x = torch.rand(100, dtype=dtype) * 3 + 0.1
    for t in (1 - 1e-7, 1 + 1e-7):
        torch.testing.assert_close(lossmith.numerics.log_t(x, t), x.log(), rtol=1e-6, atol=1e-7)
        torch.testing.assert_close(lossmith.numerics.exp_t(x, t), x.exp(), rtol=1e-6, atol=1e-7)


def test_sparsemax_by_sorting():
    logits = torch.randn(50, 20, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    descending, _ = logits.sort(dim=1, descending=True)
    sums = descending.cumsum(1) - 1
    sizes = torch.arange(1, 21)
    support = (descending * sizes > sums).sum(1, keepdim=True)
    threshold = sums.gather(1, support - 1) / support
    torch.testing.assert_close(lossmith.numerics.tempered_softmax(logits, 0.0), (logits - threshold).clamp(min=0))


@pytest.mark.parametrize("t", [0.0, 0.5, 1.0, 1.5, 3.0])
def test_log_t_and_exp_t_are_inverse(t):
    x = torch.linspace(0.05, 5.0, 100, dtype=torch.float64)
    torch.testing.assert_close(lossmith.numerics.exp_t(lossmith.numerics.log_t(x, t), t), x)
    if t != 1:
        expected = (x ** (1 - t) - 1) / (1 - t)
        torch.testing.assert_close(lossmith.numerics.log_t(x, t), expected)


def test_exp_t_beyond_its_ends():
    assert lossmith.numerics.exp_t(torch.tensor(-2.5), 0.5) == 0
    assert lossmith.numerics.exp_t(torch.tensor(2.5), 1.5) == math.inf
    x = torch.tensor([-9.0, -1.0, 0.5], requires_grad=True)
    (gradient,) = torch.autograd.grad(lossmith.numerics.exp_t(x, 0.5).sum(), x)
    torch.testing.assert_close(gradient, torch.tensor([0.0, 0.5, 1.25]))


def test_tempered_sigmoid():
    x = torch.linspace(-30, 30, 61, dtype=torch.float64)
    torch.testing.assert_close(lossmith.numerics.tempered_sigmoid(x, 1.0), torch.sigmoid(x))
    both = lossmith.numerics.tempered_sigmoid(x, 1.7) + lossmith.numerics.tempered_sigmoid(-x, 1.7)
    torch.testing.assert_close(both, torch.ones_like(x))
    # At t = 2, p = 1/v and 1 - p = 1/(v + x), so that x = 1/(1-p) - 1/p.
    probs = lossmith.numerics.tempered_sigmoid(x, 2.0)
    torch.testing.assert_close(1 / (1 - probs) - 1 / probs, x)


@pytest.mark.parametrize("t", [0.5, 1.0, 1.2, 3.0])
@pytest.mark.parametrize("function", [lossmith.numerics.tempered_softmax, lossmith.numerics.tempered_log_softmax])
def test_derivatives(t, function):
    logits = (torch.randn(2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3)) / 3).requires_grad_()
    assert gradcheck(lambda x: function(x, t), (logits,), check_forward_ad=True)
    assert gradgradcheck(lambda x: function(x, t), (logits,))


def test_gradient_of_a_dominating_class_keeps_its_digits():
    row = [40.0, 0.0, 1.0]
    logits = torch.tensor(row, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(lossmith.numerics.tempered_softmax(logits, 1.0)[0], logits)
    reference = reference_softmax(row, 1.0)
    exact = reference.probs[0] * (1 - reference.probs[0])
    assert abs(gradient[0].item() / exact - 1) < 1e-14


def test_dim_and_transforms():
    logits = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(4))
    for dim in (0, 1, 2, -1):
        expected = lossmith.numerics.tempered_softmax(logits.movedim(dim, -1), 1.3).movedim(-1, dim)
        torch.testing.assert_close(lossmith.numerics.tempered_softmax(logits, 1.3, dim), expected)
    mapped = torch.vmap(lambda x: lossmith.numerics.tempered_softmax(x, 1.3, 0), in_dims=1, out_dims=1)(logits)
    torch.testing.assert_close(mapped, lossmith.numerics.tempered_softmax(logits, 1.3, 0))
    reverse = torch.func.jacrev(lambda x: lossmith.numerics.tempered_softmax(x, 1.3))(logits[0, 0])
    forward = torch.func.jacfwd(lambda x: lossmith.numerics.tempered_softmax(x, 1.3))(logits[0, 0])
    torch.testing.assert_close(reverse, forward)
    assert lossmith.numerics.tempered_softmax(torch.zeros(0, 3), 1.3).shape == (0, 3)


def test_masked_classes_have_probability_zero():
    logits = torch.tensor([1.0, -math.inf, 0.0])
    for t in (0.5, 1.0, 1.2, 1.3, 4.0):
        probs = lossmith.numerics.tempered_softmax(logits, t)
        assert probs[1] == 0
        torch.testing.assert_close(probs[[0, 2]], lossmith.numerics.tempered_softmax(logits[[0, 2]], t))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_steps_without_looking_suffice(dtype, monkeypatch):
    """A fixed number of steps, as compiled code takes them, gives the same probabilities on the hardest logits found."""
    generator = torch.Generator().manual_seed(5)
    levels = -(10 ** (11 * torch.rand(6, 12, dtype=dtype, generator=generator) - 7))
    counts = (10 ** (3 * torch.rand(6, 12, generator=generator))).long() + 1
    for t in [0.0, 0.3, 0.7, 1.1, 1.25, 1.4, 2.0, 4.0, 10.0]:
        for row, count in zip(levels, counts, strict=True):
            logits = torch.cat([torch.zeros(1, dtype=dtype), row.repeat_interleave(count)])[None]
            converged = normalizer.normalize(logits, t).probs
            with monkeypatch.context() as patch:
                patch.setattr(normalizer, "is_traced", lambda: True)
                blind = normalizer.normalize(logits, t).probs
            # The bounds on each are those of the condition: compare what both are used for, sums and the peak.
            assert ((blind - converged).abs().sum(1) <= 1000 * torch.finfo(dtype).eps).all(), t


@pytest.mark.parametrize("t", [0.0, 0.1, 0.3, 1.2, 1.3, 4.0])
def test_crowds_at_the_edge_of_the_support(t):
    """Many classes whose probability is about 0 multiply the rounding of the normaliser in the sum."""
    eps = torch.finfo(torch.float32).eps
    for edge in (0.5, 0.7, 0.9, 0.99, 0.999):
        logits = torch.cat([torch.zeros(1), torch.full((300_000,), -edge / abs(1 - t))])
        probs = lossmith.numerics.tempered_softmax(logits, t)
        reference = reference_softmax(logits[:2].tolist(), t, [1, 300_000])
        assert abs(float(probs.double().sum()) - 1) <= 4 * eps
        for ours, exact, bound in zip(probs[:2].tolist(), reference.probs, bounds(reference, eps), strict=True):
            assert abs(ours - exact) <= bound


def test_the_limit_of_steps_is_not_silent(monkeypatch):
    monkeypatch.setattr(normalizer, "step_limit", lambda *_: 1)
    with pytest.raises(ArithmeticError, match="did not converge in 1 steps"):
        lossmith.numerics.tempered_softmax(torch.tensor([0.0, 3.0, 4.0, 9.0]), 3.0)


def test_divergence_from_one_is_exact_near_one():
    eps = torch.finfo(torch.float64).eps
    for t in (0.0, 0.5, 1.0, 1.9, 2.0, 5.0):
        for x in (-50.0, -1.0, -0.1, -1e-8, 0.05):
            integral = mp.quad(lambda u, t=t: (u - 1) * u ** (-mp.mpf(t)), [1, mp.exp(mp.mpf(x))]) if x > -2 else None
            ours = tempered_divergence_from_one(torch.tensor(x, dtype=torch.float64), t).item()
            if integral is not None:
                assert abs(ours / float(integral) - 1) < 400 * eps
            else:
                assert ours > 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lossmith.numerics.log_t(torch.ones(1), -1.0), ValueError, r"log_t: t must be >= 0, got -1\.0\."),
        (lambda: lossmith.numerics.exp_t(torch.ones(1), math.nan), ValueError, r"exp_t: t must be >= 0, got nan\."),
        (lambda: lossmith.numerics.exp_t(torch.ones(1), "1"), TypeError, r"exp_t: t must be a number >= 0, got '1'\."),
        (
            lambda: lossmith.numerics.tempered_softmax(torch.zeros(2, dtype=torch.long), 1.2),
            TypeError,
            r"tempered_softmax: logits must be a floating-point tensor, got torch\.int64\.",
        ),
        (lambda: lossmith.numerics.tempered_softmax(torch.zeros(2, 0), 1.2), ValueError, "at least one class along dim -1"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_dimension_that_is_not_there_is_named():
    with pytest.raises(IndexError, match=r"tempered_softmax: dim must be in \[-2, 1\], got 5\."):
        lossmith.numerics.tempered_softmax(torch.zeros(2, 3), 1.2, dim=5)
