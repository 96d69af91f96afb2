"""The answer of a study: all that it knows, given to the statistics that judge it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pandas as pd

from lossmith.statistics.caveats import guessing
from lossmith.statistics.experience import Elsewhere, Experience
from lossmith.statistics.recommendation import Recommendation, recommend
from lossmith.statistics.untrained import gave_something
from lossmith.statistics.wording import percent
from lossmith.studies.design.settings import CLEAN, Settings
from lossmith.studies.luck_of_rows import StudyOfRows, luck_of_rows
from lossmith.theory.studied.loss_map import BASELINE, KINDS, SAME_SHARE, shipped_map

__all__ = ["AnsweringStudy", "answer_of"]

STUDIED_NOISE = (CLEAN, "symmetric")


class AnsweringStudy(StudyOfRows, Protocol):
    """A study, as far as its answer needs one."""

    settings: Settings

    @property
    def trials(self) -> pd.DataFrame: ...  # noqa: D102 - as Study has them
    @property
    def references(self) -> pd.DataFrame: ...  # noqa: D102
    @property
    def validation_rows(self) -> int: ...  # noqa: D102
    @property
    def classes(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def provenance(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def caution(self) -> str: ...  # noqa: D102
    @property
    def unfinished(self) -> str: ...  # noqa: D102


def answer_of(study: AnsweringStudy) -> Recommendation:
    """Return which loss to train with, how sure that is, and on what evidence.

    Args:
        study: One that has results.

    Returns:
        The recommendation.

    Raises:
        ValueError: If no cell has finished.
    """
    results = study.results
    labels = _first_labels(study)
    found = recommend(
        results,
        baseline=study.settings.losses[0],
        metric=study.metric,
        trials=study.trials if study.settings.searched else None,
        references=study.references,
        overlap=study.overlap,
        luck_of_rows=luck_of_rows(study),
        validation_rows=study.validation_rows,
        class_shares=(np.bincount(labels, minlength=len(study.classes)) / max(1, len(labels))).tolist(),
        noisy_labels=_share_of_wrong_labels(study),
        experience=_experience(study),
    )
    said = [*guessing(results, labels, study.metric), *([study.caution] if study.caution else [])]
    return replace(found, evidence=(*found.evidence, *said), unfinished=study.unfinished)


def _first_labels(study: AnsweringStudy) -> np.ndarray:
    """Return the labels of the test rows of the first replicate that has any: one in which every trial failed has none."""
    trained = gave_something(study.results)
    return np.empty(0, int) if trained.empty else study.test_labels(int(trained["seed"].min()))


def _experience(study: AnsweringStudy) -> Experience | None:
    """Return what happened on other data of the kind, tuned alike; None where nothing comparable is known."""
    about, data = study.provenance, study.provenance["data"]
    kind = str(data.get("kind", ""))
    if study.metric != "accuracy" or study.settings.losses[0] != BASELINE or about["tune_on"] != "own" or kind not in KINDS:
        return None
    others = shipped_map().beside(data["name"])

    def elsewhere(noise: str, share: float) -> Elsewhere | None:
        known = next((level for level in others.noises if abs(level - share) < SAME_SHARE), None)
        if known is None or not noise.startswith(STUDIED_NOISE):
            return None
        found = others.differences(kind, known)
        wrong = f"{percent(known)} wrong labels" if known else "labels as they are"
        return Elsewhere(f"{max(map(len, found.values()), default=0)} other {kind}s with {wrong}", found)

    return elsewhere


def _share_of_wrong_labels(study: AnsweringStudy) -> float | None:
    """Return how many labels of the data themselves are wrong, where a column knows; None where nothing is known."""
    results = study.results
    own = results.loc[results["noise"] == CLEAN, "noise_rate"]
    return float(own.mean()) if len(own) and own.mean() > 0 else None
