"""The case that showed what was wrong: ``python -m evidence.wine``.

1599 red wines, six qualities. With three learning rates, one trial each and 12 epochs, the search of the first version gave
cross-entropy one rate and its rival another, and called the difference strong evidence. Both versions answer the same question
here, each on five different splits (of the new one: five studies of five splits each).
"""

import pandas as pd

from benchmarks.measure import markdown_table
from evidence.old_protocol import OldVersion
from evidence.studies import NOISE, WHOLE, Command, export, write_settings
from evidence.tables import RED_WINE, made_table
from evidence.verdicts import CLAIMS, evidence_of, verdict_of_p, verdicts

__all__ = ["main"]

RATES, EPOCHS = (0.01, 0.03, 0.1), 12
SPLITS = 5
REPLICATES = 5


def main() -> None:
    """Study the wines with both versions, export all verdicts and print those that claim something."""
    command = Command(__doc__, "wine")
    folder, options = command.options.folder, command.options
    table = made_table(RED_WINE, folder / "tables" / "whole" / f"{RED_WINE}.csv", options.keel, most=2000)
    old, studies, said = OldVersion(options.old_code or folder / "first-version"), [], []
    for split in range(SPLITS):
        seed = REPLICATES * split  # the replicates of a study take the seeds that follow
        chosen = {
            "noise": NOISE,
            "seeds": REPLICATES,
            "rates": RATES,
            "epochs": EPOCHS,
            "seed": seed,
            "train_rows": WHOLE["train_rows"],
            "model": "mlp",
        }
        study = command.study(table, name=f"new-{split}", **chosen)
        if study is not None:
            studies.append(study)
            said.append(verdicts(evidence_of(study)).assign(version="new", split=seed))
        before = folder / command.name / f"old-{split}"
        rates = ",".join(map(str, RATES))
        if not options.no_training:
            old.study(table, before, "--rates", rates, "--search-seeds", "1", "--epochs", str(EPOCHS), "--seed", str(seed))
        claims = pd.DataFrame(old.claims(before)["differences"])
        said.append(claims.assign(verdict=claims["p_holm"].map(verdict_of_p), version="first", split=seed))
        export(
            pd.concat(said)[["version", "split", *said[0].columns.drop(["version", "split"])]], command.results / "verdicts.csv"
        )
        write_settings(studies, command.results / "settings.json", rates=RATES)
    everything = pd.concat(said)
    everything["than ce"] = everything["difference"].gt(0).map({True: "better", False: "worse"})
    counted = pd.crosstab(
        [everything["version"], everything["noise"], everything["than ce"]], everything["verdict"]
    ).reset_index()
    export(counted, command.results / "summary.csv")
    print(markdown_table(list(counted.columns), counted.astype(str).to_numpy().tolist()))
    claimed = everything[everything["verdict"].isin(CLAIMS) & (everything["difference"] > 0)]
    lines = [
        [
            row["version"],
            str(row["split"]),
            row["noise"],
            row["loss"],
            f"{100 * row['difference']:+.1f} points ({100 * row['low']:+.1f} to {100 * row['high']:+.1f})",
            row["verdict"],
        ]
        for _, row in claimed.iterrows()
    ]
    print("\nClaimed to be better than cross-entropy:\n")
    print(markdown_table(["version", "split", "noise", "loss", "difference", "verdict"], lines))


if __name__ == "__main__":
    main()
