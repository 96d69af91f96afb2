"""``lossmith list``."""

import argparse
import shutil

NAME = "list"
HELP = "list every loss, objective and recipe: name, parameters, what it is"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(_: argparse.Namespace) -> None:
    """Print one line for each loss or objective."""
    from lossmith.commands.printing.catalogue import listing

    print(listing(shutil.get_terminal_size((160, 24)).columns))
