"""``lossmith show LOSS``."""

import argparse

NAME = "show"
HELP = "show one loss: formula, parameters, when to use it, reference"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take a loss."""
    parser.add_argument("name", metavar="LOSS", help="a loss, such as gce, gce@1000, or '1.0*nce + 20*mae'")


def run(options: argparse.Namespace) -> None:
    """Print the loss's documentation."""
    from lossmith.catalogue import description

    print(description(options.name))
