"""How often is a difference claimed where there is none? ``python -m evidence.same_loss``.

Cross-entropy is compared with itself: a twin with the same split and the same wrong labels in every replicate, but with initial
weights, batches and trials of its own. Every five replicates of a table are a study. Whatever they call evidence is false.
Tables whose verdicts were exported before are not studied again.
"""

import pandas as pd
from scipy.stats import ttest_rel

from benchmarks.measure import markdown_table
from evidence.studies import NOISE, WHOLE, Command, export, share, write_settings
from evidence.verdicts import DEPENDS, EACH, EVIDENCE, STRONG, evidence_of, parts_of, verdicts
from lossmith.statistics.evidence import Evidence

__all__ = ["main", "studies_of_five", "summary"]

TWIN = "twin"


def studies_of_five(found: Evidence) -> pd.DataFrame:
    """Return the verdicts of every five replicates, with the p-value of the t-test that takes them for independent.

    Args:
        found: A study of the two.

    Returns:
        A row for each five replicates and noise.
    """
    said = []
    for name, part in parts_of(found).items():
        plain = part.results.groupby("noise", sort=False).apply(_plain_p, include_groups=False)
        said.append(verdicts(part).assign(replicates=name, plain_p=lambda said, p=plain: said["noise"].map(p)))
    return pd.concat(said, ignore_index=True)


def _plain_p(results: pd.DataFrame) -> float:
    wide = results.pivot(index="seed", columns="loss", values="accuracy")
    same = (wide[TWIN] == wide["ce"]).all()
    return 1.0 if same else float(ttest_rel(wide[TWIN], wide["ce"]).pvalue)


def summary(said: pd.DataFrame) -> pd.DataFrame:
    """Return how many of the studies claimed something, by noise and in all, with binomial intervals.

    Args:
        said: Rows of :func:`studies_of_five`.

    Returns:
        A row for each noise, and one for both.
    """
    rows = {}
    for noise, part in [*said.groupby("noise", sort=False), ("all", said)]:
        strong, evidence = (part["verdict"] == STRONG).sum(), part["verdict"].isin([STRONG, EVIDENCE]).sum()
        rows[noise] = {
            "studies": str(len(part)),
            "evidence": share(int(evidence), len(part)),
            "of it strong": share(int(strong), len(part)),
            "depends on the setting": str((part["verdict"] == DEPENDS).sum()),
            "p < .05, before settings are checked": share(int((part["p_holm"] < 0.05).sum()), len(part)),
            "p < .05 by a t-test without correction": share(int((part["plain_p"] < 0.05).sum()), len(part)),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("noise").reset_index()


def main() -> None:
    """Study every table, export all verdicts and print how many are false."""
    command = Command(__doc__, "same_loss", replicates=EACH)
    studies, said = [], command.exported("verdicts.csv")
    for table in command.tables_beyond(said):
        losses = {"ce": "ce", TWIN: "ce"}
        study = command.study(table, losses=losses, noise=NOISE, seeds=command.options.replicates, draws="own", **WHOLE)
        if study is None:
            continue
        studies.append(study)
        said.append(studies_of_five(evidence_of(study)).assign(table=table.name))
        export(pd.concat(said)[["table", "noise", "replicates", *_NUMBERS, "verdict"]], command.results / "verdicts.csv")
        write_settings(studies, command.results / "settings.json", draws="own")
        print(table.name, said[-1]["verdict"].value_counts().to_dict(), flush=True)
    counted = summary(pd.concat(said))
    export(counted, command.results / "summary.csv")
    print(markdown_table(list(counted.columns), counted.to_numpy().tolist()))


_NUMBERS = ["difference", "low", "high", "p_holm", "plain_p"]

if __name__ == "__main__":
    main()
