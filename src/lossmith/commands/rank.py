"""``lossmith rank STUDY ...``."""

import argparse
from pathlib import Path

NAME = "rank"
HELP = "rank losses over the data sets of several studies: wins, mean rank, Friedman's test, which cannot be told apart"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take studies."""
    parser.add_argument("studies", type=Path, nargs="+", metavar="STUDY", help="folders of studies of the same losses")
    parser.add_argument("--metric", default="accuracy", help="to rank by (default: accuracy)")
    parser.add_argument("--noise", metavar="NAME", help="noise level to rank at (default: the labels as they are)")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw ranks and performance profile: .png, .svg or .pdf")


def run(options: argparse.Namespace) -> None:
    """Print the ranking, and draw it."""
    from lossmith.commands.printing.answer import say_what_is_not_sure
    from lossmith.data import make_noise
    from lossmith.statistics.several_studies import at_noise, joined_results, rank, ranking_text
    from lossmith.statistics.summary import block_means, is_higher_better
    from lossmith.studies.study import open_study

    studies = [open_study(folder) for folder in options.studies]
    for study in studies:
        say_what_is_not_sure(study)
    results, metric = joined_results(studies), options.metric.replace("-", "_")
    baseline, noise = str(results["loss"].iloc[0]), repr(make_noise(options.noise)) if options.noise else None
    ranking = rank(results, metric, baseline, noise=noise)
    print(ranking_text(ranking, baseline, metric))
    if options.figure:
        from lossmith.report.rank_figure import draw_ranking

        blocks = block_means(at_noise(results, noise), metric)
        print(draw_ranking(ranking, blocks, options.figure, higher_is_better=is_higher_better(metric)))
