"""``lossmith show NAME``."""

import argparse

NAME = "show"
HELP = "show one loss, objective, schedule or recipe: formula, parameters, when to use it, reference"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take a loss."""
    parser.add_argument(
        "name", metavar="NAME", help="a loss, objective, schedule or recipe, such as gce, '1.0*nce + 20*mae' or staats-fashion"
    )


def run(options: argparse.Namespace) -> None:
    """Print the loss's documentation."""
    from lossmith.commands.printing.catalogue import description

    print(description(options.name))
