"""Lossmith: which loss should I train my classifier with?

Classification losses that each drop in for ``torch.nn.CrossEntropyLoss``, exact and fast. What people type most is here; the
rest is in namespaces, such as ``lossmith.analysis`` and ``lossmith.theory``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:  # a name imported as itself is one that others may import from here
    # isort: off
    from lossmith import (
        analysis as analysis,
        data as data,
        distributed as distributed,
        integrations as integrations,
        kernels as kernels,
        linear as linear,
        losses as losses,
        numerics as numerics,
        objectives as objectives,
        plots as plots,
        recipes as recipes,
        report as report,
        statistics as statistics,
        studies as studies,
        theory as theory,
        training as training,
    )
    from lossmith.data import load_data as load_data, make_noise as make_noise
    from lossmith.integrations.scikit_learn import LossmithClassifier as LossmithClassifier
    from lossmith.linear import LinearLoss as LinearLoss, linear_loss as linear_loss
    from lossmith.losses import *
    from lossmith.objectives import LossScheduler as LossScheduler, make_objective as make_objective
    from lossmith.studies.compare import compare as compare
    from lossmith.studies.labels.inspect_labels import inspect_labels as inspect_labels
    from lossmith.studies.study import Study as Study, open_study as open_study
    from lossmith.theory import advise as advise
    # isort: on

_NAMESPACES = (
    "analysis",
    "data",
    "distributed",
    "integrations",
    "kernels",
    "linear",
    "losses",
    "numerics",
    "objectives",
    "plots",
    "recipes",
    "report",
    "statistics",
    "studies",
    "theory",
    "training",
)

# Names are looked up when they are first used, so that `lossmith --help` does not wait for torch, and those of the namespace
# `losses` in its catalogue, so that a new loss is here without a line of its own.
_HOMES = {
    "LinearLoss": "lossmith.linear",
    "LossScheduler": "lossmith.objectives",
    "LossmithClassifier": "lossmith.integrations",
    "Study": "lossmith.studies",
    "advise": "lossmith.theory",
    "compare": "lossmith.studies",
    "inspect_labels": "lossmith.studies",
    "linear_loss": "lossmith.linear",
    "load_data": "lossmith.data",
    "make_noise": "lossmith.data",
    "make_objective": "lossmith.objectives",
    "open_study": "lossmith.studies",
}

# In their namespaces alone: what losses are made with, parts of losses, and sums of two that go by names such as `nce-mae`.
_ELSEWHERE = {
    "ClassificationLoss": "lossmith.losses",
    "ComplementEntropyLoss": "lossmith.losses",
    "LOSSES": "lossmith.losses",
    "NormalizedCrossEntropyAGCELoss": "lossmith.losses",
    "NormalizedCrossEntropyMAELoss": "lossmith.losses",
    "NormalizedFocalMAELoss": "lossmith.losses",
    "TargetProbabilityLoss": "lossmith.losses",
    "WeightedSum": "lossmith.losses",
    "search_space": "lossmith.objectives",
    "solve_logit_bias": "lossmith.theory",
    "transfer_parameters": "lossmith.theory",
    "with_parameters": "lossmith.objectives",
}


def __getattr__(name: str) -> Any:
    if name == "__all__":  # asked for by `from lossmith import *`
        return _names()
    if name in _NAMESPACES:
        return import_module(f"lossmith.{name}")
    if name in _HOMES:
        from lossmith.lazy_names import imported

        return imported(name, _HOMES[name], "lossmith")
    if not name.startswith("_") and name in _names_of_losses():
        return getattr(import_module("lossmith.losses"), name)
    where = f"; it is in {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
    raise AttributeError(f"module 'lossmith' has no attribute {name!r}{where}")


def __dir__() -> list[str]:
    return sorted(["__version__", *_NAMESPACES, *_names()])


def _names() -> list[str]:
    return sorted([*_HOMES, *_names_of_losses()])


def _names_of_losses() -> list[str]:
    """Return the classes of losses, and what finds one by name; functions on predictions stay in their namespace."""
    losses = import_module("lossmith.losses")
    classes = [name for name in losses.__all__ if isinstance(getattr(losses, name), type) and name not in _ELSEWHERE]
    return ["make_loss", *classes]
