"""``lossmith analyse STUDY``."""

import argparse
from pathlib import Path

NAME = "analyse"
HELP = "measure what the losses of a finished study do to calibration, predictions, features and robustness"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take a study, and how much of it. What is not given has the default of the analysis."""
    parser.add_argument("study", type=Path, metavar="STUDY", help="the folder of a finished study")
    parser.argument_default = argparse.SUPPRESS
    parser.add_argument("--noise", metavar="LIST", help="noise levels (default: the first, and the one with most wrong labels)")
    parser.add_argument(
        "--transfer-to",
        metavar="LIST",
        help="other data with inputs like the study's, to learn from its features",
    )
    parser.add_argument("--seeds", type=int, metavar="N", help="runs of each loss whose models run again (default: 2)")
    parser.add_argument("--rows", type=int, metavar="N", help="test rows that models run on again (default: 500)")
    parser.add_argument("--device", metavar="NAME", help="that models run on: auto (default), cpu, cuda, cuda:1 or mps")
    parser.add_argument("--no-report", action="store_true", help="write no report")


def run(options: argparse.Namespace) -> None:
    """Analyse, print the tables, and name the report."""
    from lossmith.commands.printing.answer import analyse_and_print
    from lossmith.studies.design.setting_checks import split_list
    from lossmith.studies.study import open_study

    given = {name: value for name, value in vars(options).items() if name not in ("run", "study", "no_report")}
    given |= {name: split_list(given[name]) for name in ("noise", "transfer_to") if name in given}
    study = open_study(options.study)
    analyse_and_print(study, **given)
    if not getattr(options, "no_report", False):
        from lossmith.report import write_report

        print(f"Report: {write_report(study)}")
