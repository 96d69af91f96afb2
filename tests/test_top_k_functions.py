"""What comes with the top-k losses: symmetric polynomials, marginals, accuracy and the choice of tau."""

import math

import numpy as np
import pytest
import torch

import lossmith
from lossmith import SmoothTopKLoss
from lossmith.losses import topk_accuracy, topk_probabilities
from lossmith.numerics import elementary_symmetric
from lossmith.theory import gradient_share, sensible_tau
from top_k_references import enumerated_marginals, log_polynomials


@pytest.mark.parametrize("size", [1, 2, 7, 33])
@pytest.mark.parametrize("spread", [0.1, 10.0, 1000.0])
def test_elementary_symmetric_polynomials_are_exact(size, spread):
    values = np.random.default_rng(size).normal(size=size) * spread
    expected = log_polynomials(values, size)[-1].astype(np.float64)
    np.testing.assert_allclose(elementary_symmetric(torch.from_numpy(values), size), expected, rtol=1e-13, atol=1e-13 * spread)


def test_elementary_symmetric_polynomials_of_special_rows():
    none = torch.zeros(2, 0)
    torch.testing.assert_close(elementary_symmetric(none, 1), torch.tensor([[0.0, -torch.inf]] * 2))
    with_zero = elementary_symmetric(torch.tensor([0.0, -torch.inf, 0.0]), 3)
    torch.testing.assert_close(with_zero, torch.tensor([0.0, math.log(2), 0.0, -torch.inf]))
    with pytest.raises(ValueError, match=r"elementary_symmetric: k must be an integer >= 0, got -1\."):
        elementary_symmetric(none, -1)


def test_elementary_symmetric_polynomials_have_two_derivatives():
    values = torch.randn(2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: elementary_symmetric(x, 3)[..., 1:], values)
    assert torch.autograd.gradgradcheck(lambda x: elementary_symmetric(x, 3)[..., 1:], values)
    masked = torch.tensor([0.0, -torch.inf, 1.0], requires_grad=True)
    elementary_symmetric(masked, 2)[2].backward()
    torch.testing.assert_close(masked.grad, torch.tensor([1.0, 0.0, 1.0]))


@pytest.mark.parametrize(("size", "k"), [(2, 1), (6, 1), (6, 3), (6, 5), (9, 4)])
def test_probabilities_are_marginals(size, k):
    scores = torch.randn(3, size, dtype=torch.float64, generator=torch.Generator().manual_seed(k)) * 2
    expected = torch.tensor([enumerated_marginals(row.tolist(), k, 1.5) for row in scores], dtype=torch.float64)
    marginals = topk_probabilities(scores, k, scale=1.5, normalize=False)
    torch.testing.assert_close(marginals, expected)
    torch.testing.assert_close(marginals.sum(1), torch.full((3,), float(k), dtype=torch.float64))
    torch.testing.assert_close(topk_probabilities(scores, k, scale=1.5), expected / k)


@pytest.mark.parametrize("k", [4, 40])
def test_probabilities_are_the_derivative_of_the_polynomial(k):
    """Proposition 7 of the paper, for few and for many classes."""
    scores = torch.randn(2, 60, dtype=torch.float64, generator=torch.Generator().manual_seed(k)).requires_grad_()
    (derivative,) = torch.autograd.grad(elementary_symmetric(scores, k)[:, k].sum(), scores)
    torch.testing.assert_close(topk_probabilities(scores, k, normalize=False), derivative)


def test_probabilities_of_one_class_are_the_softmax_and_belong_to_the_loss():
    logits = torch.randn(4, 7, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(topk_probabilities(logits, 1), torch.softmax(logits, 1))
    loss = SmoothTopKLoss(3, tau=0.5, margin=0.0, reduction="none")
    probabilities = loss.predict_proba(logits)
    torch.testing.assert_close(probabilities.sum(1), torch.ones(4, 3))
    # Without a margin the loss is -tau log of the probability to be among the k.
    torch.testing.assert_close(loss(logits, torch.full((4, 3), 2)), -0.5 * (3 * probabilities[:, 2]).log())
    assert loss.predict_proba(logits[0, :, 0]).shape == (7,)


def test_probabilities_check_their_input():
    with pytest.raises(ValueError, match=r"topk_probabilities: k must be < number of classes 3, got 3\."):
        topk_probabilities(torch.zeros(3), 3)
    with pytest.raises(ValueError, match=r"topk_probabilities: logits must have at least k = 2 classes above -inf"):
        topk_probabilities(torch.tensor([0.0, -torch.inf, -torch.inf]), 2)
    torch.testing.assert_close(topk_probabilities(torch.tensor([0.0, -torch.inf, 1.0]), 2), torch.tensor([0.5, 0.0, 0.5]))


def test_accuracy_counts_and_splits_ties():
    logits = torch.tensor([[1.0, 2.0, 3.0, 4.0]]).expand(4, -1)
    target = torch.arange(4)
    assert [topk_accuracy(logits, target, k).item() for k in (1, 2, 4)] == [0.25, 0.5, 1.0]
    assert topk_accuracy(torch.zeros(4, 4), target, 3).item() == 0.75
    assert topk_accuracy(logits * torch.nan, target, 3) == 0
    assert topk_accuracy(logits, torch.tensor([3, -100, -100, 0]), 1).item() == 0.5
    assert topk_accuracy(logits[0], torch.tensor(3), 1) == 1
    with pytest.raises(ValueError, match=r"topk_accuracy: k must be an integer >= 1, got 0\."):
        topk_accuracy(logits, target, 0)


@pytest.mark.parametrize(("k", "num_classes"), [(1, 10), (5, 100), (5, 1000), (3, 1000)])
def test_sensible_tau_is_where_the_gradient_of_a_fresh_network_becomes_sparse(k, num_classes):
    tau = sensible_tau(k, num_classes)
    scores = torch.randn(200, num_classes, generator=torch.Generator().manual_seed(0))
    shares = [gradient_share(SmoothTopKLoss(k, factor * tau), scores) for factor in (0.1, 1.0, 10.0)]
    assert shares[0] < 0.5
    # Rows differ from the typical one: the share of all of them is near the one asked for.
    assert shares[1] == pytest.approx(0.9, abs=0.06)
    assert shares[2] == 1


def test_sensible_tau_agrees_with_the_papers_experiments():
    """On CIFAR-100 with k = 5 training fails at tau = 0.001 and succeeds from 0.01 or 0.1 on (table 6)."""
    assert 0.01 <= sensible_tau(5, 100) <= 0.1
    assert sensible_tau(5, 100, spread=2.0) == pytest.approx(2 * sensible_tau(5, 100))
    with pytest.raises(ValueError, match=r"sensible_tau: share must be in \(0, 1\), got 1"):
        sensible_tau(5, 100, share=1)
    with pytest.raises(ValueError, match="SmoothTopKLoss: k must be < number of classes 5, got 5"):
        lossmith.theory.sensible_tau(5, 5)
