"""Whole files of C: what surrounds the formula, which is the same for every loss."""

from functools import cache
from importlib.resources import files

import torch

from lossmith.kernels.graphs.recorded import Graphs
from lossmith.kernels.native.source import Printer, row_statements

__all__ = ["FUNCTION_NAMES", "printed_program"]

FUNCTION_NAMES = ("loss_alone", "loss_and_gradient")
"""The functions of a program."""
NUMBER = {torch.float32: "float", torch.float64: "double"}
POWER = {torch.float32: "power_in_single", torch.float64: "pow"}
TARGET = {False: "int64_t", True: "number"}
LABEL = """\
        const int64_t label = target[i];
        if (label < 0 || label >= classes) return 1;"""
FACTORS = """\
        const number *restrict a = target + i * classes;"""
WORK = """\
/* What is computed: losses of rows or their sum times a share, and its gradient. */
struct work {{
    const number *logits;
    const {target} *target;
    const double *numbers;
    int64_t rows, classes;
    double share;
    number *losses, *gradient;
    int64_t rows_of_part, next;
    int status;
    double sums[PARTS];
}};

/* How OpenMP runs a function in several threads. */
typedef void (*run_at_once)(void (*)(void *), void *, unsigned, unsigned);
"""
# Threads take parts of the rows one after the other; sums do not depend on which thread took which.
ENTRY = """\
static void {name}_of_parts(void *given) {{
    struct work *w = given;
    double *buffers = malloc(({buffers} * w->classes + 1) * sizeof(double));
    int status = buffers ? 0 : 2;
    while (!status) {{
        const int64_t part = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED), first = part * w->rows_of_part;
        if (first >= w->rows) break;
        const int64_t left = w->rows - first, count = left < w->rows_of_part ? left : w->rows_of_part;
        status = {name}_of_rows(w, first, first + count, &w->sums[part], buffers);
    }}
    if (status) __atomic_store_n(&w->status, status, __ATOMIC_RELAXED);
    free(buffers);
}}

/* Returns 0, or 1 where a class index is out of range, or 2 where there is no memory. */
int {name}(const number *logits, const {target} *target, const double *numbers, int64_t rows, int64_t classes, double share,
           number *losses, number *total, number *gradient, run_at_once run, unsigned threads) {{
    struct work w = {{logits, target, numbers, rows, classes, share, losses, gradient, run ? (rows + PARTS - 1) / PARTS : rows}};
    if (run) run({name}_of_parts, &w, threads, 0);
    else {name}_of_parts(&w);
    double sum = 0.0;
    for (int part = 0; part < PARTS; part++) sum += w.sums[part];
    if (total) *total = (number)(sum * share);
    return w.status;
}}
"""


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
    target = TARGET[graphs.has_factors]
    head = [f"typedef {NUMBER[precision]} number;", f"#define power_of {POWER[precision]}", "#define PARTS 32", ""]
    parts = [_arithmetic(), *head, WORK.format(target=target)]
    for name in FUNCTION_NAMES:
        row = row_statements(graphs, has_gradient=name == "loss_and_gradient")
        parts += [_of_rows(graphs, name, row, classes), ENTRY.format(name=name, target=target, buffers=row.buffers)]
    return "\n".join(parts)


def _of_rows(graphs: Graphs, name: str, row: Printer, classes: int | None) -> str:
    """Print the function that goes from row to row."""
    lines = [
        f"static int {name}_of_rows(const struct work *w, int64_t first, int64_t end, double *sum, double *buffers) {{",
        "    const int64_t classes = w->classes;" if classes is None else f"    enum {{ classes = {classes} }};",
        f"    const {TARGET[graphs.has_factors]} *restrict target = w->target;",
        "    const double share = w->share;",
        *(f"    const double n{place} = w->numbers[{place}];" for place in range(len(graphs.numbers))),
        *(f"    double *restrict b{place} = buffers + {place} * classes;" for place in range(row.buffers)),
        "    double losses = 0.0;",
        "    for (int64_t i = first; i < end; i++) {",
        "        const number *restrict z = w->logits + i * classes;",
        *(["        number *restrict g = w->gradient + i * classes;"] if name == "loss_and_gradient" else []),
        FACTORS if graphs.has_factors else LABEL,
        *row.lines,
        "        if (w->losses) w->losses[i] = (number)loss;",
        "        losses += loss;",
        "    }",
        "    *sum = losses;",
        "    return 0;",
        "}",
        "",
    ]
    return "\n".join(lines)
