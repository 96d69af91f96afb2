"""``lossmith rank STUDY ...``."""

import argparse
from pathlib import Path

NAME = "rank"
HELP = "rank losses over several studies: wins, mean rank, Friedman's test, which cannot be told apart"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take studies."""
    parser.add_argument("studies", type=Path, nargs="+", metavar="STUDY", help="folders of studies of the same losses")
    parser.add_argument("--metric", default="accuracy", help="to rank by (default: accuracy)")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw ranks and performance profile: .png, .svg or .pdf")


def run(options: argparse.Namespace) -> None:
    """Print the ranking, and draw it."""
    from lossmith.commands.answer import say_if_unfinished
    from lossmith.statistics.several_studies import joined_results, ranking_text
    from lossmith.statistics.summary import block_means, is_higher_better, rank
    from lossmith.studies.study import open_study

    studies = [open_study(folder) for folder in options.studies]
    for study in studies:
        say_if_unfinished(study)
    results, by = joined_results(studies), ("data", "noise")
    ranking = rank(results, options.metric, str(results["loss"].iloc[0]), by=by)
    print(ranking_text(ranking, str(results["loss"].iloc[0]), options.metric))
    if options.figure:
        from lossmith.report.rank_figure import draw_ranking

        blocks = block_means(results, options.metric, by)
        print(draw_ranking(ranking, blocks, options.figure, higher_is_better=is_higher_better(options.metric)))
