"""Whether models predict the same: agreement between runs, their clusters, and what they know together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import dendrogram, linkage
from scipy.spatial.distance import squareform

from lossmith.analysis.arrays import Array, Numbers, as_labels
from lossmith.analysis.scores import predicted_classes

__all__ = [
    "Agreement",
    "Dendrogram",
    "Ensembles",
    "agreement",
    "cluster",
    "ensemble_accuracy",
    "ensembles",
    "majority_vote",
    "pair_averages",
]


@dataclass(frozen=True, eq=False)
class Agreement:
    """Similarity of the predictions of every two runs, each ``(runs, runs)`` and between 0 and 1."""

    same_prediction: Array
    """The share of the examples for which both predict the same class."""
    both_right_or_wrong: Array
    """The share of the examples that both get right or both get wrong."""
    same_mistake: Array
    """Of the examples that both get wrong, the share for which both predict the same class; 1 where there are none."""


def agreement(predictions: Sequence[Numbers], labels: Numbers) -> Agreement:
    """Return how alike runs predict, in the three ways of Kornblith et al. 2021 (figures 1 and D.1).

    ``predictions`` has for each run classes ``(n,)`` or scores ``(n, C)``.

    Args:
        predictions: For each run classes ``(n,)``, or scores of the classes ``(n, C)``.
        labels: The class of each example, ``(n,)``.

    Returns:
        Three matrices, ``(runs, runs)`` each.

    Raises:
        ValueError: If there is no run, or numbers of examples differ.

    >>> agreement([[0, 1, 1, 2], [0, 1, 2, 1]], [0, 0, 0, 0]).same_mistake
    array([[1.        , 0.33333333],
           [0.33333333, 1.        ]])
    """
    classes, truth = _checked("agreement", predictions, labels)
    wrong = classes != truth
    same = np.array([(classes == row).mean(1) for row in classes])
    alike = np.array([(wrong == row).mean(1) for row in wrong])
    shared = np.array([(wrong & row).sum(1) for row in wrong])
    repeated = np.array([((classes == row) & wrong).sum(1) for row in classes])
    return Agreement(same, alike, np.where(shared > 0, repeated / np.maximum(shared, 1), 1.0))


@dataclass(frozen=True, eq=False)
class Dendrogram:
    """A tree that joins the most similar runs first."""

    linkage: Array
    """``(runs - 1, 4)``: SciPy's linkage matrix; heights are 1 - similarity."""
    order: tuple[int, ...]
    """The runs from left to right, such that no lines cross."""
    brackets: tuple[tuple[tuple[float, float], ...], ...]
    """For each join the four corners of its bracket, as (position, height); run ``order[i]`` stands at position i."""


def cluster(similarity: Numbers, method: str = "average") -> Dendrogram:
    """Return the dendrogram of runs by their similarity ``(runs, runs)``, such as ``agreement(...).same_prediction``.

    ``method`` is one of SciPy's: ``average``, ``single``, ``complete``, ``weighted``.

    Args:
        similarity: A symmetric matrix, ``(runs, runs)``, of numbers up to 1.
        method: How the distance between clusters follows from that between runs.

    Returns:
        The order of the runs, and the brackets to draw.

    Raises:
        ValueError: If the matrix is not square and symmetric.

    >>> cluster([[1.0, 0.2, 0.9], [0.2, 1.0, 0.3], [0.9, 0.3, 1.0]]).order
    (1, 0, 2)
    """
    matrix = np.asarray(similarity, dtype=np.float64)
    if matrix.ndim != 2 or len(matrix) != matrix.shape[1] or not np.allclose(matrix, matrix.T) or matrix.size == 0:
        raise ValueError(f"cluster: similarity must be a symmetric matrix, got shape {matrix.shape}.")
    if len(matrix) == 1:  # nothing to join
        return Dendrogram(np.zeros((0, 4)), (0,), ())
    distance = 1.0 - (matrix + matrix.T) / 2.0
    tree = linkage(squareform(distance, checks=False), method)
    drawn = dendrogram(tree, no_plot=True)
    # SciPy puts leaves at 5, 15, 25, ...
    corners = (
        zip(((x - 5.0) / 10.0 for x in xs), ys, strict=True) for xs, ys in zip(drawn["icoord"], drawn["dcoord"], strict=True)
    )
    return Dendrogram(tree, tuple(drawn["leaves"]), tuple(tuple((float(x), float(y)) for x, y in bracket) for bracket in corners))


def majority_vote(predictions: Sequence[Numbers]) -> Array:
    """Return the class that most runs predict for each example ``(n,)``; of equally many the first class.

    Args:
        predictions: For each run classes ``(n,)``, or scores of the classes ``(n, C)``.

    Returns:
        A class for each example.

    Raises:
        ValueError: If there is no run, or numbers of examples differ.

    >>> majority_vote([[0, 1, 2], [0, 1, 1], [2, 0, 0]])
    array([0, 1, 0])
    """
    classes, _ = _checked("majority_vote", predictions, None)
    return np.asarray(_votes(classes, int(classes.max()) + 1).argmax(1))


def ensemble_accuracy(predictions: Sequence[Numbers], labels: Numbers) -> float:
    """Return the accuracy of the majority vote, chance deciding between classes with equally many votes.

    So it is symmetric in runs and in classes, and two runs that always disagree are as good as their average.

    Args:
        predictions: For each run classes ``(n,)``, or scores of the classes ``(n, C)``.
        labels: The class of each example, ``(n,)``.

    Returns:
        The expected share of right votes.

    Raises:
        ValueError: If there is no run, or numbers of examples differ.

    >>> ensemble_accuracy([[0, 1], [1, 1]], [0, 1])
    0.75
    """
    classes, truth = _checked("ensemble_accuracy", predictions, labels)
    votes = _votes(classes, int(max(classes.max(), truth.max())) + 1)
    leading = votes == votes.max(1, keepdims=True)
    return float(np.mean(leading[np.arange(len(truth)), truth] / leading.sum(1)))


@dataclass(frozen=True, eq=False)
class Ensembles:
    """Accuracies of majority votes within and between losses."""

    losses: tuple[str, ...]
    accuracy: Array
    """``(losses, losses)``: of ensembles half of which were trained with one loss and half with the other."""
    size: int
    """How many runs an ensemble has."""


def ensembles(predictions: Mapping[str, Sequence[Numbers]], labels: Numbers) -> Ensembles:
    """Return the accuracy of ensembles of runs of one loss, and of two (figure D.3 of Kornblith et al. 2021).

    ``predictions`` has, for each loss, the predictions of its runs. All ensembles are of the same size, the largest even number
    of runs that each loss has. Between losses, the first half of one is joined with the second half of the other, and the other
    way around, and the accuracies are averaged.

    Args:
        predictions: For each loss the predictions of its runs, as for :func:`agreement`.
        labels: The class of each example, ``(n,)``.

    Returns:
        Accuracies ``(losses, losses)``, and the size of the ensembles.

    Raises:
        ValueError: If a loss has fewer than 2 runs, or numbers of examples differ.

    >>> ensembles({"ce": [[0, 1], [0, 1]], "gce": [[1, 1], [1, 1]]}, [0, 1]).accuracy
    array([[1.  , 0.75],
           [0.75, 0.5 ]])
    """
    fewest = min((len(runs) for runs in predictions.values()), default=0)
    if fewest < 2:
        raise ValueError(f"ensembles: predictions must have at least 2 runs of each loss, got {fewest}.")
    half = fewest // 2
    halves = [(list(runs[:half]), list(runs[half : 2 * half])) for runs in predictions.values()]
    table = [[(_joined(a[0], b[1], labels) + _joined(b[0], a[1], labels)) / 2 for b in halves] for a in halves]
    return Ensembles(tuple(predictions), np.array(table), 2 * half)


def pair_averages(matrix: Numbers, losses: Sequence[str], seeds: Sequence[int] | None = None) -> pd.DataFrame:
    """Return the average over pairs of runs of a matrix ``(runs, runs)``, for each pair of losses.

    A run is not paired with itself, so that the entry of a loss with itself is missing where the loss has one run. With
    ``seeds``, runs of the same seed are not paired either: having begun with the same weights, they are more alike than others,
    and a loss has no such pairs with itself.

    Args:
        matrix: A number for each pair of runs, ``(runs, runs)``.
        losses: The loss of each run.
        seeds: The seed of each run.

    Returns:
        The averages, ``(losses, losses)``; NaN where there is no pair.

    >>> pair_averages([[1.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 1.0]], ["ce", "ce", "mae"])
          ce  mae
    ce   0.5  0.2
    mae  0.2  NaN
    """
    order = list(dict.fromkeys(losses))
    runs_of = np.array([[float(run == loss) for run in losses] for loss in order])
    numbers = np.arange(len(losses)) if seeds is None else np.asarray(seeds)
    others = (numbers[:, None] != numbers).astype(float)
    # Sums over pairs divided by their number: averages of averages would weigh the pairs of a loss with itself unevenly.
    total, count = (runs_of @ pairs @ runs_of.T for pairs in (np.asarray(matrix) * others, others))
    return pd.DataFrame(np.where(count > 0.0, total / np.maximum(count, 1.0), np.nan), order, order)


def _joined(first: list[Numbers], second: list[Numbers], labels: Numbers) -> float:
    return ensemble_accuracy([*first, *second], labels)


def _votes(classes: Array, count: int) -> Array:
    rows = classes.shape[1]
    cells = classes + count * np.arange(rows)
    return np.bincount(cells.ravel(), minlength=rows * count).reshape(rows, count)


def _checked(owner: str, predictions: Sequence[Numbers], labels: Numbers | None) -> tuple[Array, Array]:
    """Return predicted classes ``(runs, n)`` and labels ``(n,)``, or the first run's classes in their place."""
    if len(predictions) == 0:
        raise ValueError(f"{owner}: predictions must have at least one run, got none.")
    classes = [predicted_classes(owner, run) for run in predictions]
    truth = classes[0] if labels is None else as_labels(owner, labels)
    for run in classes:
        as_labels(owner, run, name="predictions", rows=len(truth))
    return np.stack(classes), truth
