"""What an analysis found, as it is kept in the study's file."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["Analysis", "LayerMaps"]


@dataclass(frozen=True, eq=False)
class LayerMaps:
    """CKA between the layers of models trained with different losses (figure 3 of Kornblith et al. 2021)."""

    losses: tuple[str, ...]
    layers: tuple[str, ...]
    """In the order in which they run."""
    cka: np.ndarray
    """``(losses, losses, layers, layers)``: averages over pairs of runs, NaN where there are none. Where the
    study has more than one seed, the runs of a pair have different ones."""

    def between(self, first: str, second: str) -> np.ndarray:
        """Return the map ``(layers of the first, layers of the second)``.

        Args:
            first: The loss of the rows.
            second: The loss of the columns.

        Returns:
            A similarity for each pair of layers.

        Raises:
            ValueError: If a loss was not analysed.
        """
        return np.asarray(self.cka[self.losses.index(first), self.losses.index(second)])

    def of_layer(self, layer: str) -> pd.DataFrame:
        """Return the similarity of one layer between losses ``(losses, losses)``.

        Args:
            layer: One of ``layers``.

        Returns:
            A similarity for each pair of losses.

        Raises:
            ValueError: If there is no such layer.
        """
        number = self.layers.index(layer)
        return pd.DataFrame(self.cka[:, :, number, number], self.losses, self.losses)


@dataclass(frozen=True, eq=False)
class Analysis:
    """What was measured of the runs of one noise level. What the study did not keep enough for is None."""

    noise: str
    calibration: pd.DataFrame
    """NLL and ECE before and after temperature scaling: mean and standard error, a row for each loss (table 3)."""
    agreement: dict[str, pd.DataFrame]
    """``same_prediction``, ``both_right_or_wrong`` and ``same_mistake``, averages over pairs of runs ``(losses, losses)``,
    with different seeds where the study has more than one."""
    run_agreement: pd.DataFrame
    """The share of equal predictions ``(runs, runs)``, in the order of the dendrogram."""
    brackets: tuple[tuple[tuple[float, float], ...], ...]
    """For each join of the dendrogram four corners (position, 1 - similarity)."""
    ensembles: pd.DataFrame | None = None
    """Accuracy of majority votes within and between losses ``(losses, losses)``, where losses have two runs."""
    separation: pd.DataFrame | None = None
    """Class separation by three distances (table 4)."""
    features: pd.DataFrame | None = None
    """Share of features that are not zero, and effective ranks of features and of class centroids."""
    transfer: pd.DataFrame | None = None
    """Accuracy of logistic regression on frozen features (table 5)."""
    layers: LayerMaps | None = None
    corruption: pd.DataFrame | None = None
    """Error rates on damaged inputs."""
    notes: tuple[str, ...] = field(default=())
    """What was left out, and why."""

    def as_json(self) -> dict[str, Any]:
        """Return plain numbers, text, lists and dictionaries."""
        return {each.name: _written(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Analysis":
        """Return the analysis that :meth:`as_json` wrote."""
        read = {name: _read(value) for name, value in stored.items()}
        layers = read["layers"]
        read["layers"] = layers and LayerMaps(tuple(layers["losses"]), tuple(layers["layers"]), np.asarray(layers["cka"]))
        read["brackets"] = tuple(tuple((x, y) for x, y in bracket) for bracket in read["brackets"])
        return cls(**{**read, "notes": tuple(read["notes"])})


def _written(value: Any) -> Any:
    if isinstance(value, pd.DataFrame):
        return {"index": list(value.index), "columns": list(value.columns), "data": value.to_numpy(float).tolist()}
    if isinstance(value, LayerMaps):
        return {"losses": value.losses, "layers": value.layers, "cka": value.cka.tolist()}
    return {name: _written(part) for name, part in value.items()} if isinstance(value, dict) else value


def _read(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if set(value) != {"index", "columns", "data"}:
        return {name: _read(part) for name, part in value.items()}
    columns = value["columns"]
    nested = bool(columns) and isinstance(columns[0], list)
    return pd.DataFrame(value["data"], value["index"], pd.MultiIndex.from_tuples(columns) if nested else columns)
