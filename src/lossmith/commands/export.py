"""``lossmith export STUDY FILE``."""

import argparse
from pathlib import Path

NAME = "export"
HELP = "write the results of a study as CSV, Parquet, LaTeX or Markdown"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take a study and a file whose ending names the form."""
    parser.add_argument("study", type=Path, metavar="STUDY", help="the folder of a study")
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="every run: .csv or .parquet; the table of losses x noise: .tex or .md"
    )
    parser.add_argument("--metric", default="", help="for the table (default: that of the study)")


def run(options: argparse.Namespace) -> None:
    """Write the file and print its name."""
    from lossmith.commands.printing.answer import say_what_is_not_sure
    from lossmith.report.result_tables import export_results
    from lossmith.studies.study import open_study

    study = open_study(options.study)
    say_what_is_not_sure(study)
    print(export_results(study, options.file, options.metric))
