"""Put the map into the library, for ``lossmith advise``: ``python -m evidence.map.ship``, after ``evidence.map.leave_out``."""

import argparse
import json
from pathlib import Path
from typing import Any

import pandas as pd

from evidence.map.means import map_means, uneven_means
from lossmith.theory.studied.loss_map import COLUMNS, FILE, LossMap

__all__ = ["write_map"]


def write_map(means: pd.DataFrame, file: Path, **about: Any) -> LossMap:
    """Write a map as the library reads it.

    Args:
        means: A row for each set, noise and loss; with the imbalance of sets that were judged by balanced accuracy, if any.
        file: Where it goes.
        **about: What is known of the map as a whole.

    Returns:
        The map, read again.
    """
    text = means.reindex(columns=list(COLUMNS)).to_csv(index=False, float_format="%.4g")
    file.write_text(f"#{json.dumps(about)}\n{text}", encoding="utf-8")
    return LossMap.read(file)


def main() -> None:
    """Write the map with the number of neighbours that was measured, if it was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path(__file__).parents[1] / "results", help="of the exported tables")
    parser.add_argument("--file", type=Path, default=FILE, help="of the library (default: its own)")
    options = parser.parse_args()
    means, protocol = map_means(options.results)
    means = pd.concat([means, uneven_means(options.results)])
    measured = options.results / "map" / "leave_out.json"
    found = json.loads(measured.read_text()) if measured.is_file() else {}
    written = write_map(means, options.file, protocol=protocol, neighbours=found.get("neighbours"))
    print(f"{options.file}: {len(written.sets)} data sets, {len(written.losses)} losses, {options.file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
