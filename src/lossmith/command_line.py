"""The command ``lossmith``. It imports torch only in the commands that need it, so that help is there at once."""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from lossmith import __version__
from lossmith.plots import FIGURES, draw

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 where the input is at fault."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # what reads the output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, OSError) as error:
        print(f"lossmith: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lossmith", description="Which loss should I train my classifier with?")
    parser.add_argument("--version", action="version", version=f"lossmith {__version__}")
    parser.set_defaults(run=lambda _: parser.print_help())
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    listing = commands.add_parser("list", help="list every loss: name, parameters, what it is")
    listing.set_defaults(run=_list)
    showing = commands.add_parser("show", help="show one loss: formula, parameters, when to use it, reference")
    showing.add_argument("name", metavar="LOSS", help="a loss, such as gce, gce@1000, or '1.0*nce + 20*mae'")
    showing.set_defaults(run=_show)
    figure = commands.add_parser("figure", help="draw a figure of the papers", formatter_class=argparse.RawTextHelpFormatter)
    figure.add_argument("name", choices=FIGURES, help="\n".join(f"{name}: {figure.summary}" for name, figure in FIGURES.items()))
    figure.add_argument("--output", type=Path, default=Path("figures"), metavar="FOLDER", help="to write to (default: figures)")
    figure.set_defaults(run=_figure)
    return parser


def _list(_: argparse.Namespace) -> None:
    from lossmith.catalogue import listing

    print(listing(shutil.get_terminal_size((160, 24)).columns))


def _show(options: argparse.Namespace) -> None:
    from lossmith.catalogue import description

    print(description(options.name))


def _figure(options: argparse.Namespace) -> None:
    for file in draw(options.name, options.output):
        print(file)
