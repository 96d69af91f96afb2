"""The contract of nn.CrossEntropyLoss, for every loss of the catalogue."""

import copy
import pickle
from functools import partial
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import forward_ad

from cases import CASES, IS_INTERPRETED, IS_REFERENCE, class_losses, expected_over_classes
from lossmith import make_loss
from lossmith.losses import ClassificationLoss

CLASSES = 5
SHAPES = {"one": (CLASSES,), "batch": (7, CLASSES), "sequence": (3, CLASSES, 4), "image": (2, CLASSES, 3, 2)}
WEIGHT = torch.tensor([0.5, 2.0, 1.0, 0.0, 3.0], dtype=torch.float64)
OPTIONS = [
    {"reduction": reduction, "weight": weight, "ignore_index": ignored, "label_smoothing": smoothing}
    for reduction, weight, ignored, smoothing in product(("mean", "sum", "none"), (None, WEIGHT), (-100, 1), (0.0, 0.3))
]
# A kernel in Triton's interpreter takes a thousand times as long: every fifth has each option with each value, and most pairs.
OPTIONS = OPTIONS[::5] if IS_INTERPRETED else OPTIONS


def batch(shape: tuple[int, ...], seed: int = 0, scale: float = 2.0) -> tuple[Tensor, Tensor, Tensor]:
    """Return logits, class indices and class probabilities."""
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
    dim = min(1, len(shape) - 1)
    indices = torch.randint(CLASSES, shape[:dim] + shape[dim + 1 :], generator=generator)
    probabilities = torch.softmax(torch.randn(shape, generator=generator, dtype=torch.float64), dim)
    return logits, indices, probabilities


def torch_formula(losses: Tensor, target: Tensor, options: dict) -> Tensor:
    """Return torch's documented reduction of the class losses ``(N, C, ...)``."""
    classes, weight, smoothing = losses.shape[1], options["weight"], options["label_smoothing"]
    weight = torch.ones(classes, dtype=losses.dtype) if weight is None else weight
    along = weight.view(-1, *[1] * (losses.dim() - 2))
    if target.is_floating_point():
        each = (losses * along * (target * (1 - smoothing) + smoothing / classes)).sum(1)
        share = torch.ones_like(each)
    else:
        valid = target != options["ignore_index"]
        index = torch.where(valid, target, 0)
        own = losses.gather(1, index.unsqueeze(1)).squeeze(1)
        each = (1 - smoothing) * weight[index] * own + smoothing / classes * (losses * along).sum(1)
        each, share = torch.where(valid, each, 0.0), torch.where(valid, weight[index], 0.0)
    return {"none": each, "sum": each.sum(), "mean": each.sum() / share.sum()}[options["reduction"]]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape", [shape for name, shape in SHAPES.items() if name != "one"], ids=str)
def test_the_formula_is_torchs(shape, options):
    logits, indices, probabilities = batch(shape)
    losses = -torch.log_softmax(logits, 1)
    torch.testing.assert_close(torch_formula(losses, indices, options), F.cross_entropy(logits, indices, **options))
    if options["ignore_index"] < 0:
        torch.testing.assert_close(
            torch_formula(losses, probabilities, options), F.cross_entropy(logits, probabilities, **options)
        )


@pytest.mark.parametrize("expression", CASES)
def test_options_together_as_in_torch(expression):
    for shape, options in product(SHAPES.values(), OPTIONS):
        loss = make_loss(expression, **options)
        logits, indices, probabilities = batch(shape)
        targets = [indices] if options["ignore_index"] >= 0 else [indices, probabilities]
        linear = expected_over_classes(loss)
        for target in targets if linear else [indices] * (not options["label_smoothing"]):
            rows, labels = (logits, target) if logits.dim() > 1 else (logits.unsqueeze(0), target.unsqueeze(0))
            expected = torch_formula(class_losses(expression, rows), labels, options)
            expected = expected.squeeze(0) if options["reduction"] == "none" and logits.dim() == 1 else expected
            torch.testing.assert_close(loss(logits, target), expected, equal_nan=True, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("expression", CASES)
def test_one_hot_probabilities_are_indices(expression):
    for shape in SHAPES.values():
        logits, indices, _ = batch(shape)
        one_hot = F.one_hot(indices, CLASSES).to(logits.dtype)
        one_hot = one_hot.movedim(-1, min(1, logits.dim() - 1))
        for weight, reduction in ((None, "mean"), (WEIGHT, "none")):
            loss = make_loss(expression, weight=weight, reduction=reduction)
            torch.testing.assert_close(loss(logits, one_hot), loss(logits, indices), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("expression", CASES)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_ignored_targets_have_no_gradient(expression, smoothing):
    logits, indices, _ = batch((6, CLASSES))
    indices[::2] = -100
    logits.requires_grad_()
    loss = make_loss(expression, label_smoothing=smoothing)
    (gradient,) = torch.autograd.grad(loss(logits, indices), logits)
    (expected,) = torch.autograd.grad(loss(logits[1::2], indices[1::2]), logits)
    assert torch.equal(gradient[::2], torch.zeros_like(gradient[::2]))
    torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("expression", CASES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("case", ["all ignored", "empty", "empty, of probabilities"])
def test_degenerate_batches_as_in_torch(expression, reduction, smoothing, case):
    logits = torch.randn(4 if case == "all ignored" else 0, CLASSES)
    target = torch.zeros_like(logits) if "probabilities" in case else torch.full((len(logits),), -100)

    def outcome(loss):
        leaf = logits.clone().requires_grad_()
        value = loss(leaf, target)
        return value.detach(), torch.autograd.grad(value.sum(), leaf)[0]

    options = {"reduction": reduction, "label_smoothing": smoothing}
    value, gradient = outcome(make_loss(expression, **options))
    torch_value, torch_gradient = outcome(nn.CrossEntropyLoss(**options))
    torch.testing.assert_close(value, torch_value, equal_nan=True)
    if smoothing and case == "all ignored" and reduction == "mean":
        # torch divides 0 by 0 before it masks; its own result without smoothing, zero, is what ignoring means.
        torch_gradient = torch.zeros_like(torch_gradient)
    torch.testing.assert_close(gradient, torch_gradient, equal_nan=True)


@pytest.mark.parametrize("expression", CASES)
def test_sample_weight_is_a_weighted_mean(expression):
    logits, indices, probabilities = batch((7, CLASSES))
    factors = torch.tensor([0.0, 1.0, 2.0, 1.0, 0.0, 3.0, 1.0], dtype=torch.float64)
    repeated = torch.repeat_interleave(torch.arange(7), factors.long())
    for target, options in product(
        (indices, probabilities), ({}, {"weight": WEIGHT}, {"reduction": "sum"}, {"label_smoothing": 0.1})
    ):
        loss = make_loss(expression, **options)
        expected = loss(logits[repeated], target[repeated])
        torch.testing.assert_close(loss(logits, target, sample_weight=factors), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("expression", CASES)
def test_gradients(expression):
    logits, indices, probabilities = batch((4, CLASSES), seed=1, scale=1.0)
    logits.requires_grad_()
    probabilities.requires_grad_()
    indices[0] = -100
    for options in ({}, {"weight": WEIGHT, "label_smoothing": 0.2, "reduction": "none"}):
        loss = make_loss(expression, **options)
        assert torch.autograd.gradcheck(lambda x, loss=loss: loss(x, indices), logits, check_forward_ad=True)
        assert torch.autograd.gradgradcheck(lambda x, loss=loss: loss(x, indices), logits)
        assert torch.autograd.gradcheck(loss, (logits, probabilities), check_forward_ad=True)
        # Along random directions, not along every one: second derivatives by 40 numbers would take the time of all else.
        assert torch.autograd.gradgradcheck(loss, (logits, probabilities), fast_mode=True)


@pytest.mark.parametrize("expression", CASES)
def test_gradient_of_sample_weight(expression):
    logits, indices, _ = batch((4, CLASSES))
    factors = torch.rand(4, dtype=torch.float64, requires_grad=True)
    loss = make_loss(expression)
    assert torch.autograd.gradcheck(lambda weight: loss(logits, indices, sample_weight=weight), factors)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("expression", CASES)
def test_precision_is_that_of_torch(expression, dtype):
    logits, indices, probabilities = batch((6, CLASSES))
    logits = logits.to(dtype)
    loss = make_loss(expression)
    for target in (indices, probabilities.to(dtype), probabilities.float()):
        for autocast in (False, True):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
                value, reference = loss(logits, target), F.cross_entropy(logits, target)
            assert value.dtype == reference.dtype, (target.dtype, autocast)
        exact = loss(logits.double(), target.double() if target.is_floating_point() else target)
        # Computed in at least single precision, then rounded once.
        value = loss(logits, target)
        torch.testing.assert_close(value.double(), exact, rtol=torch.finfo(value.dtype).eps + 2e-6, atol=0.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("expression", CASES)
def test_half_precision_gradient_is_rounded_once(expression, dtype):
    logits, indices, _ = batch((6, CLASSES))
    leaf = logits.to(dtype).requires_grad_()
    loss = make_loss(expression, reduction="sum")
    (gradient,) = torch.autograd.grad(loss(leaf, indices), leaf)
    (exact,) = torch.autograd.grad(loss(wide := leaf.detach().double().requires_grad_(), indices), wide)
    assert gradient.dtype == dtype
    tolerance = (torch.finfo(dtype).eps + 2e-6) * exact.abs().amax(1, keepdim=True)
    assert ((gradient.double() - exact).abs() <= tolerance).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("expression", CASES)
def test_finite_for_logits_up_to_ten_thousand(expression, dtype):
    generator = torch.Generator().manual_seed(3)
    for scale in (1e-3, 1.0, 30.0, 1e2, 1e3, 1e4):
        logits = (scale * (2 * torch.rand(64, CLASSES, generator=generator, dtype=dtype) - 1)).requires_grad_()
        indices = torch.randint(CLASSES, (64,), generator=generator)
        for target in (indices, F.one_hot(indices, CLASSES).to(dtype), torch.full((64, CLASSES), 1 / CLASSES, dtype=dtype)):
            value = make_loss(expression)(logits, target)
            (gradient,) = torch.autograd.grad(value, logits)
            assert value.isfinite()
            assert gradient.isfinite().all()


@pytest.mark.filterwarnings("ignore:.*have one class")
@pytest.mark.parametrize("expression", CASES)
def test_a_single_class_costs_nothing_or_a_constant(expression):
    if "topk" in expression:
        pytest.skip("top-k needs more than k classes")
    if expression.partition("(")[0] in ("asl", "logit-penalty", "multi-label", "sigmoid", "squared-error", "z-loss"):
        pytest.skip("pulls at the logits themselves, not at their differences")
    logits = torch.randn(3, 1, requires_grad=True)
    value = make_loss(expression)(logits, torch.zeros(3, dtype=torch.long))
    (gradient,) = torch.autograd.grad(value, logits)
    assert value.isfinite()
    assert torch.equal(gradient, torch.zeros_like(gradient))


@pytest.mark.parametrize("expression", CASES)
def test_predict_proba(expression):
    loss = make_loss(expression)
    for shape in SHAPES.values():
        logits, _, _ = batch(shape)
        dim = min(1, logits.dim() - 1)
        probs = loss.predict_proba(logits)
        assert probs.shape == logits.shape
        torch.testing.assert_close(probs.sum(dim), torch.ones_like(probs.sum(dim)))
        assert torch.equal(probs.argmax(dim), logits.argmax(dim))


def test_sums_have_probabilities_where_their_parts_agree():
    logits = batch((6, CLASSES))[0]
    for expression, part in {
        "ce + logit-bias(mae, epsilon=3.0)": "ce",
        "bi-tempered(t1=0.5, t2=2.0) + bi-tempered(t1=0.8, t2=2.0)": "bi-tempered(t1=0.5, t2=2.0)",
        "ce + bi-tempered(t1=0.5, t2=1.0)": "ce",
        "logit-bias(2.0*smooth-topk(k=2, tau=1.0), epsilon=1.0) + smooth-topk(k=2)": "smooth-topk(k=2)",
    }.items():
        torch.testing.assert_close(make_loss(expression).predict_proba(logits), make_loss(part).predict_proba(logits))
    for expression in (
        "bi-tempered(t1=0.5, t2=2.0) + bi-tempered(t1=0.5, t2=3.0)",
        "logit-norm(tau=0.1) + logit-norm(tau=0.2)",
        "ce + sigmoid",
        "mae + smooth-topk(k=2)",
        "smooth-topk(k=2, tau=1.5) + logit-bias(smooth-topk(k=2, tau=1.5) + smooth-topk(k=3, tau=0.6666666666666666), epsilon=1)",
    ):
        with pytest.raises(ValueError, match="have different probabilities"):
            make_loss(expression).predict_proba(logits)


@pytest.mark.parametrize("expression", CASES)
def test_inputs_and_global_state_stay_as_they_were(expression):
    logits, indices, probabilities = batch((6, CLASSES))
    indices[0] = -100
    logits.requires_grad_()
    before = [tensor.detach().clone() for tensor in (logits, indices, probabilities)]
    state, grad_mode = torch.get_rng_state(), torch.is_grad_enabled()
    for target in (indices, probabilities):
        make_loss(expression, label_smoothing=0.1)(logits, target).backward()
    for tensor, old in zip((logits.detach(), indices, probabilities), before, strict=True):
        assert torch.equal(tensor, old)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.is_grad_enabled() == grad_mode


@pytest.mark.parametrize("expression", CASES)
def test_copies_behave_alike(expression):
    logits, indices, _ = batch((6, CLASSES))
    loss = make_loss(expression, weight=WEIGHT, label_smoothing=0.1)
    value = loss(logits, indices)
    fresh = make_loss(expression, weight=torch.ones(CLASSES, dtype=torch.float64), label_smoothing=0.1)
    fresh.load_state_dict(loss.state_dict())
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), make_loss(repr(loss)), fresh):
        assert repr(other) == repr(loss)
        assert torch.equal(other(logits, indices), value)


@pytest.mark.parametrize("expression", CASES)
def test_channels_last_and_noncontiguous_logits(expression):
    logits, indices, _ = batch((2, CLASSES, 3, 4))
    loss = make_loss(expression)
    value = loss(logits, indices)
    for other in (logits.to(memory_format=torch.channels_last), torch.cat([logits, logits], 3)[..., :4]):
        torch.testing.assert_close(loss(other, indices), value, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("expression", CASES)
def test_a_retained_graph_gives_the_same_gradient_each_time(expression):
    logits, indices, probabilities = batch((6, CLASSES))
    logits.requires_grad_()
    for target in (indices, probabilities):
        value = make_loss(expression)(logits, target)
        kept = [torch.autograd.grad(value, logits, retain_graph=True)[0] for _ in range(2)]
        last = torch.autograd.grad(value, logits)[0]
        assert torch.equal(kept[0], kept[1])
        assert torch.equal(kept[0], last)
        with pytest.raises(RuntimeError, match="second time"):
            torch.autograd.grad(value, logits)


@pytest.mark.parametrize("expression", CASES)
def test_many_gradients_at_once(expression):
    logits, indices, probabilities = batch((6, CLASSES))
    for target in (indices, probabilities):
        losses = partial(make_loss(expression, reduction="none"), target=target)
        at_once, one_by_one = (torch.autograd.functional.jacobian(losses, logits, vectorize=how) for how in (True, False))
        torch.testing.assert_close(at_once, one_by_one, rtol=1e-12, atol=1e-15)


@pytest.mark.skipif(IS_REFERENCE or IS_INTERPRETED, reason="it is the kernels for processors that keep it")
def test_what_was_kept_for_a_gradient_becomes_the_gradient():
    logits, indices, _ = batch((64, 1000))
    logits.requires_grad_()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.data_ptr()) or tensor, lambda tensor: tensor):
        make_loss("gce")(logits, indices).backward()
    assert logits.grad.data_ptr() in kept


def test_every_loss_is_a_classification_loss():
    assert all(isinstance(make_loss(expression), ClassificationLoss) for expression in CASES)


@pytest.mark.parametrize("expression", CASES)
def test_ignored_examples_may_have_any_logits(expression):
    logits, indices, _ = batch((6, CLASSES))
    indices[2:4] = -100
    plain = make_loss(expression)(logits, indices)
    logits[2], logits[3] = torch.nan, -torch.inf
    logits.requires_grad_()
    value = make_loss(expression)(logits, indices)
    assert torch.equal(value, plain)
    assert torch.autograd.grad(value, logits)[0].isfinite().all()


DIVERGED = {"nan": torch.nan, "inf": torch.inf}
SQUARES = "squared-error"  # an infinite logit is infinitely wrong: infinity will do, if the gradient has it, too


@pytest.mark.parametrize("number", DIVERGED)
@pytest.mark.parametrize("expression", CASES)
def test_diverged_logits_are_not_hidden(expression, number):
    """As in cross-entropy, one row is not a number, and no error is raised: mixed precision skips such a step and goes on."""
    has_diverged = (lambda x: ~x.isfinite()) if (expression, number) == (SQUARES, "inf") else torch.Tensor.isnan
    for position, kind in product(range(CLASSES), ("indices", "probabilities")):
        logits, indices, probabilities = batch((3, CLASSES))
        logits[1, position] = DIVERGED[number]
        target = indices if kind == "indices" else probabilities
        leaf = logits.requires_grad_()
        assert F.cross_entropy(leaf, target).isnan()
        losses = make_loss(expression, reduction="none")(leaf, target)
        assert has_diverged(losses).tolist() == [False, True, False]
        assert has_diverged(make_loss(expression)(leaf, target))
        (gradient,) = torch.autograd.grad(losses.sum(), leaf)
        assert has_diverged(gradient).any(1).tolist() == [False, True, False]


@pytest.mark.parametrize("expression", CASES)
def test_rows_without_a_possible_class_are_not_hidden(expression):
    """Logits that have all become -inf have a loss and a gradient of NaN in cross-entropy, and no finite loss anywhere."""
    for kind in ("indices", "probabilities"):
        logits, indices, probabilities = batch((3, CLASSES))
        logits[1] = -torch.inf
        leaf = logits.requires_grad_()
        losses = make_loss(expression, reduction="none")(leaf, indices if kind == "indices" else probabilities)
        assert losses.isfinite().tolist() == [True, False, True]
        (gradient,) = torch.autograd.grad(losses.sum(), leaf)
        assert gradient[[0, 2]].isfinite().all()
        # Every sigmoid has the slope it had; the loss alone is infinite.
        assert expression in ("sigmoid", "multi-label") or not gradient[1].isfinite().all()


def test_masked_classes_as_in_torch():
    for row in ([1.0, -float("inf"), 2.0], [-float("inf"), 0.0, 1.0], [1.0, -float("inf"), -float("inf")]):
        leaf = torch.tensor([row], requires_grad=True)
        outcomes = []
        for loss in (make_loss("ce"), nn.CrossEntropyLoss()):
            value = loss(leaf, torch.tensor([0]))
            outcomes.append((value, torch.autograd.grad(value, leaf)[0]))
        torch.testing.assert_close(*outcomes)


@pytest.mark.parametrize("expression", CASES)
def test_shapes_are_inferred_without_values(expression):
    logits = torch.empty(4, CLASSES, 3, device="meta")
    value = make_loss(expression, reduction="none")(logits, torch.empty(4, 3, dtype=torch.long, device="meta"))
    assert value.shape == (4, 3)


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("expression", CASES)
def test_unreduced_losses_may_be_modified_in_place(expression, scale):
    logits, indices, probabilities = batch(SHAPES["batch"], scale=scale)
    for target in (indices, probabilities.float()):
        leaf = logits.float().requires_grad_()
        loss = make_loss(expression, reduction="none")
        (expected,) = torch.autograd.grad((2 * loss(leaf, target)).sum(), leaf)
        losses = loss(leaf, target)
        losses *= 2
        (gradient,) = torch.autograd.grad(losses.sum(), leaf)
        torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("expression", CASES)
def test_the_mean_as_one_operation_is_the_mean(expression):
    logits, indices, probabilities = batch(SHAPES["batch"])
    for target in (indices, probabilities):
        leaf = logits.requires_grad_()
        mean, losses = (make_loss(expression, reduction=reduction)(leaf, target) for reduction in ("mean", "none"))
        torch.testing.assert_close(mean, losses.mean())
        for factor in (3.0, 1.0):  # the latter frees what the graph kept
            pair = [
                torch.autograd.grad(value, leaf, torch.tensor(factor).double(), retain_graph=factor != 1)[0]
                for value in (mean, losses.mean())
            ]
            torch.testing.assert_close(*pair)


@pytest.mark.parametrize("expression", CASES)
def test_slopes_of_the_mean(expression):
    logits, indices, probabilities = batch(SHAPES["batch"])
    for target in (indices, probabilities):
        mean, losses = (partial(make_loss(expression, reduction=reduction), target=target) for reduction in ("mean", "none"))
        direction = torch.randn(logits.shape, dtype=logits.dtype, generator=torch.Generator().manual_seed(1))
        for derivative in (torch.autograd.functional.vhp, forward_slope):
            _, found = derivative(mean, logits, direction)
            _, expected = derivative(lambda z, losses=losses: losses(z).mean(), logits, direction)
            torch.testing.assert_close(found, expected)


def forward_slope(function, at, direction):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(function(forward_ad.make_dual(at, direction)))
