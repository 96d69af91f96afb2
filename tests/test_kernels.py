"""The engines: what is fast agrees with the reference for every loss, and nothing needs it."""

import os
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
import torch

import lossmith
from cases import CASES, IS_REFERENCE
from lossmith import kernels, make_loss
from lossmith.kernels import Rows, formula
from lossmith.losses import ClassificationLoss

SOURCE = Path(lossmith.__file__).parents[1]
CLASSES = 7
WEIGHT = torch.tensor([0.5, 2.0, 1.0, 0.1, 3.0, 1.0, 1.0], dtype=torch.float64)
OPTIONS = [
    {"reduction": reduction, "weight": weight, "label_smoothing": smoothing}
    for reduction, weight, smoothing in product(("mean", "none"), (None, WEIGHT), (0.0, 0.2))
]


def by_reference(patch):
    patch.setattr(kernels, "losses", formula.losses)
    patch.setattr(kernels, "mean", formula.mean)


def value_and_gradient(loss, logits, target):
    leaf = logits.clone().requires_grad_()
    value = loss(leaf, target)
    return value.detach(), torch.autograd.grad(value.sum(), leaf)[0]


@pytest.mark.skipif(IS_REFERENCE, reason="there is nothing but the reference to compare")
@pytest.mark.parametrize("shape", [(6, CLASSES), (3, CLASSES, 2)], ids=str)
@pytest.mark.parametrize("kind", ["indices", "probabilities", "ignored"])
@pytest.mark.parametrize("expression", CASES)
def test_fast_is_reference(monkeypatch, expression, kind, shape):
    generator = torch.Generator().manual_seed(len(expression))
    logits = 3 * torch.randn(shape, generator=generator, dtype=torch.float64)
    target = torch.randint(CLASSES, shape[:1] + shape[2:], generator=generator)
    if kind == "probabilities":
        target = torch.softmax(2 * torch.randn(shape, generator=generator, dtype=torch.float64), 1)
    elif kind == "ignored":
        target.view(-1)[::3] = -100
    for options in OPTIONS:
        loss = make_loss(expression, **options)
        fast = value_and_gradient(loss, logits, target)
        with monkeypatch.context() as patch:
            by_reference(patch)
            reference = value_and_gradient(loss, logits, target)
        torch.testing.assert_close(fast, reference, rtol=1e-10, atol=1e-13)


@pytest.mark.skipif(IS_REFERENCE, reason="there is nothing but the reference to compare")
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
@pytest.mark.parametrize("expression", CASES)
def test_fast_is_reference_on_large_batches(monkeypatch, expression, kind):
    """Rows of every confidence, in so many blocks that every way through a kernel is taken."""
    by_class = expression.startswith("backward-correction(logit-bias")
    if by_class or ("forward-correction" in expression and "matrix=" in expression and kind == "probabilities"):
        pytest.skip("needs memory for every class of every class of every row")
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(1500, 1000, generator=generator) * 10 ** (2 * torch.rand(1500, 1, generator=generator) - 1)
    target = torch.where(torch.rand(1500, generator=generator) < 0.5, logits.argmax(1), torch.arange(1500) % 1000)
    if kind == "probabilities":
        target = torch.softmax(logits.flip(1), 1)
    loss = make_loss(expression)
    fast = value_and_gradient(loss, logits, target)
    by_reference(monkeypatch)
    double = target.double() if kind == "probabilities" else target
    reference = value_and_gradient(loss, logits.double(), double)
    torch.testing.assert_close(fast[0].double(), reference[0], rtol=2e-6, atol=0)
    largest = reference[1].abs().amax()
    assert (fast[1].double() - reference[1]).abs().amax() <= 5e-6 * largest


@pytest.mark.skipif(IS_REFERENCE, reason="there is nothing but the reference to compare")
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
@pytest.mark.parametrize("expression", CASES)
def test_fast_is_reference_with_few_classes(monkeypatch, expression, kind):
    """Their softmax is taken by columns, and small gradients are multiplied by their factors at once."""
    generator = torch.Generator().manual_seed(2)
    logits = 1.5 * torch.randn(200, 11, generator=generator)
    target = torch.arange(200) % 11
    if kind == "probabilities":
        target = torch.softmax(logits.flip(1), 1)
    loss = make_loss(expression)
    value, gradient = value_and_gradient(loss, logits, target)
    each, slopes = value_and_gradient(make_loss(expression, reduction="none"), logits, target)
    by_reference(monkeypatch)
    double = target.double() if kind == "probabilities" else target
    exact, slope = value_and_gradient(loss, logits.double(), double)
    torch.testing.assert_close(torch.stack([value, each.mean()]).double(), exact.expand(2), rtol=1e-6, atol=0)
    for found in (gradient, slopes / 200):
        assert found.is_contiguous()
        assert (found.double() - slope).abs().amax() <= 2e-6 * slope.abs().amax()


def test_a_users_function_never_gets_the_kernel_of_ours():
    def label_smoothing(logits, target, *, alpha):
        return alpha * logits.sum(1)

    class OtherSmoothing(ClassificationLoss):
        name = "other-smoothing"

        def formula(self):
            return Rows(label_smoothing, {"alpha": 2.0})

    logits = torch.randn(4, 3, requires_grad=True)
    value = OtherSmoothing()(logits, torch.tensor([0, 1, 2, 0]))
    torch.testing.assert_close(value, 2 * logits.sum(1).mean())
    torch.testing.assert_close(torch.autograd.grad(value, logits)[0], torch.full_like(logits, 0.5))


SMOKE = """
import torch, lossmith
from lossmith.losses.catalogue.ready import ready_losses
for name in ready_losses():
    logits = torch.randn(4, 9, requires_grad=True, generator=torch.Generator().manual_seed(0))
    loss = lossmith.make_loss(name)(logits, torch.tensor([0, 1, 2, 3]))
    loss.backward()
    print(name, f"{loss.item():.5f}", f"{logits.grad.norm().item():.5f}")
"""


def smoke(source=SOURCE, **environment):
    """Return what every loss says in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(source), **environment}
    result = subprocess.run([sys.executable, "-c", SMOKE], check=False, capture_output=True, text=True, env=environment)  # noqa: S603
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_library_is_right_without_the_fast_kernels(tmp_path):
    shutil.copytree(
        SOURCE / "lossmith",
        tmp_path / "lossmith",
        ignore=shutil.ignore_patterns("cpu", "graphs", "native", "triton", "__pycache__"),
    )
    assert not (tmp_path / "lossmith" / "kernels" / "cpu").exists()
    assert smoke(tmp_path, LOSSMITH_KERNELS="auto") == smoke()


def test_the_reference_and_absent_probes_can_be_asked_for():
    plain = smoke()
    assert smoke(LOSSMITH_KERNELS="reference") == plain
    assert smoke(LOSSMITH_TORCH_PROBES="off") == plain


def test_an_unknown_engine_is_one_line():
    environment = {**os.environ, "LOSSMITH_KERNELS": "abacus", "PYTHONPATH": str(SOURCE)}
    result = subprocess.run([sys.executable, "-c", SMOKE], check=False, capture_output=True, text=True, env=environment)  # noqa: S603
    assert (
        result.stderr.splitlines()[-1]
        == "ValueError: LOSSMITH_KERNELS must be one of auto, native, reference, triton, got 'abacus'."
    )
