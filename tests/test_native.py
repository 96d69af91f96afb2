"""Formulas as C: what a compiler makes of them agrees with them, and nothing around it can go wrong silently."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import mpmath
import pytest
import torch

import lossmith
from lossmith import kernels, make_loss
from lossmith.kernels import Rows
from lossmith.kernels.graphs.recorded import graphs_of
from lossmith.kernels.native import building, engine
from lossmith.kernels.native.programs import printed_program
from lossmith.losses.catalogue.ready import ready_losses

SOURCE = Path(lossmith.__file__).parents[1]
# One of each kind: of the target's probability, normalised, of rows, with Newton's method, with subsets, and sums of several.
LOSSES = ("gce", "focal", "nce-mae", "label-smoothing", "sigmoid", "bi-tempered", "smooth-topk(k=3, tau=0.5)", "z-loss")
needs_compiler = pytest.mark.skipif(
    not any(shutil.which(name) for name in building.COMPILERS), reason=f"no C compiler is here: {', '.join(building.COMPILERS)}"
)


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    """Kernels are kept in a folder of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOSSMITH_CACHE", str(tmp_path_factory.mktemp("cache")))
        forget()
        yield
    forget()


@pytest.fixture
def native():
    """Losses run as compiled functions."""
    kernels.use("native")
    yield
    kernels.use(os.environ.get("LOSSMITH_KERNELS", "auto"))


def forget():
    engine._kernels.clear()
    engine._functions.cache_clear()
    building.compiler.cache_clear()


def inputs(rows=6, classes=11, dtype=torch.float32, *, soft=False, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(rows, classes, generator=generator, dtype=torch.float64)
    target = torch.randint(classes, (rows,), generator=generator)
    probabilities = torch.softmax(torch.randn(rows, classes, generator=generator, dtype=torch.float64), 1)
    return logits.to(dtype), probabilities.to(dtype) if soft else target


def value_and_gradient(run, logits):
    leaf = logits.detach().clone().requires_grad_()
    value = run(leaf)
    value.sum().backward()
    return value.detach(), leaf.grad


def run(code, **environment):
    """Run a program in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), **environment}
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=environment)  # noqa: S603


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("name", ready_losses())
def test_every_loss_but_hard_topk_is_printed(name, soft):
    known = graphs_of(make_loss(name).formula(), 11, has_factors=soft, dtype=torch.float64, sees_all_absences=soft)
    if name == "hard-topk":
        assert known is None
        return
    text = printed_program(known[0], torch.float32)
    assert "int loss_alone(" in text
    assert "int loss_and_gradient(" in text


@needs_compiler
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", LOSSES)
def test_kernels_agree_with_formulas(name, dtype, soft):
    formula = make_loss(name).formula()
    logits, target = inputs(dtype=dtype, soft=soft)
    assert engine.kernel_for(formula, logits, target) is not None
    wide = target.double() if soft else target
    expected = value_and_gradient(lambda leaf: formula.losses(leaf, wide), logits.double())
    tolerance = {"rtol": 2e-6, "atol": 1e-6} if dtype == torch.float32 else {"rtol": 1e-11, "atol": 1e-12}
    for found, wanted in zip(
        value_and_gradient(lambda leaf: engine.losses(formula, leaf, target), logits), expected, strict=True
    ):
        torch.testing.assert_close(found, wanted.to(dtype), **tolerance)
    mean = engine.mean(formula, logits, target)
    torch.testing.assert_close(mean, expected[0].mean().to(dtype), **tolerance)


@needs_compiler
def test_a_new_loss_has_its_kernel_for_nothing():
    formula = Rows(_own_loss, {"power": 1.5})
    logits, target = inputs()
    assert engine.kernel_for(formula, logits, target) is not None
    expected = value_and_gradient(lambda leaf: formula.losses(leaf, target), logits)
    found = value_and_gradient(lambda leaf: engine.losses(formula, leaf, target), logits)
    torch.testing.assert_close(found, expected)


def _own_loss(logits, target, *, power):
    probs = torch.softmax(logits, 1)
    return (1 - probs.gather(1, target.unsqueeze(1)).squeeze(1)) ** power + logits.square().mean(1)


@needs_compiler
def test_a_formula_that_cannot_be_printed_is_left_to_the_other_kernels(native):
    logits, target = inputs()
    loss = make_loss("hard-topk")
    assert engine.kernel_for(loss.formula(), logits, target) is None
    torch.testing.assert_close(loss(logits, target), loss.formula().losses(logits, target).mean())


@needs_compiler
@pytest.mark.parametrize("name", ["gce", "nce", "smooth-topk(k=2)"])
def test_bad_input_is_told_as_elsewhere(native, name):
    loss, (logits, target) = make_loss(name), inputs()
    with pytest.raises(IndexError, match=r"target must lie in \[0, 10\] or be ignore_index=-100, got 11 at position \(2,\)"):
        loss(logits, torch.where(torch.arange(6) == 2, 11, target))
    with pytest.raises(IndexError, match=r"target must lie in \[0, 10\], got one that does not"):
        engine.mean(loss.formula(), logits, target + 11)
    for bad in (torch.nan, torch.inf):
        changed = logits.clone()
        changed[1, 3] = bad
        each = make_loss(name, reduction="none")(changed, target)
        assert each.isnan().tolist() == [False, True, False, False, False, False]
    assert loss(logits[:0], target[:0]).isnan()
    ignored = torch.where(torch.arange(6) == 2, -100, target)
    kept = torch.arange(6) != 2
    torch.testing.assert_close(loss(logits, ignored), loss(logits[kept], target[kept]))


@needs_compiler
def test_an_impossible_class_has_no_gradient(native):
    logits, target = inputs()
    logits[:, 10] = -torch.inf
    target = target.clamp(max=9)
    _, gradient = value_and_gradient(lambda leaf: make_loss("gce")(leaf, target), logits)
    _, expected = value_and_gradient(lambda leaf: make_loss("gce")(leaf, target), logits[:, :10])
    torch.testing.assert_close(gradient[:, :10], expected)
    assert gradient[:, 10].count_nonzero() == 0


@needs_compiler
def test_memory_may_be_in_any_order(native):
    logits, target = inputs(rows=8)
    wanted = value_and_gradient(lambda leaf: make_loss("gce")(leaf, target), logits)
    views = (logits.T.contiguous().T, torch.stack([logits, logits], 2)[:, :, 1], logits.repeat_interleave(2, 0)[::2])
    for view in views:
        assert not view.is_contiguous()
        leaf = torch.zeros_like(view).requires_grad_()
        value = make_loss("gce")(leaf + view, target.repeat_interleave(2)[::2])
        value.backward()
        torch.testing.assert_close((value.detach(), leaf.grad), wanted)


@needs_compiler
def test_gradients_can_be_asked_for_twice_and_differentiated(native):
    logits, target = inputs(dtype=torch.float64)
    leaf = logits.requires_grad_()
    loss = make_loss("gce")(leaf, target)
    (first,) = torch.autograd.grad(loss, leaf, retain_graph=True)
    before = first.clone()
    (second,) = torch.autograd.grad(3 * loss, leaf)
    torch.testing.assert_close(first, before)
    torch.testing.assert_close(second, 3 * first)
    assert torch.autograd.gradgradcheck(lambda rows: make_loss("gce")(rows, target), leaf)
    assert torch.autograd.gradgradcheck(lambda rows: make_loss("gce", reduction="none")(rows, target), leaf)


@needs_compiler
def test_threads_change_no_digit(native):
    logits, target = inputs(rows=64, classes=1000)
    loss, before = make_loss("smooth-topk"), torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(value_and_gradient(lambda leaf: loss(leaf, target), logits))
    finally:
        torch.set_num_threads(before)
    for value, gradient in found[1:]:
        assert torch.equal(value, found[0][0])
        assert torch.equal(gradient, found[0][1])


@needs_compiler
def test_a_parameter_that_changes_compiles_nothing(native, monkeypatch):
    loss, (logits, target) = make_loss("gce"), inputs()
    loss(logits, target)
    monkeypatch.setattr(building, "_compiled", None)
    for q in (0.3, 0.5):
        loss.q = q
        torch.testing.assert_close(loss(logits, target), loss.formula().losses(logits, target).mean())


EXACT = {
    "exp": (mpmath.exp, [-745.0, -300.5, -1.0, -1e-9, 0.0, 1e-3, 0.34, 1.0, 88.7, 709.7]),
    "expm1": (mpmath.expm1, [-800.0, -40.0, -1.0, -0.3, -1e-12, 1e-300, 1e-8, 0.2, 0.4, 30.0, 709.0]),
    "log": (mpmath.log, [5e-324, 1e-310, 1e-20, 0.5, 0.7072, 0.999999, 1.0, 1.0000001, 1.4143, 2.0, 1e300]),
    "log1p": (mpmath.log1p, [-0.999999, -0.5, -1e-8, 1e-310, 1e-17, 1e-9, 0.3, 1.0, 1e15, 1e300]),
    "sigmoid": (lambda x: 1 / (1 + mpmath.exp(-x)), [-700.0, -40.0, -0.1, 0.0, 0.1, 40.0]),
    "softplus": (lambda x: mpmath.log1p(mpmath.exp(x)), [-700.0, -40.0, -0.1, 0.0, 0.1, 40.0, 1e300]),
    "tanh": (mpmath.tanh, [-30.0, -0.5, -1e-10, 0.0, 1e-5, 0.3, 2.0]),
}


@needs_compiler
def test_elementary_functions_are_exact():
    text = (Path(building.__file__).parent / "arithmetic.h").read_text()
    library = building.library(text + "".join(f"double tested_{name}(double x) {{ return {name}_of(x); }}\n" for name in EXACT))
    functions = {name: library[f"tested_{name}"] for name in EXACT}
    for name, (exact, places) in EXACT.items():
        function = functions[name]
        function.argtypes, function.restype = [ctypes.c_double], ctypes.c_double
        for x in places:
            with mpmath.workprec(300 + 1200 * (x > 1e3)):
                wanted = exact(mpmath.mpf(x)) if x < 1e4 or name.startswith("log") else mpmath.mpf(x)
                error = abs(mpmath.mpf(function(x)) - wanted)
                assert error <= max(2.5 * 2**-52 * abs(wanted), 5e-324), (name, x)
        assert function(float("nan")) != function(float("nan"))
    assert functions["exp"](float("-inf")) == 0
    assert functions["log"](0.0) == float("-inf")
    assert functions["log1p"](-1.0) == float("-inf")


CALL = """
import torch, lossmith
logits = torch.arange(12.0).view(3, 4).requires_grad_()
loss = lossmith.GeneralizedCrossEntropyLoss()(logits, torch.tensor([0, 1, 2]))
loss.backward()
print(f"{loss.item():.6f} {logits.grad.abs().sum().item():.6f}")
"""


def by_hand():
    """Return what it has to print, by the definition of the loss."""
    probs = torch.softmax(torch.arange(12.0, dtype=torch.float64).view(3, 4), 1)
    own = probs.gather(1, torch.tensor([[0], [1], [2]])).squeeze(1)
    return f"{((1 - own**0.7) / 0.7).mean().item():.6f} {(own**0.7 * 2 * (1 - own)).mean().item():.6f}"


WANTED = by_hand()


def test_a_missing_compiler_is_one_line(tmp_path):
    lines = run("import lossmith.losses", LOSSMITH_KERNELS="native", PATH=str(tmp_path), CC="").stderr.splitlines()
    assert lines[-1] == (
        "lossmith.kernels.native.building.CompilerError: LOSSMITH_KERNELS=native needs a C compiler, and there is none:"
        " looked for cc, gcc, clang. CC may name one."
    )


@needs_compiler
def test_no_compiler_is_started_before_a_loss_is_called(tmp_path):
    compiler = tmp_path / "compiler"
    compiler.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nexit 1\n")
    compiler.chmod(0o700)
    environment = {"LOSSMITH_KERNELS": "native", "CC": str(compiler), "LOSSMITH_CACHE": str(tmp_path / "cache")}
    assert run("import lossmith.losses", **environment).returncode == 0
    assert not (tmp_path / "started").exists()
    result = run(CALL, **environment)
    assert result.stdout.strip() == WANTED
    assert "Lossmith goes on without a compiled kernel" in result.stderr
    assert (tmp_path / "started").exists()


@needs_compiler
def test_a_cache_that_cannot_be_written_costs_speed_alone(tmp_path):
    (tmp_path / "cache").write_text("a file, not a folder")
    result = run(CALL, LOSSMITH_KERNELS="native", LOSSMITH_CACHE=str(tmp_path / "cache"))
    assert result.stdout.strip() == WANTED
    assert "Lossmith goes on without a compiled kernel" in result.stderr


@needs_compiler
def test_a_damaged_file_is_made_again(tmp_path):
    environment = {"LOSSMITH_KERNELS": "native", "LOSSMITH_CACHE": str(tmp_path)}
    assert run(CALL, **environment).stdout.strip() == WANTED
    (file,) = (tmp_path / "native").iterdir()
    whole = file.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], whole[:-1] + bytes([whole[-1] ^ 1])):
        file.write_bytes(damaged)
        result = run(CALL, **environment)
        assert (result.stdout.strip(), result.stderr) == (WANTED, "")
        assert file.read_bytes() == whole


@needs_compiler
def test_two_processes_may_compile_at_once(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "LOSSMITH_KERNELS": "native", "LOSSMITH_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", CALL]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(2)]  # noqa: S603
    assert [process.communicate()[0].strip() for process in both] == [WANTED, WANTED]
    assert all(file.suffix == ".so" for file in (tmp_path / "native").iterdir())


def test_an_unknown_engine_is_one_line():
    with pytest.raises(ValueError, match=r"engine must be one of auto, native, reference, triton, got 'abacus'\."):
        kernels.use("abacus")
