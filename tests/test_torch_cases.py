"""PyTorch's own inputs for cross-entropy, as torch's test suite makes them."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing._internal.common_methods_invocations import sample_inputs_cross_entropy
from torch.testing._internal.common_modules import module_inputs_torch_nn_CrossEntropyLoss

from cases import CASES
from lossmith import make_loss

# Torch has such inputs among its own.
pytestmark = pytest.mark.filterwarnings("ignore:.*(have one class|add up to more than 1)")


def samples() -> list[tuple[torch.Tensor, torch.Tensor, dict]]:
    """Return logits, target and options of every operator and module input."""
    operator = [
        (sample.input, sample.args[0], sample.kwargs)
        for sample in sample_inputs_cross_entropy(None, "cpu", torch.float64, requires_grad=False)
    ]
    module = [
        (*sample.forward_input.args, sample.constructor_input.kwargs)
        for sample in module_inputs_torch_nn_CrossEntropyLoss(None, "cpu", torch.float64, requires_grad=False, training=True)
    ]
    return [case for case in operator + module if not {"size_average", "reduce"} & set(case[2])]


def test_there_are_enough_of_them():
    assert len(samples()) > 50


def test_cross_entropy_agrees_on_all():
    for logits, target, options in samples():
        ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
        value, reference = make_loss("ce", **options)(ours, target), F.cross_entropy(theirs, target, **options)
        torch.testing.assert_close(value, reference, rtol=1e-12, atol=1e-13, equal_nan=True)
        gradients = torch.autograd.grad(value.sum(), ours)[0], torch.autograd.grad(reference.sum(), theirs)[0]
        torch.testing.assert_close(*gradients, rtol=1e-11, atol=1e-13, equal_nan=True)


@pytest.mark.parametrize("expression", CASES)
def test_every_loss_takes_all(expression):
    for logits, target, options in samples():
        if "topk" in expression and logits.shape[min(1, logits.dim() - 1)] < 3:
            continue
        value = make_loss(expression, **options)(logits.requires_grad_(), target)
        reference = F.cross_entropy(logits, target, **options)
        assert value.shape == reference.shape
        assert value.dtype == reference.dtype
        assert torch.equal(value.isfinite(), reference.isfinite())
        if value.isfinite().all():
            assert torch.autograd.grad(value.sum(), logits)[0].isfinite().all()
