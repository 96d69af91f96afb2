"""Several labels at once, one logit alone, and what softmax losses say when they get either."""

import copy
import pickle

import mpmath
import pytest
import torch
import torch.nn.functional as F

from lossmith import AsymmetricLoss, BinaryLoss, FocalLoss, make_loss
from lossmith.losses import LOSSES, TargetProbabilityLoss
from references import REFERENCES

OF_PROBABILITY = [name for name, loss in LOSSES.items() if issubclass(loss, TargetProbabilityLoss)]
PLAIN = [name for name in OF_PROBABILITY if not name.startswith("n")]  # the others are divided by their sum over classes
MULTI_HOT = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 1.0]])
TAILS = (-700.0, -40.0, -9.1, -0.3, 0.0, 1e-3, 2.7, 17.3, 36.9, 120.0)
BINARY_REFERENCES = [each for each in REFERENCES if not each.startswith(("n", "mpce"))]


def test_binary_cross_entropy_is_torch_s_own():
    logits, target = 3 * torch.randn(4, 5), torch.rand(4, 5)
    weight, pos_weight = torch.rand(5), 3 * torch.rand(5)
    for reduction in ("mean", "sum", "none"):
        own = BinaryLoss("ce", weight=weight, pos_weight=pos_weight, reduction=reduction)(logits, target)
        expected = F.binary_cross_entropy_with_logits(logits, target, weight, pos_weight=pos_weight, reduction=reduction)
        torch.testing.assert_close(own, expected)
    assert BinaryLoss()(logits, target, denominator=7.0) == pytest.approx(float(BinaryLoss(reduction="sum")(logits, target)) / 7)


@pytest.mark.parametrize("name", PLAIN)
def test_a_binary_form_is_the_loss_of_two_classes(name):
    logits = 4 * torch.randn(20, dtype=torch.float64)
    labels = (torch.arange(20) % 2).double()
    pairs = torch.stack([logits, torch.zeros_like(logits)], 1)
    leaf, both = logits.clone().requires_grad_(), pairs.clone().requires_grad_()
    own = BinaryLoss(name, reduction="none")(leaf, labels)
    expected = make_loss(name, reduction="none")(both, 1 - labels.long())
    torch.testing.assert_close(own, expected)
    gradient, of_pairs = torch.autograd.grad(own.sum(), leaf)[0], torch.autograd.grad(expected.sum(), both)[0]
    torch.testing.assert_close(gradient, of_pairs[:, 0])


@pytest.mark.parametrize("expression", BINARY_REFERENCES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-6), (torch.float64, 1e-13)])
def test_binary_forms_are_exact_in_both_tails(expression, dtype, tolerance):
    logits = torch.tensor(TAILS, dtype=dtype)
    for label in (1.0, 0.0):
        found = BinaryLoss(expression, reduction="none")(logits, torch.full_like(logits, label))
        with mpmath.workdps(420):
            for value, logit in zip(found.tolist(), logits.tolist(), strict=True):
                p = 1 / (1 + mpmath.exp(mpmath.mpf(-logit if label else logit)))
                exact = float(REFERENCES[expression]([p, 1 - p], 0))
                if abs(exact) > 64 * torch.finfo(dtype).tiny:
                    assert value == pytest.approx(exact, rel=tolerance)


def test_multi_label_is_binary_summed_over_the_classes():
    logits = 3 * torch.randn(3, 3, dtype=torch.float64)
    for expression in ("ce", "focal", "gce", "asl"):
        written = expression if expression == "asl" else f"multi-label({expression})"
        found = make_loss(written, reduction="none")(logits, MULTI_HOT.double())
        torch.testing.assert_close(found, BinaryLoss(expression, reduction="none")(logits, MULTI_HOT.double()).sum(1))


def test_special_cases():
    logits, target = 3 * torch.randn(3, 3), MULTI_HOT
    for first, second in (
        ("multi-label", "sigmoid"),
        ("asl(gamma_pos=0, gamma_neg=0, clip=0)", "sigmoid"),
        ("asl(gamma_pos=2, gamma_neg=2, clip=0)", "multi-label(focal)"),
    ):
        torch.testing.assert_close(make_loss(first)(logits, target), make_loss(second)(logits, target))
        weighted = [make_loss(each, weight=[1.0, 2.0, 0.5])(logits, target) for each in (first, second)]
        torch.testing.assert_close(*weighted)


def test_absent_classes_below_the_clip_count_nothing_and_those_just_above_keep_their_digits():
    start = torch.tensor(0.05, dtype=torch.float64).logit()
    logits = torch.stack([start - 1, start, start + 1e-9, start + 1]).unsqueeze(1).requires_grad_()
    losses = AsymmetricLoss(gamma_neg=1.0, reduction="none")(logits, torch.zeros(4, 1, dtype=torch.float64))
    assert losses[:2].tolist() == [0.0, 0.0]
    less = 0.05 * 0.95 * 1e-9
    assert losses[2].item() == pytest.approx(less**2, rel=1e-6)
    assert torch.autograd.gradcheck(AsymmetricLoss(reduction="none"), (logits[[0, 3]], torch.zeros(2, 1, dtype=torch.float64)))


def test_what_is_no_function_of_a_probability_has_no_such_form():
    for wrong in ("nce", "logit-norm", "balanced-softmax(imbalance=0.1)", "bi-tempered"):
        for make in (lambda text: make_loss(f"multi-label({text})"), BinaryLoss):
            with pytest.raises(ValueError, match="MultiLabelLoss: loss must be a function of the target's probability, such as"):
                make(wrong)
    with pytest.raises(TypeError, match="BinaryLoss: loss must be a lossmith loss or the expression of one, got int"):
        BinaryLoss(3)
    with pytest.raises(ValueError, match="BinaryLoss: reduction must be 'mean', 'sum' or 'none', got 'all'"):
        BinaryLoss(reduction="all")
    with pytest.raises(ValueError, match=r"BinaryLoss: target must have shape \(2,\), got \(2, 1\)"):
        BinaryLoss()(torch.zeros(2), torch.zeros(2, 1))


def test_binary_losses_are_modules_like_others():
    loss = BinaryLoss(FocalLoss(gamma=1.0), pos_weight=[2.0])
    assert repr(loss) == "BinaryLoss(focal(gamma=1.0))"
    logits, target = torch.randn(6), (torch.arange(6) % 2).float()
    for again in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), torch.compile(loss, backend="eager", fullgraph=True)):
        torch.testing.assert_close(again(logits, target), loss(logits, target))
    half = loss(logits.half(), target)
    assert half.dtype == torch.float16
    assert BinaryLoss()(torch.zeros(0), torch.zeros(0)).isnan()
    torch.testing.assert_close(loss.predict_proba(logits), torch.sigmoid(logits))


@pytest.mark.parametrize("name", ["ce", "focal", "nce-mae", "bi-tempered", "logit-bias"])
def test_several_labels_given_to_a_softmax_loss_are_said_once(name):
    loss, logits = make_loss(name, reduction="none"), torch.randn(3, 3)
    target = MULTI_HOT.clamp(min=0.01) if name == "bi-tempered" else MULTI_HOT
    words = r"^\w+: some targets add up to more than 1; several labels at once are for multi-label\((ce|focal)\)\.$"
    with pytest.warns(UserWarning, match=words) as caught:
        loss(logits, target)
    assert caught[0].filename == __file__
    loss(logits, target)  # warnings are errors here
    with pytest.warns(UserWarning, match=words):
        copy.deepcopy(make_loss(name))(logits, target)


def test_distributions_and_losses_for_several_labels_are_taken_without_a_word():
    # Where a test is not told otherwise, every warning is an error.
    for name in ("sigmoid", "multi-label", "asl", "squared-error", "logit-bias(sigmoid)", "sigmoid + 2*asl"):
        make_loss(name)(torch.randn(3, 3), MULTI_HOT)
    for dtype in (torch.float32, torch.bfloat16):
        make_loss("ce")(torch.randn(64, 1000), torch.softmax(torch.randn(64, 1000), 1).to(dtype))
    torch.compile(make_loss("ce"), backend="eager", fullgraph=True)(torch.randn(3, 3), MULTI_HOT)
    torch.func.vmap(make_loss("ce"))(torch.randn(2, 3, 3), MULTI_HOT.expand(2, 3, 3))


def test_one_logit_for_a_softmax_loss_is_one_clear_line():
    words = r"^FocalLoss: logits \(N, 1\) have one class, whose probability is always 1; .* BinaryLoss\('focal'\)\.$"
    loss = make_loss("focal")
    with pytest.warns(UserWarning, match=words):
        loss(torch.randn(4, 1), torch.zeros(4, dtype=torch.long))
    loss(torch.randn(4, 1), torch.zeros(4, dtype=torch.long))
