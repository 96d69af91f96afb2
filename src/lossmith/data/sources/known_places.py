"""Where the files of well-known data are, and what to say where they are not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from lossmith.expressions.lists import listed
from lossmith.expressions.nearest import nearest

__all__ = ["FOLDER_VARIABLE", "Search"]

FOLDER_VARIABLE = "LOSSMITH_DATA"
"""The environment variable that names a folder to look in first."""

_NODE_MODULES = "node_modules"


@dataclass(frozen=True)
class Search:
    """Where to look for the files of one set, and what to say where they are not."""

    name: str
    part: str
    folder: Path | None
    advice: str
    exact: bool
    """Whether the folder was given for this set, rather than for all."""

    def place(self, *below: str, holds: str, npm: str = "", package: str = "", system: Path | None = None) -> Path:
        """Return the first place with such a file: below the user's folder, that itself if it is exact, or among packages.

        Args:
            *below: What the set may be called in the user's folder.
            holds: A pattern that one file at least must match.
            npm: The folder within ``node_modules``.
            package: The folder within the installed Python packages, the first part of it being a package.
            system: A folder of the operating system.

        Returns:
            The folder.

        Raises:
            ValueError: If none holds such a file, with all places in which it was looked for.
        """
        inner = [*below, *filter(None, [npm, npm and f"{_NODE_MODULES}/{npm}", package])]
        own = [] if self.folder is None else [*(self.folder / name for name in inner), *([self.folder] if self.exact else [])]
        usual = [root / npm for root in _module_folders()] if npm else []
        installed = _in_package(package) if package else None
        for place in (*own, *usual, *(place for place in (installed, system) if place is not None)):
            if any(place.glob(holds)):
                return place
        told = [f"{_NODE_MODULES}/{npm} here and above"] if npm else []
        told += [f"the Python package {package.partition('/')[0]}"] if package else []
        raise self.missing(holds, [*map(str, own), *told, *([str(system)] if system is not None else [])])

    def missing(self, what: str, places: Sequence[str]) -> ValueError:
        """Return the error that says what was looked for in which places, and how to get the data.

        Args:
            what: The file or package.
            places: Where it is not.

        Returns:
            The error, for the caller to raise.
        """
        absent = f"; there is no folder {self.folder}" if self.folder is not None and not self.folder.is_dir() else ""
        hint = "" if self.folder is not None else f"; --folder or {FOLDER_VARIABLE} can name the folder that holds it"
        looked = f"looked for {what} in {listed(places, most=20)}{absent}"
        return ValueError(f"load_data: {self.name!r} is not on this machine: {looked}. Get it by {self.advice}{hint}.")

    def chosen(self, known: list[str]) -> str:
        """Return the part of the family that was asked for.

        Args:
            known: The parts that there are.

        Returns:
            One of them.

        Raises:
            ValueError: If it is none of them.
        """
        if self.part not in known:
            asked = (
                f"no {self.name}:{self.part}{nearest(self.part, known)}"
                if self.part
                else f"say which, as {self.name}:{known[0]}."
            )
            raise ValueError(f"load_data: {asked} There are {listed(known, most=20)}.")
        return self.part


def _module_folders() -> Iterator[Path]:
    """Return the folders that npm installs into: here and above, and for everybody."""
    here = Path.cwd()
    for folder in (here, *here.parents, Path("/usr/lib"), Path("/usr/local/lib")):
        yield folder / _NODE_MODULES


def _in_package(path: str) -> Path | None:
    """Return a folder of an installed Python package, without importing it."""
    name, _, inner = path.partition("/")
    found = find_spec(name)
    if found is None or not found.submodule_search_locations:
        return None
    return Path(found.submodule_search_locations[0]) / inner
