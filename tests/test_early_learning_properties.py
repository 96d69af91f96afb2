"""Properties of losses, where the truth is known."""

import math

import pytest
import torch

from lossmith.losses.catalogue.ready import ready_losses
from lossmith.theory import consistency, properties

# symmetric with this sum over labels (None: not symmetric), bound, calibrated, smooth, largest gradient, where, slope
K = 6
TRUTH = {
    "ce": (None, math.inf, True, True, 1.0, 0.0, 0.0),
    "mae": (2 * (K - 1), 2.0, True, True, 0.5, 0.5, 1.0),
    "el": (K - 1, 1.0, True, True, 0.25, 0.5, 1.0),
    "gce(q=0.7)": (None, 1 / 0.7, True, True, (0.7 / 1.7) ** 0.7 / 1.7, 0.7 / 1.7, 0.7),
    "gce(q=0.2)": (None, 5.0, True, True, (0.2 / 1.2) ** 0.2 / 1.2, 0.2 / 1.2, 0.2),
    "truncated-gce(q=0.7, k=0.5)": (None, (1 - 0.5**0.7) / 0.7, True, False, 0.5**1.7, 0.5, math.inf),
    "agce(b=1.0, q=2.0)": (None, 1.5, True, True, None, None, 1.0),
    "nce": (1.0, 1.0, False, True, None, None, None),
    "nce-mae": (1 + 40 * (K - 1), 41.0, True, True, None, None, None),
    "sce(alpha=0)": (4 * (K - 1), 4.0, True, True, 1.0, 0.5, 1.0),
    "focal": (None, math.inf, True, True, None, None, 0.0),
    "bi-tempered(t1=0.8, t2=1.2)": (None, 5.0, True, True, None, None, None),
    "bi-tempered(t1=0.5, t2=4.0)": (None, 2.0, True, True, None, None, None),
    "tamed-ce(alpha=1)": (None, math.inf, True, True, None, None, None),
    "mpce": (None, math.inf, False, False, None, None, None),
    "hard-topk(k=1)": (None, math.inf, False, False, 1.0, 0.0, 0.0),
    "sigmoid": (None, math.inf, True, True, 1.0, 0.0, 0.0),
    "squared-error": (None, math.inf, True, True, math.inf, 0.0, None),
    "complement-entropy": (None, 0.0, False, True, 0.0, None, math.inf),
    "logit-bias(mae, epsilon=1)": (None, 2.0, True, True, 0.5, 1 / (1 + math.e), 1.0),
}


@pytest.mark.parametrize("expression", TRUTH)
def test_where_the_truth_is_known(expression):
    label_sum, bound, calibrated, smooth, gradient, at, slope = TRUTH[expression]
    found = properties(expression, K)
    assert found.symmetric == (label_sum is not None)
    assert found.label_sum == (pytest.approx(label_sum, rel=1e-9) if found.symmetric else None)
    assert found.bounded == math.isfinite(bound)
    assert found.bound == pytest.approx(bound, rel=1e-6, abs=1e-9)
    assert (found.calibrated, found.smooth) == (calibrated, smooth)
    assert gradient is None or found.largest_gradient == pytest.approx(gradient, rel=1e-4)
    assert at is None or found.largest_gradient_at == pytest.approx(at, abs=2e-3)
    assert slope is None or found.outlier_slope == pytest.approx(slope, abs=1e-3)


def test_two_classes_make_the_hinge_calibrated():
    assert properties("hard-topk(k=1)", 2).calibrated


def test_every_loss_of_the_catalogue_has_properties(monkeypatch):
    monkeypatch.setattr(consistency, "STEPS", 3)  # tried above; here the rest counts
    for name in ready_losses():
        found = properties(name, 8)
        assert found.bounded == math.isfinite(found.bound)
        assert 0 <= found.largest_gradient_at <= 1


def probability(logits, target):
    return torch.softmax(logits, 1).gather(1, target[:, None]).squeeze(1)


def test_a_loss_of_ones_own():
    """A clumsy function, which overflows and takes logarithms of 0, is judged by what it is."""

    def naive_cross_entropy(logits, target):
        return -torch.log(torch.exp(logits).gather(1, target[:, None]).squeeze(1) / torch.exp(logits).sum(1))

    found = properties(naive_cross_entropy, K)
    assert (found.symmetric, found.bounded) == (False, False)
    found = properties(lambda logits, target: (1 - probability(logits, target)) ** 2, K)
    assert (found.symmetric, found.bounded, found.calibrated, found.smooth) == (False, True, True, True)
    assert found.bound == pytest.approx(1.0)
    assert found.largest_gradient == pytest.approx(2 * (2 / 3) ** 2 / 3, rel=1e-4)  # 2 p (1 - p)**2 is largest at 1/3
    assert found.largest_gradient_at == pytest.approx(1 / 3, abs=1e-3)


def test_losses_that_learn_the_wrong_thing_are_not_calibrated():
    assert properties(probability, 3).calibrated is False
    assert properties(lambda logits, target: 0 * probability(logits, target), 3).calibrated is False
    clipped = properties(lambda logits, target: torch.relu(0.3 - probability(logits, target)), 4)
    assert (clipped.calibrated, clipped.smooth, clipped.bounded) == (False, False, True)


def test_bad_input():
    with pytest.raises(ValueError, match=r"^properties: num_classes must be >= 2, got 1\.$"):
        properties("mae", 1)
    with pytest.raises(ValueError, match=r"^properties: loss must return one number for each of 5 examples, got \(\)\.$"):
        properties(lambda logits, target: logits.mean(), 5)
