"""The words of an expression: names, numbers and signs."""

import re
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from lossmith.expressions.quotes import quote

__all__ = ["LONGEST_EXPRESSION", "Token", "Tokens"]

LONGEST_EXPRESSION = 1_000_000
"""Characters: room for the class weights of some ten thousand classes."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[A-Za-z_]\w*(?:[-.]\w+)*)|(?P<sign>[-+*@(),=\[\]])"
    r"|(?P<end>\Z)|(?P<unknown>.))",
    re.DOTALL,
)


class Token(NamedTuple):
    """A name, a number, a sign or the end, and where it stands."""

    kind: str
    text: str
    position: int


class Tokens:
    """The tokens of a text, one after another, with a look at the next two. What is never reached is never cut.

    Args:
        text: The expression.
        caller: Whom errors name.

    Raises:
        TypeError: If the expression is not text.
        ValueError: If it is longer than ``LONGEST_EXPRESSION``, or, once it is reached, at a sign that none can begin with.

    >>> tokens = Tokens("2*ce", "make_loss")
    >>> tokens.take().text, tokens.peek().text, tokens.peek(1).text
    ('2', '*', 'ce')
    """

    def __init__(self, text: str, caller: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"{caller}: expression must be text, got {type(text).__name__}.")
        if len(text) > LONGEST_EXPRESSION:
            raise ValueError(
                f"{caller}: expression must be of {LONGEST_EXPRESSION:,} characters at most, got {len(text):,}: {quote(text, 40)}"
            )
        self._rest = _cut(text, caller)
        self._seen: deque[Token] = deque()
        self.taken_to = 0
        """Where the last token that was taken ends."""

    def peek(self, ahead: int = 0) -> Token:
        """Return the next token, or one after it; after the end comes the end.

        Args:
            ahead: How many tokens to skip.

        Returns:
            The token, which stays where it is.

        Raises:
            ValueError: If a sign cannot be read.
        """
        while len(self._seen) <= ahead:
            if self._seen and self._seen[-1].kind == "end":
                return self._seen[-1]
            self._seen.append(next(self._rest))
        return self._seen[ahead]

    def take(self) -> Token:
        """Return the next token and go on to the one after it, unless it is the end.

        Returns:
            The token.

        Raises:
            ValueError: If a sign cannot be read.
        """
        token = self.peek()
        if token.kind != "end":
            self._seen.popleft()
            self.taken_to = token.position + len(token.text)
        return token


def _cut(text: str, caller: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "end"
        token = Token(kind, match[kind], match.start(kind))
        if kind == "unknown":
            raise ValueError(f"{caller}: cannot read {token.text!r} at column {token.position + 1} of {quote(text)}.")
        yield token
        if kind == "end":
            return
