"""``lossmith explore``."""

import argparse
from pathlib import Path

NAME = "explore"
HELP = "write a page to explore every loss in a browser, without a network"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take a file."""
    parser.add_argument(
        "--output", type=Path, default=Path("explore.html"), metavar="FILE", help="to write to (default: explore.html)"
    )


def run(options: argparse.Namespace) -> None:
    """Write the page and print its name."""
    try:
        from lossmith.report.explore import write_explorer
    except ModuleNotFoundError as error:
        raise ValueError(f"explore needs {error.name}, which is not installed: pip install 'lossmith[report]'.") from error
    print(write_explorer(options.output))
