"""torch.compile, torch.export and torch.func, for every loss of the catalogue."""

import copy
import itertools
import pickle
from functools import partial

import pytest
import torch
from torch._dynamo.utils import counters
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from cases import CASES, GRAPHS
from lossmith import GeneralizedCrossEntropyLoss, make_loss
from lossmith.losses.contract.adjustable import adjustable_numbers
from lossmith.numerics import tempered_softmax

torch.manual_seed(0)
LOGITS = torch.randn(6, 5, dtype=torch.float64)
INDICES = torch.tensor([0, 1, 2, 3, 4, -100])
PROBABILITIES = torch.softmax(torch.randn(6, 5, dtype=torch.float64), 1)
TARGETS = {"indices": INDICES, "probabilities": PROBABILITIES}


def gradient(loss, logits, target):
    leaf = logits.clone().requires_grad_()
    return torch.autograd.grad(loss(leaf, target), leaf)[0]


@pytest.mark.parametrize("expression", CASES)
def test_compiled_as_one_graph(expression):
    torch._dynamo.reset()
    loss, leaf = make_loss(expression), LOGITS.clone().requires_grad_()

    def of_each_target(logits):
        return [loss(logits, target) for target in TARGETS.values()]

    compiled = torch.compile(of_each_target, fullgraph=True, backend="aot_eager")
    for ours, expected in zip(compiled(leaf), of_each_target(leaf), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-12, atol=1e-14)
        slopes = (torch.autograd.grad(value, leaf, retain_graph=True)[0] for value in (ours, expected))
        torch.testing.assert_close(*slopes, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("expression", ["ce", "nf-mae", "logit-bias"])
def test_compiled_to_machine_code(expression):
    torch._dynamo.reset()
    loss = make_loss(expression, weight=[1.0, 2.0, 0.5, 1.0, 1.0], label_smoothing=0.1)
    compiled = torch.compile(loss, fullgraph=True)
    logits = LOGITS.float()
    torch.testing.assert_close(gradient(compiled, logits, INDICES), gradient(loss, logits, INDICES), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("expression", "name", "values"),
    [
        ("gce", "q", (0.8, 0.7, 0.6, 0.5)),
        ("focal", "gamma", (1.5, 2.5, 3.5, 4.5)),
        ("label-smoothing", "alpha", (0.1, 0.2, 0.3, 0.4)),
        ("logit-bias(mae)", "epsilon", (0.3, 1.5, 2.5, 3.5)),
        ("logit-norm", "tau", (0.3, 0.4, 0.5, 0.6)),
        ("z-loss", "beta", (0.1, 0.2, 0.3, 0.4)),
        ("bi-tempered", "t1", (0.8, 0.7, 0.6, 1.1)),
        ("gce", "q", (0.0, 0.3, 0.6, 0.9, 0.0)),
        ("logit-bias(gce)", "epsilon", (0.0, 0.3, 0.6)),
        ("tsallis", "t2", (1.0, 1.1, 1.2)),
    ],
)
def test_changing_a_parameter_compiles_nothing(expression, name, values):
    """But one graph more for a value at which the formula is another one, which here comes first."""
    torch._dynamo.reset()
    counters.clear()
    loss = make_loss(expression)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for value in values:
        setattr(loss, name, value)
        torch.testing.assert_close(compiled(LOGITS, INDICES), loss(LOGITS, INDICES))
    assert counters["stats"]["unique_graphs"] <= GRAPHS + (values[0] in (0.0, 1.0))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda loss: pickle.loads(pickle.dumps(loss))])
@pytest.mark.parametrize(
    ("expression", "path"), [("gce", "q"), ("nce + 20*logit-bias(mae)", "losses.1.epsilon"), ("2*ce", "factors.0")]
)
def test_a_copied_loss_has_numbers_of_its_own(expression, path, copied):
    torch._dynamo.reset()
    counters.clear()
    first = make_loss(expression)
    second = copied(first)
    compiled = torch.compile(second, backend="eager")
    for value in (0.3, 0.4):
        adjustable_numbers(first)[path].set(0.9)
        adjustable_numbers(second)[path].set(value)
        torch.testing.assert_close(compiled(LOGITS, INDICES), second(LOGITS, INDICES))
    assert repr(first) != repr(second)
    assert counters["stats"]["unique_graphs"] <= GRAPHS
    assert not counters["graph_break"]


def test_numbers_that_are_set_where_tensors_have_no_values_stay_numbers():
    with FakeTensorMode():
        loss = make_loss("gce(q=0.2)")
    with torch.inference_mode():
        loss.q = 0.3
    torch._dynamo.reset()
    logits = LOGITS.clone().requires_grad_()
    torch.testing.assert_close(
        gradient(torch.compile(loss, backend="aot_eager"), logits, INDICES), gradient(loss, logits, INDICES)
    )


def test_a_loss_that_is_made_in_a_graph():
    def step(logits, q):
        loss = GeneralizedCrossEntropyLoss(q)
        loss.q = 0.5 * loss.q
        return loss(logits, INDICES)

    torch._dynamo.reset()
    torch.testing.assert_close(
        torch.compile(step, backend="eager")(LOGITS, 0.6), GeneralizedCrossEntropyLoss(0.3)(LOGITS, INDICES)
    )


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("expression", CASES)
def test_functional_gradients(expression, kind):
    loss, target = make_loss(expression), TARGETS[kind]
    torch.testing.assert_close(grad(loss)(LOGITS, target), gradient(loss, LOGITS, target), rtol=1e-11, atol=1e-14)
    plain = torch.autograd.functional.hessian(lambda logits: loss(logits, target), LOGITS)
    torch.testing.assert_close(hessian(loss)(LOGITS, target), plain, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(jacrev(jacfwd(loss))(LOGITS, target), plain, rtol=1e-9, atol=1e-12)
    tangent = torch.ones_like(LOGITS).cumsum(1)
    _, change = jvp(lambda logits: loss(logits, target), (LOGITS,), (tangent,))
    torch.testing.assert_close(change, (gradient(loss, LOGITS, target) * tangent).sum(), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("keeps_graph", [False, True])
@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("expression", CASES)
def test_gradients_have_tangents(expression, kind, keeps_graph):
    """Hessian times vector, forward over reverse, for which no gradient of the gradient is recorded."""
    loss, target = make_loss(expression), TARGETS[kind]
    vector = torch.ones_like(LOGITS).cumsum(1)
    with forward_ad.dual_level():
        logits = forward_ad.make_dual(LOGITS.clone().requires_grad_(), vector)
        (slope,) = torch.autograd.grad(loss(logits, target), logits, retain_graph=keeps_graph)
        change = forward_ad.unpack_dual(slope).tangent
    assert not slope.requires_grad
    if "hard-topk" not in expression:  # whose gradient is constant
        product = torch.autograd.functional.vhp(lambda logits: loss(logits, target), LOGITS, vector)[1]
        torch.testing.assert_close(change, product, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("lead", [20.0, 92.0, 800.0, 1e4])
@pytest.mark.parametrize("expression", [case for case in CASES if "hard-topk" not in case])
def test_second_derivatives_of_certain_predictions_are_finite(expression, lead):
    logits = torch.tensor([[lead, 0.0, -1.0, 0.5, 0.2, 0.1, -0.3, 0.4]])
    for dtype, target in itertools.product((torch.float32, torch.float64), (torch.tensor([0]), torch.tensor([1]))):
        loss = partial(make_loss(expression), target=target)
        assert torch.autograd.functional.hessian(loss, logits.to(dtype)).isfinite().all()


def test_forward_mode_twice_is_refused_and_not_wrong():
    for function in (lambda logits: tempered_softmax(logits, 1.2), lambda logits: make_loss("gce")(logits, INDICES[0])):
        with pytest.raises(NotImplementedError, match=r"use torch\.func\.hessian"):
            jacfwd(jacfwd(function))(LOGITS[0])
    plain = make_loss("label-smoothing")
    torch.testing.assert_close(jacfwd(jacfwd(plain))(LOGITS, INDICES), hessian(plain)(LOGITS, INDICES), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("expression", CASES)
def test_mapped_over_examples(expression, kind):
    loss, target = make_loss(expression), TARGETS[kind][:5]
    rows = LOGITS[:5]
    each = torch.stack([loss(row, label) for row, label in zip(rows, target, strict=True)])
    torch.testing.assert_close(vmap(loss)(rows, target), each, rtol=1e-11, atol=1e-14)
    gradients = torch.stack([gradient(loss, row, label) for row, label in zip(rows, target, strict=True)])
    torch.testing.assert_close(vmap(grad(loss))(rows, target), gradients, rtol=1e-11, atol=1e-14)
    torch.testing.assert_close(jacrev(vmap(loss))(rows, target).diagonal(0, 0, 1).T, gradients, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("expression", CASES)
def test_mapped_over_models(expression):
    """Stacked models share their targets, as in an ensemble."""
    loss = make_loss(expression)
    stacked = torch.stack([LOGITS, 2 * LOGITS, -LOGITS], dim=1)
    each = torch.stack([loss(stacked[:, model], INDICES) for model in range(3)])
    torch.testing.assert_close(vmap(loss, in_dims=(1, None))(stacked, INDICES), each, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("expression", CASES)
def test_exported(expression, kind):
    loss, target = make_loss(expression), TARGETS[kind]
    program = torch.export.export(loss, (LOGITS, target))
    torch.testing.assert_close(program.module()(LOGITS, target), loss(LOGITS, target), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("expression", CASES)
def test_tensors_without_values(expression, kind):
    """As estimates of memory use them; nothing of them may be left in what is computed afterwards."""
    loss, target = make_loss(expression), TARGETS[kind]
    with FakeTensorMode() as mode:
        logits = mode.from_tensor(LOGITS).requires_grad_()
        loss(logits, mode.from_tensor(target)).backward()
    assert logits.grad.shape == LOGITS.shape
    assert loss(LOGITS, target).isfinite()


@pytest.mark.parametrize("pre_dispatch", [False, True])
@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("expression", CASES)
def test_traced_with_any_values(expression, kind, pre_dispatch):
    loss, target = make_loss(expression), TARGETS[kind]
    traced = make_fx(loss, pre_dispatch=pre_dispatch)(LOGITS, target)
    torch.testing.assert_close(traced(-9 * LOGITS, target), loss(-9 * LOGITS, target), rtol=1e-9, atol=1e-12)
