"""Losses from text: ``make_loss("1.0*nce + 20*mae")``.

Grammar::

    sum      = term { "+" term }
    term     = [ number "*" ] atom
    atom     = name [ "@" classes ] [ "(" [ argument { "," argument } ] ")" ]  |  "(" sum ")"
    argument = [ key "=" ] value
    value    = sum  |  number  |  "true"  |  "false"  |  word  |  [ dtype ] "[" number { "," number } "]"
"""

import difflib
import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import torch

from lossmith.losses.contract import ClassificationLoss, Options

__all__ = ["LossReader", "nearest"]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[A-Za-z_]\w*(?:-\w+)*)|(?P<sign>[-+*@(),=\[\]]))"
)


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


class LossReader:
    """Reads one expression against a catalogue of losses."""

    def __init__(self, text: str, catalogue: Mapping[str, type[ClassificationLoss]], options: Options) -> None:
        if not isinstance(text, str):
            raise TypeError(f"make_loss: expression must be text, got {type(text).__name__}.")
        self._text = text
        self._catalogue = catalogue
        self._options = options
        self._tokens = list(_tokens(text))
        self._next = 0

    def read(self) -> ClassificationLoss:
        """Return the loss that the whole text describes."""
        loss = self._sum()
        if self._peek().kind != "end":
            raise self._error("the end")
        return loss

    def _sum(self) -> ClassificationLoss:
        loss = self._term()
        while self._accept("+"):
            loss = loss + self._term()
        return loss

    def _term(self) -> ClassificationLoss:
        if self._peek().kind != "number":
            return self._atom()
        factor = self._number()
        self._expect("*")
        return factor * self._atom()

    def _atom(self) -> ClassificationLoss:
        if self._accept("("):
            loss = self._sum()
            self._expect(")")
            return loss
        if self._peek().kind != "name":
            raise self._error("a loss")
        token = self._take()
        if token.text not in self._catalogue:
            hint = nearest(token.text, self._catalogue)
            raise ValueError(f"make_loss: unknown loss {token.text!r} in {self._text!r}{hint} 'lossmith list' names all.")
        loss_class = self._catalogue[token.text]
        preset = self._preset(loss_class) if self._accept("@") else {}
        arguments, keywords = self._arguments() if self._accept("(") else ([], {})
        return self._build(loss_class, arguments, {**preset, **keywords})

    def _build(self, loss_class: type[ClassificationLoss], arguments: list[Any], keywords: dict[str, Any]) -> ClassificationLoss:
        known = inspect.signature(loss_class).parameters
        names = [name for name in known if name != "options"]
        for name in keywords:
            if name not in names and name not in Options.__annotations__:
                hint = nearest(name, [*names, *Options.__annotations__])
                raise ValueError(f"{loss_class.__name__}: unknown parameter {name!r} in {self._text!r}{hint}")
        wraps = any(isinstance(value, ClassificationLoss) for value in (*arguments, *keywords.values()))
        options = {} if wraps else self._options  # a wrapper has the options of what it wraps
        try:
            return loss_class(*arguments, **{**options, **keywords})
        except TypeError as error:
            raise ValueError(
                str(error) if ": " in str(error) else f"{loss_class.__name__}: {error} in {self._text!r}."
            ) from error

    def _preset(self, loss_class: type[ClassificationLoss]) -> dict[str, float]:
        token = self._take()
        if token.kind != "number" or not token.text.isdigit():
            raise self._error("a number of classes", token)
        classes = int(token.text)
        loss_class.for_classes(classes)  # raises where there is no such preset
        return dict(loss_class.presets[classes])

    def _arguments(self) -> tuple[list[Any], dict[str, Any]]:
        arguments: list[Any] = []
        keywords: dict[str, Any] = {}
        while not self._accept(")"):
            if self._peek().kind == "name" and self._peek(1).text == "=":
                key = self._take().text
                self._take()
                keywords[key] = self._value()
            else:
                arguments.append(self._value())
            if not self._accept(","):
                self._expect(")")
                break
        return arguments, keywords

    def _value(self) -> Any:
        token = self._peek()
        if token.kind == "number" and self._peek(1).text != "*":
            return self._number()
        if token.text == "[" or self._peek(1).text == "[":
            return self._list()
        if token.text in ("true", "false"):
            return self._take().text == "true"
        if token.text in ("mean", "sum", "none"):
            return self._take().text
        return self._sum()

    def _list(self) -> torch.Tensor:
        name = self._take().text if self._peek().kind == "name" else "float32"
        dtype = getattr(torch, name, None)
        if not isinstance(dtype, torch.dtype):
            raise self._error("a floating-point type", self._tokens[self._next - 1])
        self._expect("[")
        numbers = []
        while not self._accept("]"):
            numbers.append(self._number())
            if not self._accept(","):
                self._expect("]")
                break
        return torch.tensor(numbers, dtype=dtype)

    def _number(self) -> float | int:
        token = self._take()
        if token.kind != "number":
            raise self._error("a number", token)
        return int(token.text) if re.fullmatch(r"-?\d+", token.text) else float(token.text)

    def _peek(self, ahead: int = 0) -> _Token:
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def _take(self) -> _Token:
        token = self._peek()
        self._next += 1
        return token

    def _accept(self, sign: str) -> bool:
        if self._peek().text != sign:
            return False
        self._next += 1
        return True

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise self._error(repr(sign))

    def _error(self, expected: str, token: _Token | None = None) -> ValueError:
        token = token or self._peek()
        got = f"{token.text!r} at column {token.position + 1}" if token.kind != "end" else "the end"
        return ValueError(f"make_loss: expected {expected} in {self._text!r}, got {got}.")


def _tokens(text: str) -> Iterable[_Token]:
    position = 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            column = position + len(text[position:]) - len(text[position:].lstrip())
            raise ValueError(f"make_loss: cannot read {text[column]!r} at column {column + 1} of {text!r}.")
        yield _Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup))
        position = match.end()
    yield _Token("end", "", len(text))


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint at the known word that is most like the given one.

    >>> nearest("gec", ["gce", "mae"]), nearest("xyz", ["gce", "mae"])
    ("; did you mean 'gce'?", '.')
    """
    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {matches[0]!r}?" if matches else "."
