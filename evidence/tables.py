"""Small real tables, as files that every study here reads: ``python -m evidence.tables``.

Tables of more than two thousand rows are cut to two thousand, every class in the same proportion, once and for all: whatever is
compared sees the same rows. A table that is not on this machine is left out, with a line that says how to get it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measure import markdown_table
from evidence.red_wine import red_wine
from lossmith.data.sources.known_sets import read_known_set

__all__ = ["MORE", "MOST_ROWS", "NAMES", "RED_WINE", "TARGET", "Table", "made_table", "made_tables"]

MOST_ROWS = 2000
TARGET = "class"
KEEL = (
    *(
        "tae",
        "hayes-roth",
        "sonar",
        "housevotes",
        "heart",
        "breast",
        "haberman",
        "bupa",
        "ionosphere",
        "movement_libras",
        "bands",
    ),
    *("monk-2", "saheart", "led7digit", "crx", "wisconsin", "australian", "pima", "mammographic", "vehicle", "tic-tac-toe"),
    *("vowel", "german", "contraceptive", "yeast1", "titanic", "segment", "splice", "chess", "spambase", "banana", "phoneme"),
    *("texture", "optdigits", "satimage", "marketing", "ring", "twonorm", "penbased", "magic"),
)
RED_WINE = "red-wine"
NAMES = ("iris", "wine", "breast-cancer", "digits", RED_WINE, *(f"keel:{name}" for name in KEEL))
"""The tables by the name that lossmith knows them by; red wine is put together from four of them."""
MORE = (
    *(
        f"keel:{name}"
        for name in ("letter", "mushroom", "abalone9-18", "car-good", "cleveland-0_vs_4", "dermatology-6", "ecoli1")
    ),
    *(
        f"keel:{name}"
        for name in ("flare-F", "kr-vs-k-zero_vs_eight", "new-thyroid1", "page-blocks0", "shuttle-c0-vs-c4", "yeast-2_vs_4")
    ),
    *(f"mlbench:{name}" for name in ("Glass", "Soybean", "Zoo", "DNA", "Shuttle")),
)
"""Further ones, where many are wanted: of the sets that others were made from, one each."""


@dataclass(frozen=True)
class Table:
    """A table that is ready to be studied."""

    name: str
    file: Path
    rows: int
    features: int
    classes: int
    largest: float
    """The share of the largest class."""
    of: int
    """How many rows it was drawn from."""


def made_tables(
    folder: Path, keel: Path | None = None, names: tuple[str, ...] = NAMES, most: int = MOST_ROWS
) -> tuple[list[Table], list[str]]:
    """Write the tables that are on this machine as files, smallest first, and say what is missing.

    Args:
        folder: Where the files go. What is there already is not written again.
        keel: The folder that holds the package of the KEEL sets, where it is not installed.
        names: The tables wanted, out of :data:`NAMES`.
        most: How many rows a table may have.

    Returns:
        The tables, and a line for each that is missing.
    """
    found, missing = [], []
    for name in names:
        try:
            found.append(made_table(name, file_of(name, folder), keel, most))
        except ValueError as error:
            missing.append(str(error))
    return sorted(found, key=lambda table: table.rows), missing


def file_of(name: str, folder: Path) -> Path:
    """Return the file that a table is written to.

    >>> file_of("keel:tae", Path("tables")).as_posix(), file_of("mlbench:Zoo", Path("tables")).as_posix()
    ('tables/tae.csv', 'tables/mlbench-Zoo.csv')
    """
    return folder / f"{name.removeprefix('keel:').replace(':', '-')}.csv"


def made_table(name: str, file: Path, keel: Path | None = None, most: int = MOST_ROWS) -> Table:
    """Write one table as a file, unless it is there already.

    Args:
        name: One of :data:`NAMES`.
        file: Where it goes.
        keel: The folder that holds the package of the KEEL sets, where it is not installed.
        most: How many rows it may have.

    Returns:
        The table.

    Raises:
        ValueError: If it is not on this machine; the line says how to get it.
    """
    whole = _frame(name, keel)
    frame = _at_most(whole, most)
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        frame.to_csv(file, index=False)
    shares = frame[TARGET].value_counts(normalize=True)
    return Table(file.stem, file, len(frame), frame.shape[1] - 1, len(shares), float(shares.max()), len(whole))


def _frame(name: str, keel: Path | None) -> pd.DataFrame:
    """Return features and, last, the class in words, so that no reader takes it for a number."""
    if name == RED_WINE:
        return red_wine(keel)
    examples = read_known_set(name, keel)
    inputs, labels = examples.inputs, np.asarray(examples.labels)
    if not isinstance(inputs, pd.DataFrame):
        flat = inputs.reshape(len(inputs), -1)
        inputs = pd.DataFrame(flat, columns=[f"column{place + 1}" for place in range(flat.shape[1])])
    return inputs.assign(**{TARGET: [f"c{label}".strip() for label in labels]})


def _at_most(frame: pd.DataFrame, rows: int) -> pd.DataFrame:
    if len(frame) <= rows:
        return frame
    kept = [part.sample(round(len(part) * rows / len(frame)), random_state=0) for _, part in frame.groupby(TARGET)]
    return pd.concat(kept).sort_index()


def _lines(tables: list[Table]) -> Iterator[list[str]]:
    for table in tables:
        drawn = f"{table.rows} of {table.of}" if table.rows < table.of else str(table.rows)
        yield [table.name, drawn, str(table.features), str(table.classes), f"{table.largest:.0%}"]


def main() -> None:
    """Write the tables, export and print what they are."""
    from evidence.studies import Command, export

    command = Command(__doc__, "tables")
    header = ["table", "rows", "features", "classes", "largest class"]
    lines = list(_lines(command.tables()))
    export(pd.DataFrame(lines, columns=header), command.results / "tables.csv")
    print(markdown_table(header, lines))


if __name__ == "__main__":
    main()
