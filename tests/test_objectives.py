"""Heads, objectives by name, and their presets."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn

from cases import SMALL
from lossmith import make_loss, make_objective
from lossmith.losses import LOSSES
from lossmith.losses.catalogue.ready import ready_expression
from lossmith.objectives import OBJECTIVES, SCHEDULES, CosineLinear, DropoutLinear, Objective, final_layer_groups
from lossmith.objectives.objective import filled_in


def backbone() -> nn.Module:
    layers = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU())
    layers.out_features = 8
    return layers


def test_cosine_linear_is_equation_7() -> None:
    torch.manual_seed(0)
    head = CosineLinear(5, 4, tau=0.07).double()
    nn.init.normal_(head.bias)
    features, weights = torch.randn(3, 5, dtype=torch.float64), head.weight.tolist()
    for row, logits in zip(features.tolist(), head(features), strict=True):
        for k in range(4):
            dot = sum(w * x for w, x in zip(weights[k], row, strict=True))
            lengths = math.hypot(*weights[k]) * math.hypot(*row)
            assert logits[k].item() == pytest.approx(dot / lengths / 0.07 + head.bias[k].item(), rel=1e-13)
    assert torch.autograd.gradcheck(head, features.requires_grad_())
    assert torch.autograd.gradgradcheck(head, features)


def test_cosine_linear_ignores_lengths_and_has_finite_gradients() -> None:
    head = CosineLinear(5, 4)
    features = torch.randn(3, 5)
    torch.testing.assert_close(head(1e15 * features), head(features))
    torch.testing.assert_close(head(1e-12 * features), head(features))
    zero = torch.zeros(2, 5, requires_grad=True)
    head(zero).sum().backward()
    assert zero.grad is not None
    assert zero.grad.isfinite().all()
    assert head(features.bfloat16().float()).isfinite().all()
    assert CosineLinear(5, 4, bias=False).bias is None


def test_dropout_linear_keeps_the_mean_and_rests_in_evaluation() -> None:
    torch.manual_seed(0)
    head = DropoutLinear(400, 3, keep=0.7)
    features = torch.ones(2000, 400)
    full = nn.functional.linear(features[:1], head.weight, head.bias)
    # Each logit sums 400 terms w x / keep: its variance is sum w**2 (1 - keep) / keep, w uniform in +-1/20.
    error = math.sqrt(400 / (3 * 400) * 0.3 / 0.7 / 2000)
    assert (head(features).mean(0) - full).abs().max().item() < 5 * error
    kept = nn.functional.linear(torch.eye(400), torch.eye(400))
    assert torch.equal(head.eval()(kept), nn.functional.linear(kept, head.weight, head.bias))


def decays(groups: list[dict]) -> list[float]:
    return [group["weight_decay"] for group in groups]


def test_groups_add_the_published_penalty() -> None:
    """A step of gradient descent on loss + penalty equals one with these groups."""
    torch.manual_seed(0)
    rate, product, extra = 0.2, 0.01, 0.3
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    other = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    other.load_state_dict(model.state_dict())
    data, target = torch.randn(5, 3, dtype=torch.float64), torch.tensor([0, 1, 1, 0, 1])
    groups = final_layer_groups(model, model[-1], product, extra, learning_rate=rate)
    assert sum(len(group["params"]) for group in groups) == 4
    optimizer = torch.optim.SGD(groups, lr=rate)
    make_loss("ce")(model(data), target).backward()
    optimizer.step()
    everywhere = sum(parameter.square().sum() for parameter in other.parameters())
    penalty = product / (2 * rate) * everywhere + extra / 2 * other[-1].weight.square().sum()
    (make_loss("ce")(other(data), target) + penalty).backward()
    torch.optim.SGD(other.parameters(), lr=rate).step()
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-13, atol=1e-15)


def test_groups_can_spare_vectors_and_refuse_foreign_heads() -> None:
    model = make_objective("softmax").build(backbone(), 3).model
    groups = final_layer_groups(model, model.head, 0.1, 0.2, decay_vectors=False)
    assert decays(groups) == [0.1, 0.0, pytest.approx(0.3)]
    assert all(parameter.dim() <= 1 for parameter in groups[1]["params"])
    with pytest.raises(ValueError, match="head must be a part of the model, got a Linear outside of it"):
        final_layer_groups(model, nn.Linear(2, 2), 0.1, 0.2)
    with pytest.raises(ValueError, match=r"weight_decay must be >= 0, got -1\.0"):
        final_layer_groups(model, model.head, -1.0, 0.2)


@pytest.mark.parametrize(
    "expression",
    [
        *(name for name in OBJECTIVES if name != "scheduled"),
        *(SMALL.get(name, ready_expression(name)) for name in LOSSES),
        "cosine-softmax(tau=0.1, loss=gce)",
        "1.0*nce + 20*mae",
    ],
)
def test_every_objective_trains(expression: str) -> None:
    torch.manual_seed(0)
    objective = filled_in(make_objective(expression), {"counts": [20.0, 8.0, 4.0]})
    model, loss, groups = objective.build(backbone(), num_classes=3, weight_decay=1e-4)
    assert str(objective) == expression
    scheduler = objective.scheduler(loss, total=6)
    optimizer = torch.optim.SGD(groups, lr=0.05)
    data = torch.randn(32, 6)
    target = (data @ torch.randn(6, 3)).argmax(1)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    for _ in range(6):
        for part in objective.passes(loss):
            optimizer.zero_grad()
            part(model(data), target).backward()
            optimizer.step()
        if scheduler is not None:
            scheduler.step()
    moved = [not torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True)]
    assert any(moved)
    assert all(parameter.isfinite().all() for parameter in model.parameters())
    assert loss is not objective.loss  # an objective can be built again


def test_names_mean_one_thing() -> None:
    assert not OBJECTIVES.keys() & LOSSES.keys()
    assert not OBJECTIVES.keys() & SCHEDULES.keys()
    assert not SCHEDULES.keys() & LOSSES.keys()


def test_sigmoid_starts_improbable_and_two_passes_are_two() -> None:
    model, loss, _ = make_objective("sigmoid").build(backbone(), 7)
    assert model.head.bias.tolist() == pytest.approx([-math.log(7)] * 7)
    assert len(make_objective("sigmoid").passes(loss)) == 1
    objective = make_objective("two-pass-cot(gamma=0.5)")
    assert [repr(part) for part in objective.passes(objective.loss)] == ["ce", "0.5*complement-entropy"]
    assert repr(make_objective("cot(gamma=0.5)").loss) == "cot(gamma=0.5)"


@pytest.mark.parametrize(
    "expression", ["dropout(keep=0.7, loss=gce)", "two-pass-cot", "scheduled(ce-el, focus=linear(0, 0.5))", "nf-mae"]
)
def test_options_go_to_the_loss(expression: str) -> None:
    plain, weighted = make_objective(expression), make_objective(expression, weight=[1.0, 2.0, 0.5], ignore_index=1)
    assert repr(weighted.loss) == repr(make_loss(repr(plain.loss), weight=[1.0, 2.0, 0.5], ignore_index=1))
    assert weighted.name == plain.name
    assert weighted.schedules == plain.schedules
    with pytest.raises(ValueError, match="did you mean 'weight'"):
        make_objective(expression, wieght=[1.0])


def test_schedules_run_with_the_objective() -> None:
    objective = make_objective("ce-el-gradual")
    _, loss, _ = objective.build(backbone(), 3)
    scheduler = objective.scheduler(loss, total=6)
    for _ in range(5):
        scheduler.step()
    assert loss.focus == 0.5
    assert objective.loss.focus == 0.0
    assert make_objective("gce").scheduler(make_loss("gce"), total=6) is None


@pytest.mark.parametrize(
    ("expression", "rate", "decay", "detail"),
    [
        ("softmax@cifar-10", 10**-0.75, 10**-3, "ce"),
        ("label-smoothing@cifar-100", 0.1, 10**-2.5, "label-smoothing(alpha=0.18)"),
        ("logit-norm@cifar-100", 10**-2.25, 10**-1.5, "logit-norm(tau=0.11)"),
        ("squared-error@imagenet", 1.6, 8e-5, "squared-error(kappa=9.0, target=60.0, scale=10.0)"),
        ("sigmoid@cifar-10", 1.0, 10**-3.75, "sigmoid"),
        ("logit-penalty@cifar-10", 10**-0.75, 10**-3, f"logit-penalty(beta={10**-2.83})"),
    ],
)
def test_presets_of_losses(expression: str, rate: float, decay: float, detail: str) -> None:
    objective = make_objective(expression)
    assert objective.learning_rate == pytest.approx(rate, rel=1e-12)
    assert objective.weight_decay == pytest.approx(decay, rel=1e-12)
    assert repr(objective.loss) == detail


def test_presets_of_heads_and_decay() -> None:
    groups = make_objective("extra-l2@cifar-10").build(backbone(), 10).groups
    assert decays(groups) == pytest.approx([10**-2.5, 10**-2.5 + 10**-1.5])
    assert make_objective("cosine-softmax@cifar-10").build(backbone(), 10).model.head.tau == 0.08
    assert make_objective("dropout@imagenet").build(backbone(), 10).model.head.keep == 0.7
    assert make_objective("cosine-softmax@imagenet(tau=0.2)").build(backbone(), 10).model.head.tau == 0.2


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: make_objective("cosine-softmx"),
            "unknown objective 'cosine-softmx' .*did you mean 'cosine-softmax'",
        ),
        (lambda: make_objective("cosine-softmax(tua=1)"), "cosine-softmax: unknown parameter 'tua' .*did you mean 'tau'"),
        (lambda: make_objective("cosine-softmax(tau=0)"), "CosineLinear: tau must be > 0, got 0.0"),
        (lambda: make_objective("dropout(keep=1.5)"), r"DropoutLinear: keep must be in \(0, 1\], got 1.5"),
        (lambda: make_objective("extra-l2(-1)"), "Objective: final_weight_decay must be >= 0, got -1.0"),
        (lambda: make_objective("dropout@cifar10"), "no preset for the data set 'cifar10' .*; take cifar-10, cifar-100 or"),
        (lambda: make_objective("softmax@10"), "softmax has presets for cifar-10, cifar-100 or imagenet, got 10"),
        (lambda: make_objective("dropout(p=0.3)"), "dropout: unknown parameter 'p' .*; it has keep, loss"),
        (
            lambda: make_objective("cosine-softmax(loss=dropout)"),
            "cosine-softmax: its loss must not bring a final layer of its own, got DropoutLinear",
        ),
        (lambda: make_objective("extra-l2(1e-3, 1e-4)"), "extra-l2: loss must be a loss or an objective, got 0.0001"),
        (lambda: make_objective("scheduled(ce-el)"), "scheduled: give a schedule for at least one parameter"),
        (lambda: Objective(make_loss("ce"), learning_rate=-1.0), "learning_rate must be > 0, got -1.0"),
        (lambda: make_objective("ce").build(backbone(), 1), "Objective: num_classes must be >= 2, got 1"),
        (
            lambda: final_layer_groups(nn.Sequential(nn.Linear(2, 2)), nn.ReLU(), 0.0, 1e-3),
            "head must have weights for final_weight_decay, got a ReLU",
        ),
        (lambda: make_objective("gce@imagenet"), "no preset for the objective 'gce'"),
        (lambda: make_objective("dropout + ce"), "only losses can be added and multiplied"),
        (lambda: make_objective("focus-gradual"), "is a schedule; write scheduled"),
        (lambda: make_objective("scheduled(ce-el, fokus=focus-late)"), "unknown parameter 'fokus'; did you mean 'focus'"),
        (lambda: make_objective("gce").build(nn.Sequential(), 3), "give in_features, because the Sequential has no out_features"),
        (lambda: Objective(make_loss("ce"), two_passes=True), "two_passes needs a loss with two passes"),
    ],
)
def test_errors(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Objective("gce"), "Objective: loss must be a lossmith loss, got str 'gce'"),
        (lambda: Objective(make_loss("ce"), head="linear"), "Objective: head must make a layer .*, got 'linear'"),
        (lambda: make_objective("ce").build(nn.ReLU(), 3, in_features="8"), "in_features must be an integer >= 1, got str '8'"),
        (lambda: final_layer_groups(nn.Linear(2, 2), "fc", 0.0, 0.0), "head must be the final layer, .*, got 'fc'"),
    ],
)
def test_errors_of_type(build: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        build()


@pytest.mark.parametrize(
    ("expression", "loss", "head", "schedules"),
    [
        ("dropout(keep=0.5, loss=scheduled(ce-el, focus=0.1))", "ce-el", DropoutLinear, ["focus"]),
        ("scheduled(dropout(keep=0.5, loss=ce-el), focus=focus-late)", "ce-el", DropoutLinear, ["focus"]),
        ("scheduled(two-pass-cot@10, gamma=linear(0, 1))", "cot(gamma=0.1)", nn.Linear, ["gamma"]),
        ("extra-l2(1e-3, loss=cosine-softmax(bias=False))", "ce", CosineLinear, []),
        ("cosine-softmax(loss=extra-l2(1e-3))", "ce", CosineLinear, []),
        ("scheduled(ce + 2*gce, factors.1=linear(0, 1), losses.1.q=0.5)", "ce + 2*gce", nn.Linear, ["factors.1", "losses.1.q"]),
    ],
)
def test_objectives_within_objectives(expression: str, loss: str, head: type[nn.Module], schedules: list[str]) -> None:
    objective = make_objective(expression)
    model, made, groups = objective.build(backbone(), 4, weight_decay=0.1)
    assert str(objective) == expression
    assert str(made) == str(make_loss(loss))
    assert type(model.head) is head
    assert list(objective.schedules) == schedules
    extra = 1e-3 if "extra-l2" in expression else 0.0
    assert [group["weight_decay"] for group in groups] == pytest.approx([0.1, 0.1 + extra])
    assert len(objective.passes(made)) == (2 if "two-pass" in expression else 1)
    scheduler = objective.scheduler(made, total=3)
    assert (scheduler is None) == (not schedules)


def test_the_final_layer_is_where_the_backbone_is() -> None:
    objective = make_objective("cosine-softmax")
    assert objective.build(backbone().double(), 4).model(torch.randn(2, 6, dtype=torch.float64)).dtype == torch.float64
    with torch.device("meta"):
        elsewhere = backbone()
    assert objective.build(elsewhere, 4).model.head.weight.device.type == "meta"
    assert [len(group["params"]) for group in objective.build(backbone(), 4, decay_vectors=False).groups] == [1, 4, 1]


def test_sigmoids_within_a_sum_start_improbable() -> None:
    head = make_objective("sigmoid + 0.1*logit-bias(sigmoid)").build(backbone(), 20).model.head
    assert head.bias.tolist() == pytest.approx([-math.log(20)] * 20)
