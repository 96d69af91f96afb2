"""``lossmith show LOSS``."""

import argparse

NAME = "show"
HELP = "show one loss, objective or schedule: formula, parameters, when to use it, reference"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take a loss."""
    parser.add_argument(
        "name", metavar="LOSS", help="a loss, objective or schedule, such as gce, '1.0*nce + 20*mae' or cosine-softmax"
    )


def run(options: argparse.Namespace) -> None:
    """Print the loss's documentation."""
    from lossmith.commands.catalogue import description

    print(description(options.name))
