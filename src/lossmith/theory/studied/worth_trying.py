"""Which losses are worth their time on some data, by what happened on the data most like it."""

from collections.abc import Sequence
from dataclasses import dataclass

from lossmith.objectives.named_objectives import make_objective
from lossmith.theory.studied.loss_map import BASELINE, SAME_SHARE, LossMap
from lossmith.theory.studied.similar_data import LossRecord, SimilarData, Task, similar_data

__all__ = ["Shortlist", "worth_trying"]


@dataclass(frozen=True)
class Shortlist:
    """Losses to compare, and why they are not the usual ones."""

    losses: tuple[str, ...]
    reason: str = ""
    """In a sentence; empty where nothing is known of data like this."""


def worth_trying(studied: LossMap, tasks: Sequence[Task], usual: Sequence[str]) -> Shortlist:
    """Return the usual losses without those that were behind cross-entropy on data like this, and with others that were ahead.

    A loss is left out if the 95 % interval of its mean lead over cross-entropy, over the data sets most like a task, is below 0
    for every task. One that is not usual is taken if that interval is above 0 for one of them.

    Args:
        studied: What happened.
        tasks: What is known of the data, a task for each share of wrong labels.
        usual: The losses that are compared where nothing is known; the first is the baseline and stays.

    Returns:
        The losses, and why.

    >>> from lossmith.theory.studied.loss_map import shipped_map
    >>> worth_trying(shipped_map(), [Task(classes=3, noise=0.2, rows=400, kind="text")], ["ce", "focal"])
    Shortlist(losses=('ce', 'focal'), reason='')
    """
    found = [similar_data(studied, task) for task in tasks]
    known = [each for each in found if each is not None and abs(each.noise - each.task.noise) < SAME_SHARE]
    if not known or len(known) < len(found):  # a loss may be worth its time where nothing is known, as with more wrong labels
        return Shortlist(tuple(usual))
    records = [{record.loss: record for record in each.records} for each in known]
    behind = [loss for loss in usual if all(loss in each and each[loss].high < 0 for each in records)]
    others = [loss for loss in studied.losses if loss not in usual and _is_loss(loss)]
    ahead = [loss for loss in others if any(loss in each and each[loss].low > 0 for each in records)]
    return Shortlist((*(loss for loss in usual if loss not in behind), *ahead), _reason(known, records, behind, ahead))


def _is_loss(name: str) -> bool:
    """Return whether a name of the map is a loss alone; with class weights, which it may have, it is none."""
    try:
        make_objective(name)
    except ValueError:
        return False
    return True


def _reason(known: Sequence[SimilarData], records: Sequence[dict[str, LossRecord]], behind: list[str], ahead: list[str]) -> str:
    where = " and ".join(dict.fromkeys(each.what for each in known))
    if not behind and not ahead:
        return f"none of the usual losses was behind {BASELINE} beyond chance on {where}"
    parts = [f"{loss} is left out, {_points(loss, records)}" for loss in behind]
    parts += [f"{loss} is taken, {_points(loss, records)}" for loss in ahead]
    return f"{'; '.join(parts)} against {BASELINE} on {where}"


def _points(loss: str, records: Sequence[dict[str, LossRecord]]) -> str:
    there = [each[loss] for each in records if loss in each]
    written = [f"{100 * record.difference:+.1f} points ({100 * record.low:+.1f} to {100 * record.high:+.1f})" for record in there]
    return " and ".join(written)
