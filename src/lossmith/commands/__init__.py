"""The commands of ``lossmith``, one a module. They import torch only when they run, so that help is there at once."""

import argparse
from typing import Protocol, cast

from lossmith.commands import (
    advise,
    analyse,
    compare,
    completion,
    explore,
    export,
    figure,
    inspect_labels,
    list_losses,
    rank,
    report,
    resume,
    show,
    status,
)

__all__ = ["COMMANDS", "Command"]


class Command(Protocol):
    """What the module of a command holds."""

    NAME: str
    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's arguments."""

    def run(self, options: argparse.Namespace) -> None:
        """Do it. Every error becomes one line on the standard error stream; a ValueError or OSError has exit code 2."""


COMMANDS = cast(
    "tuple[Command, ...]",
    (
        compare,
        inspect_labels,
        resume,
        status,
        analyse,
        report,
        export,
        rank,
        advise,
        list_losses,
        show,
        figure,
        explore,
        completion,
    ),
)
"""Every command, in the order in which help names them."""
