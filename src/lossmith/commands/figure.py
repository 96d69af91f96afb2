"""``lossmith figure NAME``."""

import argparse
from pathlib import Path

from lossmith.plots import FIGURES, draw

NAME = "figure"
HELP = "draw a figure of the papers"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take a figure's name and a folder."""
    parser.formatter_class = argparse.RawTextHelpFormatter
    parser.add_argument(
        "name", choices=list(FIGURES), help="\n".join(f"{name}: {figure.summary}" for name, figure in FIGURES.items())
    )
    parser.add_argument("--output", type=Path, default=Path("figures"), metavar="FOLDER", help="to write to (default: figures)")
    takers = ", ".join(name for name, figure in FIGURES.items() if figure.takes_classes)
    parser.add_argument("--classes", type=int, nargs="+", metavar="K", help=f"numbers of classes, for {takers}")


def run(options: argparse.Namespace) -> None:
    """Draw it and print the names of the files."""
    for file in draw(options.name, options.output, options.classes):
        print(file)
