"""How much will you tune? The answer after few trials, in words; after all of them it is that of the study.

Numbers of trials beyond half of those that a study has are left to its own answer. What the others say is corrected for their
number as for that of the losses, so that looking at tuning adds no more false alarms than looking at losses does.
"""

from itertools import groupby
from typing import NamedTuple

import pandas as pd

from lossmith.statistics.budgets import BUDGETS, plateaus, tuning_differences
from lossmith.statistics.evidence import LEVEL, Evidence, gains
from lossmith.statistics.verdicts import NO_DIFFERENCE, NONE_BETTER
from lossmith.statistics.wording import budget_words, interval, number_word, percent, sentence

__all__ = ["tuning_lines"]

_ELSEWHERE = 'see "What if labels were wrong?"'
_WIDER, _BY = 2.0, 0.2  # ratio and difference of shares from which on plateaus are worth mentioning


def tuning_lines(evidence: Evidence, headline: str, loss: str) -> list[str]:
    """Return sentences about what tuning does to the answer.

    Args:
        evidence: Results and trials.
        headline: The noise level that the recommendation is about, which always has a sentence; others have one where a
            loss is better after few trials.
        loss: What is recommended.

    Returns:
        The sentences; none where trials have no weights.
    """
    if evidence.trials is None or evidence.trials.empty:
        return []
    tried = _number_tried(evidence.trials)
    budgets = [budget for budget in BUDGETS if 2 * budget <= tried]
    if not budgets:
        return []
    level = LEVEL / len(budgets)  # one promise for all of them together
    found = tuning_differences(
        evidence.trials,
        evidence.baseline,
        evidence.metric,
        budgets,
        confidence=1 - level,
        overlap=evidence.overlap,
        luck_of_rows=evidence.luck_of_rows,
    )
    several = found["noise"].nunique() > 1
    lines = []
    for noise, rows in found.groupby("noise", sort=False):
        trained = rows[rows["loss"].isin(evidence.sound(str(noise)))]
        answers = _answers(trained, evidence, level)
        claims = any(NO_DIFFERENCE not in answer and NONE_BETTER not in answer for answer in answers)
        if answers and (noise == headline or claims):
            rest = f"with all {number_word(tried)}: {'the answer above' if noise == headline else _ELSEWHERE}"
            parts = [f"{_title(str(noise))}, {answers[0]}" if several else answers[0], *answers[1:], rest]
            lines.append(sentence("; ".join(parts)))
    return [*lines, *_plateaus(evidence, headline, loss)]


def _number_tried(trials: pd.DataFrame) -> int:
    """Return how many trials a cell has, those included that another stands for."""
    tried = trials.groupby(["loss", "noise", "seed"])["weight"].sum()
    return round(float(tried.median())) if len(tried) else 0


def _answers(rows: pd.DataFrame, evidence: Evidence, level: float) -> list[str]:
    """Return the answer for every range of budgets that has the same."""
    by_budget = [
        _answer(int(budget), part.assign(gain=gains(part, evidence.metric)), evidence, level)
        for budget, part in rows[rows["p_holm"].notna()].groupby("trials")
    ]
    answers = []
    for loss, same in groupby(by_budget, key=lambda answer: answer.loss):
        of_range = list(same)
        budgets = [answer.trials for answer in of_range]
        words = _range_words(of_range) if loss else _none_words(of_range)
        answers.append(f"{budget_words(budgets)}: {words}")
    return answers


class _Answer(NamedTuple):
    """What is best after so many trials."""

    trials: int
    loss: str
    """Empty where no loss is better than the baseline, nor the baseline better than all."""
    words: str


def _answer(trials: int, rows: pd.DataFrame, evidence: Evidence, level: float) -> _Answer:
    told = rows["p_holm"] < level
    better = rows[told & (rows["gain"] > 0)]
    if len(better):
        row = better.loc[better["gain"].idxmax()]
        return _Answer(trials, str(row["loss"]), interval(row, evidence.metric))
    if told.all():
        return _Answer(trials, evidence.baseline, "")
    return _Answer(trials, "", NONE_BETTER if told.any() else NO_DIFFERENCE)


def _none_words(answers: list[_Answer]) -> str:
    return NONE_BETTER if any(answer.words == NONE_BETTER for answer in answers) else NO_DIFFERENCE


def _range_words(answers: list[_Answer]) -> str:
    """Return the answer of a range of budgets, with the numbers of its first and last."""
    first, last = answers[0], answers[-1]
    if not first.words:
        return f"{first.loss}, better than every other loss"
    if len(answers) == 1:
        return f"{first.loss}, {first.words}"
    return f"{first.loss}, {first.words} at first, {last.words} after {number_word(last.trials)}"


def _plateaus(evidence: Evidence, noise: str, loss: str) -> list[str]:
    """Tell how wide the plateau of good settings is, where the recommended loss and another differ much."""
    if evidence.trials is None or not evidence.validation_rows:
        return []
    found = plateaus(evidence.trials, evidence.validation_rows, evidence.metric)
    widths = found[(found["noise"] == noise) & found["loss"].isin(evidence.sound(noise))].set_index("loss")["share"]
    if loss not in widths or len(widths) < 2:
        return []
    other = evidence.baseline if loss != evidence.baseline else str(widths.drop(loss).idxmax())
    if other not in widths:
        return []
    wide, narrow = sorted((loss, other), key=lambda name: -widths[name])
    if widths[wide] < _WIDER * widths[narrow] or widths[wide] - widths[narrow] < _BY:
        return []
    shares = f"{percent(widths[wide])} of the settings tried, {narrow} with {percent(widths[narrow])}"
    return [f"{wide} is near its best with {shares}: it needs less tuning."]


def _title(noise: str) -> str:
    return "labels as they are" if noise == "none" else f"at {noise}"
