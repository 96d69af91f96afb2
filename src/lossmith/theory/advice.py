"""Which losses will learn with a number of classes, what they need for it, and how they resist wrong labels."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lossmith.expressions.limits import Limits
from lossmith.losses import LOSSES, ClassificationLoss, LogitBias
from lossmith.losses.catalogue.ready import needs_no_data
from lossmith.theory.consistency import is_calibrated
from lossmith.theory.correction import Question, corrected, measured_start, verdict
from lossmith.theory.one_thread import keep_freed_memory, one_thread
from lossmith.theory.per_example import PerExampleLoss, check_classes, check_sigma, named_loss
from lossmith.theory.properties import constant_label_sum, largest_loss, outlier_slope, wrong_label_pull
from lossmith.theory.studied.loss_map import KINDS, shipped_map
from lossmith.theory.studied.similar_data import SimilarData, Task, similar_data

__all__ = ["Advice", "Candidate", "RecommendedLoss", "advise"]

# Whether a loss is bounded and symmetric does not depend on how many classes there are beyond these.
ENOUGH_CLASSES = 100
RECOMMENDATIONS = 3
# Fewer wrong labels than this hardly matter for the choice.
LEAST_NOISE = 0.03
# A bounded loss resists wrong labels if their share of the pull is below these shares of their number. Of the losses of Staats,
# Thamm and Rosenow, trained on CIFAR-100 with 20 % noise, those below 0.75 reach 68 to 70 %, those from 0.9 on 61 to 66 %. The
# exception is MAE with its full bias: 61 %, overfitting late. That is why losses without a bias come first.
RESISTANCE = (0.75, 0.9)


@dataclass(frozen=True)
class Candidate:
    """What is known about one loss."""

    loss: str
    verdict: str
    """learns; weak, with gradients too small for usual learning rates; slow; stalls; or unfit for so few classes."""
    overlap: float
    average_error: float
    """``<delta_k>(0)`` of the loss as it is."""
    use: str
    """The loss to use: as it is, or corrected so that it learns."""
    correction: str
    """Why that is the one, or why there is none."""
    use_overlap: float = 0.0
    bounded: bool = False
    bound: float = math.inf
    symmetric: bool = False
    outlier_slope: float = 0.0
    """The power of p with which the pull of a label vanishes as its probability p does."""
    wrong_label_share: float = 0.0
    """The share of the pull that wrong labels have, once the network finds them improbable, against right labels at the start."""
    has_bias: bool = False

    @property
    def learns(self) -> bool:
        """Whether the loss to use learns."""
        return self.verdict == "learns" or self.use != self.loss


@dataclass(frozen=True)
class RecommendedLoss:
    """A loss to use, and the evidence for it."""

    loss: str
    reason: str


@dataclass(frozen=True)
class Advice:
    """What :func:`advise` returns."""

    num_classes: int
    noise: float
    reference_classes: int
    sigma: float
    candidates: tuple[Candidate, ...]
    recommendations: tuple[RecommendedLoss, ...]
    """By theory alone."""
    studied: SimilarData | None = None
    """What happened on the data sets most like the task; None where none is like it."""

    @property
    def is_hopeless(self) -> bool:
        """Whether true labels are no more frequent than each wrong one, if wrong ones are spread over all classes."""
        return 1 - self.noise <= self.noise / (self.num_classes - 1)


def advise(
    num_classes: int,
    noise: float = 0.0,
    losses: Sequence[str | ClassificationLoss] | None = None,
    *,
    rows: int | None = None,
    kind: str | None = None,
    imbalance: float | None = None,
    reference_classes: int = 100,
    sigma: float = 1.0,
    progress: Callable[[int, int, str], None] | None = None,
) -> Advice:
    """Say for every loss of the catalogue, or for those given, whether it will learn, and recommend some, without training.

    Beside the theory stands what happened on the data sets most like the task, of those that were studied with all losses tuned
    (:func:`similar_data`).

    ``noise`` is the share of wrong labels. A loss that does not learn gets the parameters published for this number of classes;
    or a parameter such that it starts as its published form does at ``reference_classes``; or a logit bias. ``sigma`` is the
    spread of a fresh network's logits, see :func:`logit_scale`. ``progress`` is told before each loss how many are done,
    of how many, and its name.

    Args:
        num_classes: How many classes the data has, at least 2.
        noise: The share of wrong labels, in [0, 1).
        losses: Expressions or losses; by default the whole catalogue.
        rows: Training rows, by which data sets are chosen that are like the task; by default any number.
        kind: ``table``, ``text`` or ``image``, likewise; by default any.
        imbalance: Rows of the rarest class for each of the most frequent, in (0, 1], where all classes are to count alike: what
            happened is then told of uneven data, by balanced accuracy. The theory knows nothing of it.
        reference_classes: The number of classes whose published behaviour is aimed at.
        sigma: The standard deviation of a fresh network's logits.
        progress: Called before each loss.

    Returns:
        What is known about each loss, and up to three recommended ones.

    Raises:
        TypeError: If a loss is neither text nor a loss of the library.
        ValueError: If a number is out of its range, or an expression cannot be read.

    >>> advice = advise(1000, noise=0.2, losses=["ce", "gce", "mae"])
    >>> [(found.loss, found.verdict, found.use) for found in advice.candidates]
    [('ce', 'learns', 'ce'), ('gce(q=0.7)', 'slow', 'gce(q=0.48)'), ('mae', 'stalls', 'logit-bias(mae, epsilon=5.36)')]
    >>> advice.recommendations[0].loss
    'gce(q=0.48)'
    """
    owner = "advise"
    check_classes("num_classes", num_classes, owner)
    check_classes("reference_classes", reference_classes, owner)
    check_sigma(sigma, owner)
    Limits(0.0, 1.0, high_open=True).check("noise", noise, owner=owner)
    task = _checked_task(num_classes, noise, rows, kind, imbalance)
    question = Question(num_classes, reference_classes, sigma)
    named = [named_loss(loss, owner) for loss in (filter(needs_no_data, LOSSES) if losses is None else losses)]
    candidates = []
    keep_freed_memory()
    with one_thread():
        for position, loss in enumerate(named):
            if progress is not None:
                progress(position, len(named), str(loss))
            candidates.append(_candidate(loss, noise, question))
        recommended = _recommended(candidates, noise, num_classes)
    studied = similar_data(shipped_map(), task)
    return Advice(num_classes, noise, reference_classes, sigma, tuple(candidates), recommended, studied)


def _checked_task(num_classes: int, noise: float, rows: int | None, kind: str | None, imbalance: float | None) -> Task:
    if rows is not None:
        Limits(1, whole=True).check("rows", rows, owner="advise")
    if kind is not None and kind not in KINDS:
        raise ValueError(f"advise: kind must be one of {', '.join(KINDS)}, got {kind!r}.")
    if imbalance is not None:
        Limits(0.0, 1.0, low_open=True).check("imbalance", imbalance, owner="advise")
    return Task(num_classes, noise, rows, kind, imbalance)


def _candidate(loss: ClassificationLoss, noise: float, question: Question) -> Candidate:
    try:
        start = measured_start(loss, question)
    except ValueError as error:  # a top-k loss needs more than k classes
        return Candidate(str(loss), "unfit", overlap=0.0, average_error=0.0, use=str(loss), correction=str(error))
    found = corrected(loss, start, question)
    used, used_start = (loss, start) if found is None else (found.loss, found.start)
    function = PerExampleLoss(used, "advise")
    few = min(question.num_classes, ENOUGH_CLASSES)
    bound = largest_loss(function, few)
    wrong = noise * wrong_label_pull(function, question.num_classes) if noise else 0.0
    right = (1 - noise) * used_start.overlap
    word = verdict(start)
    return Candidate(
        loss=str(loss),
        verdict=word,
        overlap=start.overlap,
        average_error=start.error,
        use=str(used),
        correction=found.reason if found else ("" if word == "learns" else "no parameter and no logit bias makes it learn"),
        use_overlap=used_start.overlap,
        bounded=math.isfinite(bound),
        bound=bound,
        symmetric=constant_label_sum(function, few) is not None,
        outlier_slope=outlier_slope(function, few),
        wrong_label_share=wrong / (wrong + right) if wrong else 0.0,
        has_bias=isinstance(used, LogitBias),
    )


def _recommended(candidates: Sequence[Candidate], noise: float, num_classes: int) -> tuple[RecommendedLoss, ...]:
    """Choose some that differ, and whose least expected loss belongs to the most probable class.

    Ranked by how far they resist wrong labels; then those that need no factor and no bias come first, then by overlap, in tenths;
    then as in the catalogue.
    """
    ranked = sorted((each for each in candidates if each.learns), key=lambda each: _rank(each, noise))
    chosen: list[Candidate] = []
    for each in ranked:
        if len(chosen) == RECOMMENDATIONS:
            break
        if all(_differ(each, other) for other in chosen) and is_calibrated(PerExampleLoss(each.use, "advise"), num_classes):
            chosen.append(each)
    return tuple(RecommendedLoss(each.use, _reason(each, noise)) for each in chosen)


def _rank(candidate: Candidate, noise: float) -> tuple[int, bool, bool, int]:
    tenths = round(10 * candidate.use_overlap)
    if noise < LEAST_NOISE:
        return 0, candidate.verdict == "weak", False, -tenths
    share = candidate.wrong_label_share / noise
    resistance = sum(share < level for level in RESISTANCE) if candidate.bounded else 0
    return -resistance, candidate.verdict == "weak", candidate.has_bias, -tenths


def _differ(first: Candidate, second: Candidate) -> bool:
    """Return whether two losses have different curves; those of ``el`` and ``mae`` differ by a factor only."""
    pairs = ((first.use_overlap, second.use_overlap), (first.wrong_label_share, second.wrong_label_share))
    return any(abs(one - other) > 0.02 * max(one, other) for one, other in pairs)


def _reason(candidate: Candidate, noise: float) -> str:
    before = "" if candidate.use == candidate.loss else f" ({candidate.loss} has {candidate.overlap:.2g})"
    parts = [f"overlap {candidate.use_overlap:.2g}{before}"]
    if noise:
        parts.append(f"wrong labels have {candidate.wrong_label_share:.0%} of the pull")
    parts.append(f"bounded by {candidate.bound:.3g}" if candidate.bounded else "not bounded")
    return "; ".join([*parts, candidate.correction] if candidate.correction else parts)
