"""Does a network hold its own against the best classical models? ``python -m evidence.rivals``.

Every table is studied by the usual protocol, with clean labels and with 20 and 40 % wrong ones: losses, and beside them the
reference models of the study, tuned on the same rows. The network was chosen on ten of the tables; the others say how good it is.
"""

from collections.abc import Iterator

import pandas as pd

from benchmarks.measure import markdown_table
from evidence.studies import WHOLE, Command, export, write_settings
from lossmith.studies import Study

__all__ = ["DEVELOPMENT", "accuracies", "main", "summary"]

LOSSES = ("ce", "gce")
NOISE = (0.0, 0.2, 0.4)
REPLICATES = 3
DEVELOPMENT = frozenset(
    ("sonar", "heart", "vehicle", "german", "phoneme", "red-wine", "movement_libras", "tic-tac-toe", "spambase", "satimage")
)
"""The tables that the network was chosen on."""
_ADDS_NOTHING = "largest class"


def accuracies(study: Study) -> pd.DataFrame:
    """Return the accuracy of every loss and every reference of a study, averaged over its replicates.

    Args:
        study: One whose replicates are all there.

    Returns:
        ``noise``, ``name``, ``kind`` (loss or reference) and ``accuracy``.
    """
    losses = study.results.assign(kind="loss").rename(columns={"loss": "name"})
    references = study.references.assign(kind="reference").rename(columns={"reference": "name"})
    references = references[references["name"] != _ADDS_NOTHING]
    both = pd.concat([frame[["noise", "name", "kind", "accuracy"]] for frame in (losses, references)])
    return both.groupby(["noise", "name", "kind"], sort=False, as_index=False)["accuracy"].mean()


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over tables for everything that was trained, apart for tables of development and others.

    A lead is that over the best single reference: the one that is best on the mean of the same tables, and its standard error is
    over tables.

    Args:
        found: Rows of :func:`accuracies` with the ``table`` they belong to.

    Returns:
        A row for each group of tables, noise and name.
    """
    known = found["table"].isin(DEVELOPMENT)
    groups = {"held out": found[~known], "development": found[known], "all": found}
    rows = [
        row
        for group, frame in groups.items()
        for noise, part in frame.groupby("noise", sort=False)
        for row in _rows(group, str(noise), part)
    ]
    return pd.DataFrame(rows)


def _rows(tables: str, noise: str, part: pd.DataFrame) -> Iterator[dict[str, object]]:
    wide = part.pivot(index="table", columns="name", values="accuracy").dropna(axis=1)
    kinds = part.drop_duplicates("name").set_index("name")["kind"]
    rivals = [name for name in wide if kinds[name] == "reference"]
    best = wide[rivals].mean().idxmax()
    for name in wide.mean().sort_values(ascending=False).index:
        lead = wide[name] - wide[best]
        yield {
            "tables": f"{tables} ({len(wide)})",
            "noise": noise,
            "name": name,
            "accuracy": 100 * wide[name].mean(),
            "lead over the best reference": 100 * lead.mean(),
            "standard error": 100 * lead.std(ddof=1) / len(lead) ** 0.5 if name != best else 0.0,
            "tables ahead": int((lead > 0).sum()),
            "behind": int((lead < 0).sum()),
        }


def main() -> None:
    """Study every table, export accuracies and print means over tables."""
    command = Command(__doc__, "rivals", replicates=REPLICATES)
    studies: list[Study] = []
    found: list[pd.DataFrame] = []
    for table in command.tables():
        study = command.study(table, losses=list(LOSSES), noise=NOISE, seeds=command.options.replicates, **WHOLE)
        if study is None:
            continue
        studies.append(study)
        found.append(accuracies(study).assign(table=table.name))
        export(pd.concat(found)[["table", "noise", "name", "kind", "accuracy"]], command.results / "accuracies.csv")
        write_settings(studies, command.results / "settings.json")
        print(table.name, _line(found[-1]), flush=True)
    means = summary(pd.concat(found))
    export(means, command.results / "summary.csv", digits=2)
    print(markdown_table(list(means.columns), means.round(2).astype(str).to_numpy().tolist()))


def _line(found: pd.DataFrame) -> str:
    clean = found[found["noise"] == found["noise"].iloc[0]]
    return ", ".join(f"{name} {accuracy:.3f}" for name, accuracy in zip(clean["name"], clean["accuracy"], strict=True))


if __name__ == "__main__":
    main()
