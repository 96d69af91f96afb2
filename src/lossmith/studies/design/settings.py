"""What a study is to do, as it is written on the command line, in a file, or in Python."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from lossmith.data import make_noise
from lossmith.data.class_balance import check_weighting
from lossmith.expressions.limits import is_whole
from lossmith.expressions.nearest import nearest
from lossmith.expressions.quotes import quote
from lossmith.objectives.named_objectives import make_objective
from lossmith.objectives.schedules import Schedule
from lossmith.studies.design.tuned_ranges import Tuned, read_tuned
from lossmith.studies.design.usual_training import UNFINISHED, completed_recipe
from lossmith.studies.measures import METRICS
from lossmith.studies.tracking.tracker import TRACKERS
from lossmith.training.recipe import Cell, Recipe

__all__ = ["CLEAN", "Settings"]

CLEAN = repr(make_noise("0"))
"""The labels as they are."""

LOSSES = ("ce", "focal", "label-smoothing", "sce", "gce", "bi-tempered", "logit-bias(mae)")
"""The losses that are compared unless others are named."""
MOST_RUNS = 1_000_000
"""The trainings of one study."""
OWN = "own training"
"""Stands for whatever a function of the user's own trains."""
OPTIMIZED = ("learning_rate", "weight_decay")
WHERE_TUNED = ("own", "clean")
DRAWS = ("common", "own")
FEWEST_SEEDS, MOST_SEEDS = 5, 20
USUAL_TRIALS = 9


@dataclass(frozen=True)
class Settings:
    """A study: data, losses, label noise, replicates, how settings are tuned, and how each run is trained."""

    data: str = "digits"
    losses: tuple[str, ...] = ()
    """The first is the baseline. None stands for a sensible set."""
    noise: tuple[str, ...] = ("0", "0.2")
    seeds: int = 0
    """Replicates of the whole procedure; 0 stands for as many as fit, five at least."""
    trials: int = 0
    """Settings that are tried for each loss, noise and replicate; 0 stands for nine, or fewer where time is short."""
    rates: tuple[float, ...] = ()
    """The learning rates that are tried, instead of rates drawn from the usual range of the optimizer."""
    decays: tuple[float, ...] = ()
    """The weight decays that are tried, instead of decays drawn from the usual range."""
    loss_rates: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """The learning rates that are tried for a loss instead of ``rates``, by its name; as many for each loss."""
    loss_decays: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """The same of weight decays."""
    tune: tuple[str, ...] = ("settings",)
    """What is tuned: ``settings`` (learning rate and weight decay), ``parameters`` of the losses, too, and whatever has a range
    of its own, such as ``learning_rate=1e-4:0.1``."""
    tune_on: str = "own"
    """Where settings are chosen: on each noise's ``own`` rows, or on ``clean`` ones for all, as papers do."""
    metric: str = "accuracy"
    """By which settings are chosen and losses are compared."""
    class_weight: str = "none"
    """``balanced`` weighs classes by how rare they are among the training rows."""
    draws: str = "common"
    """Whether losses of a replicate have initial weights, batches and trials in ``common``, or each its ``own``, by its name."""
    minutes: float = 0.0
    """The time that the study may take; 0 stands for the usual."""
    train_rows: int = 0
    """Training rows of each replicate at most; 0 stands for all."""
    references: bool = True
    """Whether classical models are trained beside the losses."""
    num_classes: int = 0
    """For losses whose parameters depend on it, where a function of the user's own trains; otherwise the data tells."""
    processes: int = 1
    """How many processes call a training function of the user's own together, for one trial."""
    clean_validation: bool = False
    """Whether the validation split keeps its labels where the training split's are corrupted."""
    published: str = ""
    """The recipe of a paper that the other settings come from, by its name; empty where there is none."""
    track: tuple[str, ...] = ()
    """The experiment trackers that are told of runs and results."""
    loading: Mapping[str, Any] = field(default_factory=dict)
    recipe: Recipe = UNFINISHED

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "losses", tuple(self.losses))
        set_(self, "noise", tuple(dict.fromkeys(repr(make_noise(noise)) for noise in self.noise)))
        set_(self, "rates", tuple(float(rate) for rate in self.rates))
        set_(self, "decays", tuple(float(decay) for decay in self.decays))
        for name in ("loss_rates", "loss_decays"):
            set_(self, name, {loss: tuple(map(float, numbers)) for loss, numbers in getattr(self, name).items()})
        set_(self, "tune", ("settings", *(what for what in dict.fromkeys(self.tune) if what != "settings")))
        set_(self, "track", tuple(dict.fromkeys(self.track)))
        set_(self, "metric", self.metric.replace("-", "_"))
        self._check()

    def _check(self) -> None:
        if not self.noise:
            raise ValueError("compare: noise must name at least one, got none.")
        (often, times), *_ = Counter(self.losses).most_common(1) or [("", 0)]
        if times > 1:
            raise ValueError(f"compare: losses must differ, got {quote(often)} twice.")
        if not is_whole(self.seeds) or self.seeds < 0:
            raise ValueError(f"compare: seeds must be a whole number >= 1, got {quote(self.seeds)}.")
        if not is_whole(self.trials) or self.trials < 0:
            raise ValueError(f"compare: trials must be a whole number >= 1, got {quote(self.trials)}.")
        for name, value, known in (
            ("tune_on", self.tune_on, WHERE_TUNED),
            ("metric", self.metric, METRICS),
            ("draws", self.draws, DRAWS),
            *(("tune", what, ("settings", "parameters")) for what in self.tune if "=" not in what),
            *(("track", name, tuple(TRACKERS)) for name in self.track),
        ):
            if value not in known:
                raise ValueError(f"compare: {name} must be one of {', '.join(known)}, got {quote(value)}{nearest(value, known)}")
        check_weighting(self.class_weight)
        if not all(rate > 0 for rate in self.rates):
            raise ValueError(f"compare: rates must be > 0, got {min(self.rates)!r}.")
        if not all(decay >= 0 for decay in self.decays):
            raise ValueError(f"compare: decays must be >= 0, got {min(self.decays)!r}.")
        self._check_settings_of_losses()
        self._check_what_only_functions_take()
        if self.tuned_noise == (CLEAN,) and CLEAN not in self.noise:
            raise ValueError(f"compare: tune_on 'clean' needs noise 0 among the noises, got {', '.join(self.noise)}.")
        if self.planned() > MOST_RUNS:
            raise ValueError(
                f"compare: a study must have {MOST_RUNS:,} runs at most, got {quote(self.planned())}; take fewer seeds."
            )

    def _check_what_only_functions_take(self) -> None:
        """Raise an error for a setting that only a training function of the user's own could read."""
        if self.is_own:
            return
        if self.processes > 1:
            raise ValueError(f"compare: processes needs a training function of your own, got {self.processes} without one.")
        for name in self.tuned:
            if name not in OPTIMIZED:
                raise ValueError(f"compare: tune can give a range to {' and '.join(OPTIMIZED)}, got {quote(name)}.")

    def _check_settings_of_losses(self) -> None:
        """Raise an error unless every loss has as many settings to try as the others."""
        if not self.losses:
            return
        for name in ("loss_rates", "loss_decays"):
            for loss in getattr(self, name):
                if loss not in self.losses:
                    hint = nearest(loss, self.losses)
                    raise ValueError(f"compare: {name} must name losses of the study, got {quote(loss)}{hint}")
        trials = {loss: len(self.rates_of(loss)) * max(1, len(self.decays_of(loss))) for loss in self.losses}
        if self.gives_rates and len(set(trials.values())) > 1:
            counts = ", ".join(f"{count} for {loss}" for loss, count in trials.items())
            raise ValueError(f"compare: loss_rates and loss_decays must give every loss as many trials, got {counts}.")

    def completed(self, model: str, train_rows: int, augment: str = "none", losses: Sequence[str] = LOSSES) -> "Settings":
        """Return the settings with what depends on the data filled in, where it was not given.

        Args:
            model: The one that suits the data.
            train_rows: How many rows are trained on.
            augment: How images of the data may be changed.
            losses: Those that are worth their time on it.

        Returns:
            Settings with a model, how it is trained, and losses.
        """
        recipe = completed_recipe(self.recipe, model, train_rows, augment)
        return replace(self, recipe=recipe, losses=self.losses or tuple(losses))

    def as_before(self, stored: "Settings") -> "Settings":
        """Return the settings with what the user left open as an earlier call of the same study found it."""
        recipe = replace(
            self.recipe,
            **{
                name: getattr(stored.recipe, name)
                for name in ("model", "epochs", "batch_size", "optimizer", "schedule", "augment", "precision")
                if getattr(self.recipe, name) == getattr(UNFINISHED, name)
            },
        )
        found = {name: getattr(self, name) or getattr(stored, name) for name in ("losses", "seeds", "trials", "train_rows")}
        return replace(self, recipe=recipe, **found)

    @property
    def tuned(self) -> Mapping[str, Tuned]:
        """What is looked for in a range of its own, by name."""
        return _ranges(self.tune)

    @property
    def is_own(self) -> bool:
        """Whether a function of the user's own trains."""
        return self.recipe.model == OWN

    @property
    def searched(self) -> bool:
        """Return whether there is more than one setting to choose from."""
        return self.trials_of_a_cell > 1

    @property
    def trials_of_a_cell(self) -> int:
        """How many settings are tried for a loss, noise and replicate."""
        if self.gives_rates:  # as many for every loss
            loss = next(iter(self.losses or self.loss_rates), "")
            return len(self.rates_of(loss)) * max(1, len(self.decays_of(loss)))
        if self.is_own and not self.tuned and "parameters" not in self.tune:
            return 1
        return self.trials or USUAL_TRIALS

    @property
    def gives_rates(self) -> bool:
        """Return whether the learning rates are the user's, and not drawn."""
        return bool(self.rates or self.loss_rates)

    def rates_of(self, loss: str) -> tuple[float, ...]:
        """Return the learning rates that are tried for a loss; none where they are drawn."""
        return self.loss_rates.get(loss, self.rates)

    def decays_of(self, loss: str) -> tuple[float, ...]:
        """Return the weight decays that are tried for a loss; none where they are drawn."""
        return self.loss_decays.get(loss, self.decays)

    @property
    def tuned_noise(self) -> tuple[str, ...]:
        """The noises on which settings are chosen; all of them where there is nothing to choose."""
        return (CLEAN,) if self.tune_on == "clean" and self.searched else self.noise

    @property
    def cells(self) -> list[Cell]:
        """What counts: every loss under every noise in every replicate, replicate by replicate."""
        seeds = range(self.seeds or FEWEST_SEEDS)
        return [Cell(loss, noise, seed) for seed in seeds for noise in self.noise for loss in self.losses]

    def planned(self) -> int:
        """Return the number of trainings, as far as it is known before: edges and second chances add to it."""
        tuned, seeds = len(self.tuned_noise), self.seeds or FEWEST_SEEDS
        return len(self.losses) * seeds * (tuned * self.trials_of_a_cell + len(self.noise) - tuned)

    def as_json(self) -> dict[str, Any]:
        """Return the settings in plain numbers, text, lists and dictionaries."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Settings":
        """Return the settings that :meth:`as_json` gave."""
        recipe = Recipe(**{**stored["recipe"], "keep": tuple(stored["recipe"]["keep"])})
        return cls(**{**stored, "recipe": recipe})

    def check_objectives(self, own: Mapping[str, Any]) -> None:
        """Raise an error for a loss that nobody knows, neither the catalogue nor the user, or whose schedules do not fit."""
        known: dict[str, str] = {}
        for loss in self.losses:
            if loss not in own:
                objective = make_objective(loss)
                for schedule in objective.schedules.values():
                    assert isinstance(schedule, Schedule)
                    if self.recipe.epochs:
                        schedule.check_total(self.recipe.epochs)
                same = known.setdefault(repr(replace(objective, name="same")), loss)
                if same != loss:
                    raise ValueError(f"compare: losses must differ, got {quote(same)} and {quote(loss)}, which are the same.")

    def flat(self) -> dict[str, Any]:
        """Return every setting but the data by the name it has in a file and on the command line."""
        left = ("data", "published", "loading", "recipe")
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in left}
        return {"recipe": self.published, **own, **self.loading, **vars(self.recipe)}


@lru_cache(maxsize=100)  # a study asks for every trial anew
def _ranges(tune: tuple[str, ...]) -> Mapping[str, Tuned]:
    return MappingProxyType(dict(read_tuned(what) for what in tune if "=" in what))
