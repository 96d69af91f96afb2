"""Measurements for which the models run again: similarity of their layers, damaged inputs, features of other data.

Running models is most of what an analysis costs, so it is done for some seeds and some rows.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from lossmith.analysis.cka import MinibatchCKA, unbiased_gram
from lossmith.analysis.layers import LayerReader, input_batches
from lossmith.analysis.prediction_agreement import pair_averages
from lossmith.analysis.robustness import CorruptionErrors, corruption_errors, mean_corruption_error
from lossmith.analysis.run_tables import by_loss
from lossmith.data import PreparedData
from lossmith.studies.findings import LayerMaps
from lossmith.studies.progress import ProgressDisplay
from lossmith.studies.study_analysis.features import TRANSFER_ROWS, halves, relearned_accuracy, some_rows
from lossmith.studies.study_analysis.runs import KnownRun, LevelRuns, across_seeds

__all__ = ["TrainedModels"]

BATCH = 125
"""Rows of a batch. A layer's Gram matrix has the square of it."""
_NOT_COMPARED = (nn.Flatten, nn.Dropout, nn.Identity, nn.Embedding, nn.RNNBase)
"""Layers that leave values as they are when a model predicts, or put out something for each word of a text."""


_WHOLE = {"backbone": "features", "head": "logits"}


class TrainedModels:
    """The models of the first seeds of each loss, with some rows of the test split."""

    def __init__(self, runs: LevelRuns, *, seeds: int, rows: int) -> None:
        data = runs.study.load()
        chosen = some_rows(len(data.test), rows)
        self.runs = runs.first_seeds(seeds)
        self.noise = runs.noise
        self.baseline = runs.study.settings.losses[0]
        self.models = {run.name: runs.study.model(run.number) for run in self.runs}
        self.inputs = data.inputs[data.test[chosen]]
        self.labels = runs.study.test_labels[chosen]

    def layer_maps(self, display: ProgressDisplay) -> LayerMaps | None:
        """Return the CKA of every layer of every loss with every layer of every other, from one pass of all models.

        None where there are fewer rows than an unbiased estimate needs.
        """
        if len(self.inputs) < 4:
            return None
        readers = [LayerReader(model, unbiased_gram, compared_layers(model)) for model in self.models.values()]
        display.start(f"similarity of layers, {self.noise}", len(readers))
        cka = MinibatchCKA()
        layers: tuple[str, ...] = ()
        for batch in input_batches(self.inputs, BATCH):
            grams = [reader(batch) for reader in readers]
            layers = tuple(grams[0])  # those of all models are the same, since only heads and losses differ
            joined = [gram for model in grams for gram in model.values()]
            cka.update_grams(joined, joined)
            display.advance(len(readers) * len(batch) / len(self.inputs))
        return self._averaged(cka.result(), layers)

    def _averaged(self, cka: np.ndarray, layers: Sequence[str]) -> LayerMaps:
        depth, losses = len(layers), [run.loss for run in self.runs]
        seeds = [run.seed for run in self.runs] if across_seeds(self.runs) else None
        maps = [[pair_averages(cka[i::depth, j::depth], losses, seeds).to_numpy() for j in range(depth)] for i in range(depth)]
        titles = layer_titles(next(iter(self.models.values())), layers)
        return LayerMaps(tuple(dict.fromkeys(losses)), titles, np.moveaxis(np.array(maps), (0, 1), (2, 3)))

    def corruption_table(self, display: ProgressDisplay) -> pd.DataFrame | None:
        """Return error rates on clean and damaged inputs, and the mean corruption error relative to the baseline.

        None where inputs are words, which cannot be damaged a little.
        """
        if not self.inputs.is_floating_point() or self.inputs.dim() not in (2, 4):
            return None
        errors = [
            (run.loss, corruption_errors(partial(outputs, model), self.inputs, self.labels))
            for run, model in self._one_by_one("damaged inputs", display)
        ]
        reference = _mean_errors([found for loss, found in errors if loss == self.baseline])
        return by_loss((loss, _error_row(found, reference)) for loss, found in errors)

    def transfer_table(self, other: PreparedData, display: ProgressDisplay) -> pd.DataFrame:
        """Return the accuracy of logistic regression on the features of other data, learned on half of its rows."""
        labels = (other.labels if other.true_labels is None else other.true_labels).numpy()
        fit, judge = halves(labels, TRANSFER_ROWS)
        measured = []
        for run, model in self._one_by_one(f"transfer to {other.name}", display):
            features = outputs(model.get_submodule("backbone"), other.inputs).numpy()
            measured.append((run.loss, {other.name: relearned_accuracy(features, labels, fit, judge)}))
        return by_loss(measured)

    def _one_by_one(self, what: str, display: ProgressDisplay) -> Iterator[tuple[KnownRun, nn.Module]]:
        display.start(f"{what}, {self.noise}", len(self.runs))
        for run in self.runs:
            yield run, self.models[run.name]
            display.advance(1)


def compared_layers(model: nn.Module) -> list[str]:
    """Return the layers of a classifier that are compared: parts of the backbone, or all of it, and the final one.

    >>> from lossmith.training.models.named_models import make_backbone
    >>> from lossmith.objectives.objective import Classifier
    >>> compared_layers(Classifier(make_backbone("mlp", (64,)), nn.Linear(128, 10)))
    ['backbone.1', 'backbone.2', 'backbone.3', 'backbone.4', 'head']
    """
    parts = [(name, part) for name, part in model.named_modules() if name.count(".") == 1 and name.startswith("backbone.")]
    opened = [inner for name, part in parts for inner in _blocks(name, part)]
    changing = [name for name, part in opened if not isinstance(part, _NOT_COMPARED)]
    return [*(changing or ["backbone"]), "head"]


def layer_titles(model: nn.Module, layers: Sequence[str]) -> tuple[str, ...]:
    """Return layers as people know them: by kind, numbered in the order in which they run.

    >>> layer_titles(nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Conv2d(2, 2, 3)), ["0", "1", "2"])
    ('conv 1', 'relu 1', 'conv 2')
    """
    kinds: list[str] = []
    titles = []
    for layer in layers:
        kind = re.sub(r"^_|^max|\dd$", "", type(model.get_submodule(layer)).__name__.lower())
        kinds.append(kind)
        titles.append(_WHOLE.get(layer, f"{kind} {kinds.count(kind)}"))
    return tuple(titles)


def _blocks(name: str, part: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the blocks of a sequence, or the part itself."""
    inner = list(part.named_children()) if isinstance(part, nn.Sequential) else []
    return [(f"{name}.{number}", block) for number, block in inner] or [(name, part)]


def outputs(model: nn.Module, inputs: Tensor) -> Tensor:
    """Return what the model puts out, batch by batch."""
    with torch.no_grad():
        return torch.cat([model(batch) for batch in input_batches(inputs, BATCH)])


def _mean_errors(found: Sequence[CorruptionErrors]) -> CorruptionErrors | None:
    """Return the errors averaged over runs, or None where all of the baseline's diverged."""
    if not found:
        return None
    errors = np.mean([each.errors for each in found], axis=0)
    return CorruptionErrors(float(np.mean([each.clean for each in found])), found[0].corruptions, errors)


def _error_row(found: CorruptionErrors, reference: CorruptionErrors | None) -> dict[str, float]:
    by_corruption = dict(zip(found.corruptions, found.errors.mean(1).tolist(), strict=True))
    relative = {} if reference is None else {"relative": mean_corruption_error(found, reference)}
    return {"clean": found.clean, **by_corruption, **relative}
