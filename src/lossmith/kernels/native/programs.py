"""Whole files of C: what surrounds the formula, which is the same for every loss."""

from functools import cache
from importlib.resources import files

import torch

from lossmith.kernels.graphs.recorded import Graphs
from lossmith.kernels.native.source import row_statements

__all__ = ["FUNCTION_NAMES", "printed_program"]

FUNCTION_NAMES = ("loss_alone", "loss_and_gradient")
"""The functions of a program."""
NUMBER = {torch.float32: "float", torch.float64: "double"}
POWER = {torch.float32: "power_in_single", torch.float64: "pow"}
TARGETS = {False: "const int64_t *target", True: "const number *target"}
ARGUMENTS = (
    "const number *logits, {target}, const double *numbers, int64_t rows, int64_t {classes}, "
    "double share, number *losses, number *total, number *gradient"
)
ROW = {
    False: """\
        const int64_t label = target[i];
        if (label < 0 || label >= classes) {
            free(buffers);
            return 1;
        }""",
    True: """\
        const number *restrict a = target + i * classes;""",
}


@cache
def _arithmetic() -> str:
    return (files("lossmith.kernels.native") / "arithmetic.h").read_text()


def printed_program(graphs: Graphs, precision: torch.dtype, classes: int | None = None) -> str:
    """Print the functions for a formula: the losses of rows or their sum times a share, and the gradient of that.

    Args:
        graphs: Loss and gradient, in double precision.
        precision: That of the logits, and of the result.
        classes: How many classes there are, if the program is to be for this number alone.

    Returns:
        The text of a file of C.
    """
    functions = [_function(graphs, name, classes) for name in FUNCTION_NAMES]
    head = [f"typedef {NUMBER[precision]} number;", f"#define power_of {POWER[precision]}", ""]
    return "\n".join([_arithmetic(), *head, *functions])


def _function(graphs: Graphs, name: str, classes: int | None) -> str:
    """A function returns 0, or 1 where a class index is out of range, or 2 where there is no memory."""
    has_gradient = name == "loss_and_gradient"
    row = row_statements(graphs, has_gradient=has_gradient)
    arguments = ARGUMENTS.format(target=TARGETS[graphs.has_factors], classes="classes" if classes is None else "known")
    lines = [
        f"int {name}({arguments}) {{",
        *([] if classes is None else [f"    enum {{ classes = {classes} }};"]),
        *(f"    const double n{place} = numbers[{place}];" for place in range(len(graphs.numbers))),
        f"    double *buffers = {f'malloc({row.buffers} * classes * sizeof(double))' if row.buffers else 'NULL'};",
        *(["    if (!buffers) return 2;"] if row.buffers else []),
        *(f"    double *restrict b{place} = buffers + {place} * classes;" for place in range(row.buffers)),
        "    double sum = 0.0;",
        "    for (int64_t i = 0; i < rows; i++) {",
        "        const number *restrict z = logits + i * classes;",
        *(["        number *restrict g = gradient + i * classes;"] if has_gradient else []),
        ROW[graphs.has_factors],
        *row.lines,
        "        if (losses) losses[i] = (number)loss;",
        "        sum += loss;",
        "    }",
        "    if (total) *total = (number)(sum * share);",
        "    free(buffers);",
        "    return 0;",
        "}",
        "",
    ]
    return "\n".join(lines)
