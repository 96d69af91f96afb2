"""Label noise that looks at the class alone."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lossmith.data.noise.label_noise import LabelNoise, Labels, Numbers, RateNoise
from lossmith.data.prepared import PreparedData
from lossmith.expressions.quotes import quote

__all__ = [
    "AsymmetricNoise",
    "MatrixNoise",
    "NoNoise",
    "PairNoise",
    "SymmetricNoise",
    "UniformNoise",
    "UniformWithinGroupsNoise",
    "WithinGroupsNoise",
]


@dataclass(frozen=True, repr=False)
class NoNoise(LabelNoise):
    """The labels as they are."""

    name = "none"

    def __repr__(self) -> str:
        return self.name

    def _noisy(self, data: PreparedData, rows: Labels, labels: Labels, seed: int) -> Labels:
        return labels


class SymmetricNoise(RateNoise):
    """A label becomes one of the other classes, evenly: ``rate`` is the share of wrong labels."""

    name = "symmetric"

    def _noisy(self, data: PreparedData, rows: Labels, labels: Labels, seed: int) -> Labels:
        others = data.num_classes - 1
        shift = 1 + np.floor(self._draws(data, rows, seed, "classes") * others).astype(np.int64)
        return np.where(self._first(self._keys(data, rows, labels, seed)), (labels + shift) % data.num_classes, labels)


class UniformNoise(RateNoise):
    """A label becomes any class, its own among them: with K classes, about ``rate * (1 - 1/K)`` of the labels are wrong.

    This is the noise of Staats, Thamm and Rosenow, "Noise-robust loss functions", who assign random labels to a fraction.
    """

    name = "uniform"

    def _noisy(self, data: PreparedData, rows: Labels, labels: Labels, seed: int) -> Labels:
        any_class = np.floor(self._draws(data, rows, seed, "classes") * data.num_classes).astype(np.int64)
        return np.where(self._first(self._keys(data, rows, labels, seed)), any_class, labels)


class PairNoise(RateNoise):
    """A label becomes the next class, the last one the first: the hardest noise for a rate, from 50 % on beyond repair."""

    name = "pair"

    def _noisy(self, data: PreparedData, rows: Labels, labels: Labels, seed: int) -> Labels:
        return np.where(self._first(self._keys(data, rows, labels, seed)), (labels + 1) % data.num_classes, labels)


@dataclass(frozen=True, repr=False, init=False)
class AsymmetricNoise(RateNoise):
    """Certain classes are taken for certain others: ``rate`` is the share of wrong labels within the classes that are.

    ``asymmetric(0.4, [9, 1], [3, 5], [5, 3])`` labels trucks as cars, and takes cats and dogs for one another (CIFAR-10).
    """

    name = "asymmetric"
    pairs: tuple[tuple[int, int], ...]

    def __init__(self, rate: float, *pairs: list[int] | tuple[int, int]) -> None:
        object.__setattr__(self, "rate", rate)
        object.__setattr__(self, "pairs", tuple(map(_pair, pairs)))
        super().__post_init__()
        sources = [source for source, _ in self.pairs]
        if not sources or len(set(sources)) < len(sources):
            raise ValueError(
                f"AsymmetricNoise: pairs must be one [from, to] for each class that changes, got {quote(list(pairs))}."
            )

    def __repr__(self) -> str:
        return f"{self.name}({self.rate}, {', '.join(str(list(pair)) for pair in self.pairs)})"

    def _noisy(self, data: PreparedData, rows: Labels, labels: Labels, seed: int) -> Labels:
        highest = max(max(pair) for pair in self.pairs)
        if highest >= data.num_classes:
            raise ValueError(f"AsymmetricNoise: classes must be below {data.num_classes}, got {highest}.")
        becomes = np.arange(data.num_classes)
        for source, target in self.pairs:
            becomes[source] = target
        changing = np.flatnonzero(becomes[labels] != labels)
        chosen = changing[self._first(self._keys(data, rows, labels, seed)[changing])]
        noisy = labels.copy()
        noisy[chosen] = becomes[labels[chosen]]
        return noisy


@dataclass(frozen=True, repr=False, init=False)
class MatrixNoise(LabelNoise):
    """Noise by class: row c of the matrix has the shares of class c that are labelled 0, 1, 2, ...

    Labels are drawn systematically, so that the realised matrix differs from this one by rounding alone.
    ``matrix([0.9, 0.1], [0.3, 0.7])`` is written row by row; ``matrix(shares.csv)`` reads a file of numbers, CSV or NPY.
    """

    name = "matrix"
    rows: tuple[tuple[float, ...], ...]

    def __init__(self, *rows: list[float] | tuple[float, ...]) -> None:
        object.__setattr__(self, "rows", tuple(tuple(map(float, row)) for row in rows))
        if len(self.rows) < 2 or any(len(row) != len(self.rows) for row in self.rows):
            raise ValueError(
                f"MatrixNoise: needs a square matrix of 2 classes at least, got rows of {quote([*map(len, rows)])} numbers."
            )
        for number, row in enumerate(self.rows):
            if not (min(row) >= 0 and abs(sum(row) - 1) <= 1e-6):
                raise ValueError(f"MatrixNoise: row {number} must be shares that add up to 1, got {quote(list(row))}.")

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(str(list(row)) for row in self.rows)})"

    @classmethod
    def from_file(cls, path: str | Path) -> "MatrixNoise":
        """Read the matrix from a file: rows of numbers with commas or spaces between them, or an array that numpy saved.

        Args:
            path: A CSV, text or NPY file.

        Returns:
            The noise.

        Raises:
            ValueError: If the file does not hold a square matrix of shares.
        """
        path = Path(path)
        try:
            matrix = np.load(path) if path.suffix == ".npy" else _numbers_of_lines(path.read_text())
            return cls(*np.atleast_2d(matrix).tolist())
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: not a matrix of label noise: {error}") from error

    def _noisy(self, data: PreparedData, rows: Labels, labels: Labels, seed: int) -> Labels:
        if len(self.rows) != data.num_classes:
            raise ValueError(f"MatrixNoise: needs a row for each of {data.num_classes} classes, got {len(self.rows)}.")
        keys = self._keys(data, rows, labels, seed)
        noisy = labels.copy()
        for label, shares in enumerate(self.rows):
            members = np.flatnonzero(labels == label)
            noisy[members] = _by_share(keys[members], np.array(shares), first=label + 1)
        return noisy


class WithinGroupsNoise(RateNoise):
    """A label becomes another class of its coarse group: ``rate`` is the share of wrong labels, of those that have another.

    The data must know the group of each class (``load_data(..., groups=...)``).
    """

    name = "within-groups"

    def _noisy(self, data: PreparedData, rows: Labels, labels: Labels, seed: int) -> Labels:
        size, place, members = _groups(data, type(self).__name__)
        changing = np.flatnonzero(size[labels] > 1)
        chosen = changing[self._first(self._keys(data, rows, labels, seed)[changing])]
        old = labels[chosen]
        steps = self._steps(self._draws(data, rows, seed, "classes")[chosen], size[old])
        noisy = labels.copy()
        noisy[chosen] = members[old, (place[old] + steps) % size[old]]
        return noisy

    def _steps(self, draws: Numbers, sizes: Labels) -> Labels:
        return 1 + np.floor(draws * (sizes - 1)).astype(np.int64)


class UniformWithinGroupsNoise(WithinGroupsNoise):
    """A label becomes any class of its coarse group, its own among them; of a group of g, ``1 - 1/g`` of those are wrong.

    This is the noise of Berrada, Zisserman and Kumar, "Smooth loss functions for deep top-k classification", section 5.1.
    """

    name = "uniform-within-groups"

    def _steps(self, draws: Numbers, sizes: Labels) -> Labels:
        return np.floor(draws * sizes).astype(np.int64)


def _pair(pair: list[int] | tuple[int, int]) -> tuple[int, int]:
    fits = isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(label, int) and label >= 0 for label in pair)
    if not fits or pair[0] == pair[1]:
        raise ValueError(f"AsymmetricNoise: a pair must be [from, to], the numbers of two classes, got {quote(pair)}.")
    return (pair[0], pair[1])


def _by_share(keys: Numbers, shares: Numbers, first: int) -> Labels:
    """Cut [0, 1) into the shares and see where each key falls; ``first`` comes first, so that the true class comes last."""
    order = (first + np.arange(len(shares))) % len(shares)
    edges = np.cumsum(shares[order])[:-1]
    return np.asarray(order[np.searchsorted(edges, keys, side="right")])


def _numbers_of_lines(text: str) -> Numbers:
    return np.array([[float(number) for number in line.replace(",", " ").split()] for line in text.splitlines() if line.strip()])


def _groups(data: PreparedData, owner: str) -> tuple[Labels, Labels, Labels]:
    """Return for each class how large its group is, which place it has there, and the members of the group."""
    if data.groups is None:
        raise ValueError(f"{owner}: {data.name} has no coarse groups of classes; give them by groups=.")
    groups = np.array(data.groups)
    same = groups[:, None] == groups[None, :]
    size = same.sum(1)
    if size.max() < 2:
        raise ValueError(f"{owner}: a group must have two classes at least, got {len(groups)} groups of one.")
    place = np.tril(same, -1).sum(1)
    members = np.argsort(~same, axis=1, kind="stable")
    return size, place, members
