"""Tables of papers on real data: ``python -m evidence.papers`` lists them, ``python -m evidence.papers NAME`` makes one.

Each can be stopped and goes on where it was. Results go to ``evidence/results/papers/NAME``, in both conventions where labels
are wrong: settings chosen on clean validation rows, as papers choose, and on rows as noisy as those of training.
"""

import argparse
import json
from pathlib import Path

import pandas as pd

from benchmarks.measure import markdown_table
from evidence.papers import amid, battash, berrada, kornblith, staats
from evidence.papers.paper_table import PaperTable, Workshop, use_folder

__all__ = ["TABLES", "main"]

TABLES: dict[str, PaperTable] = {
    table.name: table for paper in (amid, staats, battash, kornblith, berrada) for table in paper.TABLES
}


def state(results: Path) -> str:
    """Return whether a table is made: yes, smaller than it should be, in part, or not at all.

    Args:
        results: The folder of its results.

    Returns:
        A few words.
    """
    file = results / "settings.json"
    if not file.is_file():
        return "not run yet"
    about = json.loads(file.read_text())
    if about["smaller"]:
        return "a trial in small: " + ", ".join(f"{name} {value}" for name, value in about["smaller"].items())
    return "done" if about.get("finished") else "begun"


def main() -> None:
    """List the tables, or make those that are named and print their means."""
    options = _options()
    use_folder(options.data)
    workshop = Workshop(options)
    for name in options.name:
        print(f"{name}: {TABLES[name].about}; about {TABLES[name].minutes} minutes of two quiet cores", flush=True)
        workshop.finish(TABLES[name])
        for file in sorted(workshop.results(TABLES[name]).glob("*.csv")):
            _print_means(pd.read_csv(file), file.stem)
    if not options.name:
        lines = [[each.name, each.about, str(each.minutes), state(workshop.results(each))] for each in TABLES.values()]
        print(markdown_table(["table", "what", "minutes", "state"], lines))


def _print_means(frame: pd.DataFrame, name: str) -> None:
    """Print a table as it is, or its means over replicates."""
    print(f"\n{name}\n")
    numbers = frame.select_dtypes("number").columns
    keys = list(frame.columns.drop(numbers))
    if "seed" in frame:
        keys += [name for name in ("classes", "share", "held_out") if name in frame]
        means = [name for name in numbers if name not in ("seed", "learning_rate", *keys)]
        frame = frame.groupby(keys, sort=False)[means].mean().reset_index()
    print(frame.round(4).to_string(index=False))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", metavar="NAME", help="tables to make (default: list them)")
    parser.add_argument("--folder", type=Path, default=Path("studies/evidence"), help="of the studies (default: %(default)s)")
    parser.add_argument("--results", type=Path, default=Path(__file__).parents[1] / "results", help="of the exported tables")
    parser.add_argument("--data", type=Path, help="where data sets are, if they are not installed")
    parser.add_argument("--encoder", type=Path, help="the folder of a pretrained encoder (default: the package of MiniLM)")
    parser.add_argument("--only", help="pieces whose names begin so, separated by semicolons (default: all)")
    parser.add_argument("--losses", help="some of the losses, separated by semicolons (default: all)")
    parser.add_argument("--replicates", type=int, help="other than the table has")
    parser.add_argument("--epochs", type=int, help="fewer, for a first look")
    parser.add_argument("--train-rows", type=int, help="fewer, for a first look")
    parser.add_argument("--workers", type=int, help="processes that train (default: one for each processor)")
    parser.add_argument("--no-training", action="store_true", help="only what has been trained already")
    options = parser.parse_args()
    for name in options.name:
        if name not in TABLES:
            parser.error(f"NAME must be one of {', '.join(TABLES)}, got {name!r}.")
    return options


if __name__ == "__main__":
    main()
