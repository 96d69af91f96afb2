"""Where parameters are looked for, expressions with other parameters, and those that the number of classes decides."""

import math

import pytest
import torch

import lossmith
from lossmith import make_loss, make_objective
from lossmith.expressions.limits import Limits
from lossmith.losses import LOSSES
from lossmith.losses.catalogue.ready import ready_losses
from lossmith.objectives import OBJECTIVES, Range, search_space, with_parameters
from lossmith.objectives.ranges import range_of
from lossmith.theory import advise, fitted_to_classes, solve_logit_bias

NESTED = [
    "logit-bias(mae)",
    "logit-bias(gce)",
    "nce + 20*mae",
    "ce + 2*(gce + 3*focal)",
    "logit-bias(nce + 2*agce)",
    "2*ce + -1*mae",
]
PLAIN_OBJECTIVES = [name for name in OBJECTIVES if name != "scheduled"]
POINTS = 20


def at_random(space, generator):
    shares = torch.rand(len(space), generator=generator).tolist()
    return {name: values.at(share) for (name, values), share in zip(space.items(), shares, strict=True)}


@pytest.mark.parametrize("expression", [*ready_losses(), *NESTED])
def test_every_loss_trains_in_its_whole_space(expression):
    generator = torch.Generator().manual_seed(0)
    space = search_space(expression)
    target = torch.randint(10, (64,), generator=generator)
    corners = [{name: values.at(end) for name, values in space.items()} for end in (0.0, 1.0)]
    for values in [*corners, *(at_random(space, generator) for _ in range(POINTS))]:
        logits = (3 * torch.randn(64, 10, generator=generator)).requires_grad_()
        loss = make_loss(with_parameters(expression, values))
        value = loss(logits, target)
        (gradient,) = torch.autograd.grad(value, logits)
        assert value.isfinite(), (values, value)
        assert gradient.isfinite().all(), values
        assert gradient.abs().max() > 0, values


@pytest.mark.parametrize("expression", [*ready_losses(), *NESTED])
def test_the_space_has_every_number_in_use(expression):
    loss = make_loss(expression)
    numbers = {
        f"{path}.{name}".lstrip(".")
        for path, part in loss.named_modules()
        if isinstance(part, lossmith.losses.ClassificationLoss)
        for name, value in part.parameters_in_order().items()
        if type(value) in (int, float)
    }
    assert {name for name in search_space(expression) if "factors." not in name} == numbers
    assert search_space(loss) == search_space(expression)
    for name, values in search_space(expression).items():
        now = loss.get_submodule(name.rpartition(".")[0]) if "factors." not in name else None
        assert now is None or values.low <= getattr(now, name.rpartition(".")[2]) <= values.high


@pytest.mark.parametrize("expression", PLAIN_OBJECTIVES)
def test_objectives_can_be_searched(expression):
    generator = torch.Generator().manual_seed(1)
    space = search_space(expression)
    for _ in range(5):
        make_objective(with_parameters(expression, at_random(space, generator)))


def test_objectives_and_their_losses_have_numbers():
    assert list(search_space("extra-l2(1e-3, loss=dropout(keep=0.7, loss=gce))")) == [
        "q",
        "dropout.keep",
        "extra-l2.final_weight_decay",
    ]
    changed = with_parameters(
        "extra-l2(1e-3, loss=dropout(keep=0.7, loss=gce))", {"final_weight_decay": 0.5, "keep": 0.4, "q": 1}
    )
    assert changed == "extra-l2(0.5, loss=dropout(keep=0.4, loss=gce(q=1.0)))"
    assert search_space("scheduled(ce-el, focus=linear(0, 0.5))") == {}
    assert list(search_space("cyclic-logit-bias(gce)")) == ["losses.0.q"]
    assert with_parameters("cyclic-logit-bias(gce)", {"q": 0.5}) == "cyclic-logit-bias(gce(q=0.5))"
    assert with_parameters("two-pass-cot@10", {"gamma": 0.2}) == "two-pass-cot@10(gamma=0.2)"
    assert make_objective("two-pass-cot@10(gamma=0.2)").loss.gamma == 0.2


def test_sums_keep_their_first_factor_and_their_signs():
    space = search_space("2*ce + -1*mae + 0*gce")
    assert list(space) == ["factors.1", "losses.2.q"]
    assert space["factors.1"].high < 0
    assert with_parameters("2*(ce + gce)", {"factors.1": 8.0, "losses.1.q": 0.2}) == "2.0*ce + 8.0*gce(q=0.2)"


def test_options_are_kept():
    assert with_parameters("gce(q=0.7, weight=[1, 2])", {"q": 0.5}) == "gce(q=0.5, weight=[1.0, 2.0])"


def test_nothing_to_change_changes_nothing():
    assert with_parameters(" gce ", {}) == " gce "
    assert search_space("ce") == {}


@pytest.mark.parametrize(
    ("expression", "values", "error"),
    [
        ("gce", {"p": 0.5}, "with_parameters: unknown parameter 'p'; known are q."),
        ("gce", {"q": 2.0}, "q must be in [0, 1], got 2.0"),
        ("gce + gce", {"q": 0.5}, "name one of losses.0.q, losses.1.q"),
        ("smooth-topk", {"k": 2.5}, "k must be an integer"),
        ("dropout", {"keep": 2.0}, "keep must be in"),
        ("gce", {"q": "0.5"}, "with_parameters: q must be a finite number, got str '0.5'"),
        (3, {"q": 0.5}, "with_parameters: loss must be text or a lossmith loss, got int"),
    ],
)
def test_errors_name_what_is_wrong(expression, values, error):
    with pytest.raises((TypeError, ValueError)) as raised:
        with_parameters(expression, values)
    assert error in str(raised.value)


def test_whole_numbers_stay_whole():
    assert with_parameters("smooth-topk(k=3)", {"k": 2.0}).startswith("smooth-topk(k=2,")
    assert search_space("smooth-topk(k=3)")["k"] == Range(1, 3, whole=True)


def test_a_range_is_even():
    values = Range(1, 4, whole=True)
    drawn = [values.at((number + 0.5) / 400) for number in range(400)]
    assert {value: drawn.count(value) for value in drawn} == {1: 100, 2: 100, 3: 100, 4: 100}
    assert Range(0.001, 10.0, log=True).at(0.25) == 0.01
    assert Range(-2.0, 2.0).at(0.75) == 1.0
    third = Range(1 / 3, 2 / 3)
    assert third.at(0) == third.low
    assert third.at(1) == third.high


@pytest.mark.parametrize("ends", [(1.0, 0.0), (0.0, math.inf), (math.nan, 1.0)])
def test_ranges_have_two_ends_in_order(ends):
    with pytest.raises(ValueError, match="Range: low and high must be finite and in order"):
        Range(*ends)
    with pytest.raises(ValueError, match=r"low must be > 0 where log is true, got 0"):
        Range(0.0, 1.0, log=True)
    with pytest.raises(ValueError, match=r"Range: share must be in \[0, 1\], got 1.5"):
        Range(0.0, 1.0).at(1.5)


@pytest.mark.parametrize("value", [-30.0, -1.0, 0.0, 0.3, 40.0])
def test_ranges_hold_the_value_at_hand(value):
    for limits in (Limits(), Limits(high=50.0), Limits(-50.0), Limits(-50.0, 50.0, low_open=True), Limits(usual=(0.0, 1.0))):
        found = range_of(limits, value)
        assert found.low <= value <= found.high
        assert found.low < found.high


class RecordedTrial:
    """What a range asks a trial of Optuna for."""

    def __init__(self):
        self.asked = []

    def suggest_float(self, name, low, high, *, step=None, log=False):
        self.asked.append((name, low, high, log))
        return low

    def suggest_int(self, name, low, high, *, step=1, log=False):
        self.asked.append((name, low, high, log))
        assert isinstance(low, int)
        return low


def test_trials_of_optuna_choose():
    trial = RecordedTrial()
    chosen = {name: values.suggest(trial, name) for name, values in search_space("smooth-topk").items()}
    assert chosen == {"k": 1, "tau": 0.1, "margin": 0.1}
    assert trial.asked == [("k", 1, 5, False), ("tau", 0.1, 10.0, True), ("margin", 0.1, 10.0, True)]


def test_optuna_itself():
    optuna = pytest.importorskip("optuna")
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for expression in ("smooth-topk", "bi-tempered", "nce + 20*mae"):
        trial = study.ask()
        values = {name: values.suggest(trial, f"{expression} {name}") for name, values in search_space(expression).items()}
        make_loss(with_parameters(expression, values))


def test_a_bias_is_fitted():
    for classes in (10, 345):
        fitted = make_loss(fitted_to_classes("logit-bias(mae)", classes))
        assert fitted.epsilon == solve_logit_bias(classes).epsilon


def test_a_bias_is_never_made_smaller_than_the_default():
    for classes in range(2, 30):
        assert make_loss(fitted_to_classes("logit-bias(mae)", classes)).epsilon >= make_loss("logit-bias(mae)").epsilon


@pytest.mark.parametrize(
    ("expression", "fitted"),
    [
        ("logit-bias", "logit-bias(num_classes=100)"),
        ("logit-bias()", "logit-bias(num_classes=100)"),
        ("logit-bias( gce(q=0.5), )", "logit-bias( gce(q=0.5), num_classes=100)"),
        ("logit-bias(logit-bias)", "logit-bias(logit-bias(num_classes=100), num_classes=100)"),
        ("ce + 2*(mae + logit-bias(el))", "ce + 2*(mae + logit-bias(el, num_classes=100))"),
        ("dropout(keep=0.5, loss=logit-bias(mae))", "dropout(keep=0.5, loss=logit-bias(mae, num_classes=100))"),
        ("scheduled(nf-mae, alpha=2)", "scheduled(nf-mae(beta=0.2), alpha=2)"),
        ("nce-agce", "nce-agce(alpha=10.0, beta=0.1, b=1.8, q=3.0)"),
        ("agce(weight=[1, 2])", "agce(weight=[1, 2], b=1e-05, q=0.5)"),
        ("cot", "cot(gamma=0.01)"),
        ("two-pass-cot", "two-pass-cot(gamma=0.01)"),
    ],
)
def test_parameters_by_class_count_are_filled_in(expression, fitted):
    assert fitted_to_classes(expression, 100) == fitted
    make_objective(fitted)


@pytest.mark.parametrize(
    "expression",
    [
        "logit-bias(mae, epsilon=0.5)",
        "logit-bias(mae, 0.5)",
        "logit-bias@10(mae)",
        "logit-bias(mae, num_classes=7)",
        "agce(q=0.6)",
        "nf-mae@10",
        "cot(2)",
        "logit-bias(agce, epsilon=1)",
        "1.0*nce + 20*mae",
        "cyclic-logit-bias(agce)",
        "truncated-gce",
        "smooth-topk",
        "dropout",
    ],
)
def test_what_was_given_and_what_learns_stays(expression):
    assert fitted_to_classes(expression, 100) == expression


def test_few_classes_change_nothing():
    for name in LOSSES:
        if name != "cot":
            assert fitted_to_classes(name, 3) == name


def test_what_is_fitted_is_what_advise_knows():
    for candidate in advise(1000, losses=["gce", "agce", "bi-tempered", "nce-agce"]).candidates:
        fitted = fitted_to_classes(candidate.loss.partition("(")[0], 1000)
        assert str(make_loss(fitted)) == candidate.use


def test_fitting_says_what_is_wrong():
    with pytest.raises(ValueError, match="unknown objective 'gcee'"):
        fitted_to_classes("gcee", 10)
    with pytest.raises(ValueError, match="fitted_to_classes: num_classes must be >= 2, got 1"):
        fitted_to_classes("gce", 1)
