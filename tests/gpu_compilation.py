"""Compiles kernels for a GPU by Triton's own compiler, which needs none: ``python -m gpu_compilation 1000 ce gce``, in ``tests``.

What the interpreter lets pass, the compiler does not, such as a number that changes its precision in a loop.
"""

import sys

import torch
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile  # noqa: A004 (Triton's name)

from lossmith import make_loss
from lossmith.kernels import Rows
from lossmith.kernels.graphs.recorded import graphs_of
from lossmith.kernels.triton.launching import Layout, kernels_of
from lossmith.losses.top_k import smooth_topk

AMPERE = GPUTarget("cuda", 80, 32)
TYPES = {torch.bfloat16: "bf16", torch.float32: "fp32", torch.float64: "fp64"}
AS_GIVEN = ("logits", "gradient")
AS_COMPUTED = ("weight", "losses", "shares", "kept", "slopes", "whole")


class SpreadTopK:
    """Has sums over rows that are made of numbers of double precision."""

    def formula(self):
        return Rows(_spread, {"tau": 0.1})


def _spread(logits, target, *, tau):
    loss = smooth_topk(logits, target, k=2, tau=tau, margin=1.0)
    return (torch.sigmoid(logits) * loss.unsqueeze(1)).sum(1)


def compiled(loss, num_classes, precision=torch.float32):
    """Return what Triton makes of the kernels of a loss, forward and backward."""
    dtype = torch.promote_types(precision, torch.float32)
    graphs, _ = graphs_of(loss.formula(), num_classes, has_factors=False, dtype=dtype)
    layout = Layout.of(torch.empty(64, num_classes, dtype=precision, device="meta"))
    kernels = kernels_of(graphs, layout.is_resident, has_gradient=True)
    blocks = {kernels.forward: layout.block, kernels.backward: min(layout.block, 4096)}
    return [_compiled(kernel, layout.constants(dtype, block), precision, dtype) for kernel, block in blocks.items()]


def _compiled(kernel, constants, precision, dtype):
    warps = constants.pop("num_warps")
    constants |= {"HAS_WEIGHT": True, "REDUCES": True}
    signature = {name: _type_of(name, constants, precision, dtype) for name in kernel.arg_names}
    places = {(place,): constants[name] for place, name in enumerate(kernel.arg_names) if name in constants}
    return compile(ASTSource(kernel, signature, places), target=AMPERE, options={"num_warps": warps})


def _type_of(name, constants, precision, dtype):
    if name in constants:
        return "constexpr"
    if name in AS_GIVEN:
        return f"*{TYPES[precision]}"
    if name in AS_COMPUTED:
        return f"*{TYPES[dtype]}"
    if name == "target":
        return "*i64"
    return "fp64" if name.startswith("n") and name.endswith("_") else "i32"


def main(num_classes, expressions):
    """Print how large the programs are that Triton makes of the kernels of losses, forward and backward, in single precision."""
    for expression in expressions:
        loss = SpreadTopK() if expression == "spread" else make_loss(expression)
        sizes = [len(part.asm["cubin"]) for part in compiled(loss, num_classes)]
        sys.stdout.write(f"{expression} {sizes}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
