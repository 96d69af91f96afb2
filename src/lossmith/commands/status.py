"""``lossmith status STUDY``."""

import argparse
from pathlib import Path

NAME = "status"
HELP = "tell how far a study has come"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take a study."""
    parser.add_argument("study", type=Path, metavar="STUDY", help="the folder of the study")


def run(options: argparse.Namespace) -> None:
    """Print how many runs are finished, and of which losses."""
    from lossmith.studies.study import open_study

    print(open_study(options.study).status())
