"""The rows of a data set as classical models take them: linear models, kernels and trees each in their own way."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from threadpoolctl import threadpool_limits
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from lossmith.data import PreparedData
from lossmith.data.encoding.texts import weighted_ngrams
from lossmith.data.sparse_rows import SparseRows, as_tensor

__all__ = ["ReferenceInputs", "View", "reference_inputs"]

Matrix = Any
"""Numbers ``(n, d)``: an array, or a sparse array of texts."""

_MOST_ROWS = 20_000
_MOST_ROWS_FITTED = 4_000  # of what is fitted without labels
_WIDE = 256  # columns beyond which kernels see principal components
_COMPONENTS_OF_IMAGES = 200
_COMPONENTS = 50
_MOST_PIXELS = 4_096
_SIDE = 32
_MOST_WEIGHTS = 1_500_000  # terms x classes: logistic regression takes 200 bytes for each


@dataclass(frozen=True, eq=False)
class View:
    """The rows of each split in one form."""

    train: Matrix
    validation: Matrix
    test: Matrix
    note: str = ""
    """What has been done to the inputs, if anything."""

    @classmethod
    def of(cls, parts: Iterable[Matrix], note: str = "") -> "View":
        """Return a view of training, validation and test rows, in this order."""
        train, validation, test = parts
        return cls(train, validation, test, note)


@dataclass(frozen=True, eq=False)
class ReferenceInputs:
    """What reference models need of a data set but labels; it serves every noise of a replicate."""

    kind: str
    """As of :class:`lossmith.data.PreparedData`."""
    rows: np.ndarray
    """Places of training rows in ``data.train``, at most 20,000, in such an order that every beginning is a fair sample."""
    linear: View
    kernel: View | None = None
    """None where a linear model is as strong as any: texts."""
    trees: View | None = None
    encoded: View | None = None
    """The vectors of a pretrained encoder, where one read the texts."""


def reference_inputs(data: PreparedData, seed: int) -> ReferenceInputs:
    """Turn the inputs of a data set into those of classical models; whatever is fitted is fitted on training rows.

    Args:
        data: The data, with the splits of a replicate.
        seed: Draws the training rows, where there are too many.

    Returns:
        Inputs for :func:`lossmith.studies.references.train_references.train_references`, for all noises of the replicate.
    """
    rows = fair_order(data.labels[data.train].numpy(), seed)[:_MOST_ROWS]
    with threadpool_limits(1):  # threads would wait for one another longer than the work takes
        fewer = replace(data, train=data.train[torch.from_numpy(rows)])
        return replace(_of_rows(fewer, rows, seed), encoded=_encoded(fewer))


def _of_rows(data: PreparedData, rows: np.ndarray, seed: int) -> ReferenceInputs:
    if data.kind == "text":
        return ReferenceInputs("text", rows, _text_view(data))
    if data.kind == "mixed":
        return _mixed(data, rows, seed)
    if data.kind == "image":
        pixels = _pixels(data)
        return ReferenceInputs("image", rows, _reduced(pixels, _COMPONENTS_OF_IMAGES, seed), _reduced(pixels, _COMPONENTS, seed))
    view = _view(data, as_tensor(data.inputs))
    return ReferenceInputs("table", rows, view, _reduced(view, _COMPONENTS, seed), view)


def _encoded(data: PreparedData) -> View | None:
    """Return the vectors of an encoder, with other columns beside them where inputs are both."""
    if data.texts is None or data.texts.encoder is None:
        return None
    view = _view(data, as_tensor(data.inputs) if data.texts.vectors is None else data.texts.vectors)
    return replace(view, note=f"vectors of {data.texts.encoder.path.name}")


def fair_order(labels: np.ndarray, seed: int) -> np.ndarray:
    """Return row numbers in an order drawn by chance, of which every beginning has all classes in their proportion.

    >>> labels = np.repeat([0, 1], [90, 10])
    >>> np.bincount(labels[fair_order(labels, seed=0)[:20]])
    array([18,  2])
    """
    drawn = np.random.default_rng(seed).permutation(len(labels))
    turn = np.empty(len(labels))
    for label in np.unique(labels):
        members = np.flatnonzero(labels[drawn] == label)
        turn[members] = np.arange(len(members)) / len(members)
    order: np.ndarray = drawn[np.argsort(turn, kind="stable")]
    return order


def _view(data: PreparedData, inputs: Tensor) -> View:
    return View.of(inputs[rows].numpy() for rows in _splits(data))


def _splits(data: PreparedData) -> tuple[Tensor, Tensor, Tensor]:
    return data.train, data.validation, data.test


def _pixels(data: PreparedData) -> View:
    """Return images as rows of pixels, large ones as small images."""
    images = as_tensor(data.inputs)
    if images[0].numel() <= _MOST_PIXELS or images.ndim != 4:
        return _view(data, images.flatten(1))
    small = (torch.cat([adaptive_avg_pool2d(images[part], _SIDE) for part in torch.split(rows, 256)]) for rows in _splits(data))
    return View.of((part.flatten(1).numpy() for part in small), f"images at {_SIDE}x{_SIDE}")


def _reduced(view: View, components: int, seed: int) -> View:
    """Return the principal components of a wide view."""
    components = min(components, *view.train[:_MOST_ROWS_FITTED].shape)
    if view.train.shape[1] <= max(_WIDE, components):
        return view
    fitted = PCA(components, svd_solver="randomized", random_state=seed).fit(view.train[:_MOST_ROWS_FITTED])
    return _mapped(view, fitted.transform, f"{components} principal components")


def _mapped(view: View, function: Callable[[Matrix], Matrix], note: str) -> View:
    width = function(view.train[:1]).shape[1]
    splits = (view.train, view.validation, view.test)
    parts = (function(part) if part.shape[0] else np.empty((0, width)) for part in splits)
    return View.of(parts, ", ".join(filter(None, (view.note, note))))


def _text_view(data: PreparedData) -> View:
    """Return TF-IDF of words, pairs of words and parts of words, as networks see it; or of numbered words."""
    if data.texts is None:
        return _weighted_counts(data)
    train, terms_alone = data.train.numpy(), not isinstance(data.inputs, SparseRows)
    terms = data.inputs.matrix() if isinstance(data.inputs, SparseRows) else weighted_ngrams(data.texts.strings, train)
    often = np.bincount(terms[train].indices, minlength=terms.shape[1])
    if not terms_alone:
        often[~data.texts.inputs.numpy()] = -1
    most = min(max(2_000, _MOST_WEIGHTS // data.num_classes), int((often >= 0).sum()))
    chosen = np.sort(np.argsort(-often, kind="stable")[:most])
    parts = (terms[rows.numpy()] for rows in _splits(data))
    return View.of((sparse.csr_matrix(part if most == part.shape[1] else part[:, chosen]) for part in parts), "TF-IDF")


def _weighted_counts(data: PreparedData) -> View:
    """Return TF-IDF of words that are numbers, 0 where a text is over."""
    words = as_tensor(data.inputs).numpy()
    places = np.repeat(np.arange(len(words)), words.shape[1])
    counts = sparse.csr_matrix((np.ones(words.size, np.float32), (places, words.ravel())))[:, 1:]
    train, validation, test = (counts[rows.numpy()] for rows in _splits(data))
    weights = TfidfTransformer(sublinear_tf=True).fit(train)
    return _mapped(View(train, validation, test), weights.transform, "TF-IDF")


def _mixed(data: PreparedData, rows: np.ndarray, seed: int) -> ReferenceInputs:
    """Return texts beside other columns: all terms for linear models, a few directions of them for others."""
    assert data.texts is not None
    assert isinstance(data.inputs, SparseRows)
    others = data.inputs.matrix()[:, ~data.texts.inputs.numpy()].tocsr()
    return _text_beside(_text_view(data), View.of(others[part.numpy()].toarray() for part in _splits(data)), rows, seed)


def _text_beside(terms: View, others: View, rows: np.ndarray, seed: int) -> ReferenceInputs:
    components = min(_COMPONENTS, *(side - 1 for side in terms.train.shape))
    fitted = TruncatedSVD(max(components, 1), random_state=seed).fit(terms.train[:_MOST_ROWS_FITTED])
    directions = _mapped(terms, fitted.transform, f"{components} directions")
    return ReferenceInputs("mixed", rows, _beside(others, terms), *2 * [_beside(others, directions)])


def _beside(others: View, texts: View) -> View:
    pairs = ((others.train, texts.train), (others.validation, texts.validation), (others.test, texts.test))
    is_sparse = sparse.issparse(texts.train)
    parts = (sparse.hstack(pair, format="csr") if is_sparse else np.hstack(pair) for pair in pairs)
    return View.of(parts, f"texts as {texts.note}")
