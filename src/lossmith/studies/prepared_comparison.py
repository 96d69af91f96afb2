"""Losses compared on data by the built-in trainer."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from lossmith.data import PreparedData, class_counts
from lossmith.objectives.named_objectives import make_objective
from lossmith.objectives.objective import Objective, filled_in
from lossmith.studies.budget.cost import measured_cost
from lossmith.studies.budget.time_plan import TimePlan, plan_in_time
from lossmith.studies.comparison import Comparison
from lossmith.studies.design.settings import Settings
from lossmith.studies.design.usual_losses import usual_losses
from lossmith.studies.labels.estimated_matrix import any_matrix
from lossmith.studies.progress import duration
from lossmith.studies.protocol.prepared_replicate import PreparedReplicate
from lossmith.studies.protocol.replicates import Replicates, overlap_of
from lossmith.studies.rehearsal import warnings_about
from lossmith.studies.storage.store import Store
from lossmith.studies.study import Study
from lossmith.theory.fitting import fitted_to_classes
from lossmith.training.job import Build
from lossmith.training.recipe import Recipe
from lossmith.training.stacks.composition import LARGEST_RACE

__all__ = ["PreparedComparison"]


@dataclass(kw_only=True)
class PreparedComparison(Comparison):
    """A study of networks by name, or of a model of the user's own, on data that has been read."""

    data: PreparedData
    build: Build | None = None
    """The user's own model."""
    source: Any = None
    """What the data of further replicates is read from; by default what the settings name."""
    reading: Settings | None = None
    """The settings with paths as they are found from here, where a study is gone on with elsewhere; by default as they are."""
    plan: TimePlan | None = None
    """What the study was found to cost."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source is None:
            self.source = self.settings.data
        self._replicates: Replicates | None = None

    @property
    def name(self) -> str:
        """Of the data."""
        return self.data.name

    @property
    def brought(self) -> Build | None:
        """The user's own model, if there is one."""
        return self.build

    @property
    def shrunk(self) -> str:
        """What was made smaller to fit into the time."""
        return self.plan.shrunk if self.plan else ""

    def fingerprint(self) -> str:
        """Return a digest of the data."""
        return self.data.fingerprint()

    def about_data(self) -> dict[str, Any]:
        """Return what is known of the data."""
        data = self.data
        rows = {name: len(getattr(data, name)) for name in ("train", "validation", "test")}
        about = {"source": self.settings.data, "name": data.name, "kind": data.kind, "rows": rows}
        class_rows = torch.bincount(data.labels[data.train], minlength=data.num_classes).tolist()
        return {**about, "classes": data.classes, "class_rows": class_rows, "notes": data.notes}

    def trainer(self, seed: int, store: Store) -> PreparedReplicate:
        """Return what trains a replicate, on a split of its own.

        Args:
            seed: The replicate.
            store: The study's file.

        Returns:
            The trainer.
        """
        if self._replicates is None:
            self._replicates = Replicates(self.reading or self.settings, self.source, self.data)
        data = self._replicates.data(seed)
        if seed == 1 and store.meta("overlap") is None:
            found = overlap_of(self.data, data)
            store.set_meta("overlap", [found.ratio, found.rows])
        return PreparedReplicate(self.settings, data, seed, self.losses, self.build, self.engine)

    def tasks_of_replicate(self) -> int:
        """Return about how many stacks there are, with the classical models of each noise beside them."""
        settings = self.settings
        runs = len(settings.losses) * len(settings.tuned_noise) * settings.trials_of_a_cell
        return -(-runs // LARGEST_RACE) + len(settings.noise) * settings.references

    def make_plan(self, asked: Recipe) -> None:
        """Measure what the study costs, and fill in what the user left open so that it fits into the time there is."""
        cost = measured_cost(self.settings, self.data, self.objectives(), build=self.build, engine=self.engine)
        self.plan = plan_in_time(self.settings, cost, asked=asked)
        self.settings = self.plan.settings

    def plan_lines(self) -> dict[str, str]:
        """Return what the data is, how it is trained, and what that costs."""
        data, recipe = self.data, self.settings.recipe
        parts = ", ".join(f"{len(getattr(data, part))} {part}" for part in ("train", "validation", "test"))
        return {
            "data": f"{data.name}: {parts} rows of shape {data.input_shape}, {data.num_classes} classes",
            "training": f"{recipe.model}, {recipe.epochs} epochs of batches of {recipe.batch_size}, {recipe.optimizer}",
            "time": self._time_text(),
            "shrunk": self.shrunk,
        }

    def _time_text(self) -> str:
        if not self.plan:
            return ""
        return ", ".join(filter(None, (f"about {duration(self.plan.seconds)}", self.plan.too_long)))

    def objectives(self) -> dict[str, nn.Module | Objective]:
        """Return what is trained, by the name it has in the settings."""
        classes = self.data.num_classes
        # What rows say of wrong labels takes trainings to find out; to rehearse and to measure the cost, any matrix will do.
        facts = {"counts": class_counts(self.data.labels[self.data.train], classes), "matrix": any_matrix(classes)}
        made = {
            loss: self.losses[loss] if loss in self.losses else make_objective(fitted_to_classes(loss, classes))
            for loss in self.settings.losses
        }
        return {loss: filled_in(objective, facts) for loss, objective in made.items()}

    def notes(self) -> list[str]:
        """Return what a user should know before training: about the data, and about what will hardly work."""
        usual = usual_losses(self.settings, self.data)
        about_losses = [f"losses: {usual.reason}"] if usual.reason and usual.losses == self.settings.losses else []
        return [*self.data.notes, *about_losses, *warnings_about(self.settings, self.data)]

    def from_python(self) -> str:
        """Return what only the same program can bring again, in words."""
        brought = {"a model of its own": self.build, "losses of its own": self.losses, "data of its own": not self.settings.data}
        return " and ".join(what for what, there in brought.items() if there)

    def study(self) -> Study:
        """Return the study, with its data and model at hand."""
        return Study(self.folder, self.source, self.build)
