"""Texts: losses and tuned models of scikit-learn on the same rows, ``python -m evidence.texts``.

Every set is a study as ``lossmith compare`` makes it, with the model that texts have by default. Its references see the same
TF-IDF, the same labels and the same validation rows. A study that was stopped goes on; a set that is not on this machine is left
out, with a line that says how to get it.
"""

import argparse
from pathlib import Path

import pandas as pd

from benchmarks.measure import markdown_table
from evidence.studies import be_nice, export, write_settings
from lossmith import compare
from lossmith.studies import Study, open_study

__all__ = ["main", "side_by_side"]

SETS = ("bbc-news", "election-tweets", "reuters", "newsgroups")
LOSSES = ("ce", "label-smoothing", "sce", "gce")
NOISE = (0.0, 0.2, 0.4)
GUESS = "largest class"
LONGEST = 24 * 60.0  # minutes


def side_by_side(study: Study) -> pd.DataFrame:
    """Return the mean accuracy of each loss and reference under each noise, with its deviation over replicates.

    Args:
        study: One of texts.

    Returns:
        A row for each model and noise.
    """
    losses = study.results.rename(columns={"loss": "trained by"})
    references = study.references.rename(columns={"reference": "trained by"})
    both = pd.concat([losses, references[references["trained by"] != GUESS]])
    found = both.groupby(["trained by", "noise"], sort=False)["accuracy"].agg(["mean", "std", "count"])
    return found.reset_index().rename(columns={"std": "deviation", "count": "replicates"})


def _study(name: str, options: argparse.Namespace) -> Study | None:
    """Return the study of a set, trained further where it is unfinished; None where its texts are not on this machine."""
    folder = options.folder / "texts" / name
    if folder.exists() and not (found := open_study(folder)).unfinished:
        return found
    if options.no_training:
        return None
    be_nice()
    # With time for everything, a slow or busy machine does not make a study smaller.
    own = {"seeds": options.replicates, "trials": options.trials, "train_rows": options.train_rows, "minutes": LONGEST}
    reading = {"folder": str(options.texts)} if options.texts else {}
    losses = options.losses.split(",")
    try:
        return compare(name, losses=losses, noise=NOISE, output=folder, workers=options.workers, progress=False, **own, **reading)
    except ValueError as error:
        if "is not on this machine" not in str(error):
            raise
        print(error)
        return None


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("studies/evidence"), help="of the studies (default: %(default)s)")
    parser.add_argument(
        "--results", type=Path, default=Path(__file__).parent / "results" / "texts", help="of the exported tables"
    )
    parser.add_argument("--texts", type=Path, help="where the packages of the texts are, if they are not installed")
    parser.add_argument("--only", default=",".join(SETS), help="sets, separated by commas (default: %(default)s)")
    parser.add_argument("--losses", default=",".join(LOSSES), help="the first is the baseline (default: %(default)s)")
    parser.add_argument("--replicates", type=int, default=3, help="of each study (default: %(default)s)")
    parser.add_argument("--trials", type=int, default=9, help="of each loss and noise (default: %(default)s)")
    parser.add_argument("--train-rows", type=int, default=10_000, help="of each replicate at most (default: %(default)s)")
    parser.add_argument("--workers", type=int, help="processes that train (default: one for each processor)")
    parser.add_argument("--no-training", action="store_true", help="only what has been trained already")
    return parser.parse_args()


def main() -> None:
    """Study the sets, export all means and print them, a column for each noise."""
    options, studies, tables = _options(), [], []
    for name in options.only.split(","):
        study = _study(name, options)
        if study is not None:
            studies.append(study)
            tables.append(side_by_side(study).assign(texts=name))
            export(pd.concat(tables), options.results / "accuracy.csv")
            write_settings(studies, options.results / "settings.json")
    if not tables:
        return
    found = pd.concat(tables)
    found["percent"] = [f"{100 * mean:.1f}" for mean in found["mean"]]
    wide = found.pivot(index=["texts", "trained by"], columns="noise", values="percent").reset_index()
    print(markdown_table(list(wide.columns), wide.to_numpy().tolist()))


if __name__ == "__main__":
    main()
