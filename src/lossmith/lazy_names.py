"""Namespaces whose names are imported when they are first used, so that each name needs only what its own module needs."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["imported", "lazy_names"]


def lazy_names(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return what a package needs to import its public names on demand.

    Args:
        package: The name of the package.
        homes: The public names of each of its modules, by the module's name within the package.

    Returns:
        The package's ``__all__``, ``__getattr__`` and ``__dir__``.

    Raises:
        ValueError: If a name is that of a module of the package, too: importing the module would hide the name.

    >>> names, look_up, _ = lazy_names("lossmith.expressions", {"nearest": ["nearest_word"], "limits": ["Limits"]})
    >>> names, look_up("Limits").__name__
    (['Limits', 'nearest_word'], 'Limits')
    """
    home_of = {name: home for home, names in homes.items() for name in names}
    hidden = sorted(set(home_of) & set(homes))
    if hidden:
        raise ValueError(f"lazy_names: names of {package} must differ from those of its modules, got {hidden[0]!r} for both.")

    def look_up(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return imported(name, f"{package}.{home_of[name]}", package)

    return sorted(home_of), look_up, lambda: sorted(home_of)


def imported(name: str, home: str, namespace: str) -> Any:
    """Import a name from its home, for a namespace that shows it.

    Args:
        name: What is imported.
        home: The module that holds it.
        namespace: Where the user asked for it, which an error names.

    Returns:
        What the name stands for.

    Raises:
        ImportError: If the module needs a library that is not installed, with the command that installs it.
    """
    try:
        return getattr(import_module(home), name)
    except ModuleNotFoundError as error:
        needed = f"{namespace}.{name} needs {error.name}, which is not installed"
        raise ImportError(f"{needed}: pip install 'lossmith[all]'.") from error
