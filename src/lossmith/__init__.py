"""Lossmith: which loss should I train my classifier with?

Classification losses that each drop in for ``torch.nn.CrossEntropyLoss``, exact and fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from lossmith.early_learning import *  # noqa: F403
    from lossmith.escaping import *  # noqa: F403
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


def __getattr__(name: str) -> Any:
    if name == "__all__":  # asked for by `from lossmith import *`
        return __dir__()
    if not name.startswith("_"):
        for home in map(import_module, _HOMES):
            if name in home.__all__:
                return getattr(home, name)
    raise AttributeError(f"module 'lossmith' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(["__version__", *(name for home in map(import_module, _HOMES) for name in home.__all__)])
