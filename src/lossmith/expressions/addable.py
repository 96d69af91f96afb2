"""What an expression may add and multiply, as the reader is told by whoever has a catalogue."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["NOTHING", "Addable"]


@dataclass(frozen=True)
class Addable:
    """What of a catalogue can be added and multiplied, is given options, and may have presets.

    Its classes have ``presets``, parameters by number of classes, and ``for_classes``, which makes one of them or says why not.
    """

    kind: type[Any]
    """The base class of all of them."""
    combine: Callable[[Sequence[tuple[float, Any]]], Any]
    """Makes one from factors and parts."""
    options: tuple[str, ...] = ()
    """The keywords that each of them takes beside its own."""

    def makes(self, factory: Callable[..., Any]) -> bool:
        """Return whether what the factory makes can be added.

        Args:
            factory: What the catalogue has under a name.

        Returns:
            True if it makes something of the kind.
        """
        return isinstance(factory, type) and issubclass(factory, self.kind)


NOTHING = Addable(type("Nothing", (), {}), lambda parts: parts)
"""Where no part of a catalogue can be added."""
