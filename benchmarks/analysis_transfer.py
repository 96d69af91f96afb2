"""Time of the transfer of frozen features: 10,000 examples, 128 features, 10 classes, a fifth of the labels random."""

import time

import numpy as np

from lossmith.analysis import transfer


def main() -> None:
    """Print what it takes."""
    random = np.random.default_rng(0)
    rows, columns, classes = 12_000, 128, 10
    labels = random.integers(classes, size=rows)
    mixing = random.normal(size=(columns, columns)) / np.sqrt(columns)
    features = 0.4 * random.normal(size=(classes, columns))[labels] + random.normal(size=(rows, columns)) @ mixing
    given = np.where(random.random(rows) < 0.2, random.integers(classes, size=rows), labels)
    train, test = slice(0, 10_000), slice(10_000, rows)
    wall, processor = time.perf_counter(), time.process_time()
    result = transfer(np.maximum(features[train], 0), given[train], np.maximum(features[test], 0), given[test])
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(f"accuracy {result.accuracy:.3f} at strength {result.strength:.3g}, converged {result.converged}")
    print(f"{wall:.1f} s, {processor:.1f} s of one processor")


if __name__ == "__main__":
    main()
