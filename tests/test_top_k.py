"""The top-k losses: exactness over the whole range of parameters, propositions of the paper, derivatives, contract."""

import copy
import math
import pickle
from functools import partial

import numpy as np
import pytest
import torch
import torch._dynamo.testing
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import lossmith
from cases import GRAPHS
from lossmith import HardTopKLoss, SmoothTopKLoss
from lossmith.kernels.cpu.subsets import smooth_kth
from lossmith.losses.top_k import smooth_topk
from lossmith.numerics.subsets import marginals as subset_marginals
from top_k_references import enumerated_loss, kth_largest, loss_and_gradient

# What the issue asks for: the error of the gradient relative to its largest entry.
GRADIENT_TOLERANCE = 1e-5
# What single precision allows when the loss is rounded once, and tau and margin once each.
LOSS_TOLERANCE = 4 * torch.finfo(torch.float32).eps


def loss_and_grad(loss, logits, target):
    logits = logits.clone().requires_grad_()
    value = loss(logits, target)
    return value.detach(), torch.autograd.grad(value.sum(), logits)[0]


def scores_of_kind(kind, size, k, spread, random):
    scores = random.normal(size=size) * spread
    if kind == "equal":
        scores[:] = spread
    elif kind == "one dominates":
        scores[random.integers(size)] += 50 * spread
    elif kind == "ties":
        scores = np.round(random.normal(size=size) * 2) * spread
    elif kind == "gap after the k-th":
        scores[random.permutation(size)[:k]] += 10 * spread
    elif kind == "k + 1 tied at the top":
        scores[random.permutation(size)[: k + 1]] = 3 * spread
    elif kind == "one tied with the k largest, nothing else":
        scores = np.full(size, -1e4)
        scores[random.permutation(size)[: min(size, k + 2)]] = spread
    return np.clip(scores, -1e4, 1e4).astype(np.float32)


KINDS = [
    "normal",
    "equal",
    "one dominates",
    "ties",
    "gap after the k-th",
    "k + 1 tied at the top",
    "one tied with the k largest, nothing else",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [2, 3, 6, 20, 90])
def test_single_precision_is_exact_over_the_whole_range(kind, size):
    random = np.random.default_rng(size)
    for _ in range(16):
        k = int(random.choice([1, 2, 5, 6, 7, 16, 24, 25, size - 1]))
        k = min(k, size - 1)
        tau = 10.0 ** random.uniform(-6, 3)
        spread = 10.0 ** random.uniform(-3, 4) if random.random() < 0.4 else k * tau * 10.0 ** random.uniform(-1, 2)
        margin = float(random.choice([0.0, 0.3, 1.0]))
        scores = scores_of_kind(kind, size, k, spread, random)
        target = int(random.integers(size))
        if random.random() < 0.5:  # the loss is most sensitive where the target is about as good as the k-th other
            rival = kth_largest(np.delete(scores, target), k)
            scores[target] = np.clip(rival + k * margin + k * tau * random.normal() * 10, -1e4, 1e4)
        expected, expected_grad = loss_and_gradient(scores, target, k, tau, margin)
        loss, grad = loss_and_grad(SmoothTopKLoss(k, tau, margin), torch.from_numpy(scores), torch.tensor(target))
        largest = np.abs(expected_grad).max()
        if largest < torch.finfo(torch.float32).tiny / 1e-7:
            continue  # single precision has no such numbers
        error = np.abs(grad.double().numpy() - expected_grad).max() / largest
        assert error < GRADIENT_TOLERANCE / 10, (k, tau, margin, scores, target)
        assert loss.item() == pytest.approx(expected, rel=LOSS_TOLERANCE, abs=1e-40)


@pytest.mark.parametrize(("size", "k"), [(2, 1), (4, 3), (6, 2), (7, 4), (8, 5)])
def test_the_reference_and_the_loss_are_equation_9(size, k):
    random = np.random.default_rng(k)
    for tau in (1e-2, 1.0, 100.0):
        scores = (random.normal(size=size) * 3).astype(np.float32)
        for target in range(size):
            expected = enumerated_loss(scores, target, k, tau, 1.0)
            assert loss_and_gradient(scores, target, k, tau, 1.0)[0] == pytest.approx(expected, rel=1e-12, abs=1e-300)
            loss = SmoothTopKLoss(k, tau)(torch.from_numpy(scores).double(), torch.tensor(target))
            assert loss.item() == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("k", [1, 5, 6, 7, 24, 25, 60])
@pytest.mark.parametrize("size", [1000, 1_000_000])
def test_equal_scores_of_many_classes(k, size):
    if k > 24 and size > 1000:
        size = 100_000
    loss, grad = loss_and_grad(SmoothTopKLoss(k, tau=0.01, margin=0.0), torch.full((size,), 7.0), torch.tensor(3))
    ratio = (size - k) / k  # sigma_k / sigma_(k-1) of size - 1 ones
    assert loss.item() == pytest.approx(0.01 * np.log1p(ratio), rel=1e-6)
    others = torch.cat([grad[:3], grad[4:]])
    torch.testing.assert_close(grad[3].item(), -ratio / (1 + ratio) / k, rtol=1e-6, atol=0)
    torch.testing.assert_close(others, (-grad[3] / (size - 1)).expand_as(others), rtol=GRADIENT_TOLERANCE, atol=0)


@pytest.mark.parametrize(
    ("method", "k", "tau"),
    [("KthOfSpreadRows", 7, 1.0), ("KthByPowerSums", 3, 1.0), ("KthByPowerSums", 3, 0.02), ("KthByFrequencies", 3, 0.05)],
)
def test_many_rows_of_many_classes(method, k, tau, monkeypatch):
    """Enough elements to be walked over in blocks, by each of the methods."""
    if method == "KthByFrequencies":
        monkeypatch.setattr(smooth_kth, "MOST_POWER_SUMS", 0)
    logits = torch.randn(40, 4001, generator=torch.Generator().manual_seed(1))
    logits[0, 4000], logits[31, 3999] = 6.0, 6.0  # what is left over where rows are divided into groups
    target = torch.arange(40)
    with torch.no_grad():
        used = smooth_kth.smooth_kth_without(logits, target.unsqueeze(1), k, k * tau)
    assert type(used).__name__ == method
    _, grad = loss_and_grad(SmoothTopKLoss(k, tau, reduction="sum"), logits, target)
    for row in (0, 31, 32, 39):
        expected = loss_and_gradient(logits[row].numpy(), row, k, tau, 1.0)[1]
        assert np.abs(grad[row].double().numpy() - expected).max() < 1e-6 * np.abs(expected).max()


@pytest.mark.parametrize("low", [-torch.inf, torch.finfo(torch.float32).min])
@pytest.mark.parametrize("size", [9, 3000])
def test_the_target_is_not_among_its_rivals(low, size):
    """Also where rivals are as low as a number can be, or lower."""
    logits = torch.full((size,), low)
    logits[torch.tensor([1, 4, 6])] = torch.tensor([1.0, 3.0, 2.0])
    for places in (logits, logits.roll(3)):
        target = int(places.argmax())
        loss, grad = loss_and_grad(SmoothTopKLoss(3, 0.1), places, torch.tensor(target))
        soft = F.one_hot(torch.tensor(target), size).float()
        torch.testing.assert_close((loss, grad), loss_and_grad(SmoothTopKLoss(3, 0.1), places, soft))
        assert loss == 0
        assert (grad == 0).all()


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_cross_entropy_is_a_special_case(scale):
    logits = torch.randn(64, 11, generator=torch.Generator().manual_seed(0)) * scale
    target = torch.arange(64) % 11
    loss, grad = loss_and_grad(SmoothTopKLoss(1, 1.0, 0.0, reduction="none"), logits, target)
    expected, expected_grad = loss_and_grad(lossmith.CrossEntropyLoss(reduction="none"), logits.double(), target)
    torch.testing.assert_close(loss.double(), expected, rtol=1e-6, atol=1e-38)
    # An exponent of -87, the lowest that single precision has, is rounded by up to 4e-6.
    torch.testing.assert_close(grad.double(), expected_grad, rtol=6e-6, atol=1e-38)


def test_cross_entropy_near_certainty_keeps_its_digits():
    logits = torch.tensor([[30.0, 0.0, -1.0]])
    loss, grad = loss_and_grad(SmoothTopKLoss(1, 1.0, 0.0), logits, torch.tensor([0]))
    rest = (1 + np.exp(-1)) * np.exp(-30)
    assert loss.item() == pytest.approx(rest, rel=1e-6)
    assert grad[0, 0].item() == pytest.approx(-rest, rel=1e-6)


def paper_scores(count, size=7):
    return torch.randn(count, size, generator=torch.Generator().manual_seed(5), dtype=torch.float64) * 3


@pytest.mark.parametrize("k", [1, 2, 4, 6])
def test_proposition_2_the_smooth_loss_tends_to_the_hard_one(k):
    logits, target = paper_scores(50), torch.arange(50) % 7
    hard = HardTopKLoss(k, reduction="none")(logits, target)
    for tau in (1e-2, 1e-4, 1e-6):
        smooth = SmoothTopKLoss(k, tau, reduction="none")(logits, target)
        # tau times the logarithm of the number of terms bounds the difference between a smooth maximum and a maximum.
        bound = 2 * tau * np.log(math.comb(7, k))
        assert (smooth - hard).abs().max() <= max(bound, 1e-12)


def test_proposition_3_the_smooth_loss_bounds_the_hard_one_only_for_k_1():
    logits, target = paper_scores(200), torch.arange(200) % 7
    for tau in (0.01, 1.0, 10.0):
        lead = SmoothTopKLoss(1, tau, reduction="none")(logits, target) - HardTopKLoss(1, reduction="none")(logits, target)
        assert lead.min() >= -1e-14  # scores of about 10 are rounded
    for k in (2, 5):
        # The other way about: with k equally good rivals, sigma_k / sigma_(k-1) is 1 / k of a single one's.
        rivals = torch.cat([torch.zeros(1), torch.full((k,), 50.0)])
        smooth, hard = (loss(rivals, torch.tensor(0)) for loss in (SmoothTopKLoss(k), HardTopKLoss(k)))
        assert smooth < hard


@pytest.mark.parametrize("k", [1, 2, 5])
def test_proposition_4_the_smooth_loss_bounds_the_error(k):
    logits, target = paper_scores(500), torch.arange(500) % 7
    wrong = ((logits > logits.gather(1, target.unsqueeze(1))).sum(1) >= k).double()
    assert wrong.sum() > 20
    for tau in (0.01, 0.1, 0.5):
        smooth = SmoothTopKLoss(k, tau, reduction="none")(logits, target)
        assert (smooth >= (1 - tau * np.log(k)) * wrong).all()


@pytest.mark.parametrize("most", [24, 0], ids=["power sums", "frequencies"])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_derivatives(k, most, monkeypatch):
    for module in (smooth_kth, subset_marginals):
        monkeypatch.setattr(module, "MOST_POWER_SUMS", most)
    generator = torch.Generator().manual_seed(k)
    logits = torch.randn(2, 5, dtype=torch.float64, generator=generator).requires_grad_()
    soft = torch.rand(2, 5, dtype=torch.float64, generator=generator).requires_grad_()
    loss = SmoothTopKLoss(k, 0.4)
    target = torch.tensor([1, 4])
    assert torch.autograd.gradcheck(lambda x: loss(x, target), logits)
    assert torch.autograd.gradgradcheck(lambda x: loss(x, target), logits)
    assert torch.autograd.gradcheck(loss, (logits, soft))
    assert torch.autograd.gradgradcheck(loss, (logits, soft))


@pytest.mark.parametrize("loss_class", [SmoothTopKLoss, HardTopKLoss])
@pytest.mark.parametrize("k", [1, 3, 7])
def test_soft_targets_mean_the_expected_loss(loss_class, k):
    generator = torch.Generator().manual_seed(k)
    logits = torch.randn(6, 8, 3, generator=generator, dtype=torch.float64)
    soft = torch.softmax(torch.randn(6, 8, 3, generator=generator, dtype=torch.float64), 1)
    soft[:, 2] = 0
    loss = loss_class(k, reduction="none")
    expected = sum(soft[:, label] * loss(logits, torch.full((6, 3), label)) for label in range(8))
    torch.testing.assert_close(loss(logits, soft), expected)


@pytest.mark.parametrize("k", [3, 30])
@pytest.mark.parametrize("tau", [1e-6, 1e-2, 1.0, 1e3])
def test_soft_targets_are_as_exact_as_indices(k, tau):
    logits = torch.randn(4, 40, generator=torch.Generator().manual_seed(k)) * 20
    logits[1, :k] += 1000
    logits[2] = logits[2].round()
    soft = torch.rand(4, 40, generator=torch.Generator().manual_seed(1))
    soft = soft / soft.sum(1, keepdim=True)
    _, grad = loss_and_grad(SmoothTopKLoss(k, tau, reduction="sum"), logits, soft)
    for row in range(4):
        parts = [loss_and_gradient(logits[row].numpy(), label, k, tau, 1.0)[1] for label in range(40)]
        expected = sum(share * part for share, part in zip(soft[row].tolist(), parts, strict=True))
        assert np.abs(grad[row].double().numpy() - expected).max() <= GRADIENT_TOLERANCE * max(np.abs(p).max() for p in parts)


@pytest.mark.parametrize("loss_class", [SmoothTopKLoss, HardTopKLoss])
@pytest.mark.parametrize("k", [2, 25])
def test_classes_that_are_masked_out_do_not_count(loss_class, k):
    logits = torch.randn(3, 40, generator=torch.Generator().manual_seed(2))
    masked = torch.cat([logits, torch.full((3, 5), -torch.inf)], 1)
    target = torch.tensor([0, 1, 2])
    for labels in (target, F.one_hot(target, 45).float()):
        loss, grad = loss_and_grad(loss_class(k), masked, labels)
        expected, expected_grad = loss_and_grad(loss_class(k), logits, target)
        torch.testing.assert_close(loss, expected)
        torch.testing.assert_close(grad, F.pad(expected_grad, (0, 5)))


@pytest.mark.parametrize("loss_class", [SmoothTopKLoss, HardTopKLoss])
def test_with_k_possible_classes_there_is_nothing_to_learn_and_with_fewer_no_loss(loss_class):
    logits = torch.tensor([[2.0, -torch.inf, 1.0, -torch.inf]])
    for target in (torch.tensor([2]), torch.tensor([[0.0, 0.0, 1.0, 0.0]])):
        loss, grad = loss_and_grad(loss_class(2), logits, target)
        assert loss == 0
        assert (grad == 0).all()
        loss, grad = loss_and_grad(loss_class(3), logits, target)
        assert loss.isnan()
        assert grad.isnan().any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("tau", [1e-6, 0.03, 0.1, 1.0, 1e3])
@pytest.mark.parametrize("k", [1, 2, 7, 24, 30])
def test_with_k_possible_classes_there_is_nothing_to_learn_at_any_temperature(k, tau, dtype):
    """The quotient of the lowest number and a small temperature overflows."""
    generator = torch.Generator().manual_seed(k)
    for low in (-torch.inf, torch.finfo(dtype).min):
        logits = torch.full((1, k + 3), low, dtype=dtype)
        possible = torch.randperm(k + 3, generator=generator)[:k]
        logits[0, possible] = torch.randn(k, generator=generator, dtype=dtype)
        soft = torch.zeros_like(logits)
        soft[0, possible] = 1 / k
        for target in (possible[:1], F.one_hot(possible[:1], k + 3).to(dtype), soft):
            loss, grad = loss_and_grad(SmoothTopKLoss(k, tau), logits, target)
            expected, expected_grad = loss_and_grad(partial(smooth_topk, k=k, tau=tau, margin=1.0), logits, target)
            assert loss == expected == 0
            assert (grad == 0).all()
            assert (expected_grad == 0).all()


@pytest.mark.parametrize("loss_class", [SmoothTopKLoss, HardTopKLoss])
def test_parameters_are_checked(loss_class):
    name = loss_class.__name__
    with pytest.raises(ValueError, match=f"{name}: k must be >= 1, got 0"):
        loss_class(k=0)
    with pytest.raises(TypeError, match=f"{name}: k must be an integer >= 1, got float 2.0"):
        loss_class(k=2.0)
    with pytest.raises(ValueError, match=f"{name}: k must be < number of classes 5, got 5"):
        loss_class()(torch.zeros(2, 5), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=f"{name}: margin must be >= 0, got -1.0"):
        loss_class(margin=-1)
    with pytest.raises(ValueError, match=r"SmoothTopKLoss: tau must be > 0, got 0\.0"):
        SmoothTopKLoss(tau=0)


def test_a_loss_is_written_copied_and_read():
    loss = SmoothTopKLoss(2, tau=0.1)
    assert repr(loss) == "smooth-topk(k=2, tau=0.1, margin=1.0)"
    assert repr(lossmith.make_loss("hard-topk(k=3)")) == "hard-topk(k=3, margin=1.0)"
    for twin in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), lossmith.make_loss(repr(loss))):
        assert repr(twin) == repr(loss)


@pytest.mark.parametrize("loss_class", [SmoothTopKLoss, HardTopKLoss])
def test_shapes_of_the_contract(loss_class):
    loss = loss_class(2)
    assert loss(torch.zeros(0, 4), torch.zeros(0, dtype=torch.long)).isnan()
    assert loss_class(2, reduction="none")(torch.zeros(0, 4), torch.zeros(0, dtype=torch.long)).shape == (0,)
    logits = torch.randn(2, 5, 3, 4, generator=torch.Generator().manual_seed(0))
    target = torch.arange(24).view(2, 3, 4) % 5
    losses = loss_class(2, reduction="none")(logits, target)
    assert losses.shape == (2, 3, 4)
    torch.testing.assert_close(losses[1, 2, 3], loss(logits[1, :, 2, 3], target[1, 2, 3]))
    assert loss(logits.bfloat16(), target).dtype == torch.bfloat16


def test_torch_func():
    loss = SmoothTopKLoss(2, 0.5)
    logits = torch.randn(6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    target = torch.arange(6) % 5
    expected = loss_and_grad(SmoothTopKLoss(2, 0.5, reduction="none"), logits, target)[1]
    mapped = torch.func.vmap(torch.func.grad(loss))(logits, target)
    torch.testing.assert_close(mapped, expected)
    _, slope = torch.func.jvp(lambda x: loss(x, target), (logits,), (torch.ones_like(logits),))
    torch.testing.assert_close(slope, torch.zeros_like(slope), atol=1e-12, rtol=0)
    hessian = torch.func.hessian(lambda x: loss(x, target[0]))(logits[0])
    torch.testing.assert_close(hessian, torch.autograd.functional.hessian(lambda x: loss(x, target[0]), logits[0]))


@pytest.mark.slow
@pytest.mark.parametrize(("most_power_sums", "backend"), [(24, "aot_eager"), (2, "eager")])
def test_compiled_is_the_same_and_tau_can_be_annealed(most_power_sums, backend, monkeypatch):
    """By power sums, and by frequencies, whose graph is large for the k that they are meant for."""
    monkeypatch.setattr("lossmith.numerics.subsets.marginals.MOST_POWER_SUMS", most_power_sums)
    logits = torch.randn(4, 12, generator=torch.Generator().manual_seed(0))
    target = torch.arange(4)
    loss = SmoothTopKLoss(4)
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend(backend)
    compiled = torch.compile(loss, fullgraph=True, backend=counter)
    for tau in (1.0, 0.5, 0.3, 0.2, 0.1):
        loss.tau = tau
        for ours, theirs in zip(loss_and_grad(compiled, logits, target), loss_and_grad(loss, logits, target), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)
    assert counter.frame_count <= GRAPHS


@pytest.mark.slow
@pytest.mark.parametrize("soft", [False, True])
def test_exported(soft):
    logits = torch.randn(4, 9, generator=torch.Generator().manual_seed(0))
    target = torch.rand(4, 9).softmax(1) if soft else torch.arange(4)
    loss = SmoothTopKLoss(3)
    exported = torch.export.export(loss, (logits, target)).module()
    torch.testing.assert_close(exported(logits, target), loss(logits, target))
    torch.testing.assert_close(loss(logits, target), loss(logits, target))  # tables made while tracing are not kept


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(2, 12),
    part=st.floats(0, 1),
    exponent=st.floats(-6, 3),
    scores=st.lists(st.floats(-1e4, 1e4, width=32), min_size=12, max_size=12),
)
def test_any_scores_give_the_exact_gradient(size, part, exponent, scores):
    k, tau = 1 + int(part * (size - 2)), 10.0**exponent
    row = np.array(scores[:size], dtype=np.float32)
    _, expected = loss_and_gradient(row, 0, k, tau, 1.0)
    _, grad = loss_and_grad(SmoothTopKLoss(k, tau), torch.from_numpy(row), torch.tensor(0))
    assert np.abs(grad.double().numpy() - expected).max() <= GRADIENT_TOLERANCE / 10 * np.abs(expected).max() + 1e-37
