"""Formulas as graphs of operations, and each operation in JavaScript beside torch's."""

import re
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lossmith.kernels import Biased, Rows, Sum, Term, Terms
from lossmith.kernels.symbols import Operation
from lossmith.kernels.traced import Either, TracedRows, TracedTerms, UntraceableError, trace
from lossmith.losses import LOSSES
from lossmith.numerics.class_shares import tail_places
from lossmith.numerics.known_slope import with_slope
from lossmith.numerics.softmax import log_odds, surprises
from lossmith.numerics.subsets.marginals import log_odds_of_absence
from lossmith.numerics.tempered import tempered_probs
from lossmith.report.explore import write_explorer
from lossmith.report.explore.printed import ROW_OPERATIONS, printed


class Loss:
    """Anything with a formula and parameters."""

    def __init__(self, make, **parameters):
        self._make = make
        vars(self).update(parameters)

    def formula(self):
        return self._make(self)


def rows_loss(function, **parameters):
    return Loss(lambda loss: Rows(function, {name: getattr(loss, name) for name in parameters}), **parameters)


def written(value):
    if not isinstance(value, Operation):
        return getattr(value, "name", value)
    return f"{value.name}({', '.join(str(written(argument)) for argument in value.arguments)})"


def test_both_ways_of_a_decision_become_one_formula():
    (term,) = trace(LOSSES["gce"](), ["q"]).terms
    assert written(term.value) == "choose(eq(q, 0), surprise, div(neg(expm1(mul(neg(q), surprise))), q))"
    assert written(term.pull) == "exp(mul(neg(q), surprise))"


def test_what_is_no_parameter_is_a_constant():
    (term,) = trace(LOSSES["gce"](q=0.5), []).terms
    assert written(term.pull) == "exp(mul(-0.5, surprise))"


def test_formulas_of_two_kinds_stay_two():
    traced = trace(LOSSES["nf"](), ["gamma", "printed"])
    assert isinstance(traced, Either)
    assert traced.condition.name == "printed"
    assert isinstance(traced.if_true, TracedRows)
    assert isinstance(traced.if_false, TracedTerms)


def test_a_loss_is_left_as_it_was():
    loss = LOSSES["focal"](gamma=1.5, alpha=0.5)
    trace(loss, ["gamma", "alpha"])
    assert (loss.gamma, loss.alpha) == (1.5, 0.5)


def test_the_number_of_classes_is_a_symbol():
    assert written(trace(LOSSES["squared-error"](), ["scale"]).losses).startswith("mul(div(scale, classes), sum(")


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda z, y, a: z.sum(1) if z.sum() > 0 else z.mean(1), "takes another way depending on values of the logits"),
        (lambda z, y, a: z.sum(1) // a, "does what cannot be written down: unsupported operand type(s) for //"),
        (lambda z, y, a: z + torch.arange(3), "has a constant tensor of shape (3,) in it"),
        (lambda z, y, a: sum(z[:, j] for j in range(a)), "needs the value of a as a number of Python"),
        (lambda z, y, a: z.exp().shape[1] * z.sum(1), "asks for the shape of exp"),
        (lambda z, y, a: z.sum(1) if z.sum(1).ndim == 2 else z.mean(1), "asks for ndim of sum"),
        (lambda z, y, a: sum(z), "walks over the values of logits in Python"),
        (lambda z, y, a: next(z for power in range(99) if a == power), "takes more than 12 decisions"),
    ],
)
def test_what_cannot_be_written_down_is_said(function, reason):
    with pytest.raises(UntraceableError) as raised:
        trace(rows_loss(function, a=2.0), ["a"])
    assert str(raised.value).startswith(reason)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda z, y: torch.cumsum(z, 1).sum(1), "uses cumsum, which the page does not know for rows"),
        (lambda z, y: z.sum(0), "uses sum along dim=0; rows are seen one at a time, along dim=1"),
        (lambda z, y: z.sum(), "uses sum along dim=None; rows are seen one at a time, along dim=1"),
        (lambda z, y: F.gelu(z, approximate="tanh").sum(1), "uses gelu with approximate, which is not known for rows"),
        (lambda z, y: (z.unsqueeze(1) * z).sum(1), "uses unsqueeze of a row; rows are known, and no tables of them"),
        (lambda z, y: z.sum(1).to(torch.int64), "uses to with torch.int64, which is not known for rows"),
        (
            lambda z, y: z.scatter(1, y.unsqueeze(1), 0.0, reduce="add").sum(1),
            "uses scatter in a way that is not known for rows",
        ),
        (lambda z, y: torch.where(z > 0)[0], "takes the part [0] of a result"),
        (lambda z, y: log_odds_of_absence(z, 2, 1.0).sum(1), "uses log_odds_of_absence of more than one class"),
    ],
)
def test_what_cannot_be_printed_is_said(function, reason):
    with pytest.raises(UntraceableError) as raised:
        printed(trace(rows_loss(function), []))
    assert str(raised.value).startswith(reason)


def own(z, y):
    return z.gather(1, y.unsqueeze(1)).squeeze(1)


def second(z):
    return torch.topk(z, 3, 1).values[:, 1:2].squeeze(1)


# Each uses operations on rows that no other does; z is a row of positive and negative numbers.
PROGRAMS = {
    "functions": lambda z, y: (torch.tanh(z) + torch.sin(z) * torch.cos(z) + torch.sqrt(z.square() + 1)).sum(1),
    "sigmoids": lambda z, y: (torch.sigmoid(z) - F.relu(z) + F.softplus(-z, threshold=40.0)).mean(1),
    "exponentials": lambda z, y: (torch.exp(z) / 9 + torch.expm1(z) + torch.log(z.abs()) + torch.log1p(z * z)).sum(1),
    "roots": lambda z, y: ((z * z + 1) ** 0.3 + (z * z).rsqrt()).sum(1),
    "powers": lambda z, y: (2.0**z).sum(1) + ((z * z) ** own(z, y).unsqueeze(1)).mean(1),
    "bounds": lambda z, y: (z.clamp(-0.5, 1.5) + z.clamp_min(0.2) + 2 * z.clamp_max(0.7) + z.clamp(min=-0.1)).sum(1),
    "pairs": lambda z, y: (torch.maximum(z, -z) * torch.minimum(z, z * z) + torch.logaddexp(z, 2 * z)).sum(1),
    "extremes": lambda z, y: z.amax(1) * z.amin(1) - z.detach().sum(1),
    "places": lambda z, y: z.gather(1, z.argmax(1, keepdim=True)).squeeze(1) * own(z, z.argmin(1)),
    "questions": lambda z, y: torch.where((z > 0) & (z <= 1) | (z < -1), z, z * z).sum(1),
    "more questions": lambda z, y: torch.where(~(z >= 0) | z.isnan() | (z == 7) & (z != 8), z * z, 3 * z).sum(1),
    "finite": lambda z, y: torch.where(torch.isfinite(1 / z), torch.zeros_like(z), z).sum(1) + (torch.ones_like(z) * z).sum(1),
    "softmax": lambda z, y: (torch.softmax(z, 1) * torch.log_softmax(z, 1)).sum(1) + z.logsumexp(1),
    "exact softmax": lambda z, y: log_odds(z, y.unsqueeze(1)).squeeze(1) * (surprises(z) * z).sum(1),
    "tempered": lambda z, y: (tempered_probs(z, 1.4)[0] * z).sum(1) + own(tempered_probs(z, 0.7)[0] - tempered_probs(z, 2)[1], y),
    "top": lambda z, y: second(z) * (z.scatter(1, z.topk(2, 1)[1], 0.0) ** 2).sum(1),
    "scattered": lambda z, y: z.scatter(1, z.topk(2, 1)[1], z.topk(2, 1)[0] ** 2).logsumexp(1),
    "expanded": lambda z, y: (z * own(z, y).unsqueeze(1).expand_as(z) + own(z, y).unsqueeze(1).expand(-1, 5)).square().sum(1),
    "one of all": lambda z, y: (F.one_hot(y, z.size(1)) * z.square()).sum(1) if y.unsqueeze(1).dtype == torch.int64 else None,
    "subsets": lambda z, y: own(log_odds_of_absence(z, 2, 0.7), y) ** 2,
    "places of classes": lambda z, y: (tail_places(z) * z.square()).sum(1),
    "slopes": lambda z, y: (with_slope(z, z.square(), 3 * z) + with_slope(z, z * 2, 0.5)).sum(1),
    "number of classes": lambda z, y: z.square().sum(1) / z.shape[1] if z.shape[1] > 2 else z.sum(1),
}  # fmt: skip
IN_THE_PAGE = """([text, rows, targets, given]) => rows.map((row, i) => {
    const z = Float64Array.from(row);
    const { value, slope, at } = (0, eval)(text)(z, targets[i], given);
    return [value, ...z.map((_, j) => (j === targets[i] ? slope : at(j)))];
})"""
ROWS = np.concatenate([scale * np.random.default_rng(3).standard_normal((4, 5)) for scale in (0.5, 2.0)])
TARGETS = np.arange(8) % 5


@pytest.fixture(scope="module")
def evaluate(chromium, tmp_path_factory):
    page = chromium.new_page()
    page.goto(write_explorer(tmp_path_factory.mktemp("page") / "page.html").as_uri())
    yield page.evaluate
    page.close()


def assert_same_in_the_page(evaluate, loss, parameters=()):
    text = printed(trace(loss, parameters))
    given = {name: getattr(loss, name) for name in parameters}
    computed = np.array(evaluate(IN_THE_PAGE, [text, ROWS.tolist(), TARGETS.tolist(), given]))
    logits = torch.tensor(ROWS, requires_grad=True)
    values = loss.formula().losses(logits, torch.tensor(TARGETS))
    (gradients,) = torch.autograd.grad(values.sum(), logits)
    np.testing.assert_allclose(computed[:, 0], values.detach(), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(computed[:, 1:], gradients, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_operations_on_rows(evaluate, name):
    assert_same_in_the_page(evaluate, rows_loss(PROGRAMS[name]))


def test_every_operation_on_rows_is_tested_and_no_other_is_in_the_page(evaluate):
    used = re.findall(r"rows\.(\w+)", "".join(printed(trace(rows_loss(program), [])) for program in PROGRAMS.values()))
    known = {re.sub(r"_(\w)", lambda match: match[1].upper(), name) for name in ROW_OPERATIONS}
    assert set(evaluate("Object.keys(rows)")) == known
    assert set(used) == known


def curve(p, power, kind):
    """Return a value and a pull of every operation on numbers; they need not belong together."""
    scaled = torch.minimum(p.surprise, torch.maximum(p.rest, p.p / (power + 1))) ** 2.0
    scaled = scaled.clamp(0.01, 3.0) + F.relu(-scaled) - -(p.p**2)
    value = torch.where((scaled > 0.1) & ~(p.p >= 0.9) | (p.p == 2), torch.sigmoid(scaled), torch.tanh(p.rest - power))
    if power > 1 and kind:
        value = value * torch.exp(-power * p.surprise).sqrt() + F.softplus(p.p, threshold=40.0)
    value = value - torch.ones_like(p.p) + torch.zeros_like(p.p) * p.p.detach()
    return value - abs(power - 3), p.rest_power(power) * torch.rsqrt(p.p + 1) / torch.log1p(p.surprise).clamp_min(0.1)


def of_curve(loss):
    terms = Terms((Term(2 * loss.power, partial(curve, power=loss.power, kind=loss.kind)),))
    return Sum([(loss.power, Biased(terms, loss.power / 4)), (-1.0, terms)])


@pytest.mark.parametrize(("power", "kind"), [(0.5, True), (2.0, True), (2.0, False)])
def test_operations_on_numbers(evaluate, power, kind):
    """Values only: the page takes a curve's word for its pull, and autograd does not."""
    loss = Loss(of_curve, power=power, kind=kind)
    text = printed(trace(loss, ["power", "kind"]))
    given = {"power": power, "kind": kind}
    computed = np.array(evaluate(IN_THE_PAGE, [text, ROWS.tolist(), TARGETS.tolist(), given]))
    values = loss.formula().losses(torch.tensor(ROWS), torch.tensor(TARGETS))
    np.testing.assert_allclose(computed[:, 0], values, rtol=1e-10)


def test_parameters_within_rows(evaluate):
    def function(z, y, tau, flag):
        scale = 1 / tau if tau > 1 else tau - 3
        return ((z - scale) ** 2).sum(1) if flag else (scale * z).logsumexp(1)

    for tau in (0.5, 2.0):
        for flag in (True, False):
            assert_same_in_the_page(evaluate, rows_loss(function, tau=tau, flag=flag), ("tau", "flag"))
