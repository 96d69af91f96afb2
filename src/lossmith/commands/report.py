"""``lossmith report STUDY``."""

import argparse
from pathlib import Path

NAME = "report"
HELP = "write the report of a study: one HTML file that needs nothing else"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take a study and a file."""
    parser.add_argument("study", type=Path, metavar="STUDY", help="the folder of a study")
    parser.add_argument("--output", type=Path, metavar="FILE", help="to write to (default: report.html in the study)")


def run(options: argparse.Namespace) -> None:
    """Write the page and print the name of its file."""
    from lossmith.commands.printing.answer import say_what_is_not_sure
    from lossmith.report.study_page import write_report
    from lossmith.studies.study import open_study

    study = open_study(options.study)
    say_what_is_not_sure(study)
    print(write_report(study, options.output))
