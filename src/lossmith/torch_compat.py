"""Every private or recent name of torch that the library uses, each probed once, with a public way where it is absent.

Nothing else in the library touches what torch does not promise. A probe that fails costs speed or a clearer error, never a
right result: ``LOSSMITH_TORCH_PROBES=off`` switches all of them off, and the tests run with that, too.
"""

import ctypes
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import reduce
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

__all__ = [
    "above_autograd",
    "apply_outside_transforms",
    "are_transforms_active",
    "below_autograd",
    "forget_constants_of_graphs",
    "function_of_threads",
    "fused_sgd",
    "has_native_bfloat16",
    "has_triton",
    "input_of_graph",
    "is_autocast_enabled",
    "is_constant",
    "is_dtensor",
    "is_exporting",
    "is_graph_kept",
    "is_in_forward_mode",
    "is_one_of_many_gradients",
    "is_traced",
    "makes_inputs_of_numbers",
    "on_one_path",
    "refuse_forward_mode_twice",
    "weight_norm_backward",
]

_PROBES_ARE_OFF = os.environ.get("LOSSMITH_TORCH_PROBES") == "off"


def _probe(path: str, otherwise: Any = None) -> Any:
    """Return what is found under a dotted name within torch, or something else where there is no such thing."""
    if _PROBES_ARE_OFF:
        return otherwise
    try:
        return reduce(getattr, path.split("."), torch)
    except AttributeError:
        return otherwise


_VERSION = tuple(map(int, torch.__version__.split(".")[:2]))
_TELLS_CONSTANTS = not _PROBES_ARE_OFF and _VERSION >= (2, 9)
_FOLLOWS_EVERY_PATH = _PROBES_ARE_OFF or _VERSION < (2, 7)
_is_jit_tracing = _probe("_C._is_tracing")
_functorch_is_active = _probe("_C._are_functorch_transforms_active")
_dispatch_modes = _probe("_C._len_torch_dispatch_stack")
_is_key_included = _probe("_C._dispatch_tls_is_dispatch_key_included")
_pre_dispatch = _probe("_C.DispatchKey.PreDispatch")
_keeps_graph = _probe("_C._autograd._get_current_graph_task_keep_graph")
_is_batched = _probe("_C._functorch.is_legacy_batchedtensor")
_interpreters = _probe("_C._functorch.get_interpreter_stack")
_jvp_transform = _probe("_C._functorch.TransformType.Jvp")
_is_exporting = _probe("compiler.is_exporting")
_forward_level = _probe("autograd.forward_ad._current_level")
_bfloat16_instructions = [_probe(f"cpu._is_{name}_supported") for name in ("avx512_bf16", "amx_tile")]


def are_transforms_active() -> bool:
    """Return whether ``torch.func`` maps or differentiates what runs now; if torch does not tell, it may."""
    return True if _functorch_is_active is None else bool(_functorch_is_active())


def is_traced() -> bool:
    """Return whether tensors may have no values: in torch.compile, or in a mode such as ``FakeTensorMode`` or ``make_fx``."""
    if torch.compiler.is_compiling() or (_is_jit_tracing is not None and _is_jit_tracing()):
        return True
    if _dispatch_modes is None or _is_key_included is None or _pre_dispatch is None:
        return True
    return bool(_dispatch_modes() > 0 or _is_key_included(_pre_dispatch))


def is_dtensor(value: object) -> bool:
    """Return whether this is a ``DTensor``, without importing what only those who have one have imported."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(value, module.DTensor)


def is_exporting() -> bool:
    """Return whether ``torch.export`` is writing down a program, in which every operation should be one of torch's own."""
    return bool(_is_exporting()) if _is_exporting is not None else torch.compiler.is_compiling()


def is_in_forward_mode() -> bool:
    """Return whether tensors may have tangents, which gradients inherit although no gradient is recorded."""
    return True if _forward_level is None else bool(forward_ad._current_level >= 0)


def is_graph_kept() -> bool:
    """Return whether the graph that is being differentiated may be differentiated again."""
    return True if _keeps_graph is None else bool(_keeps_graph())


def is_one_of_many_gradients(grad: Tensor) -> bool:
    """Return whether a gradient stands for many, as ``torch.autograd.grad(is_grads_batched=True)`` hands them over."""
    return True if _is_batched is None else bool(_is_batched(grad))


def has_triton() -> bool:
    """Return whether Triton is installed, as it is beside builds of torch for GPUs; any folder of that name is not it."""
    found = find_spec("triton")
    return found is not None and found.origin is not None


def is_autocast_enabled(device: str) -> bool:
    """Return whether autocast is on for a type of device; a type that knows no autocast has none."""
    try:
        return torch.is_autocast_enabled(device)
    except RuntimeError:
        return False


def has_native_bfloat16() -> bool:
    """Return whether the processor multiplies numbers of type bfloat16 itself; if torch does not tell, it does not."""
    return any(bool(is_supported()) for is_supported in _bfloat16_instructions if is_supported is not None)


def is_constant(number: float) -> bool:
    """Return whether a number is a constant of the graph that is being compiled, and not an input of it."""
    if not torch.compiler.is_compiling():
        return True
    if not _TELLS_CONSTANTS:
        return False
    from torch.fx.experimental.symbolic_shapes import has_static_value  # heavy, and needed by nothing but compilation

    return has_static_value(number)


makes_inputs_of_numbers = not _PROBES_ARE_OFF and _VERSION >= (2, 9)
"""Whether a number in a tensor can be read in a graph that is being compiled, so that it is an input of it."""


def input_of_graph(number: Tensor) -> float:
    """Return the number in a tensor without dimensions, as an input of the graph that is being compiled."""
    with torch._dynamo.patch_dynamo_config(capture_scalar_outputs=True):  # or reading it would break the graph in two
        return float(number.item())


def forget_constants_of_graphs() -> None:
    """Let numbers be inputs of the next graph that an earlier one had to take for constants, as it was made for one value.

    Torch 2.13 remembers them by names that every graph has anew, until a compilation fails.
    """
    constants = getattr(sys.modules.get("torch._dynamo.symbolic_convert"), "TensorifyState", None)
    if constants is not None and not _PROBES_ARE_OFF:
        constants.clear()


def on_one_path(numbers: Tensor) -> Tensor:
    """Return numbers ``(N, 1, ...)`` as they are, by an operation at which torch 2.6 stops following the paths of a graph.

    It follows each of them, up to an operation that cannot be fused, and each step of Newton's method has six times as many
    as the one before: without this, compiling ten steps would take days.
    """
    return numbers.amin(1, keepdim=True) if _FOLLOWS_EVERY_PATH else numbers


def refuse_forward_mode_twice() -> None:
    """Raise an error where the tangent of a custom ``jvp`` is differentiated in forward mode, which torch takes for 0."""
    if _interpreters is None or _jvp_transform is None:
        return
    if sum(level.key() == _jvp_transform for level in _interpreters() or []) > 1:
        raise NotImplementedError("forward mode over forward mode is not possible here: use torch.func.hessian.")


def below_autograd() -> AbstractContextManager[object]:
    """Return a context that tells operations once that nothing is recorded, instead of letting each of them find out."""
    context: AbstractContextManager[object] = _below_autograd()
    return context


_below_autograd: Callable[[], Any] = _probe("_C._AutoDispatchBelowAutograd", nullcontext)


def above_autograd() -> AbstractContextManager[object] | None:
    """Return a context in which autograd records again within an operation of ``torch.library``, or None if torch has none."""
    if None in (_force_keys, _included_keys, _excluded_keys, _autograd_keys):
        return None
    excluded = _excluded_keys()
    for name in ("AutogradOther", "AutogradFunctionality", "ADInplaceOrView"):
        excluded = excluded.remove(getattr(_autograd_keys, name))
    context: AbstractContextManager[object] = _force_keys(_included_keys(), excluded)
    return context


_force_keys = _probe("_C._ForceDispatchKeyGuard")
_included_keys = _probe("_C._dispatch_tls_local_include_set")
_excluded_keys = _probe("_C._dispatch_tls_local_exclude_set")
_autograd_keys = _probe("_C.DispatchKey")


def apply_outside_transforms(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """Return ``function.apply`` without what it does for ``torch.func`` alone."""
    plain = None if _PROBES_ARE_OFF else getattr(super(torch.autograd.Function, function), "apply", None)
    return plain or function.apply


def function_of_threads() -> int | None:
    """Return the address of OpenMP's function that runs another in the threads that torch has, or None if torch shows none."""
    found = [] if _PROBES_ARE_OFF else [*(Path(torch.__file__).parent / "lib").glob("libtorch_cpu.*")]
    try:  # what is loaded already is only looked at, and so are the libraries that it needs
        function = ctypes.CDLL(str(found[0])).GOMP_parallel
    except (OSError, AttributeError, IndexError):
        return None
    return ctypes.cast(function, ctypes.c_void_p).value


weight_norm_backward: Callable[..., tuple[Tensor, Tensor]] | None = _probe("ops.aten._weight_norm_interface_backward.default")
"""The gradient of ``lengths * v / ||v||`` in one pass: takes grad, v, lengths, norms and the dimension that is kept."""

fused_sgd: Callable[..., None] | None = _probe("_fused_sgd_")
"""A step of stochastic gradient descent in one pass, as ``torch.optim.SGD(fused=True)`` makes it: takes lists of tensors."""
