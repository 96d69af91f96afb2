"""Advice, written for people."""

import math

from lossmith.theory.advice import Advice, Candidate
from lossmith.theory.studied.loss_map import BASELINE, shipped_map
from lossmith.theory.studied.similar_data import LossRecord, SimilarData

__all__ = ["studied_lines", "table"]

MOST_SHOWN = 3
HEADINGS = ("loss", "overlap", "verdict", "use", "overlap", "bound", "symmetric", "slope", "wrong")


def table(advice: Advice) -> str:
    """Return a line for each loss, the recommendations, and what the columns mean."""
    rows = [HEADINGS, *(_cells(candidate) for candidate in advice.candidates)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    numbered = [f"{place}. {each.loss}: {each.reason}." for place, each in enumerate(advice.recommendations, 1)]
    found = numbered or ["None of these losses learns with so many classes."]
    if advice.is_hopeless:
        found.append("But with so many wrong labels the true one is no more frequent than others: no loss can tell which it is.")
    title = f"{advice.num_classes} classes, {advice.noise:.0%} wrong labels, logits of spread {advice.sigma:g}"
    happened = ["What happened on data like it", *studied_lines(advice.studied)]
    return "\n".join([title, "", *lines, "", *happened, "", "Recommended by theory", *found, "", _legend(advice)])


def studied_lines(found: SimilarData | None) -> list[str]:
    """Return what happened on the data sets most like a task, in words.

    Args:
        found: Them; None where there are none.

    Returns:
        A line for each of the three best losses and each that was clearly behind, and one that says what it rests on.
    """
    if found is None:
        return [f"Nothing is known: of the {len(shipped_map().sets)} data sets that were studied too few are like it."]
    behind = [record for record in found.records[MOST_SHOWN:] if record.high < 0]
    about = _about(found)
    advised = f"{BASELINE}: no other loss was ahead of it beyond chance" if found.advised == BASELINE else found.advised
    return [
        *(_record_line(record, found) for record in (*found.records[:MOST_SHOWN], *behind)),
        about,
        f"Advised: {advised}.",
    ]


def _record_line(record: LossRecord, found: SimilarData) -> str:
    count, _, rest = found.what.partition(" ")
    of = f"{record.sets if str(record.sets) != count else count} {rest}"
    measure = "points" if found.task.imbalance is None else "points of balanced accuracy"
    points = f"{100 * record.difference:+.1f} {measure} ({100 * record.low:+.1f} to {100 * record.high:+.1f})"
    return f"{record.loss} beat {BASELINE} on {record.ahead} of {of}, {points}."


def _about(found: SimilarData) -> str:
    rows, classes = ("to".join(f" {number} " for number in dict.fromkeys(ends)).strip() for ends in (found.rows, found.classes))
    all_sets = len(shipped_map().sets)
    return f"These have {rows} training rows and {classes} classes; {all_sets} data sets were studied in all."


def _cells(candidate: Candidate) -> tuple[str, ...]:
    if candidate.verdict == "unfit":
        return candidate.loss, "", "unfit", candidate.correction, "", "", "", "", ""
    changed = candidate.use != candidate.loss
    return (
        candidate.loss,
        f"{candidate.overlap:.3f}",
        candidate.verdict,
        candidate.use if changed else ("as it is" if candidate.learns else "-"),
        f"{candidate.use_overlap:.3f}" if changed else "",
        f"{candidate.bound:.3g}" if candidate.bounded else "none",
        "yes" if candidate.symmetric else "no",
        "cut off" if math.isinf(candidate.outlier_slope) else f"{abs(candidate.outlier_slope):.2f}",
        f"{candidate.wrong_label_share:.0%}",
    )


def _legend(advice: Advice) -> str:
    return f"""\
overlap    how much of a fresh network's output meets a gradient, 0 to 1; from 0.05 on, losses learnt in published trainings
verdict    learns; weak: gradients too small for usual learning rates; slow; stalls
use        as published for so many classes; or as strong at the start as with {advice.reference_classes}; or with a logit bias
bound      the largest loss that one example can have; bound, symmetric, slope and wrong are those of the loss to use
symmetric  whether the losses under all labels add up to a constant
slope      power of p with which the pull of an improbable label vanishes; 0: it never gives up, 1: as the mean absolute error
wrong      share of the pull that wrong labels have once the network doubts them"""
