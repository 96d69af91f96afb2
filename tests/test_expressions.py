"""Losses from text, sums of losses, and the printed form."""

import math
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lossmith
from cases import CASES
from lossmith import ComplementObjective, CrossEntropyLoss, FocalLoss, LogitBias, MAELoss, NormalizedCrossEntropyLoss, make_loss
from lossmith.losses import LOSSES, NormalizedCrossEntropyAGCELoss, NormalizedFocalMAELoss, WeightedSum

LOGITS = torch.randn(16, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
TARGET = torch.randint(4, (16,), generator=torch.Generator().manual_seed(1))


def same(first, second) -> bool:
    return (
        repr(first) == repr(second) and type(first) is type(second) and torch.equal(first(LOGITS, TARGET), second(LOGITS, TARGET))
    )


@pytest.mark.parametrize("expression", CASES)
def test_the_printed_form_reads_back(expression):
    options = {"weight": torch.tensor([0.1, 1 / 3, 2.0, 1e-8]), "ignore_index": 2, "reduction": "sum", "label_smoothing": 0.1}
    for loss in (make_loss(expression), make_loss(expression, **options)):
        again = make_loss(str(loss))
        assert same(loss, again)
        assert again.weight is None if loss.weight is None else torch.equal(again.weight, loss.weight)


def test_weights_of_other_precisions_read_back():
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        loss = CrossEntropyLoss(weight=torch.tensor([0.1, 1 / 3, 2.0, 3.0], dtype=dtype))
        weight = make_loss(str(loss)).weight
        assert weight.dtype == dtype
        assert torch.equal(weight, loss.weight)


numbers = st.floats(0, 1, allow_nan=False).map(lambda number: round(number, 12))
leaves = st.one_of(
    st.sampled_from(["ce", "mae", "el", "nce", "mpce", "nf-mae@100", "nce-agce"]),
    numbers.map(lambda q: f"gce(q={q})"),
    st.tuples(numbers, numbers).map(lambda pair: f"agce(b={pair[0]}, q={pair[1]})"),
    numbers.map(lambda gamma: f"focal(gamma={gamma})"),
)
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(st.tuples(st.floats(-1e3, 1e3), inner), min_size=1, max_size=3).map(
            lambda terms: " + ".join(f"{factor}*({part})" for factor, part in terms)
        ),
        st.tuples(inner, st.floats(-5, 5)).map(lambda pair: f"logit-bias({pair[0]}, epsilon={pair[1]})"),
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=60)
@given(expressions)
def test_any_expression_reads_back(expression):
    loss = make_loss(expression, reduction="sum")
    assert same(loss, make_loss(str(loss)))


def test_arithmetic():
    loss = 2 * (CrossEntropyLoss() + 0.5 * MAELoss()) + FocalLoss()
    expected = 2 * CrossEntropyLoss()(LOGITS, TARGET) + MAELoss()(LOGITS, TARGET) + FocalLoss()(LOGITS, TARGET)
    assert isinstance(loss, WeightedSum)
    assert str(loss) == "2.0*ce + 1.0*mae + 1.0*focal(gamma=2.0)"
    torch.testing.assert_close(loss(LOGITS, TARGET), expected, rtol=1e-13, atol=0)


@pytest.mark.parametrize(
    "parts",
    [
        {"complement-entropy": 0.5, "ce": 2.0, "mae": -1.0},
        {"logit-norm(tau=0.2)": 1.0, "squared-error": 3.0, "nce": 1.0},
        {"label-smoothing": -2.0, "mpce": 1.0, "logit-penalty": 0.1},
        {"bi-tempered(t1=0.8, t2=1.2)": 1.0, "gce": 0.3},
        {"smooth-topk(k=2)": 1.0, "focal": 0.3, "sigmoid": 2.0, "mae": 0.5},
    ],
    ids=", ".join,
)
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_sum_is_the_sum_of_its_parts(parts, kind, reduction):
    target = TARGET if kind == "indices" else torch.softmax(LOGITS.flip(0), 1).requires_grad_()
    logits = LOGITS.clone().requires_grad_()
    leaves = [leaf for leaf in (logits, target) if leaf.requires_grad]
    whole = make_loss(" + ".join(f"{factor}*{loss}" for loss, factor in parts.items()), reduction=reduction)
    separate = [factor * make_loss(loss, reduction=reduction)(logits, target) for loss, factor in parts.items()]
    values = whole(logits, target), sum(separate)
    slopes = [torch.autograd.grad(value.square().sum(), leaves, create_graph=True) for value in values]
    bends = [torch.autograd.grad(slope[0].square().sum(), leaves) for slope in slopes]
    for found, expected in zip((values[0], *slopes[0], *bends[0]), (values[1], *slopes[1], *bends[1]), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-13)


def test_options_reach_every_part():
    for expression in ("1.0*nce + 20*mae", "nce-mae", "logit-bias(0.5*ce + mpce, epsilon=1)", "logit-bias"):
        loss = make_loss(expression, weight=[1.0, 2.0, 3.0, 4.0], ignore_index=3, reduction="none", label_smoothing=0.1)
        for part in loss.modules():
            if isinstance(part, lossmith.losses.ClassificationLoss):
                assert (part.ignore_index, part.reduction, part.label_smoothing) == (3, "none", 0.1)
                assert part.weight.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_setting_an_option_of_a_sum_sets_it_everywhere():
    loss = make_loss("logit-bias(ce + mae)")
    loss.label_smoothing = 0.2
    loss.reduction = "sum"
    assert (
        str(loss)
        == "logit-bias(1.0*ce(reduction=sum, label_smoothing=0.2) + 1.0*mae(reduction=sum, label_smoothing=0.2), epsilon=0.5)"
    )


def test_parameters_of_a_combination_reach_its_parts():
    loss = make_loss("nce-agce")
    loss.alpha, loss.q = 2.0, 0.5
    expected = make_loss("2.0*nce + 4.0*agce(b=6.0, q=0.5)")
    assert torch.equal(loss(LOGITS, TARGET), expected(LOGITS, TARGET))
    assert str(loss) == "nce-agce(alpha=2.0, beta=4.0, b=6.0, q=0.5)"


def test_presets_are_those_of_the_paper():
    assert str(make_loss("nf-mae@100")) == "nf-mae(alpha=1.0, beta=0.2)"
    assert str(make_loss("nce-agce@10")) == "nce-agce(alpha=1.0, beta=4.0, b=6.0, q=1.5)"
    assert str(make_loss("agce@100(q=0.4)")) == "agce(b=1e-05, q=0.4)"
    for loss in LOSSES.values():
        for classes in loss.presets:
            assert loss.for_classes(classes)(LOGITS, TARGET).isfinite()


@pytest.mark.parametrize("expression", ["logit-bias(mae, epsilon=3)", "1.0*logit-bias(ce, epsilon=3) + 2.0*cot"])
def test_a_gradient_is_that_of_the_parameters_at_the_call(expression):
    logits, loss = LOGITS.clone().requires_grad_(), make_loss(expression)
    value = loss(logits, TARGET)
    (expected,) = torch.autograd.grad(value, logits, retain_graph=True)
    loss.eval()
    for part in loss.modules():
        if isinstance(part, LogitBias):
            part.epsilon = 0.0
    (found,) = torch.autograd.grad(value, logits, create_graph=True)
    torch.testing.assert_close(found, expected)


def test_the_bias_acts_in_training_only():
    loss = LogitBias(MAELoss(), epsilon=2.0)
    plain = MAELoss()(LOGITS, TARGET)
    assert loss(LOGITS, TARGET) < plain
    assert torch.equal(loss.eval()(LOGITS, TARGET), plain)
    assert torch.equal(loss.train().predict_proba(LOGITS), torch.softmax(LOGITS, 1))


@pytest.mark.parametrize(
    ("special", "general"),
    [
        ("ce", "gce(q=0)"),
        ("ce", "agce(b=0, q=0)"),
        ("ce", "sce(alpha=1, beta=0)"),
        ("ce", "focal(gamma=0)"),
        ("ce", "tamed-ce(alpha=0)"),
        ("ce", "ce-el(alpha=1, beta=0)"),
        ("el", "gce(q=1)"),
        ("el", "agce(b=3, q=1)"),
        ("el", "ce-el(focus=0.5)"),
        ("mae", "2*el"),
        ("gce(q=0.7)", "truncated-gce(q=0.7, k=0)"),
        ("gce(q=0.4)", "agce(b=0, q=0.4)"),
        ("nce", "nf(gamma=0)"),
        ("ce", "logit-bias(ce, epsilon=0)"),
    ],
)
def test_special_cases(special, general):
    for target in (TARGET, torch.softmax(LOGITS.flip(0), 1)):
        torch.testing.assert_close(make_loss(general)(LOGITS, target), make_loss(special)(LOGITS, target), rtol=1e-13, atol=1e-15)


def test_symmetric_losses_have_a_constant_sum_over_labels():
    for expression, total in (("mae", 2 * 3), ("el", 3), ("nce", 1), ("nf", 1), ("nce-mae", 1 + 20 * 6)):
        each = [make_loss(expression, reduction="none")(LOGITS, torch.full((16,), label)) for label in range(4)]
        torch.testing.assert_close(sum(each), torch.full((16,), float(total), dtype=torch.float64), rtol=1e-12, atol=0)


def test_focus_is_where_the_gradient_is_largest():
    p = torch.linspace(0.001, 0.999, 999, dtype=torch.float64)
    for focus in (0.1, 0.25, 0.4, 0.5):
        logits = torch.stack([torch.log(p), torch.log1p(-p)], 1).requires_grad_()
        loss = make_loss(f"ce-el(focus={focus})", reduction="sum")(logits, torch.zeros(999, dtype=torch.long))
        (gradient,) = torch.autograd.grad(loss, logits)
        assert p[gradient[:, 0].abs().argmax()].item() == pytest.approx(focus, abs=1e-3)


def test_average_error_of_gce_at_a_thousand_classes():
    """Paper 001, appendix 4: q = 0.48 at 1000 classes keeps <delta_k>(0) of q = 0.7 at 100 classes, which is -0.0282."""

    def average_error(expression: str, classes: int) -> float:
        logits = torch.randn(20_000 // (classes // 100), classes, generator=torch.Generator().manual_seed(0))
        logits[:, 0] = 0.0
        logits.requires_grad_()
        make_loss(expression, reduction="sum")(logits, torch.zeros(len(logits), dtype=torch.long)).backward()
        return float(logits.grad[:, 0].mean())

    assert average_error("gce(q=0.7)", 100) == pytest.approx(-0.0282, abs=3e-4)
    assert average_error("gce(q=0.48)", 1000) == pytest.approx(-0.0286, abs=5e-4)
    assert average_error("nce-agce@100", 100) == pytest.approx(-0.021, abs=1e-3)
    assert average_error("nce-agce@1000", 1000) == pytest.approx(-0.021, abs=1e-3)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("gec", "make_loss: unknown loss 'gec' in 'gec'; did you mean 'gce'? 'lossmith list' names all."),
        (
            "gce(p=1)",
            (
                "GeneralizedCrossEntropyLoss: unknown parameter 'p' in 'gce(p=1)'; it has q, weight, ignore_index,"
                " reduction, label_smoothing."
            ),
        ),
        ("focal(gama=1)", "FocalLoss: unknown parameter 'gama' in 'focal(gama=1)'; did you mean 'gamma'?"),
        ("gce(q=2)", "GeneralizedCrossEntropyLoss: q must be in [0, 1], got 2.0."),
        ("gce(q=ce)", "GeneralizedCrossEntropyLoss: q must be a number in [0, 1], got CrossEntropyLoss ce."),
        ("ce +", "make_loss: expected a loss in 'ce +', got the end."),
        ("2 ce", "make_loss: expected '*' in '2 ce', got 'ce' at column 3."),
        ("ce mae", "make_loss: expected the end in 'ce mae', got 'mae' at column 4."),
        ("gce(q=0.5", "make_loss: expected ')' in 'gce(q=0.5', got the end."),
        ("gce(q=$)", "make_loss: cannot read '$' at column 7 of 'gce(q=$)'."),
        ("nf-mae@50", "NormalizedFocalMAELoss: num_classes must be one of 10, 100, 1000, got 50."),
        ("ce@10", "CrossEntropyLoss: num_classes must be left out, as nothing was published, got 10."),
        ("", "make_loss: expected a loss in '', got the end."),
    ],
)
def test_what_cannot_be_read(expression, message):
    with pytest.raises(ValueError) as caught:
        make_loss(expression)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("loss", "name", "message"),
    [
        (ComplementObjective, "gamm", "ComplementObjective: unknown parameter 'gamm'; did you mean 'gamma'?"),
        (NormalizedCrossEntropyAGCELoss, "bta", "NormalizedCrossEntropyAGCELoss: unknown parameter 'bta'; did you mean 'beta'?"),
        (LogitBias, "epsilonn", "LogitBias: unknown parameter 'epsilonn'; did you mean 'epsilon'?"),
        (NormalizedFocalMAELoss, "foo", "NormalizedFocalMAELoss: unknown parameter 'foo'."),
    ],
)
def test_misspelt_parameters_of_combinations(loss, name, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        loss(**{name: 1.0})


def test_parts_must_agree():
    with pytest.raises(ValueError, match=r"WeightedSum: reduction must be the same in all parts, got sum in ce and mean in mae."):
        CrossEntropyLoss(reduction="sum") + MAELoss()
    with pytest.raises(ValueError, match="WeightedSum: weight must be the same"):
        CrossEntropyLoss(weight=[1.0, 2.0]) + MAELoss(weight=[1.0, 3.0])


def test_arithmetic_with_anything_else_is_refused():
    with pytest.raises(ValueError, match=r"WeightedSum: factor must be finite, got nan."):
        math.nan * NormalizedCrossEntropyLoss()
    with pytest.raises(TypeError):
        CrossEntropyLoss() * "2"
    with pytest.raises(TypeError):
        CrossEntropyLoss() + 1


def test_nesting_too_deep_is_one_clear_line():
    with pytest.raises(ValueError, match=r"^make_loss: too many parentheses within one another, got '\(+'\.\.\.$"):
        make_loss("(" * 5000 + "ce" + ")" * 5000)
