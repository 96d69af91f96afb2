"""One replicate, from its split to the runs that count: the whole procedure, again from the beginning for every seed.

Trials race; a best rate at the edge of those tried gets further ones beyond it; a loss that looks untrained gets a second
chance; then one trial of each cell counts. Every step asks the file what is missing, so that a replicate that was stopped goes
on where it was. What trains is somebody else's: the built-in trainer, or a function of the user's own.
"""

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, Protocol

from lossmith.studies.design.settings import CLEAN, Settings
from lossmith.studies.design.trials import trial_runs
from lossmith.studies.measures import MEASURES, merit_of
from lossmith.studies.progress import ProgressDisplay
from lossmith.studies.protocol.tuning import Stored, best_trial, edge_runs, second_chance_runs, trials_that_may_count
from lossmith.studies.storage.store import Store
from lossmith.studies.tracking.tracking import Tracking
from lossmith.training.race import Race
from lossmith.training.recipe import Cell, Run, Trained
from lossmith.training.workers import OnProgress, Progress

__all__ = ["Procedure", "ReplicateTrainer", "race_of"]


def race_of(settings: Settings) -> Race | None:
    """Return how trials compete: after a third of the epochs the better third goes on; None where there are few of either.

    After half of them costs 15 % more and was not seen to choose better (``python -m evidence.choice``).
    """
    epochs, trials = settings.recipe.epochs, settings.trials_of_a_cell
    if epochs < 3 or trials < 4 or settings.gives_rates:
        return None
    return Race(-(-epochs // 3), -(-trials // 3), partial(merit_of, settings.metric))


class ReplicateTrainer(Protocol):
    """What trains the runs of one replicate, and judges them."""

    own: Mapping[str, Any]
    """Losses that the user brought, by name: nothing is known of their parameters."""

    def begin(self, store: Store) -> None:
        """Store what the replicate drew, where that is known before training."""
        ...

    def train(
        self, runs: Sequence[Run], race: Race | None, *, epochs: int, finished: Collection[Run], store: Store, say: OnProgress
    ) -> Generator[list[Trained], None, None]:
        """Train the runs that are not finished, and yield what trained together as soon as it has."""
        ...

    def measures(self, trained: Trained) -> dict[str, float]:
        """Return what is measured of a run, on its test rows and on its validation rows, and store what came with it."""
        ...

    def stored(self, store: Store) -> None:
        """Let go of what was needed only until runs were stored."""
        ...

    def untrained(self, run: Stored, store: Store) -> str:
        """Return why a stored run looks untrained, or nothing."""
        ...

    def can_be_learnt(self, noise: str, store: Store) -> bool:
        """Return whether more training may help: not where the data shows nothing beyond its largest class."""
        ...

    def end(self, store: Store) -> None:
        """Let go of what only the replicate needed."""
        ...


@dataclass
class Procedure:
    """A replicate in the making."""

    settings: Settings
    seed: int
    store: Store
    display: ProgressDisplay
    trainer: ReplicateTrainer
    turn: AbstractContextManager[object] = field(default_factory=Lock)
    """Whoever holds it measures and writes: replicates that are trained at the same time take turns."""
    tracking: Tracking = field(default_factory=Tracking)
    _may_count: dict[Cell, list[Stored]] = field(default_factory=dict)
    """Trials of each cell among those that were stored here; of the others none will ever count."""

    def run(self) -> None:
        """Do what is missing, and store which runs count."""
        cells = [cell for cell in self.settings.cells if cell.seed == self.seed]
        if all(cell in self.store.choices() for cell in cells):
            return
        with self.turn:
            self.trainer.begin(self.store)
        tuned = [cell for cell in cells if cell.noise in self.settings.tuned_noise]
        self._train([run for cell in tuned for run in self._trials(cell)], race_of(self.settings), drawn=True)
        self._train_edges(tuned)
        self._train([self._as_on_clean_rows(cell) for cell in cells if cell not in set(tuned)])
        self._give_second_chances(cells)
        trials = self._trials_by_cell()
        best = {cell: best_trial(trials[cell]) for cell in cells}
        with self.turn:
            self.store.choose([(cell, one["id"], self.trainer.untrained(one, self.store)) for cell, one in best.items()])
            self.tracking.results(self.seed, best, MEASURES)
            self.trainer.end(self.store)

    def _trials(self, cell: Cell) -> list[Run]:
        return trial_runs(self.settings, cell, own=cell.loss in self.trainer.own)

    def _train_edges(self, cells: Sequence[Cell]) -> None:
        """Try rates beyond the best where that is at the edge of those tried, until it no longer is or enough were tried."""
        while True:
            trials = self._trials_by_cell()
            further = [run for cell in cells for run in edge_runs(self.settings, cell, trials[cell])]
            if not self._train(further):
                return

    def _as_on_clean_rows(self, cell: Cell) -> Run:
        """Return the run of a cell whose setting was chosen on clean labels."""
        best = best_trial(self._trials_by_cell()[cell._replace(noise=CLEAN)])
        return Run(*cell, best["learning_rate"], best["weight_decay"], best["parameters"])

    def _give_second_chances(self, cells: Sequence[Cell]) -> None:
        if not self.settings.searched or not self.settings.recipe.epochs:
            return
        trials = self._trials_by_cell()
        best = {cell: best_trial([trial for trial in trials[cell] if not trial["epochs"]]) for cell in cells}
        again = [cell for cell in cells if self._is_worth_another(best[cell])]
        runs = [run for cell in again for run in second_chance_runs(self.settings, cell, best[cell])]
        self._train(runs, epochs=max((run.epochs for run in runs), default=0))

    def _is_worth_another(self, run: Stored) -> bool:
        """Return whether a run looks untrained although its data can be learnt."""
        return bool(self.trainer.untrained(run, self.store)) and self.trainer.can_be_learnt(run["noise"], self.store)

    def _train(self, runs: Iterable[Run], race: Race | None = None, *, epochs: int = 0, drawn: bool = False) -> bool:
        """Train the runs that the file lacks, and return whether there were any.

        With ``drawn`` they are the trials that stand for what tuning may meet, and the trainer is called in any case: a kill may
        have left runs finished, and what goes beside them not.
        """
        wanted, finished = list(runs), self.store.finished()
        if all(run in finished for run in wanted) and not drawn:
            return False
        for found in self.trainer.train(wanted, race, epochs=epochs, finished=finished, store=self.store, say=self._say):
            with self.turn:
                self._keep(found, beyond=not drawn and self.settings.searched)
        return True

    def _say(self, progress: Progress) -> None:
        self.display.advance(progress.runs * (progress.epoch > 0) / (self.settings.recipe.epochs or progress.epochs))

    def _keep(self, stack: Sequence[Trained], *, beyond: bool) -> None:
        """Store a stack, with the predictions of those that may count."""
        measured = []
        cells: dict[Cell, list[Stored]] = {}
        for trained in stack:
            if beyond:  # not one of the trials that were drawn
                trained.stands_for = 0.0
            measures = self.trainer.measures(trained)
            measured.append((trained, measures))
            flags = {"run": trained.run, "stopped": trained.stopped, "diverged": trained.diverged}
            cells.setdefault(trained.run.cell, []).append({**trained.run._asdict(), **measures, **flags})
        for cell, trials in cells.items():
            ended = [trial for trial in trials if not trial["stopped"]] + self._may_count.get(cell, [])
            self._may_count[cell] = trials_that_may_count(ended)
        self.tracking.runs(measured)
        self.store.add(measured, keep={trial["run"] for trials in self._may_count.values() for trial in trials})
        self.trainer.stored(self.store)
        self.display.store(len(measured))

    def _trials_by_cell(self) -> dict[Cell, list[Stored]]:
        cells: dict[Cell, list[Stored]] = {}
        for run in self.store.runs(self.seed):
            cells.setdefault(Cell(run["loss"], run["noise"], run["seed"]), []).append(run)
        return cells
