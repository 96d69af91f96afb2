"""``lossmith advise``."""

import argparse
import sys

NAME = "advise"
HELP = "say which losses will learn with a number of classes, and with which parameters, without training"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take what is known before training."""
    parser.add_argument("--classes", type=int, required=True, metavar="K", help="number of classes")
    parser.add_argument("--noise", type=float, default=0.0, metavar="SHARE", help="share of wrong labels (default: 0)")
    parser.add_argument("--rows", type=int, metavar="N", help="training rows, to find data sets that are like yours")
    parser.add_argument("--kind", choices=("table", "text", "image"), help="what your data is, likewise")
    parser.add_argument(
        "--imbalance",
        type=float,
        metavar="SHARE",
        help="rows of the rarest class for each of the most frequent, such as 0.02, where all classes are to count alike",
    )
    parser.add_argument("--loss", action="append", metavar="LOSS", help="a loss, such as gce or 'gce(q=0.9)' (default: all)")
    parser.add_argument(
        "--reference-classes",
        type=int,
        default=100,
        metavar="K",
        help="number of classes at which published parameters are known to work (default: 100)",
    )
    parser.add_argument("--sigma", type=float, default=1.0, help="spread of a fresh network's logits (default: 1)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> None:
    """Print the advice."""
    from lossmith.theory.advice import advise
    from lossmith.theory.advice_table import table

    advice = advise(
        options.classes,
        options.noise,
        options.loss,
        rows=options.rows,
        kind=options.kind,
        imbalance=options.imbalance,
        reference_classes=options.reference_classes,
        sigma=options.sigma,
        progress=_show if sys.stderr.isatty() else None,
    )
    if sys.stderr.isatty():
        _write("")
    print(_json(advice) if options.json else table(advice))


def _show(done: int, total: int, loss: str) -> None:
    _write(f"{done + 1} of {total}: {loss}")


def _write(line: str) -> None:
    """Replace the last line of the terminal."""
    print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def _json(advice: object) -> str:
    import json
    import math
    from dataclasses import asdict, is_dataclass

    def finite(value: object) -> object:
        """JSON has no infinity: what has no bound is null."""
        if isinstance(value, dict):
            return {key: finite(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [finite(each) for each in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    assert is_dataclass(advice)
    assert not isinstance(advice, type)
    return json.dumps(finite(asdict(advice)), indent=2)
