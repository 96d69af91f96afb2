"""``lossmith resume STUDY``."""

import argparse
from pathlib import Path

NAME = "resume"
HELP = "go on with a study that was stopped"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take a study."""
    parser.add_argument("study", type=Path, metavar="STUDY", help="the folder of the study")
    parser.add_argument("--workers", type=int, metavar="N", help="processes that train (default: one for each processor)")


def run(options: argparse.Namespace) -> None:
    """Train what is missing and answer."""
    from lossmith.commands.answer import train_and_answer
    from lossmith.studies.compare import resumed

    train_and_answer(resumed(options.study, workers=options.workers))
