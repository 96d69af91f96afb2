"""Lossmith: which loss should I train my classifier with?

Classification losses that each drop in for ``torch.nn.CrossEntropyLoss``, exact and fast.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from lossmith.data import load_data, make_noise  # noqa: F401
    from lossmith.early_learning import *  # noqa: F403
    from lossmith.escaping import *  # noqa: F403
    from lossmith.experiments import Study, compare, open_study  # noqa: F401
    from lossmith.heads import *  # noqa: F403
    from lossmith.loss_scheduler import *  # noqa: F403
    from lossmith.losses import *  # noqa: F403
    from lossmith.losses.top_k_prediction import *  # noqa: F403
    from lossmith.losses.top_k_temperature import *  # noqa: F403
    from lossmith.numerics.symmetric_polynomials import *  # noqa: F403
    from lossmith.numerics.tempered import *  # noqa: F403
    from lossmith.objectives import *  # noqa: F403
    from lossmith.schedules import *  # noqa: F403

# Names are looked up in these modules when they are first used, so that `lossmith --help` does not wait for torch.
_HOMES = (
    "lossmith.losses",
    "lossmith.losses.top_k_prediction",
    "lossmith.losses.top_k_temperature",
    "lossmith.numerics.symmetric_polynomials",
    "lossmith.numerics.tempered",
    "lossmith.schedules",
    "lossmith.loss_scheduler",
    "lossmith.heads",
    "lossmith.objectives",
    "lossmith.escaping",
    "lossmith.early_learning",
)

# What needs more than torch is named here, so that looking up another name does not import it.
_EXPERIMENTS = {
    "Study": "lossmith.experiments",
    "compare": "lossmith.experiments",
    "load_data": "lossmith.data",
    "make_noise": "lossmith.data",
    "open_study": "lossmith.experiments",
}


def __getattr__(name: str) -> Any:
    if name in _EXPERIMENTS:
        return _from_experiments(name)
    if name == "__all__":  # asked for by `from lossmith import *`
        return __dir__()
    if not name.startswith("_"):
        for home in map(import_module, _HOMES):
            if name in home.__all__:
                return getattr(home, name)
        if find_spec(f"lossmith.{name}"):
            return import_module(f"lossmith.{name}")
    raise AttributeError(f"module 'lossmith' has no attribute {name!r}")


def _from_experiments(name: str) -> Any:
    try:
        return getattr(import_module(_EXPERIMENTS[name]), name)
    except ModuleNotFoundError as error:
        raise ImportError(f"lossmith.{name} needs {error.name}, which is not installed: pip install 'lossmith[all]'.") from error


def __dir__() -> list[str]:
    return sorted(["__version__", *_EXPERIMENTS, *(name for home in map(import_module, _HOMES) for name in home.__all__)])
