"""What people do with modules beside calling them: functional calls, tracing, cloning, GradScaler."""

import io
import math

import pytest
import torch
from sklearn.base import clone
from torch import nn

from cases import CASES
from lossmith import CrossEntropyLoss, MAELoss, make_loss

LOGITS = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
TARGET = torch.tensor([0, 1, 2, 3, 4, 0])


@pytest.mark.parametrize("expression", CASES)
def test_functional_calls_take_the_state_as_it_is(expression):
    loss = make_loss(expression, weight=[1.0, 2.0, 0.5, 1.0, 1.0])
    state = dict(loss.state_dict())
    torch.testing.assert_close(torch.func.functional_call(loss, state, (LOGITS, TARGET)), loss(LOGITS, TARGET))
    other = {name: torch.ones_like(tensor) for name, tensor in state.items()}
    torch.testing.assert_close(torch.func.functional_call(loss, other, (LOGITS, TARGET)), make_loss(expression)(LOGITS, TARGET))


@pytest.mark.parametrize("expression", CASES)
def test_loaded_without_trust(expression):
    loss = make_loss(expression, weight=[1.0, 2.0, 0.5, 1.0, 1.0])
    file = io.BytesIO()
    torch.save({"hyper_parameters": {"loss": loss}}, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=True)["hyper_parameters"]["loss"]
    assert repr(loaded) == repr(loss)
    torch.testing.assert_close(loaded(LOGITS, TARGET), loss(LOGITS, TARGET))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("expression", CASES)
def test_traced_by_torchscript(expression):
    loss = make_loss(expression)
    traced = torch.jit.trace(loss, (LOGITS, TARGET), check_trace=False)
    logits = LOGITS.flip(0).requires_grad_()
    values = [each(logits, TARGET) for each in (traced, loss)]
    torch.testing.assert_close(*values)
    torch.testing.assert_close(*(torch.autograd.grad(value, logits)[0] for value in values))


@pytest.mark.parametrize("expression", CASES)
def test_cloned_by_scikit_learn(expression):
    loss = make_loss(expression, weight=[1.0, 2.0, 0.5, 1.0, 1.0])
    copy = clone(loss)
    assert copy is not loss
    assert repr(copy) == repr(loss)


@pytest.mark.parametrize("factor", [math.nan, math.inf, "2", None, True])
def test_factors_are_numbers_whenever_they_are_set(factor):
    loss = CrossEntropyLoss() + 2 * MAELoss()
    with pytest.raises((TypeError, ValueError), match=r"WeightedSum: factor must be (a finite number|finite), got"):
        loss.factors = (1.0, factor)
    with pytest.raises(ValueError, match=r"WeightedSum: factors must be 2 numbers, one for each part, got 1\."):
        loss.factors = (1.0,)
    assert loss.factors == (1.0, 2.0)


@pytest.mark.parametrize("expression", CASES)
def test_mixed_precision_skips_a_step_that_diverged(expression):
    """What GradScaler does: the step with infinite logits is left out, and training goes on."""
    model, loss = nn.Linear(3, 5), make_loss(expression)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.weight.detach().clone()
    inputs = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    for poison in (torch.nan, 0.0):
        optimizer.zero_grad()
        scaler.scale(loss(model(inputs) + poison, TARGET)).backward()
        scaler.step(optimizer)
        scaler.update()
        assert torch.equal(model.weight, before) == (poison != 0.0 or not model.weight.grad.any())
        assert model.weight.isfinite().all()
