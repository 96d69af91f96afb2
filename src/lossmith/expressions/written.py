"""Where the parts of an expression stand in its text, so that the text can be changed part by part."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lossmith.expressions.printed_form import printed_value

__all__ = ["Change", "WrittenPart", "changed_text"]


@dataclass(frozen=True)
class Change:
    """Text in place of what stands from ``start`` to ``end``; an insertion where the two are the same."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class WrittenPart:
    """A part of an expression: a call by name, with what it was given, or a sum."""

    name: str
    """What was called; empty for a sum."""
    start: int
    end: int
    made: Any
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """What the call was given by position, by keyword or by a preset."""
    places: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """From where to where those of them stand that the text itself has; by number what has no name of its own."""

    def holds(self, other: "WrittenPart") -> bool:
        """Return whether another part stands within this one.

        Args:
            other: A part of the same expression.

        Returns:
            True if it does; a part does not hold itself.
        """
        return self.start <= other.start and other.end <= self.end and other is not self

    def given(self, text: str, arguments: Mapping[str, object]) -> list[Change]:
        """Return the changes that give a call other or further arguments.

        Args:
            text: The whole expression.
            arguments: The arguments by keyword.

        Returns:
            What replaces those that it has, and one insertion of those that it has not.

        >>> WrittenPart("gce", 2, 5, None).given("2*gce", {"q": 0.5})
        [Change(start=5, end=5, text='(q=0.5)')]
        """
        written = {key: printed_value(value) for key, value in arguments.items()}
        changes = [Change(*self.places[key], value) for key, value in written.items() if key in self.places]
        more = ", ".join(f"{key}={value}" for key, value in written.items() if key not in self.places)
        return [*changes, self._insertion(text, more)] if more else changes

    def _insertion(self, text: str, more: str) -> Change:
        if text[self.end - 1] != ")":
            return Change(self.end, self.end, f"({more})")
        before = text[self.start : self.end - 1].rstrip()
        comma = " " if before.endswith(",") else "" if before.endswith("(") else ", "
        return Change(self.start + len(before), self.end - 1, f"{comma}{more}")


def changed_text(text: str, changes: Iterable[Change]) -> str:
    """Return a text with changes made to it.

    Args:
        text: The expression.
        changes: Changes that do not overlap; those at one place are made in the order given.

    Returns:
        The new text.

    >>> changed_text("ce + mae", [Change(5, 8, "el"), Change(0, 0, "2*")])
    '2*ce + el'
    """
    pieces, done = [], 0
    for change in sorted(changes, key=lambda each: each.start):
        pieces += [text[done : change.start], change.text]
        done = change.end
    return "".join([*pieces, text[done:]])
