"""A classifier of scikit-learn that trains the built-in networks with any loss."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import torch
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data
from torch import Tensor

from lossmith.data.class_balance import class_counts
from lossmith.data.sparse_rows import Inputs, SparseRows
from lossmith.integrations.learner import Learner
from lossmith.integrations.table_encoder import TableEncoder, are_texts, is_mixed_table
from lossmith.losses import ClassificationLoss
from lossmith.losses.contract.needs_data import fill_in
from lossmith.objectives import Objective, make_objective

__all__ = ["LossmithClassifier"]


class LossmithClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A network for tables and texts, trained with any loss, as an estimator of scikit-learn.

    Inputs are numbers ``(n, d)``, dense or sparse, a ``pandas.DataFrame`` that may have categories and texts among its columns,
    or a text for each row. Tables train the network ``tabular``, texts and sparse inputs ``bag``, by AdamW with the middle of the
    learning rates and weight decays that a study would try. Up to 256 rows are one batch, without dropout, so that a row of
    weight 2 is two rows.

    Args:
        loss: A loss, or the expression of a loss or of an objective.
        model: A network of the catalogue that takes rows of numbers, or ``"auto"``.
        epochs: How many times all rows are trained on; by default what suits their number.
        batch_size: How many rows make a batch; by default what suits their number.
        learning_rate: The largest step size; by default the middle of what a study would try.
        weight_decay: By default the middle of what a study would try.
        class_weight: A weight for each class, ``"balanced"`` for weights by which all classes count alike, or None.
        random_state: The seed of initial weights, batches and dropout.

    Attributes:
        classes_: The classes, in the order of the probabilities.
        n_features_in_: How many columns were fitted, unless a row is a text.
        loss_: The loss that was trained with.
    """

    def __init__(
        self,
        loss: str | ClassificationLoss = "ce",
        *,
        model: str = "auto",
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.model = model
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train a new network.

        Args:
            X: The inputs.
            y: The class of each row.
            sample_weight: A factor for each row; none by default.

        Returns:
            Itself.

        Raises:
            ValueError: If there are fewer than two classes, or anything is not what it should be.
        """
        X, y, weights = self._checked(X, y, sample_weight, reset=True)
        inputs = self._start(X, y, np.unique(y), weights)
        self._learner.fit(inputs, self._class_numbers(y), weights, self.epochs, self.batch_size)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train on some rows once; the first call decides how columns are scaled and texts are read.

        Args:
            X: The inputs.
            y: The class of each row.
            classes: All classes, in the first call.
            sample_weight: A factor for each row; none by default.

        Returns:
            Itself.

        Raises:
            ValueError: If the first call has no classes, or rows have others.
        """
        is_first = not hasattr(self, "classes_")
        if is_first and classes is None:
            raise ValueError("LossmithClassifier: classes must be passed on the first call to partial_fit.")
        X, y, weights = self._checked(X, y, sample_weight, reset=is_first)
        inputs = self._start(X, y, np.unique(classes), weights) if is_first else self._encoded(X)
        self._learner.go_on(inputs, self._class_numbers(y), weights, self.batch_size)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities that belong to the loss.

        Args:
            X: The inputs.

        Returns:
            A row of probabilities for each, in the order of ``classes_``.
        """
        logits = self._logits(X)
        return self.loss_.predict_proba(logits).numpy()

    def predict(self, X: Any) -> Any:
        """Return the class with the largest logit for each row.

        Args:
            X: The inputs.

        Returns:
            Classes.
        """
        logits = self._logits(X)
        return self.classes_[logits.argmax(1).numpy()]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _checked(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, Any, Tensor]:
        """Return inputs, labels and a weight for each row; rows of weight 0 are left out."""
        if y is None:
            raise ValueError("LossmithClassifier requires y to be passed, but the target y is None.")
        X = self._checked_inputs(X, reset=reset, y=y)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        if sample_weight is None:
            return X, y, torch.ones(len(y), dtype=torch.double)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        present = np.flatnonzero(weights)
        return X.iloc[present] if hasattr(X, "iloc") else X[present], y[present], torch.from_numpy(weights[present])

    def _checked_inputs(self, X: Any, *, reset: bool, y: Any = "no_validation") -> Any:
        if are_texts(X):
            return np.asarray(X, dtype=object)
        if is_mixed_table(X):
            return validate_data(self, X, skip_check_array=True, reset=reset)
        checked = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, reset=reset)
        return checked[0] if isinstance(checked, tuple) else checked

    def _start(self, X: Any, y: Any, classes: Any, weights: Tensor) -> Inputs:
        """Learn how inputs are encoded, make a new network for them, and return them."""
        if len(classes) < 2:
            raise ValueError(f"LossmithClassifier: needs two classes at least, got one class, {classes[0]!r}.")
        self.classes_ = classes
        self._encoder = _fitted_encoder(X, weights)
        inputs = self._encoded(X)
        objective = Objective(self.loss) if isinstance(self.loss, ClassificationLoss) else make_objective(self.loss)
        seed = check_random_state(self.random_state).randint(1 << 31)
        own = {"learning_rate": self.learning_rate, "weight_decay": self.weight_decay}
        self._learner = Learner(objective, self.model, inputs, len(classes), seed=seed, **own)
        self.loss_ = self._learner.loss
        places = torch.from_numpy(np.searchsorted(classes, y))
        fill_in(self.loss_, {"counts": class_counts(places, len(classes), weights)})
        if self.class_weight is not None:
            by_class = compute_class_weight(self.class_weight, classes=classes, y=y)
            self.loss_.weight = torch.from_numpy(by_class).float()
        return inputs

    def _class_numbers(self, y: Any) -> Tensor:
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"LossmithClassifier: y must hold the classes {self.classes_}, got {unknown[0]!r}.")
        return torch.from_numpy(np.searchsorted(self.classes_, y))

    def _encoded(self, X: Any) -> Inputs:
        rows = X if self._encoder is None else self._encoder.transform(X)
        return SparseRows.of(csr_array(rows)) if issparse(rows) else torch.from_numpy(np.asarray(rows))

    def _logits(self, X: Any) -> Tensor:
        check_is_fitted(self)
        return self._learner.logits(self._encoded(self._checked_inputs(X, reset=False)))


def _fitted_encoder(X: Any, weights: Tensor) -> Any:
    """Return what turns inputs into rows of numbers; sparse inputs stay as they are."""
    if issparse(X):
        return None
    if isinstance(X, np.ndarray) and X.dtype == np.float64:
        return StandardScaler().fit(X, sample_weight=weights.numpy())
    return TableEncoder().fit(X)
