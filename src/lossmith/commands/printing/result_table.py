"""The table that ``compare`` prints: losses, and below them the classical models."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from lossmith.studies.study import Study

__all__ = ["result_table"]

UNTRAINED = " *"


def result_table(study: "Study") -> str:
    """Return mean and standard error of every loss and reference under every noise; what looks untrained has a star.

    Args:
        study: One that has results.

    Returns:
        A heading, the table, and what a star stands for where there is one.
    """
    import pandas as pd

    from lossmith.statistics.wording import capitalised, spoken

    losses, references = study.table(study.metric).fillna(""), _references(study)
    rows = _starred(study, losses)
    if len(references):
        empty = pd.DataFrame("", index=["references:"], columns=losses.columns)
        rows = pd.concat([rows, empty, references.reindex(columns=losses.columns).fillna("")])
    what = capitalised(spoken(study.metric))
    heading = f"{what} on test rows, mean +- standard error over the replicates, by noise in training"
    lines = [heading, rows.rename_axis(index=None, columns=None).to_string()]
    if any(str(cell).endswith(UNTRAINED) for cell in rows.to_numpy().flat):
        lines.append("* looks untrained in half of the replicates or more")
    return "\n".join(lines)


def _starred(study: "Study", table: "pd.DataFrame") -> "pd.DataFrame":
    from lossmith.statistics.untrained import untrained_losses

    table = table.astype(str)
    for _, row in untrained_losses(study.results).iterrows():
        table.loc[row["loss"], row["noise"]] += UNTRAINED
    return table


def _references(study: "Study") -> "pd.DataFrame":
    from lossmith.studies.storage.run_frames import mean_and_error

    known = study.references.dropna(subset=study.metric)
    grouped = known.groupby(["reference", "noise"], sort=False)[study.metric]
    return grouped.agg(mean_and_error).unstack("noise").reindex(index=known["reference"].unique())
