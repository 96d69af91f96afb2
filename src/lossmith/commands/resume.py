"""``lossmith resume STUDY``."""

import argparse
from pathlib import Path

from lossmith.commands.compare import add_workplace

NAME = "resume"
HELP = "go on with a study that was stopped"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take a study."""
    parser.add_argument("study", type=Path, metavar="STUDY", help="the folder of the study")
    parser.argument_default = argparse.SUPPRESS
    add_workplace(parser)


def run(options: argparse.Namespace) -> None:
    """Train what is missing and answer."""
    from lossmith.commands.printing.answer import train_and_answer
    from lossmith.studies.compare import resumed
    from lossmith.training.engines.workplace import take_workplace

    workplace, _ = take_workplace(vars(options))
    train_and_answer(resumed(options.study, workplace=workplace))
