"""A linear layer with its loss, a few rows at a time: what the loss of all logits gives, for every loss and option."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._dynamo.utils import counters
from torch.func import grad, vmap
from torch.profiler import ProfilerActivity, profile

from cases import CASES
from lossmith import LinearLoss, linear_loss, make_loss
from lossmith.linear import chunks, placed
from lossmith.losses import ClassificationLoss

CLASSES, ROWS = 7, 11
GENERATOR = torch.Generator().manual_seed(0)
WEIGHT = torch.rand(CLASSES, generator=GENERATOR, dtype=torch.float64) + 0.1
SAMPLE_WEIGHT = torch.rand(ROWS, generator=GENERATOR, dtype=torch.float64)
INDICES = torch.randint(CLASSES, (ROWS,), generator=GENERATOR)
INDICES[3] = INDICES[7] = -100
PROBABILITIES = torch.softmax(torch.randn(ROWS, CLASSES, generator=GENERATOR, dtype=torch.float64), 1)
CALLS = {
    "plain": ({}, INDICES, {}),
    "weighted": ({"weight": WEIGHT, "label_smoothing": 0.2}, INDICES, {"sample_weight": SAMPLE_WEIGHT}),
    "probabilities": ({"weight": WEIGHT, "reduction": "sum"}, PROBABILITIES, {"denominator": 3.0}),
    "rows": ({"weight": WEIGHT, "reduction": "none"}, INDICES, {}),
}
# With 16 features the logits of all rows have room in the gradient of the weights, with 4 they have not.
WIDTHS = (4, 16)


def layer(width: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    generator = torch.Generator().manual_seed(width)
    shapes = (ROWS, width), (CLASSES, width), (CLASSES,)
    return [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes]


def with_gradients(function, tensors: list[Tensor]) -> list[Tensor]:
    value = function(*tensors)
    direction = torch.linspace(1, 2, value.numel(), dtype=value.dtype).reshape(value.shape)
    return [value.detach(), *torch.autograd.grad(value, [each for each in tensors if each.requires_grad], direction)]


def at_once(loss, target, **options):
    return lambda features, weight, bias: loss(F.linear(features, weight, bias), target, **options)


def by_chunks(loss, target, chunk=4, **options):
    return lambda features, weight, bias: linear_loss(features, weight, target, loss, bias=bias, chunk=chunk, **options)


@pytest.mark.parametrize("expression", CASES)
def test_a_loss_by_chunks_is_that_of_all_logits(expression):
    for width in WIDTHS:
        for own, target, options in CALLS.values():
            loss = make_loss(expression, **own)
            found = with_gradients(by_chunks(loss, target, **options), layer(width))
            expected = with_gradients(at_once(loss, target, **options), layer(width))
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def test_a_chunk_is_all_that_is_seen_of_the_logits(monkeypatch):
    seen = []
    forward = ClassificationLoss.forward

    def counted(self, logits, *arguments, **options):
        seen.append(tuple(logits.shape))
        return forward(self, logits, *arguments, **options)

    monkeypatch.setattr(ClassificationLoss, "forward", counted)
    for width in WIDTHS:
        with_gradients(by_chunks(make_loss("ce"), INDICES), layer(width))
        assert seen == [(4, CLASSES), (4, CLASSES), (1, CLASSES)]  # two of eleven rows are ignored
        seen.clear()


def test_the_way_in_place_is_taken_where_there_is_room(monkeypatch):
    taken = []
    monkeypatch.setattr("lossmith.linear.operation.walk_in_place", lambda *call: taken.append(1) or placed.walk_in_place(*call))
    for width in WIDTHS:
        with_gradients(by_chunks(make_loss("ce"), INDICES), layer(width))
    with_gradients(by_chunks(make_loss("ce"), INDICES, chunk=None), layer(16))
    assert len(taken) == 1


@pytest.mark.parametrize("wanted", [(True, False, False), (False, True, False), (False, False, True), (True, False, True)])
def test_only_what_is_wanted_has_a_gradient(wanted):
    for width in WIDTHS:
        tensors = [each.requires_grad_(is_wanted) for each, is_wanted in zip(layer(width), wanted, strict=True)]
        found = with_gradients(by_chunks(make_loss("gce"), INDICES), tensors)
        torch.testing.assert_close(found, with_gradients(at_once(make_loss("gce"), INDICES), tensors), rtol=1e-9, atol=1e-12)


def test_without_gradients_none_is_made(monkeypatch):
    monkeypatch.setattr(chunks, "write_slopes", None)
    tensors = layer(4)
    with torch.no_grad():
        torch.testing.assert_close(by_chunks(make_loss("gce"), INDICES)(*tensors), at_once(make_loss("gce"), INDICES)(*tensors))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("case", ["all ignored", "no rows"])
def test_degenerate_batches(case, reduction):
    tensors = layer(4)
    target = torch.full((ROWS,), -100)
    if case == "no rows":
        tensors[0], target = tensors[0].detach()[:0].requires_grad_(), target[:0]
    for options in ({}, {"weight": WEIGHT}):
        loss = make_loss("gce", reduction=reduction, **options)
        found = with_gradients(by_chunks(loss, target), tensors)
        torch.testing.assert_close(found[0], at_once(loss, target)(*tensors).detach(), equal_nan=True)
        assert not any(each.any() for each in found[1:])


def test_leading_places_are_examples():
    features, weight, bias = layer(4)
    for target in (INDICES[:10].view(2, 5), PROBABILITIES[:10].view(2, 5, CLASSES)):
        for reduction in ("mean", "none"):
            loss = make_loss("focal", reduction=reduction)
            found = linear_loss(features[:10].view(2, 5, 4), weight, target, loss, bias=bias, chunk=3)
            expected = loss(F.linear(features[:10], weight, bias), target.reshape(10, *target.shape[2:]))
            torch.testing.assert_close(found, expected.view(2, 5) if reduction == "none" else expected)
    one = linear_loss(features[0], weight, INDICES[0], make_loss("ce", reduction="none"))
    assert one.shape == ()


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_gradients_of_gradients(reduction):
    loss, tensors = make_loss("gce", reduction=reduction), layer(16)
    assert torch.autograd.gradgradcheck(by_chunks(loss, INDICES), tensors, gen_non_contig_grad_outputs=True)


def test_functional_transforms():
    features, weight, bias = (each.detach() for each in layer(4))
    loss = make_loss("gce")
    target = INDICES.clamp(min=0)
    each = vmap(grad(lambda row, label: linear_loss(row, weight, label, loss, bias=bias, chunk=2)))(features, target)
    rows = [
        with_gradients(at_once(loss, label), [row.clone().requires_grad_(), weight, bias])[1]
        for row, label in zip(features, target, strict=True)
    ]
    torch.testing.assert_close(each, torch.stack(rows))


def test_what_else_has_a_gradient():
    features, weight, bias = layer(4)
    factors, probabilities = SAMPLE_WEIGHT.clone().requires_grad_(), PROBABILITIES.clone().requires_grad_()
    loss = make_loss("gce")
    found, expected = (
        torch.autograd.grad(
            call(loss, probabilities, sample_weight=factors)(features, weight, bias), [factors, probabilities, weight]
        )
        for call in (by_chunks, at_once)
    )
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_retained_graph_gives_the_same_gradient_each_time(width):
    tensors = layer(width)
    value = by_chunks(make_loss("gce"), INDICES)(*tensors)
    first = torch.autograd.grad(3 * value, tensors, retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(3 * value, tensors), first, rtol=0, atol=0)


def test_many_gradients_at_once():
    for reduction in ("sum", "none"):
        tensors = layer(4)
        found, expected = (
            torch.autograd.grad(
                call(make_loss("gce", reduction=reduction), INDICES)(*tensors),
                tensors,
                torch.rand(
                    3, *([ROWS] if reduction == "none" else []), generator=torch.Generator().manual_seed(0), dtype=torch.float64
                ),
                is_grads_batched=True,
            )
            for call in (by_chunks, at_once)
        )
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_compiled_as_one_operation(reduction):
    torch._dynamo.reset()
    counters.clear()
    loss = make_loss("gce", reduction=reduction, weight=WEIGHT)
    call = by_chunks(loss, INDICES)
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    for q in (0.7, 0.2):
        loss.q = q
        torch.testing.assert_close(with_gradients(compiled, layer(4)), with_gradients(call, layer(4)))
    assert counters["stats"]["unique_graphs"] == 1
    other = LinearLoss(make_loss("gce(q=0.3)"), 4, CLASSES)
    compiled_layer = torch.compile(other, fullgraph=True, backend="aot_eager")
    inputs = torch.ones(2, 4), torch.tensor([1, 2])
    torch.testing.assert_close(compiled_layer(*inputs), other(*inputs))
    other.loss = make_loss("gce(q=0.6)")
    torch.testing.assert_close(compiled_layer(*inputs), other(*inputs))


def test_exported():
    module = LinearLoss(make_loss("gce"), 4, CLASSES)
    inputs = torch.ones(3, 4), torch.tensor([1, 2, 0])
    torch.testing.assert_close(torch.export.export(module, inputs).module()(*inputs), module(*inputs))


@pytest.mark.parametrize("width", WIDTHS)
def test_autocast(width):
    tensors = layer(width, torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = with_gradients(by_chunks(make_loss("gce"), INDICES), tensors)
        expected = with_gradients(at_once(make_loss("gce"), INDICES), tensors)
    assert [each.dtype for each in found] == [torch.float32] * 4
    # Both round products of matrices to 8 bits; ours does so once a chunk.
    torch.testing.assert_close(found, expected, rtol=2**-7, atol=2**-8)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_adds_up_in_single(dtype):
    """A thousand equal rows: added up in half precision, their gradient would stop growing."""
    features, weight = torch.ones(4096, 2, dtype=dtype), torch.zeros(3, 2, dtype=dtype).requires_grad_()
    value = linear_loss(features, weight, torch.zeros(4096, dtype=torch.long), make_loss("ce"), chunk=4)
    value.backward()
    assert (value.dtype, weight.grad.dtype) == (dtype, dtype)
    torch.testing.assert_close(
        weight.grad, torch.tensor([[-2 / 3] * 2, [1 / 3] * 2, [1 / 3] * 2], dtype=dtype), rtol=2**-7, atol=0
    )


def test_memory_is_that_of_the_gradients_and_a_tenth_of_the_logits(monkeypatch):
    monkeypatch.setattr(chunks, "LEAST_ELEMENTS", 1)
    monkeypatch.setattr(chunks, "CACHED_ELEMENTS", 40_000)
    for rows, width, classes in ((256, 256, 20_000), (1024, 64, 8_000)):
        features, weight = torch.zeros(rows, width, requires_grad=True), torch.zeros(classes, width, requires_grad=True)
        target = torch.zeros(rows, dtype=torch.long)
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
            linear_loss(features, weight, target, make_loss("gce")).backward()
        held = peak = 0
        events = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
        for event in sorted(events, key=lambda event: event.start_ns()):
            held += event.nbytes()
            peak = max(peak, held)
        gradients = 4 * (features.numel() + weight.numel())
        assert gradients < peak < gradients + 4 * rows * classes / 10


def test_the_layer_is_one_of_torchs_with_a_loss():
    module = LinearLoss(make_loss("gce", weight=[1.0] * 5), 3, 5)
    assert set(module.state_dict()) == {"weight", "bias", "loss.weight"}
    torch.nn.Linear(3, 5).load_state_dict({name: module.state_dict()[name] for name in ("weight", "bias")})
    features = torch.randn(4, 3)
    torch.testing.assert_close(module.predict_proba(features), torch.softmax(module.logits(features), 1))
    clone = copy.deepcopy(module)
    torch.testing.assert_close(clone(features, torch.tensor([0, 1, 2, 4])), module(features, torch.tensor([0, 1, 2, 4])))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"loss": torch.nn.CrossEntropyLoss()}, TypeError, "loss must be a lossmith loss, got CrossEntropyLoss"),
        ({"features": torch.ones(2, 3)}, ValueError, r"features must be \(..., 4\), as weight is, got \(2, 3\)"),
        ({"weight": torch.ones(4)}, ValueError, r"weight must be \(C, in_features\) with C >= 1, got shape \(4,\)"),
        ({"bias": torch.ones(4)}, ValueError, r"bias must have shape \(5,\), got \(4,\)"),
        ({"target": torch.tensor([0, 1, 2])}, ValueError, r"target must have shape \(2,\) for features of shape \(2, 4\) and 5"),
        ({"target": torch.tensor([0, 9])}, IndexError, r"target must lie in \[0, 4\]"),
        ({"chunk": 0}, ValueError, "chunk must be a number of rows >= 1, got 0"),
        ({"features": [1.0]}, TypeError, "features must be a tensor, got list"),
        ({"features": torch.ones(2, 4).long()}, TypeError, "features must be floating point, got torch.int64"),
        ({"sample_weight": torch.ones(3)}, ValueError, r"sample_weight must have shape \(2,\)"),
    ],
)
def test_bad_input_is_named(change, error, message):
    call = {"features": torch.ones(2, 4), "weight": torch.ones(5, 4), "target": torch.tensor([0, 1]), "loss": make_loss("ce")}
    with pytest.raises(error, match=message):
        linear_loss(**call | change)
