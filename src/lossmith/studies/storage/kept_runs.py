"""What a study keeps of its runs: predictions, features and models, each with the labels of its replicate."""

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn

from lossmith.data import PreparedData, make_noise
from lossmith.studies.design.settings import Settings
from lossmith.studies.storage.store import Store
from lossmith.studies.storage.stored_study import stored_data, stored_test_labels, trained_model
from lossmith.training.job import Build

__all__ = ["KeptRuns"]


class KeptRuns:
    """The arrays in the file of a study; base of :class:`lossmith.studies.Study`."""

    store: Store
    settings: Settings
    _build: Build | None

    def load(self, seed: int = 0) -> PreparedData:
        """Read the data of a replicate again."""
        raise NotImplementedError

    @cached_property
    def _about_data(self) -> dict[str, Any]:
        return stored_data(self.store)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        return tuple(self._about_data["classes"])

    @property
    def class_rows(self) -> tuple[int, ...]:
        """How many training rows each class has in the first replicate; empty in studies that do not know."""
        return tuple(self._about_data["class_rows"])

    def test_labels(self, seed: int = 0) -> np.ndarray:
        """Return the true classes of the test split of a replicate.

        Args:
            seed: The replicate.

        Returns:
            A class for each row.

        Raises:
            StoreError: If the replicate has not begun.
        """
        if seed not in self._test_labels:
            self._test_labels[seed] = stored_test_labels(self.store, len(self.classes), seed)
        return self._test_labels[seed]

    @cached_property
    def _test_labels(self) -> dict[int, np.ndarray]:
        return {}

    def test_rows(self, seed: int = 0) -> np.ndarray:
        """Return the row numbers of the test split of a replicate.

        Args:
            seed: The replicate.

        Returns:
            A number for each row, in the order of :meth:`test_labels`.

        Raises:
            StoreError: If the replicate has not begun, or its rows are damaged.
        """
        labels, stored = self.test_labels(seed), self.store.replicate(seed)
        with self.store.explained(f"table replicate, seed {seed}"):
            if stored is None or len(np.unique(stored.test)) != len(labels):
                raise ValueError(f"test rows must be different ones, a row for each of the {len(labels)} labels")
        return stored.test

    def has_predictions(self, run: int) -> bool:
        """Return whether the predictions of a run are kept; a training of the user's own may return measures alone.

        Args:
            run: The number of the run, as in :attr:`results`.

        Returns:
            Whether :meth:`test_probabilities` has them.
        """
        return bool(self.store.kept(run) & {"logits", "probabilities"})

    def _rows_of(self, run: int) -> int:
        """Return how many rows the test split of a run's replicate has."""
        return len(self.test_labels(self.store.seed_of(run)))

    def test_logits(self, run: int) -> np.ndarray:
        """Return the logits of the test split.

        Args:
            run: The number of the run, as in :attr:`results`.

        Returns:
            ``(rows, classes)``, in single precision.

        Raises:
            StoreError: If there is no such run.
        """
        return self.store.array(run, "logits", (self._rows_of(run), len(self.classes)))

    def test_probabilities(self, run: int) -> np.ndarray:
        """Return the predicted probabilities of the test split, which are those that belong to the run's loss.

        Args:
            run: The number of the run, as in :attr:`results`.

        Returns:
            ``(rows, classes)``, in single precision.

        Raises:
            StoreError: If there is no such run.
        """
        if "probabilities" in self.store.kept(run):
            return self.store.array(run, "probabilities", (self._rows_of(run), len(self.classes)))
        return torch.softmax(torch.from_numpy(self.test_logits(run)), 1).numpy()

    def test_features(self, run: int) -> np.ndarray:
        """Return what the final layer saw of the test split, where the study keeps features.

        Args:
            run: The number of the run, as in :attr:`results`.

        Returns:
            ``(rows, features)``, in single precision.

        Raises:
            StoreError: If there is no such run, or no features were kept.
        """
        return self.store.array(run, "features", (self._rows_of(run), None))

    def model(self, run: int) -> nn.Module:
        """Return the trained model of a run, in evaluation mode, where the study keeps weights.

        Args:
            run: The number of the run, as in :attr:`results`.

        Returns:
            The module, which turns inputs into logits.

        Raises:
            StoreError: If there is no such run, or no weights were kept.
            ValueError: If the model or the data was the user's own, and is not at hand.
        """
        return trained_model(self.store, self.settings, run, self.load(self.store.seed_of(run)), self._build)

    def noise_matrix(self, noise: str) -> np.ndarray:
        """Return the share of each true class (row) that got each label (column), the mean over the seeds.

        Args:
            noise: One of the study's.

        Returns:
            ``(classes, classes)``; every row sums to 1.

        Raises:
            ValueError: If the study has no such noise.
        """
        matrices = [row["matrix"] for row in self.store.noises() if row["noise"] == repr(make_noise(noise))]
        if not matrices:
            raise ValueError(f"Study: noise must be one of {', '.join(self.settings.noise)}, got {noise!r}.")
        with self.store.explained(f"table noise, {noise}"):
            return np.asarray(np.mean(matrices, axis=0)).reshape(len(self.classes), len(self.classes))

    def noisy_labels(self, noise: str, seed: int) -> np.ndarray:
        """Return the labels of all rows of the data as this noise left them; rows of the test split have their own.

        Args:
            noise: One of the study's.
            seed: That of the run.

        Returns:
            A class for each row of the data.

        Raises:
            ValueError: If there is no run of this noise and seed.
        """
        labels = self.store.noisy_labels(repr(make_noise(noise)), seed)
        if labels is None:
            raise ValueError(f"Study: there is no run with noise {noise!r} and seed {seed}.")
        return labels
