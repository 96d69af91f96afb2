"""``lossmith inspect DATA``."""

import argparse
from pathlib import Path
from typing import Any

NAME = "inspect"
HELP = "say how many labels of your data are wrong, and which ones, with a page to look through them"
EPILOG = """examples:
  lossmith inspect reviews.csv --target rating
  lossmith inspect photos/ --rows 5000
  lossmith inspect studies/reviews
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take data, and how networks are trained on it."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.argument_default = argparse.SUPPRESS
    parser.add_argument("data", metavar="DATA", help="a table, images, arrays, the name of a data set, or a study")
    parser.add_argument("--losses", metavar="LIST", help="what networks are trained with (default: ce,gce)")
    parser.add_argument("--model", metavar="NAME", help="such as tabular or small-cnn (default: what suits the data)")
    parser.add_argument("--folds", type=int, metavar="N", help="parts that the rows are divided into (default: 5)")
    parser.add_argument("--epochs", type=int, metavar="N", help="of each training (default: what suits model and rows)")
    parser.add_argument("--workers", type=int, metavar="N", help="processes that train (default: one for each processor)")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="for the page and the tables (default: inspections/NAME)")
    _add_data(parser.add_argument_group("data"))


def _add_data(group: Any) -> None:
    group.add_argument("--target", metavar="COLUMN", help="the column of the labels")
    group.add_argument("--rows", type=int, metavar="N", help="inspect N rows at most, drawn by chance")
    group.add_argument("--seed", type=int, metavar="N", help="of folds, initial weights and batches (default: 0)")
    group.add_argument("--resize", type=int, metavar="PIXELS", help="height and width for images of different sizes")
    group.add_argument("--folder", metavar="FOLDER", help="where data that is known by name can be found")
    group.add_argument("--text", metavar="HOW", help="texts as weighted ngrams, or as words for an lstm")


def run(options: argparse.Namespace) -> None:
    """Inspect, print what was found, and name the files and what to do next."""
    if (Path(options.data) / "study.sqlite").is_file():
        _print_study(options.data)
        return
    from lossmith.report.labels.page import write_inspection
    from lossmith.studies.design.setting_checks import split_list
    from lossmith.studies.labels.inspect_labels import inspect_labels

    given: dict[str, Any] = {name: value for name, value in vars(options).items() if name != "run"}
    output = given.pop("output", None)
    if "losses" in given:
        given["losses"] = split_list(given["losses"])
    given.setdefault("workers", None)
    inspection = inspect_labels(given.pop("data"), **given)
    print(inspection)
    folder = output or Path("inspections") / Path(inspection.data.name).stem
    files = inspection.write(folder)
    page = write_inspection(inspection, folder / "inspect.html")
    print(f"\nPage: {page}\nTables: {', '.join(str(file) for file in files)}")
    target = f" --target {options.target}" if "target" in options else ""
    print(_next(f"{options.data}{target}", inspection))


def _print_study(folder: str) -> None:
    """Print what the predictions of a study say of the labels that its losses are judged by."""
    from lossmith.studies.study import open_study

    found = open_study(folder).judged_by()
    print(f"{folder}: {len(found.rows)} rows were test rows of some replicate. {found.estimate}.")
    print(*filter(None, [found.estimate.caution, f"{found.allows}\n"]), sep="\n")
    print((100 * found.accuracies()).round(1).rename_axis(None).to_string())
    print("\ngiven: accuracy on all test rows, in percent; cleaned: on those whose label is not suspect")
    print(f"\n{found.suspects().round(2).to_string(index=False)}")


def _next(data: str, inspection: Any) -> str:
    """Return the commands that go on with what was found."""
    rate, classes = inspection.estimate.rate, inspection.data.num_classes
    return (
        "Which losses to expect something of, with so many wrong labels:\n"
        f"  lossmith advise --classes {classes} --noise {rate:.2f} --rows {len(inspection.rows)}\n"
        "Which one is best on this data:\n"
        f"  lossmith compare {data} --losses 'ce,gce,forward-correction(ce, rate={rate:.2f})' --noise 0"
    )
