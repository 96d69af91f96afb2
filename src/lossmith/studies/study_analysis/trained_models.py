"""Measurements for which the models run again: similarity of their layers, damaged inputs, features of other data.

Running models is most of what an analysis costs, so it is done for some replicates and some rows.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, product

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from lossmith.analysis.cka import MinibatchCKA, unbiased_gram
from lossmith.analysis.layers import LayerReader, input_batches
from lossmith.analysis.robustness import CorruptionErrors, corruption_errors, mean_corruption_error
from lossmith.analysis.run_tables import by_loss
from lossmith.data import PreparedData
from lossmith.data.sparse_rows import Inputs
from lossmith.studies.findings import LayerMaps
from lossmith.studies.progress import ProgressDisplay
from lossmith.studies.study_analysis.features import TRANSFER_ROWS, halves, relearned_accuracy, some_rows
from lossmith.studies.study_analysis.replicate_rows import ReplicateRows
from lossmith.studies.study_analysis.runs import KnownRun, LevelRuns
from lossmith.training.devices import CPU
from lossmith.training.models.sparse_layers import fitting_inputs

__all__ = ["TrainedModels"]

BATCH = 125
"""Rows of a batch. A layer's Gram matrix has the square of it."""
FEWEST_OF_CKA = 4
"""Rows that an unbiased estimate needs."""
_NOT_COMPARED = (nn.Flatten, nn.Dropout, nn.Identity, nn.Embedding, nn.RNNBase)
"""Layers that leave values as they are when a model predicts, or put out something for each word of a text."""


_WHOLE = {"backbone": "features", "head": "logits"}


class TrainedModels:
    """The models of the first replicates of each loss, with some rows of their test splits.

    Inputs are those of each model's own replicate, which encodes them as its training rows suggest.
    """

    def __init__(self, runs: LevelRuns, *, seeds: int, rows: int, device: torch.device = CPU) -> None:
        self.runs = runs.first_seeds(seeds)
        self.noise = runs.noise
        self.baseline = runs.study.settings.losses[0]
        self.models: dict[str, nn.Module] = {}
        self.inputs: dict[int, Inputs] = {}
        self.labels: dict[int, np.ndarray] = {}
        compared = rows_to_compare(runs.rows, sorted({run.seed for run in self.runs}), rows)
        self._compared: dict[tuple[int, int], dict[int, Inputs]] = {pair: {} for pair in compared}
        for seed in sorted({run.seed for run in self.runs}):  # the data of one replicate after another
            data = runs.study.load(seed)
            chosen = some_rows(len(data.test), rows)
            self.inputs[seed], self.labels[seed] = data.inputs[data.test[chosen]], runs.labels(seed)[chosen]
            self.models |= {run.name: runs.study.model(run.number).to(device) for run in self.runs if run.seed == seed}
            for pair in compared:
                if seed in pair:
                    self._compared[pair][seed] = data.inputs[data.test[compared[pair][seed]]]

    def layer_maps(self, display: ProgressDisplay) -> LayerMaps | None:
        """Return the CKA of every layer of every loss with every layer of every other.

        Models of different replicates are compared where there are enough rows that neither was trained on, those of the same
        otherwise. None where there are fewer rows than an unbiased estimate needs.
        """
        if any(len(inputs) < FEWEST_OF_CKA for pair in self._compared.values() for inputs in pair.values()):
            return None
        display.start(f"similarity of layers, {self.noise}", sum(len(self._of(*pair)) for pair in self._compared))
        found: dict[tuple[str, str], list[np.ndarray]] = {}
        layers: tuple[str, ...] = ()
        for first, second in self._compared:
            cka, layers = self._similarity(first, second, display)
            for (i, one), (j, other) in product(enumerate(self._of(first)), enumerate(self._of(second))):
                if one != other:
                    block = cka[i * len(layers) : (i + 1) * len(layers), j * len(layers) : (j + 1) * len(layers)]
                    found.setdefault((one.loss, other.loss), []).append(block)
                    if first != second:
                        found.setdefault((other.loss, one.loss), []).append(block.T)
        return self._averaged(found, layers)

    def _similarity(self, first: int, second: int, display: ProgressDisplay) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return the CKA of all layers of the models of two replicates, model by model, and the names of a model's layers."""
        inputs, cka = self._compared[first, second], MinibatchCKA()
        layers: tuple[str, ...] = ()
        readers = {seed: self._readers(seed) for seed in inputs}
        for batches in zip(*(input_batches(part, BATCH) for part in inputs.values()), strict=True):
            grams = {seed: _grams(readers[seed], batch) for seed, batch in zip(inputs, batches, strict=True)}
            layers = tuple(grams[first][0])  # those of all models are the same, since only heads and losses differ
            cka.update_grams(*([gram for model in grams[seed] for gram in model.values()] for seed in (first, second)))
            display.advance(len(self._of(first, second)) * len(batches[0]) / len(inputs[first]))
        return cka.result(), layers

    def _of(self, *seeds: int) -> list[KnownRun]:
        return [run for run in self.runs if run.seed in seeds]

    def _readers(self, seed: int) -> list[LayerReader[np.ndarray]]:
        models = [self.models[run.name] for run in self._of(seed)]
        return [LayerReader(model, unbiased_gram, compared_layers(model)) for model in models]

    def _averaged(self, found: Mapping[tuple[str, str], list[np.ndarray]], layers: Sequence[str]) -> LayerMaps:
        losses = tuple(dict.fromkeys(run.loss for run in self.runs))
        maps = np.full((len(losses), len(losses), len(layers), len(layers)), np.nan)
        for (one, other), blocks in found.items():
            maps[losses.index(one), losses.index(other)] = np.mean(blocks, axis=0)
        return LayerMaps(losses, layer_titles(next(iter(self.models.values())), layers), maps)

    def corruption_table(self, display: ProgressDisplay) -> pd.DataFrame | None:
        """Return error rates on clean and damaged inputs, and the mean corruption error relative to the baseline.

        None where inputs are words, which cannot be damaged a little.
        """
        if not all(inputs.is_floating_point() and inputs.dim() in (2, 4) for inputs in self.inputs.values()):
            return None
        errors = [
            (run.loss, corruption_errors(partial(outputs, model), self.inputs[run.seed], self.labels[run.seed]))
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


def _grams(readers: Sequence[LayerReader[np.ndarray]], batch: Inputs) -> list[dict[str, np.ndarray]]:
    return [reader(fitting_inputs(reader.model, batch)) for reader in readers]


def rows_to_compare(rows: ReplicateRows, seeds: Sequence[int], most: int) -> dict[tuple[int, int], dict[int, np.ndarray]]:
    """Return for each pair of replicates whose models are compared the rows to do it on, by their places in either test split.

    Args:
        rows: The test rows of the replicates.
        seeds: The replicates.
        most: The rows of a pair at most.

    Returns:
        Pairs of different replicates, where these can be compared; otherwise of each with itself.
    """
    pairs = list(combinations(seeds, 2)) if rows.are_comparable else []
    chosen = {}
    for first, second in pairs or [(seed, seed) for seed in seeds]:
        own, others = rows.shared(first, second)
        drawn = some_rows(len(own), most)
        chosen[first, second] = {first: own[drawn], second: others[drawn]}
    return chosen


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


def outputs(model: nn.Module, inputs: Inputs) -> Tensor:
    """Return what the model puts out, batch by batch, wherever it is."""
    device = next((weight.device for weight in model.parameters()), CPU)
    with torch.no_grad():
        parts = [model(fitting_inputs(model, batch.to(device))).cpu() for batch in input_batches(inputs, BATCH)]
    return torch.cat(parts)


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
