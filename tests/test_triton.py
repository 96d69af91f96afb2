"""Triton's kernels, in its interpreter: agreement with formulas, launches, passes over the logits, what is left to formulas.

``make test-triton`` installs Triton into a folder of its own and runs these, the top-k tests and the contract on it.
"""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import lossmith
from cases import CASES
from lossmith import kernels, make_loss
from lossmith.kernels import Rows, Term, Terms, formula
from lossmith.kernels.graphs.recorded import graphs_of
from lossmith.kernels.graphs.reductions import is_row, is_wide, numbers_within
from lossmith.kernels.symbols import Input, Operation
from lossmith.kernels.triton.programs import printed_program
from lossmith.losses.contract import classification_loss
from scratch_losses import FadingLoss, MarginLoss

CLASSES = 7
# Beyond the longest row that a kernel keeps: how often the logits are read for the loss.
WALKS = {"nce": 4, "logit-norm": 4}
TWO_PASSES = (
    "ce",
    "mae",
    "gce",
    "truncated-gce",
    "agce",
    "sce",
    "focal",
    "tamed-ce",
    "ce-el",
    "0.5*ce + 2*mae",
    "nce",
    "nce-mae",
    "label-smoothing",
    "logit-penalty",
    "logit-norm",
    "sigmoid",
    "squared-error",
    "logit-bias",
    "z-loss",
)
MORE_WORK = ("bi-tempered", "tsallis", "smooth-topk(k=2)")
LEFT_TO_THE_FORMULA = (
    "hard-topk(k=2)",
    # What is corrected by a matrix, or mixes the losses of all labels, is a product of matrices, for which torch has kernels.
    "forward-correction(ce, matrix=pair(0.3))",
    "backward-correction(gce(q=0.5), matrix=pair(0.1))",
    "backward-correction(logit-bias(gce, epsilon=1), rate=0.1)",
)


def graphs(loss, *, has_factors=False, num_classes=CLASSES):
    return graphs_of(loss.formula(), num_classes, has_factors=has_factors, dtype=torch.float32)


# What follows needs no Triton: kernels are text until they run.


@pytest.mark.parametrize("expression", [case for case in CASES if case not in LEFT_TO_THE_FORMULA])
def test_every_loss_has_a_kernel(expression):
    known = graphs(make_loss(expression))
    assert known is not None
    assert printed_program(known[0], resident=True, has_gradient=True).walks == 1


def test_what_is_put_at_one_class_is_no_number_of_the_row():
    target = Input("target", is_number=False)
    one_hot = Operation("put", (0.0, target, 1.0), {}, is_number=False)
    assert is_row(Operation("mul", (one_hot, 2.0), {}, is_number=False))
    assert not is_row(Operation("total", (one_hot,), {}, is_number=False))


def test_numbers_of_subsets_have_double_precision_and_rows_have_not():
    loss, gradient, *_ = graphs(make_loss("smooth-topk(k=2)"))[0]
    assert is_wide(loss)
    assert not is_wide(gradient)
    # Where the k largest are, and the k-th itself, which is one of the logits.
    assert {each.name for each in numbers_within(gradient) if not is_wide(each)} == {"top_place", "where"}
    for expression in ("ce", "bi-tempered", "logit-norm"):
        loss, gradient, *_ = graphs(make_loss(expression))[0]
        assert not any(map(is_wide, [loss, gradient, *numbers_within(gradient)]))


@pytest.mark.parametrize("expression", [case for case in TWO_PASSES if case not in ("nce-mae",)])
def test_long_rows_are_read_once_for_the_loss(expression):
    found = printed_program(graphs(make_loss(expression))[0], resident=False, has_gradient=True)
    assert found.walks == WALKS.get(expression, 1)


def test_a_parameter_is_an_argument_and_no_constant():
    first, second = (graphs(lossmith.GeneralizedCrossEntropyLoss(q)) for q in (0.3, 0.9))
    assert first[0] is second[0]
    assert first[1] != second[1]
    assert graphs(lossmith.GeneralizedCrossEntropyLoss(0.0))[0] is not first[0]  # has another formula


def test_new_losses_have_kernels_for_nothing():
    for loss in (FadingLoss(), FadingLoss(rate=0.0), MarginLoss(), MarginLoss(hard=True)):
        assert graphs(loss) is not None


def test_what_kernels_do_not_know_is_left_to_the_formula():
    class Loss:
        def formula(self):
            return Rows(lambda logits, target: torch.cumsum(logits, 1).amax(1), {})

    assert graphs(Loss()) is None
    assert graphs(make_loss("bi-tempered(t2=0.5)")) is None
    assert graphs(make_loss("bi-tempered(t2=1.5)")) is not None
    assert graphs(make_loss("smooth-topk(k=9)"), num_classes=20) is None


@pytest.mark.parametrize("expression", ["gce", "nce", "bi-tempered", "label-smoothing"])
def test_tensors_without_values_on_a_gpu(expression):
    """Without a gradient: autograd of a torch without CUDA has no queue for such a device, and aborts."""
    with FakeTensorMode():
        logits, target = torch.empty(6, CLASSES, device="cuda"), torch.empty(6, dtype=torch.long, device="cuda")
        losses = make_loss(expression, reduction="none")(logits, target)
    assert (losses.shape, losses.device.type) == ((6,), "cuda")


def run(code, **environment):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=environment)  # noqa: S603


def test_a_missing_triton_is_one_line(tmp_path):
    (tmp_path / "triton").mkdir()  # any folder is not it
    without = [str(tmp_path), *(path for path in sys.path if not (Path(path) / "triton" / "__init__.py").exists())]
    code = f"import sys; sys.path[:] = {without}; import lossmith; lossmith.losses.LOSSES"
    lines = run(code, LOSSMITH_KERNELS="triton").stderr.splitlines()
    assert lines[-1] == "ImportError: LOSSMITH_KERNELS=triton needs the package triton, which is not installed."


# What follows runs kernels.

needs_triton = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1", reason="runs in Triton's interpreter: make test-triton"
)


@pytest.fixture
def engine(monkeypatch):
    engine = pytest.importorskip("lossmith.kernels.triton.engine", reason="Triton is not installed: make test-triton")
    for name in ("losses", "mean", "reduces", "reduced"):
        monkeypatch.setattr(kernels, name, getattr(engine, name))
    return engine


def value_and_gradient(loss, logits, target):
    leaf = logits.clone().requires_grad_()
    value = loss(leaf, target)
    return value.detach(), torch.autograd.grad(value.sum(), leaf)[0]


def by_formula(monkeypatch, loss, logits, target):
    with monkeypatch.context() as patch:
        for name in ("losses", "mean", "reduces", "reduced"):
            patch.setattr(kernels, name, getattr(formula, name))
        return value_and_gradient(loss, logits, target)


@needs_triton
@pytest.mark.parametrize("expression", [*TWO_PASSES, *MORE_WORK, "nf", "mpce", "cot", "z-loss(logit-bias(bi-tempered))"])
def test_kernels_are_formulas(engine, monkeypatch, expression):
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(6, CLASSES, generator=generator, dtype=torch.float64)
    target = torch.tensor([0, 1, -100, 2, 6, 3])
    loss = make_loss(expression, weight=torch.rand(CLASSES, generator=generator, dtype=torch.float64) + 0.5)
    torch.testing.assert_close(
        value_and_gradient(loss, logits, target), by_formula(monkeypatch, loss, logits, target), rtol=1e-11, atol=1e-14
    )


@needs_triton
@pytest.mark.parametrize("loss", [FadingLoss(rate=2.0), MarginLoss(margin=0.5, hard=True)], ids=repr)
def test_kernels_of_new_losses_are_formulas(engine, monkeypatch, loss):
    logits, target = torch.randn(3, CLASSES, 2, dtype=torch.float64), torch.randint(CLASSES, (3, 2))
    torch.testing.assert_close(value_and_gradient(loss, logits, target), by_formula(monkeypatch, loss, logits, target))


@needs_triton
@pytest.mark.parametrize("expression", ["ce", "gce", "focal", "nce", "label-smoothing", "sigmoid", "bi-tempered", "smooth-topk"])
def test_single_precision_follows_double(engine, monkeypatch, expression):
    """Rows of every confidence; what is rounded is the logarithm of p, whose powers are then off by as much, relatively."""
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(64, 50, generator=generator) * 10 ** (2 * torch.rand(64, 1, generator=generator) - 1)
    target = torch.where(torch.arange(64) % 2 == 0, logits.argmax(1), torch.arange(64) % 50)
    loss = make_loss(expression, reduction="none")
    value, gradient = value_and_gradient(loss, logits, target)
    exact, slope = by_formula(monkeypatch, loss, logits.double(), target)
    rounding = 2e-6 + 2**-24 * (logits.amax(1) - logits.amin(1))
    assert ((value - exact).abs() <= rounding * exact + 1e-30).all()
    assert ((gradient - slope).abs().amax(1) <= 2 * rounding * slope.abs().amax(1) + 1e-30).all()


@needs_triton
@pytest.mark.parametrize("longest", [16384, 16], ids=["resident", "in blocks"])
@pytest.mark.parametrize("tau", [1e-6, 3e-3, 1.0])
@pytest.mark.parametrize("k", [1, 2, 6])
def test_smooth_topk_keeps_its_digits_where_the_margin_takes_most_of_the_lead(engine, monkeypatch, k, tau, longest):
    """Scores are normal, of two kinds, or tied; ``margin / tau`` is up to 300000, and what is left of it decides."""
    use_longest_row(monkeypatch, longest)
    generator = torch.Generator().manual_seed(k)
    logits, target = 3 * k * tau * torch.randn(24, 40, generator=generator), torch.arange(24)
    logits[8:16], logits[16:] = k * tau * logits[8:16].sign(), 0.5
    kth = logits.scatter(1, target[:, None], -torch.inf).topk(k, 1).values[:, -1]
    logits[target, target] = kth + 0.3 * k + 5 * k * tau * torch.randn(24, generator=generator)
    loss = lossmith.SmoothTopKLoss(k, tau, 0.3, reduction="none")
    value, gradient = value_and_gradient(loss, logits, target)
    exact, slope = by_formula(monkeypatch, loss, logits.double(), target)
    assert ((value - exact).abs() <= 4 * torch.finfo(torch.float32).eps * exact + 1e-40).all()
    assert ((gradient - slope).abs().amax(1) <= 1e-6 * slope.abs().amax(1)).all()


@needs_triton
@pytest.mark.parametrize("classes", [1000, 20000])
def test_the_largest_of_many_equal_classes_are_pulled_as_the_others(engine, classes):
    """What they are more often absent from k - 1 than from k is a small difference."""
    _, gradient = value_and_gradient(lossmith.SmoothTopKLoss(5, 0.01, 0.0), torch.full((1, classes), 7.0), torch.tensor([3]))
    expected = -gradient[0, 3] / (classes - 1)
    others = torch.cat([gradient[0, :3], gradient[0, 4:]])
    torch.testing.assert_close(others, expected.expand_as(others), rtol=1e-5, atol=0)


@needs_triton
@pytest.mark.parametrize("classes", [1000, 20000])
def test_kernels_compile_for_a_gpu(classes, tmp_path):
    """None is needed for that, and the compiler refuses what the interpreter lets pass."""
    # spread: rows that meet numbers of double precision.
    code = f"import gpu_compilation; gpu_compilation.main({classes}, ['gce', 'smooth-topk(k=2)', 'spread'])"
    done = run(code, TRITON_INTERPRET="0", TRITON_CACHE_DIR=str(tmp_path))
    assert len(done.stdout.splitlines()) == 3, done.stderr


def use_longest_row(monkeypatch, longest):
    """Have kernels walk over rows that are longer than that."""
    from lossmith.kernels.triton import launching

    monkeypatch.setattr(launching, "LONGEST_RESIDENT", longest)
    monkeypatch.setattr(launching, "LONGEST_WALKED", longest)


@needs_triton
@pytest.mark.parametrize("expression", ["ce", "nce", "logit-norm", "bi-tempered", "smooth-topk(k=2)", "nf"])
def test_rows_of_several_blocks(engine, monkeypatch, expression):
    use_longest_row(monkeypatch, 16)
    logits, target = 3 * torch.randn(5, 40, dtype=torch.float64), torch.tensor([0, 39, 16, 3, 20])
    loss = make_loss(expression)
    torch.testing.assert_close(
        value_and_gradient(loss, logits, target), by_formula(monkeypatch, loss, logits, target), rtol=1e-11, atol=1e-14
    )


class Kernels(TorchDispatchMode):
    """Counts operations of torch that would start a kernel, but not those by which the interpreter runs one."""

    count = 0
    is_launching = False
    FREE = ("empty", "new_empty", "empty_like", "view", "detach", "_unsafe_view", "unsqueeze", "squeeze", "expand", "select")

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        self.count += not self.is_launching and function.overloadpacket.__name__ not in self.FREE
        return function(*arguments, **(options or {}))


def counted(engine, monkeypatch, loss, logits, target):
    """Return how many kernels a training step starts, and how often it reads the logits."""
    from triton.runtime import interpreter

    from lossmith.kernels.triton import launching

    launches, read, mode = [], [], Kernels()

    def counting_launch(*arguments, **options):
        launches.append(arguments[0])
        mode.is_launching = True
        launch(*arguments, **options)
        mode.is_launching = False

    launch = launching.launch
    for module in (engine, launching):
        monkeypatch.setattr(module, "launch", counting_launch)
    low = logits.data_ptr()
    high = low + logits.numel() * logits.element_size()
    load = interpreter.InterpreterBuilder.create_masked_load

    def counting_load(self, pointers, mask, *others):
        inside = (pointers.data >= low) & (pointers.data < high) & mask.data
        read.append(int(inside.sum()))
        return load(self, pointers, mask, *others)

    monkeypatch.setattr(interpreter.InterpreterBuilder, "create_masked_load", counting_load)
    monkeypatch.setattr(engine, "is_traced", lambda: False)  # the mode below only counts
    with mode:
        value = loss(logits, target)
        value.backward(torch.ones_like(value))
    return len(launches) + mode.count - 1, sum(read) / logits.numel()  # without the ones


@needs_triton
@pytest.mark.parametrize("expression", [*TWO_PASSES, *MORE_WORK])
def test_launches_and_passes(engine, monkeypatch, expression):
    """Of half precision, which kernels read as it is. Targets are looked at on processors alone."""
    monkeypatch.setattr(classification_loss, "check_range", lambda *_: None)
    logits = torch.randn(6, CLASSES).bfloat16().requires_grad_()
    target = torch.tensor([0, 1, -100, 2, 6, 3])
    launches, passes = counted(engine, monkeypatch, make_loss(expression), logits, target)
    assert launches <= (3 if expression in TWO_PASSES else 6)
    assert passes <= 2 + 2 / CLASSES  # and the target's own logit by itself


@needs_triton
def test_gradients_of_gradients_come_from_the_formula(engine):
    logits = torch.randn(4, CLASSES, dtype=torch.float64, requires_grad=True)
    loss = partial(make_loss("gce"), target=torch.tensor([0, 1, 2, -100]))
    assert torch.autograd.gradgradcheck(loss, logits)


@needs_triton
def test_a_target_of_no_class_is_no_number(engine):
    """On a GPU, where looking at targets would stall."""
    terms = Terms((Term(1.0, kernels.cross_entropy),))
    found = engine.reduced(terms, torch.randn(2, 3), torch.tensor([1, 7]), kernels.Reduction())
    assert found.isnan().tolist() == [False, True]


def test_logits_of_a_processor_need_the_interpreter():
    pytest.importorskip("triton", reason="Triton is not installed: make test-triton")
    code = "import torch, lossmith; lossmith.make_loss('ce')(torch.randn(2, 3), torch.tensor([0, 1]))"
    lines = run(code, LOSSMITH_KERNELS="triton", TRITON_INTERPRET="0").stderr.splitlines()
    assert lines[-1].startswith("RuntimeError: LOSSMITH_KERNELS=triton needs logits on a GPU, or TRITON_INTERPRET=1")
