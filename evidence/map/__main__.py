"""Which loss wins where: ``python -m evidence.map``.

The default losses and some others on all tables, texts and images within reach, with 0, 20 and 40 % wrong labels, symmetric and
pair, as ``lossmith compare`` does it: all losses tuned on rows as noisy as those of training, in every replicate anew. About six
hours of two cores in all; every data set is a study of its own, which goes on where it was stopped, and what was exported before
is not studied again. Then ``python -m evidence.map.page`` draws the map, ``python -m evidence.map.leave_out`` measures
advice from it, and ``python -m evidence.map.ship`` puts it into the library.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from evidence.map.sets import MapSet, map_sets
from evidence.papers.paper_table import LONGEST, use_folder
from evidence.studies import be_nice, export, write_settings
from lossmith import compare
from lossmith.studies import Study, open_study
from lossmith.studies.design.settings import LOSSES as DEFAULT_LOSSES
from lossmith.studies.design.settings import USUAL_TRIALS

__all__ = ["cells", "main", "reference_cells"]

LOSSES = (*DEFAULT_LOSSES, "agce", "nce-mae", "ce-el-gradual")
SYMMETRIC, PAIR = ("0", "symmetric(0.2)", "symmetric(0.4)"), ("pair(0.2)", "pair(0.4)")
REPLICATES = 5
COLUMNS = ["data", "kind", "rows", "classes", "noise", "loss", "seed", "accuracy", "learning_rate", "weight_decay"]


def cells(study: Study, of: MapSet) -> pd.DataFrame:
    """Return what a study found: a row for each loss, noise and replicate.

    Args:
        study: Of the set.
        of: The set.

    Returns:
        The set, the noise, the loss, the replicate, accuracy, chosen settings, and whether the run looks untrained.
    """
    found = study.results
    marks = found["untrained"].astype(bool).astype(int)
    return found.assign(**_about(study, of), untrained=marks)[[*COLUMNS, "untrained"]]


def reference_cells(study: Study, of: MapSet) -> pd.DataFrame:
    """Return the accuracy of every classical model under every noise, the mean over replicates."""
    means = study.references.groupby(["reference", "noise"], sort=False)["accuracy"].mean().reset_index()
    return means.assign(data=of.name)[["data", "reference", "noise", "accuracy"]]


def _about(study: Study, of: MapSet) -> dict[str, Any]:
    rows = study.provenance["data"]["rows"]["train"]
    trained = min(rows, study.settings.train_rows or rows)
    return {"data": of.name, "kind": of.kind, "rows": trained, "classes": len(study.classes)}


def _noise(classes: int) -> Sequence[str]:
    """Return what is added: with two classes, pairs are symmetric."""
    return SYMMETRIC if classes == 2 else (*SYMMETRIC, *PAIR)


def _study(of: MapSet, options: argparse.Namespace) -> Study | None:
    """Return the study of a set, trained further where it is unfinished; None where it cannot be, or is not to be, trained."""
    folder = options.folder / "map" / of.folder
    if (folder / "study.sqlite").exists() and not (found := open_study(folder)).unfinished:
        return found
    if options.no_training:
        return None
    own = {"output": folder, "workers": options.workers, "progress": sys.stderr.isatty(), "minutes": LONGEST}
    given = {"seeds": options.replicates, "epochs": options.epochs, "train_rows": options.train_rows, "trials": options.trials}
    settings = {"seeds": REPLICATES, "trials": USUAL_TRIALS, **of.settings, **{name: n for name, n in given.items() if n}}
    try:
        source = of.source(options.folder / "map" / "tables")
        return compare(source, losses=options.losses.split(";"), noise=_noise(_classes(source, of)), **own, **settings)
    except ValueError as error:
        if "is not on this machine" not in str(error):
            raise
        print(error, flush=True)
        return None


def _classes(source: Any, of: MapSet) -> int:
    if of.kind == "table":
        return int(pd.read_csv(source, usecols=["class"])["class"].nunique())
    return 2 if of.name == "election-tweets" else 10  # all that matters is whether there are two


def main() -> None:
    """Study the sets that have not been exported yet, and export each as soon as it is done."""
    options = _options()
    use_folder(options.data)
    if not (options.epochs or options.train_rows):
        be_nice()
    folder = options.results / "map"
    parts = {
        name: [pd.read_csv(folder / f"{name}.csv")] if (folder / f"{name}.csv").is_file() else []
        for name in ("cells", "references")
    }
    done = {data for part in parts["cells"] for data in part["data"]}
    only = options.only.split(";") if options.only else None
    wanted = [each for each in map_sets() if each.kind in options.kinds.split(",") and (only is None or each.name in only)]
    for place, each in enumerate(wanted):
        if each.name in done or (study := _study(each, options)) is None:
            continue
        for name, made in (("cells", cells(study, each)), ("references", reference_cells(study, each))):
            parts[name].append(made)
            export(pd.concat(parts[name]), folder / f"{name}.csv")
        write_settings([study], folder / "settings.json")
        best = parts["cells"][-1].groupby(["noise", "loss"], sort=False)["accuracy"].mean().unstack().idxmax(axis=1)
        print(f"{place + 1} of {len(wanted)}: {each.name}, best {best.to_dict()}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--folder", type=Path, default=Path("studies/evidence"), help="of tables and studies (default: %(default)s)"
    )
    parser.add_argument("--results", type=Path, default=Path(__file__).parents[1] / "results", help="of the exported tables")
    parser.add_argument("--data", type=Path, help="where data sets are, if they are not installed")
    parser.add_argument("--kinds", default="table,text,image", help="of data, separated by commas (default: %(default)s)")
    parser.add_argument("--only", help="names of sets, separated by semicolons (default: all that are on this machine)")
    parser.add_argument("--losses", default=";".join(LOSSES), help="separated by semicolons (default: %(default)s)")
    parser.add_argument("--replicates", type=int, help="other than 5, and 3 for texts and images")
    parser.add_argument("--trials", type=int, help="other than 9, and 6 for texts and images")
    parser.add_argument("--epochs", type=int, help="fewer, for a first look")
    parser.add_argument("--train-rows", type=int, help="fewer, for a first look")
    parser.add_argument("--workers", type=int, help="processes that train (default: one for each processor)")
    parser.add_argument("--no-training", action="store_true", help="only what has been trained already")
    return parser.parse_args()


if __name__ == "__main__":
    main()
