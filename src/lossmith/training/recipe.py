"""What is trained: one run, and the recipe that all runs of a study share."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

__all__ = ["CURVES", "Cell", "Recipe", "Run", "Trained"]

CURVES = ("train_loss", "train_accuracy", "validation_accuracy", "test_accuracy", "false_label_accuracy", "memorised")
"""What is measured after every epoch."""


@dataclass(frozen=True)
class Recipe:
    """How every run of a study is trained."""

    model: str = "mlp"
    epochs: int = 40
    batch_size: int = 64
    optimizer: str = "sgd"
    """``sgd`` with momentum, or ``adam``, ``adamw``, ``adadelta``."""
    schedule: str = "cosine"
    """Of the learning rate: ``constant``, ``cosine``, ``steps``, ``warmup-cosine``, ``exponential``, or one of them with numbers:
    ``steps(60, 120, 160, factor=0.2, epochs=200)``."""
    momentum: float = 0.9
    """Of ``sgd``; 0 for none."""
    nesterov: bool = True
    """Whether momentum looks ahead, as Nesterov's does."""
    decay_vectors: bool = True
    """Whether biases and the scales of normalisation layers get weight decay, too."""
    clipping: float = 0.0
    """The largest norm that a gradient may have; 0 for none, and in a study for what is usual: 1 where an encoder is trained."""
    mixup: float = 0.0
    """Parameter of the Beta distribution that mixing weights are drawn from; 0 mixes nothing."""
    augment: str = "none"
    """How images are changed at random in training: ``none``, or some of ``crop``, ``flip``, ``policy``, ``cutout``."""
    precision: str = "float32"
    """In which layers below the final one compute: ``float32``, which is that of the data, or ``bfloat16``."""
    averaging: float = 0.0
    """Decay of the moving average of the weights that predicts; 0 predicts with the weights themselves."""
    patience: int = 0
    """Epochs without a better validation accuracy after which a run stops; 0 never stops early."""
    select: str = "last"
    """Which epoch's predictions count: the ``last``, or the ``best`` on the validation split."""
    keep: tuple[str, ...] = ()
    """What to keep of each run besides its test logits: ``features`` of the test split, ``weights`` of the model."""


class Run(NamedTuple):
    """One training: what distinguishes it from the other runs of its study."""

    loss: str
    """The expression of an objective, or the name of a loss that the user brought."""
    noise: str
    """The printed form of the label noise."""
    seed: int
    """The replicate: it draws the split, the initial weights, the batches, the wrong labels and the trials."""
    learning_rate: float
    weight_decay: float = 0.0
    parameters: str = ""
    """Parameters of the loss that are tuned, as its expression has them: ``q=0.5``."""
    epochs: int = 0
    """Where they are more than those of the recipe, on a second chance; 0 otherwise."""

    @property
    def cell(self) -> "Cell":
        """What trials compete for: one loss under one noise in one replicate."""
        return Cell(self.loss, self.noise, self.seed)


class Cell(NamedTuple):
    """A loss under a noise in a replicate: of its trials, one counts."""

    loss: str
    noise: str
    seed: int


@dataclass
class Trained:
    """What one run gave."""

    run: Run
    curves: dict[str, list[float]]
    """By name, a number for each epoch: ``train_loss``, ``train_accuracy`` (on the labels as given), ``validation_accuracy``,
    ``test_accuracy``, ``false_label_accuracy`` (on training rows whose label is wrong: share predicted as their true class) and
    ``memorised`` (share of the same rows predicted as the wrong label); the last two are NaN where no label is wrong.
    All are NaN after a run has stopped early or diverged."""
    epoch: int
    """The epoch whose predictions count, from 1; 0, before training, where a run diverged in the first."""
    test_logits: np.ndarray
    """``(rows of the test split, classes)``, in single precision."""
    test_probabilities: np.ndarray
    """The same after the ``predict_proba`` of the loss."""
    seconds: float
    """Of training, of this run's share of a stack."""
    validation_probabilities: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.float32))
    """``(rows of the validation split, classes)``."""
    diverged: bool = False
    """Whether the loss or a logit stopped being finite."""
    stopped: bool = False
    """Whether better trials went on without it."""
    stands_for: float = 1.0
    """How many trials of its cell it represents: a trial that was stopped none, the one that went on in the place of those
    that were stopped all of them, and itself."""
    test_features: np.ndarray | None = None
    """``(rows of the test split, features)``: what the final layer saw."""
    weights: dict[str, Tensor] = field(default_factory=dict)
    """The ``state_dict`` of the model."""
    memory: float = math.nan
    """Bytes that the process of the run held at most beyond what it held before: of a stack, this run's share."""

    @property
    def predicts_softmax(self) -> bool:
        """Whether the probabilities are those of a plain softmax, which the logits tell more exactly."""
        if not len(self.test_logits):
            return False
        return np.array_equal(self.test_probabilities, torch.softmax(torch.from_numpy(self.test_logits), 1).numpy())
