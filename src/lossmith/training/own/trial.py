"""One training of a study, as a function that the user brings meets it."""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lossmith.data.noise.feature_noise import InstanceNoise, LargeMarginNoise, SmallMarginNoise
from lossmith.data.noise.label_noise import RealisedNoise, realised
from lossmith.data.noise.named import make_noise
from lossmith.data.prepared import PreparedData
from lossmith.expressions.limits import Limits, is_whole
from lossmith.expressions.nearest import nearest
from lossmith.expressions.quotes import quote
from lossmith.objectives.objective import Objective
from lossmith.training.devices import CPU
from lossmith.training.recipe import CURVES, Run

__all__ = ["Curves", "Trial", "TrialStopped"]

Curves = dict[str, list[float]]
ALIASES = {"accuracy": "validation_accuracy", "loss": "train_loss"}
"""What people call the curves that matter most."""
OF_INPUTS = (SmallMarginNoise, LargeMarginNoise, InstanceNoise)
"""Label noise that depends on more than the labels."""


class TrialStopped(BaseException):
    """Raised by :meth:`Trial.report` where better trials go on without this one. Let it pass, or end the training on it.

    It is no :class:`Exception`, so that a training loop that catches everything does not go on by mistake.
    """


class Trial:
    """One training: which loss, under which noise, with which seed and settings.

    Args:
        run: What tells it from the other trainings of its study.
        objective: What is trained, or the user's own loss.
        settings: What is tuned, by name, and ``epochs`` where the study has them.
        folder: Where the training may keep what it needs to go on after a kill.
        device: What the study computes on.
        stop_after: The epoch after which it is judged whether it goes on; None if it does in any case.
        on_report: Called with every epoch that is reported.
    """

    def __init__(
        self,
        run: Run,
        objective: Objective | nn.Module,
        settings: Mapping[str, Any],
        folder: Path,
        *,
        device: torch.device = CPU,
        stop_after: int | None = None,
        on_report: Callable[[int], object] = lambda _: None,
    ) -> None:
        self.run = run
        self.objective = objective
        """The loss with its final layer, schedules and weight decay, for ``objective.build(backbone, num_classes)``."""
        self.loss: nn.Module = copy.deepcopy(objective.loss if isinstance(objective, Objective) else objective)
        """A loss module of this trial's own, ready to be called with logits and labels."""
        self.settings: Mapping[str, Any] = MappingProxyType(dict(settings))
        self.device = device
        """What the study computes on, where the training should, too; of several GPUs the one of this trial."""
        self.curves: Curves = {name: [] for name in CURVES}
        self.noise_made: RealisedNoise | None = None
        """What the noise came to, once :meth:`labels` was called."""
        self.noisy_labels: np.ndarray | None = None
        self._folder = folder
        self._stop_after = stop_after
        self._on_report = on_report

    def __repr__(self) -> str:
        return f"Trial({self.name!r}, noise={self.noise!r}, seed={self.seed}, settings={dict(self.settings)})"

    @property
    def name(self) -> str:
        """The name that the loss has in the study."""
        return self.run.loss

    @property
    def noise(self) -> str:
        """The label noise, in words."""
        return self.run.noise

    @property
    def seed(self) -> int:
        """The replicate, from 0: it should decide the split, the initial weights and the batches."""
        return self.run.seed

    @property
    def folder(self) -> Path:
        """A folder of this trial's own for checkpoints. A trial that was killed finds there what it left."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder

    def labels(
        self,
        labels: Any,
        rows: Any = None,
        *,
        inputs: Tensor | np.ndarray | None = None,
        num_classes: int | None = None,
        groups: Sequence[int] | None = None,
    ) -> Any:
        """Return labels with the noise of the study, the same for every loss of a replicate.

        Give it the labels of training and validation rows, never those of test rows. Which labels become wrong depends on the
        number of the row, the seed and the noise alone.

        Args:
            labels: The class of every row, as a tensor, an array or a list.
            rows: Those that are wanted, by number; all of them by default.
            inputs: Their inputs, a row each, where the noise depends on them.
            num_classes: How many classes there are; by default as many as the labels show.
            groups: The coarse group of each class, for noise within groups.

        Returns:
            The labels of these rows, of the kind that was given: a tensor for a tensor, else an array.

        Raises:
            ValueError: If these are not class indices, or the noise needs inputs or groups.
        """
        given = _class_indices(labels)
        classes = int(given.max()) + 1 if num_classes is None else num_classes
        wanted = torch.arange(len(given)) if rows is None else torch.as_tensor(np.asarray(rows), dtype=torch.long)
        noise = make_noise(self.noise)
        if isinstance(noise, OF_INPUTS) and inputs is None:
            raise ValueError(f"labels: noise {noise} depends on the inputs; give them by inputs=, got none.")
        noisy = noise.corrupt(_as_data(given, classes, inputs, groups), wanted, self.seed)
        self._write_down(given, wanted, noisy, classes)
        return noisy.to(labels) if isinstance(labels, Tensor) else noisy.numpy()

    def _write_down(self, given: Tensor, rows: Tensor, noisy: Tensor, classes: int) -> None:
        """Remember what the first call came to: that of the training rows."""
        if self.noise_made is None:
            self.noise_made = realised(given[rows], noisy, classes)
            self.noisy_labels = given.numpy().copy()
        assert self.noisy_labels is not None
        if len(self.noisy_labels) == len(given):
            self.noisy_labels[rows.numpy()] = noisy.numpy()

    def report(self, epoch: int, **measures: float) -> None:
        """Say how training goes: for the progress display and the curves, and to be stopped where better trials go on.

        Args:
            epoch: Which epoch is over, from 1.
            **measures: ``accuracy`` on validation rows, ``loss`` on training rows, or any curve of the study by its name.

        Raises:
            TrialStopped: If the trial is over here.
            ValueError: If a measure is unknown or not a number.
        """
        if not is_whole(epoch) or epoch < 1:
            raise ValueError(f"report: epoch must be a whole number >= 1, got {quote(epoch)}.")
        numbers = {ALIASES.get(name, name): _number(name, value) for name, value in measures.items()}
        for name in numbers.keys() - set(CURVES):
            known = [*ALIASES, *CURVES]
            raise ValueError(f"report: {quote(name)} must be one of {', '.join(known)}{nearest(name, known)}")
        for name, curve in self.curves.items():
            del curve[epoch - 1 :]  # of epochs that are trained again
            curve.extend([math.nan] * (epoch - 1 - len(curve)))
            curve.append(numbers.get(name, math.nan))
        self._on_report(epoch)
        judged = any(map(math.isfinite, self.curves["validation_accuracy"]))
        if judged and self._stop_after is not None and epoch >= self._stop_after:
            raise TrialStopped(f"stopped after epoch {epoch}")


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"report: {name} must be a number, got {quote(value)}.") from None


def _class_indices(labels: Any) -> Tensor:
    given = labels.detach().cpu() if isinstance(labels, Tensor) else torch.from_numpy(np.asarray(labels))
    if given.dim() != 1 or given.is_floating_point() or not len(given) or int(given.min()) < 0:
        raise ValueError(f"labels: must be class indices (rows,) from 0, got {given.dtype} of shape {tuple(given.shape)}.")
    return given.to(torch.long)


def _as_data(labels: Tensor, classes: int, inputs: Any, groups: Sequence[int] | None) -> PreparedData:
    """Return the rows as label noise takes them."""
    Limits(max(2, int(labels.max()) + 1), whole=True).check("num_classes", classes, owner="labels")
    numbers = torch.zeros(len(labels), 0) if inputs is None else torch.as_tensor(inputs, dtype=torch.float32)
    if len(numbers) != len(labels):
        raise ValueError(f"labels: inputs must have {len(labels)} rows, as the labels have, got {len(numbers)}.")
    none = torch.empty(0, dtype=torch.long)
    names = tuple(map(str, range(classes)))
    return PreparedData(
        "inputs of the trial",
        numbers,
        labels,
        names,
        train=torch.arange(len(labels)),
        validation=none,
        test=none,
        groups=None if groups is None else tuple(groups),
    )
