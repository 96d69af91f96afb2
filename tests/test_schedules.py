"""Schedules, and the scheduler that gives them to losses."""

import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters

import resumable_run
from cases import GRAPHS
from lossmith import LossScheduler, make_loss
from lossmith.objectives import Constant, Cosine, Cyclic, Linear, Piecewise, make_schedule


@pytest.mark.parametrize("total", [6, 12, 66, 90, 240])
def test_six_focus_phases_are_equally_long(total: int) -> None:
    schedule = make_schedule("focus-gradual")
    values = [schedule.value(epoch, total) for epoch in range(total)]
    assert values == [focus for focus in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5) for _ in range(total // 6)]


@pytest.mark.parametrize("total", [*range(1, 60), 97, 1001])
def test_an_epoch_has_the_focus_of_the_phase_in_which_it_starts(total: int) -> None:
    schedule = make_schedule("focus-gradual")
    for epoch in range(total):
        phase = max(k for k in range(6) if Fraction(k, 6) <= Fraction(epoch, total))
        assert schedule.value(epoch, total) == phase / 10


@pytest.mark.parametrize("total", [*range(2, 60), 100, 240, 1000])
def test_late_focus_is_the_last_twentieth_rounded_up(total: int) -> None:
    schedule = make_schedule("focus-late")
    values = [schedule.value(epoch, total) for epoch in range(total)]
    last = -(-total // 20)
    assert values == [0.0] * (total - last) + [0.5] * last


def test_first_epoch_is_never_late_and_zero_stays() -> None:
    assert make_schedule("focus-late").value(0, 1) == 0.0
    assert {make_schedule("focus-zero").value(epoch, 90) for epoch in range(90)} == {0.0}


def test_cyclic_epsilon_repeats_with_every_learning_rate_phase() -> None:
    schedule = make_schedule("epsilon-cyclic")
    phase = [epsilon for epsilon in (5.2, 4.8, 4.3, 3.7, 3.0, 2.3) for _ in range(11)]
    assert [schedule.value(epoch, None) for epoch in range(198)] == 3 * phase
    by_cycles = Cyclic((5.2, 4.8, 4.3, 3.7, 3.0, 2.3), cycles=3)
    assert [by_cycles.value(epoch, 198) for epoch in range(198)] == 3 * phase


def test_ramps_hit_both_ends() -> None:
    for total in (2, 3, 7, 90):
        for ramp in (Linear(0.1, 0.7), Cosine(0.1, 0.7)):
            assert (ramp.value(0, total), ramp.value(total - 1, total)) == (0.1, 0.7)
            values = [ramp.value(epoch, total) for epoch in range(total)]
            assert values == sorted(values)
    assert Cosine(0.0, 1.0).value(1, 4) == pytest.approx((1 - math.cos(math.pi / 3)) / 2)
    assert Linear(0.3, 0.7).value(0, 1) == 0.3


def test_scheduler_keeps_the_habits_of_torch() -> None:
    loss = make_loss("ce-el(focus=0.3)")
    scheduler = LossScheduler(loss, focus=Piecewise([0.0, 0.5], at=[2]), total=3)
    seen = []
    for _ in range(3):
        seen.append((loss.focus, scheduler.get_last_value()["focus"]))
        scheduler.step()
    assert seen == [(0.0, 0.0), (0.0, 0.0), (0.5, 0.5)]
    assert loss.focus == 0.5
    with pytest.raises(ValueError, match="total is 3, and step was called more often"):
        scheduler.step()


def test_several_parameters_of_parts() -> None:
    loss = make_loss("nce + 20*logit-bias(gce, epsilon=1.0)")
    schedules = {"factors.0": Linear(1.0, 3.0), "losses.1.losses.0.q": 0.2}
    scheduler = LossScheduler(loss, schedules, epsilon="epsilon-cyclic", label_smoothing=Constant(0.1), total=3)
    scheduler.step()
    assert repr(loss) == "2.0*nce(label_smoothing=0.1) + 20.0*logit-bias(gce(q=0.2, label_smoothing=0.1), epsilon=5.2)"


def test_scheduled_value_is_what_the_loss_uses() -> None:
    loss = make_loss("nce + 20*mae")
    logits, target = torch.randn(4, 5), torch.randint(5, (4,))
    scheduler = LossScheduler(loss, {"factors.1": Linear(20.0, 5.0)}, total=4)
    scheduler.step()
    torch.testing.assert_close(loss(logits, target), make_loss("nce + 15*mae")(logits, target))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda loss: LossScheduler(loss, fokus=0.1), "unknown parameter 'fokus'; did you mean 'focus'?"),
        (lambda loss: LossScheduler(loss, zzz=0.1), "unknown parameter 'zzz'; known are focus, label_smoothing"),
        (lambda loss: LossScheduler(loss, alpha=0.1), "unknown parameter 'alpha'"),  # not in use beside focus
        (LossScheduler, "at least one parameter"),
        (lambda loss: LossScheduler(loss, focus="focus-gradual"), "Piecewise: total must be given"),
        (lambda loss: LossScheduler(loss, focus=Linear(0, 0.5), total=0), "total must be a whole number >= 1, got 0"),
        (lambda loss: LossScheduler(loss, focus=Linear(0, 0.6), total=9), r"focus must be in \[0, 0.5\], got 0.6"),
        (lambda loss: LossScheduler(loss, focus=Piecewise([0, 0.5], at=[9]), total=9), "phase 2 is missing, for it starts at 9"),
        (
            lambda loss: LossScheduler(make_loss("gce + truncated-gce"), q=0.1),
            "several parts, name one of losses.0.q",
        ),
        (lambda loss: Piecewise([]), "Piecewise: values must be one number or more"),
        (lambda loss: Piecewise([1, 2, 3], at=[5]), "3 phases need 2 starts in at, got 1"),
        (lambda loss: Piecewise([1, 2, 3], at=[5, 5]), "one after another"),
        (lambda loss: Piecewise([1, 2], at=[1.5]), "whole times > 0, or shares between 0 and 1"),
        (lambda loss: Cyclic([1.0]), "either length or cycles"),
        (lambda loss: Linear(0.0, math.nan), "Linear: end must be finite, got nan"),
        (
            lambda loss: LossScheduler(loss, {"focus": 0.1}, focus=0.2),
            r"focus must have one schedule, got Constant\(number=0.1\) and 0.2",
        ),
        (
            lambda loss: LossScheduler(make_loss("2*gce"), {"q": 0.1, "losses.0.q": 0.2}),
            r"losses.0.q must have one schedule, got Constant\(number=0.1\) and 0.2",
        ),
        (lambda loss: Linear(0, 0.5).value(3, None), "Linear: total must be given"),
        (lambda loss: make_schedule("focus-gradul"), "unknown schedule 'focus-gradul' .*; did you mean 'focus-gradual'?"),
        (lambda loss: make_schedule("linear(0, end=1, stop=2)"), "Linear: unknown parameter 'stop'"),
    ],
)
def test_errors(build: Callable[[Any], object], message: str) -> None:
    loss = make_loss("ce-el")
    with pytest.raises(ValueError, match=message):
        build(loss)
    assert loss.focus == 0.0  # a refused schedule leaves the loss alone


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda loss: LossScheduler(loss, focus=None), "LossScheduler: focus must have a schedule, .*, got None"),
        (lambda loss: LossScheduler(loss, "focus-late", total=9), "schedules must map parameters to schedules, got 'focus-late'"),
        (lambda loss: Piecewise([0, 0.4], at=0.5), "Piecewise: at must be a list of starts, got 0.5"),
    ],
)
def test_errors_of_type(build: Callable[[Any], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        build(make_loss("ce-el"))


def test_a_number_can_be_text() -> None:
    assert LossScheduler(make_loss("ce-el"), focus="0.3").get_last_value() == {"focus": 0.3}


@pytest.mark.parametrize("last_epoch", ["x", -1, 4, None])
def test_a_broken_state_is_refused(last_epoch: object) -> None:
    scheduler = LossScheduler(make_loss("ce-el"), focus="linear(0, 0.5)", total=3)
    with pytest.raises(ValueError, match="the saved last_epoch must be a whole number >= 0 and <= 3, got"):
        scheduler.load_state_dict({**scheduler.state_dict(), "last_epoch": last_epoch})


def test_state_goes_on_where_it_was() -> None:
    first, second = make_loss("ce-el"), make_loss("ce-el")
    scheduler = LossScheduler(first, focus="focus-gradual", total=12)
    for _ in range(7):
        scheduler.step()
    other = LossScheduler(second, focus="focus-gradual", total=12)
    other.load_state_dict(scheduler.state_dict())
    assert second.focus == first.focus == 0.3
    with pytest.raises(ValueError, match="the saved total must be 24, got 12"):
        LossScheduler(second, focus="focus-gradual", total=24).load_state_dict(scheduler.state_dict())
    with pytest.raises(ValueError, match="the saved schedules must be"):
        LossScheduler(second, focus="focus-late", total=12).load_state_dict(scheduler.state_dict())


def test_a_killed_and_resumed_run_ends_bit_identical(tmp_path: Path) -> None:
    whole = resumable_run.train(tmp_path / "whole.pt")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, resumable_run.__file__, str(tmp_path / "killed.pt"), "5"]
    killed = subprocess.run(command, env=environment, check=False)  # noqa: S603
    assert killed.returncode == -signal.SIGKILL
    assert torch.load(tmp_path / "killed.pt")["scheduler"]["last_epoch"] == 5
    resumed = resumable_run.train(tmp_path / "killed.pt")
    assert all(torch.equal(one, other) for one, other in zip(whole, resumed, strict=True))


@pytest.mark.parametrize(
    ("expression", "parameter", "last"),
    [
        ("ce-el", "focus", 0.4),
        ("logit-bias(mae)", "epsilon", 0.4),
        ("nce + 20*mae", "factors.1", 0.4),
        ("label-smoothing", "alpha", 0.4),
        ("logit-norm", "tau", 0.4),
        ("ce(label_smoothing=0.1)", "label_smoothing", 0.4),
        ("nf", "gamma", 0.4),
        ("agce", "b", 0.4),
        ("0.5*squared-error + cot", "factors.0", 1.0),
        ("cot", "gamma", 1.0),
    ],
)
def test_compiled_losses_are_compiled_once(expression: str, parameter: str, last: float) -> None:
    torch._dynamo.reset()
    counters.clear()
    loss = make_loss(expression)
    scheduler = LossScheduler(loss, {parameter: Linear(0.1, last)}, total=5)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    logits, target = torch.randn(4, 5, requires_grad=True), torch.randint(5, (4,))
    for _ in range(5):
        value = compiled(logits, target)
        value.backward()
        torch.testing.assert_close(value, loss(logits, target))
        scheduler.step()
    assert counters["stats"]["unique_graphs"] <= GRAPHS
