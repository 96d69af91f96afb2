"""Newton's method for the largest of the tempered probabilities, see :mod:`lossmith.numerics.normalizer`."""

from lossmith.kernels.graphs.reductions import identity_of
from lossmith.kernels.native.rows import RowPrinter
from lossmith.kernels.symbols import Operation

__all__ = ["newton"]

# As in kernels/triton/walks.py, but a loop in C ends where nothing changes any more.
STEPS = 60


def newton(printer: RowPrinter, node: Operation) -> None:
    """Print a loop of steps, each with a walk over the row.

    Args:
        printer: Where it is printed.
        node: The number that is looked for.
    """
    gap, start, t = node.arguments
    name, temperature = printer.new_name(), printer.text(t)
    printer.prepare([gap])
    printer.add(f"double {name} = {printer.text(start)};")
    with printer.block(f"for (int step = 0; step < {STEPS}; step++) {{"):
        printer.add(
            f"const double {name}c = ({temperature} - 1.0) * exp_of(({temperature} - 1.0) * {name});",
            f"double {name}s = 0.0, {name}d = 0.0;",
        )
        with printer.walk(add=[f"{name}s", f"{name}d"]):
            entry = printer.text(gap)
            printer.add(
                f"const double {name}x = {entry} * {name}c;",
                f"const double {name}e = exp_of(log1p_of({name}x) / (1.0 - {temperature}));",
                f"{name}s += {name}e;",
                f"{name}d += {name}e / (1.0 + {name}x);",
            )
        printer.add(
            f"double {name}l = ({temperature} - 1.0) * (log_of({name}s) + {name});",
            f"{name}l = expm1_of({name}l > 60.0 ? 60.0 : {name}l) * {name}s / {name}d;",
            f"{name}l = {name} - log1p_of({name}l) / ({temperature} - 1.0);",
            f"{name}l = {name}l > 0.0 ? 0.0 : {name}l;",
            f"const int is_same = !(fabs({name}l - {name}) > 4e-16 * (1.0 + fabs({name}l)));",
            f"{name} = {name}l;",
            "if (is_same) break;",
        )
    printer.keep(identity_of(node), name)
