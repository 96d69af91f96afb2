"""Bad input gets one line that names the argument, the expected and the actual."""

import pytest
import torch

from lossmith import (
    AsymmetricGeneralizedCrossEntropyLoss,
    CrossEntropyExpectationLoss,
    CrossEntropyLoss,
    FocalLoss,
    GeneralizedCrossEntropyLoss,
    LogitBias,
    MAELoss,
    NormalizedFocalLoss,
    SymmetricCrossEntropyLoss,
    TruncatedGeneralizedCrossEntropyLoss,
)
from lossmith.losses import WeightedSum

LOGITS, TARGET = torch.zeros(3, 5), torch.tensor([0, 1, 2])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FocalLoss(gamma=-1.0), "FocalLoss: gamma must be >= 0, got -1.0."),
        (lambda: FocalLoss(gamma=float("nan")), "FocalLoss: gamma must be >= 0, got nan."),
        (lambda: FocalLoss(alpha=0.0), "FocalLoss: alpha must be > 0, got 0.0."),
        (lambda: FocalLoss(gamma="2"), "FocalLoss: gamma must be a number >= 0, got str '2'."),
        (lambda: FocalLoss(gamma=torch.ones(9)), "FocalLoss: gamma must be a number >= 0, got Tensor."),
        (lambda: GeneralizedCrossEntropyLoss(q=1.5), "GeneralizedCrossEntropyLoss: q must be in [0, 1], got 1.5."),
        (
            lambda: TruncatedGeneralizedCrossEntropyLoss(k=1.0),
            "TruncatedGeneralizedCrossEntropyLoss: k must be in [0, 1), got 1.0.",
        ),
        (lambda: AsymmetricGeneralizedCrossEntropyLoss(b=-1), "AsymmetricGeneralizedCrossEntropyLoss: b must be >= 0, got -1.0."),
        (lambda: SymmetricCrossEntropyLoss(log_zero=0.0), "SymmetricCrossEntropyLoss: log_zero must be < 0, got 0.0."),
        (lambda: CrossEntropyExpectationLoss(focus=0.6), "CrossEntropyExpectationLoss: focus must be in [0, 0.5], got 0.6."),
        (
            lambda: CrossEntropyExpectationLoss(alpha=1.0),
            "CrossEntropyExpectationLoss: give either focus or both of alpha and beta, got focus=None, alpha=1.0, beta=None.",
        ),
        (lambda: NormalizedFocalLoss(printed=1), "NormalizedFocalLoss: printed must be True or False, got 1."),
        (lambda: LogitBias(epsilon=float("inf")), "LogitBias: epsilon must be finite, got inf."),
        (lambda: LogitBias(MAELoss(), reduction="sum"), "LogitBias: reduction must be given to the loss that it wraps."),
        (lambda: LogitBias(torch.nn.CrossEntropyLoss()), "LogitBias: every part must be a lossmith loss, got CrossEntropyLoss."),
        (lambda: WeightedSum([MAELoss()], [1.0, 2.0]), "WeightedSum: needs as many factors as losses, got 2 and 1."),
        (lambda: CrossEntropyLoss(reduction="avg"), "CrossEntropyLoss: reduction must be 'mean', 'sum' or 'none', got 'avg'."),
        (lambda: CrossEntropyLoss(label_smoothing=1.1), "CrossEntropyLoss: label_smoothing must be in [0, 1], got 1.1."),
        (lambda: CrossEntropyLoss(ignore_index=1.0), "CrossEntropyLoss: ignore_index must be an integer, got 1.0."),
        (
            lambda: CrossEntropyLoss(weight=torch.ones(2, 2)),
            "CrossEntropyLoss: weight must be one number per class, got torch.float32 of shape (2, 2).",
        ),
    ],
)
def test_construction(make, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        make()
    assert str(caught.value) == message


def test_parameters_are_checked_when_they_change():
    loss = FocalLoss()
    with pytest.raises(ValueError, match=r"FocalLoss: gamma must be >= 0, got -1.0."):
        loss.gamma = -1.0
    assert loss.gamma == 2.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda loss: loss(LOGITS.long(), TARGET), "CrossEntropyLoss: logits must be floating point, got torch.int64."),
        (
            lambda loss: loss(torch.tensor(1.0), TARGET),
            "CrossEntropyLoss: logits must be (C), (N, C) or (N, C, d1, ...) with C >= 1, got shape ().",
        ),
        (
            lambda loss: loss(torch.zeros(3, 0), TARGET),
            "CrossEntropyLoss: logits must be (C), (N, C) or (N, C, d1, ...) with C >= 1, got shape (3, 0).",
        ),
        (
            lambda loss: loss(LOGITS, TARGET > 0),
            (
                "CrossEntropyLoss: target must be integer class indices or class probabilities, got torch.bool;"
                " .float() makes probabilities of it."
            ),
        ),
        (
            lambda loss: loss(LOGITS, TARGET[:2]),
            "CrossEntropyLoss: target of class indices (torch.int64) must have shape (3,) for logits of shape (3, 5), got (2,).",
        ),
        (
            lambda loss: loss(LOGITS, torch.zeros(3, 4)),
            "CrossEntropyLoss: target of probabilities must have shape (3, 5) for logits of shape (3, 5), got (3, 4).",
        ),
        (
            lambda loss: loss(LOGITS, TARGET, sample_weight=torch.ones(2)),
            "CrossEntropyLoss: sample_weight must have shape (3,), got (2,).",
        ),
        (
            lambda loss: loss(LOGITS, torch.tensor([0, 5, 1])),
            "CrossEntropyLoss: target must lie in [0, 4] or be ignore_index=-100, got 5 at position (1,).",
        ),
        (
            lambda loss: loss(torch.zeros(2, 5, 2), torch.tensor([[0, 1], [-1, 4]])),
            "CrossEntropyLoss: target must lie in [0, 4] or be ignore_index=-100, got -1 at position (1, 0).",
        ),
    ],
)
def test_calls(call, message):
    with pytest.raises((ValueError, TypeError, IndexError)) as caught:
        call(CrossEntropyLoss())
    assert str(caught.value) == message


def test_class_weights_must_fit():
    with pytest.raises(ValueError, match=r"CrossEntropyLoss: weight must hold 5 numbers, one per class of logits, got 2."):
        CrossEntropyLoss(weight=[1.0, 2.0])(LOGITS, TARGET)


def test_ignoring_a_class_of_probabilities_is_refused_as_in_torch():
    message = "CrossEntropyLoss: ignore_index must be negative where target holds probabilities, got 2."
    with pytest.raises(ValueError, match=message):
        CrossEntropyLoss(ignore_index=2)(LOGITS, torch.full((3, 5), 0.2))


def test_integer_targets_of_any_width_are_indices():
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32):
        assert torch.equal(CrossEntropyLoss()(LOGITS, TARGET.to(dtype)), CrossEntropyLoss()(LOGITS, TARGET))


def test_class_weights_may_be_replaced_by_a_parameter():
    logits, target, weight = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1]), torch.tensor([1.0, 2.0, 3.0])
    loss = CrossEntropyLoss()
    loss.weight = torch.nn.Parameter(weight)
    torch.testing.assert_close(loss(logits, target), torch.nn.functional.cross_entropy(logits, target, weight=weight))
