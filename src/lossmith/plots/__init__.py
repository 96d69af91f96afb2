"""The figures that ``lossmith figure NAME`` draws (extra ``report``)."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, cast

__all__ = ["FIGURES", "Figure", "draw"]


class Figure(NamedTuple):
    """Where a figure is drawn and what it shows."""

    home: str
    summary: str
    takes_classes: bool = False
    """Whether it is drawn for numbers of classes, which ``draw(folder, classes)`` then takes; None means its own choice."""


FIGURES: dict[str, Figure] = {
    "topk": Figure(
        "lossmith.plots.top_k", "smooth top-k loss: sparsity of its gradient by temperature, and its shape for three classes"
    ),
    "tempered": Figure("lossmith.plots.tempered", "tempered functions, and decision boundaries under four kinds of noise"),
    "focus": Figure("lossmith.plots.focus", "gradient against the target's probability, for mixes of CE and EL"),
    "early-learning": Figure(
        "lossmith.plots.early_learning", "average error of a fresh network under several losses", takes_classes=True
    ),
    "logit-bias": Figure("lossmith.plots.logit_bias", "logit bias against the number of classes"),
    "solution-map": Figure("lossmith.plots.solution_map", "average error over two parameters, with the line of solutions"),
}
"""Every figure by name. The module has a function ``draw(folder) -> sequence of files``; it is imported when asked for."""


def draw(name: str, folder: Path, classes: Sequence[int] | None = None) -> Sequence[Path]:
    """Draw a figure into a folder and return the files; only some are drawn for numbers of classes.

    Args:
        name: One of ``FIGURES``.
        folder: Where files are written; it is made if need be.
        classes: Numbers of classes, for the figures that take them.

    Returns:
        The files that were written.

    Raises:
        KeyError: If there is no such figure.
        ValueError: If the figure takes no numbers of classes, or a library is missing.
    """
    if classes is not None and not FIGURES[name].takes_classes:
        takers = ", ".join(name for name, figure in FIGURES.items() if figure.takes_classes)
        raise ValueError(f"figure: {name} takes no --classes, only {takers} does.")
    try:
        home = import_module(FIGURES[name].home)
    except ModuleNotFoundError as error:
        raise ValueError(f"figure needs {error.name}, which is not installed: pip install 'lossmith[report]'.") from error
    folder.mkdir(parents=True, exist_ok=True)
    function = cast("Callable[..., Sequence[Path]]", home.draw)
    return function(folder, classes) if FIGURES[name].takes_classes else function(folder)


def __dir__() -> list[str]:
    return __all__
