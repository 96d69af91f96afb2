"""The figures that ``lossmith figure NAME`` draws (extra ``report``)."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, cast

__all__ = ["FIGURES", "draw"]


class Figure(NamedTuple):
    """Where a figure is drawn and what it shows."""

    home: str
    summary: str


FIGURES: dict[str, Figure] = {
    "topk": Figure(
        "lossmith.plots.top_k", "smooth top-k loss: sparsity of its gradient by temperature, and its shape for three classes"
    ),
    "tempered": Figure("lossmith.plots.tempered", "tempered functions, and decision boundaries under four kinds of noise"),
    "focus": Figure("lossmith.plots.focus", "gradient against the target's probability, for mixes of CE and EL"),
}
"""Every figure by name. The module has a function ``draw(folder) -> sequence of files``; it is imported when asked for."""


def draw(name: str, folder: Path) -> Sequence[Path]:
    """Draw a figure into a folder and return the files."""
    try:
        home = import_module(FIGURES[name].home)
    except ModuleNotFoundError as error:
        raise ValueError(f"figure needs {error.name}, which is not installed: pip install 'lossmith[report]'.") from error
    folder.mkdir(parents=True, exist_ok=True)
    return cast("Callable[[Path], Sequence[Path]]", home.draw)(folder)
