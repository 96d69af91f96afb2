"""Successive halving: all trials of a cell start, the better ones go on.

One of those that would be stopped goes on as well, drawn by chance. It stands for all of them when the study asks what an
untuned training would have given, which the best trials alone cannot tell.

References: Jamieson and Talwalkar 2016; Li et al. 2018.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lossmith.training.merit import Merit, best_first
from lossmith.training.recipe import Cell, Run
from lossmith.training.seeds import derived_seed

__all__ = ["Judge", "Race"]

Judge = Callable[[np.ndarray, np.ndarray], Merit]
"""From probabilities and labels of the validation rows to what they say of a trial."""


@dataclass(frozen=True)
class Race:
    """When trials are compared, by what, and how many go on."""

    epoch: int
    """After which trials are stopped."""
    kept: int
    """Trials of a cell that go on for their merit."""
    judge: Judge

    def stands_for(self, runs: Sequence[Run], merits: Sequence[Merit]) -> list[float]:
        """Return for each run how many trials it represents from now on; those that represent none are stopped.

        Args:
            runs: Trials of one cell or several.
            merits: What their validation rows say of them.

        Returns:
            A number for each run.
        """
        standing = [0.0] * len(runs)
        for cell, places in _by_cell(runs).items():
            ordered = [places[number] for number in best_first([merits[place] for place in places])]
            for place in ordered[: self.kept]:
                standing[place] = 1.0
            if behind := ordered[self.kept :]:
                drawn = derived_seed(cell.seed, f"trial that goes on {cell.loss} {cell.noise}") % len(behind)
                standing[sorted(behind)[drawn]] = float(len(behind))
        return standing


def _by_cell(runs: Sequence[Run]) -> Mapping[Cell, list[int]]:
    cells: dict[Cell, list[int]] = {}
    for place, run in enumerate(runs):
        cells.setdefault(run.cell, []).append(place)
    return cells
