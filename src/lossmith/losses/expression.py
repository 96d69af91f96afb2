"""Losses, schedules and objectives from text: ``make_loss("1.0*nce + 20*mae")``.

Grammar::

    sum      = term { "+" term }
    term     = [ number "*" ] atom
    atom     = name [ "@" preset ] [ "(" [ argument { "," argument } ] ")" ]  |  "(" sum ")"
    argument = [ key "=" ] value, where a key may be a path such as losses.1.q
    value    = sum  |  number  |  "true"  |  "false"  |  word  |  [ dtype ] "[" number { "," number } "]"
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeGuard

import torch

from lossmith.losses.contract import ClassificationLoss, Options
from lossmith.nearest import nearest

__all__ = ["ExpressionReader"]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[A-Za-z_]\w*(?:[-.]\w+)*)|(?P<sign>[-+*@(),=\[\]]))"
)


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


class ExpressionReader:
    """Reads one expression against a catalogue of what can be called by name: losses, schedules, objectives."""

    def __init__(
        self,
        text: str,
        catalogue: Mapping[str, Callable[..., Any]],
        options: Options | None = None,
        *,
        caller: str = "make_loss",
        kind: str = "loss",
    ) -> None:
        if not isinstance(text, str):
            raise TypeError(f"{caller}: expression must be text, got {type(text).__name__}.")
        self._text = text
        self._catalogue = catalogue
        self._options = options or {}
        self._caller = caller
        self._kind = kind
        self._tokens = list(_tokens(text, caller))
        self._next = 0

    def read(self) -> Any:
        """Return what the whole text describes."""
        try:
            result = self._sum()
        except RecursionError:
            raise ValueError(f"{self._caller}: too many parentheses within one another, got {self._text[:40]!r}...") from None
        if self._peek().kind != "end":
            raise self._error("the end")
        return result

    def _sum(self) -> Any:
        result = self._term()
        while self._accept("+"):
            result = self._loss(result) + self._loss(self._term())
        return result

    def _term(self) -> Any:
        if self._peek().kind != "number":
            return self._atom()
        factor = self._number()
        self._expect("*")
        return factor * self._loss(self._atom())

    def _loss(self, part: object) -> ClassificationLoss:
        if not isinstance(part, ClassificationLoss):
            raise ValueError(f"{self._caller}: only losses can be added and multiplied, got {self._text!r}.")
        return part

    def _atom(self) -> Any:
        if self._accept("("):
            result = self._sum()
            self._expect(")")
            return result
        if self._peek().kind != "name":
            raise self._error(f"{'an' if self._kind[0] in 'aeiou' else 'a'} {self._kind}")
        token = self._take()
        if token.text not in self._catalogue:
            hint = nearest(token.text, self._catalogue)
            advice = " 'lossmith list' names all." if self._kind in ("loss", "objective") else ""
            if not advice and hint == ".":
                hint = f"; known are {', '.join(self._catalogue)}."
            raise ValueError(f"{self._caller}: unknown {self._kind} {token.text!r} in {self._text!r}{hint}{advice}")
        factory = self._catalogue[token.text]
        preset = self._preset(token.text, factory) if self._accept("@") else {}
        arguments, keywords = self._arguments() if self._accept("(") else ([], {})
        return self._build(factory, token.text, arguments, {**preset, **keywords})

    def _build(self, factory: Callable[..., Any], name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        owner = factory.__name__ if isinstance(factory, type) else name
        self._check_keywords(factory, owner, keywords)
        options: Mapping[str, Any] = {}
        if _is_loss(factory):
            keywords = {key: _as_float32(value) if isinstance(value, list) else value for key, value in keywords.items()}
            wraps = any(isinstance(value, ClassificationLoss) for value in (*arguments, *keywords.values()))
            options = {} if wraps else self._options  # a wrapper has the options of what it wraps
        keywords = {**options, **keywords}
        try:
            inspect.signature(factory).bind(*arguments, **keywords)
        except TypeError as error:
            raise ValueError(f"{owner}: {error} in {self._text!r}.") from error
        try:
            return factory(*arguments, **keywords)
        except TypeError as error:
            raise ValueError(str(error)) from error

    def _check_keywords(self, factory: Callable[..., Any], owner: str, keywords: Iterable[str]) -> None:
        parameters = inspect.signature(factory).parameters.values()
        names = [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
        if _is_loss(factory):
            names += Options.__annotations__
        elif len(names) < len(parameters):
            return  # it takes any keyword, and says itself what it knows
        for key in keywords:
            if key not in names:
                hint = nearest(key, names)
                known = f"; it has {', '.join(names) or 'none'}." if hint == "." else hint
                raise ValueError(f"{owner}: unknown parameter {key!r} in {self._text!r}{known}")

    def _preset(self, name: str, factory: Callable[..., Any]) -> dict[str, Any]:
        token = self._take()
        if not _is_loss(factory):
            raise ValueError(f"{self._caller}: {name} has no presets, got {self._text!r}.")
        if token.kind != "number" or not token.text.isdigit():
            raise self._error("a number of classes", token)
        classes = int(token.text)
        factory.for_classes(classes)  # raises where there is no such preset
        return dict(factory.presets[classes])

    def _arguments(self) -> tuple[list[Any], dict[str, Any]]:
        arguments: list[Any] = []
        keywords: dict[str, Any] = {}
        while not self._accept(")"):
            if self._peek().kind == "name" and self._peek(1).text == "=":
                key = self._take().text
                self._take()
                if key in keywords:
                    raise ValueError(f"{self._caller}: {key} must be given once, got {self._text!r}.")
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
        if token.text.lower() in ("true", "false"):
            return self._take().text.lower() == "true"
        if token.text in ("mean", "sum", "none"):
            return self._take().text
        return self._sum()

    def _list(self) -> list[float] | torch.Tensor:
        """Return numbers as they are, for whoever takes them has a type for them; a written type makes a tensor."""
        dtype = self._dtype() if self._peek().kind == "name" else None
        self._expect("[")
        numbers = []
        while not self._accept("]"):
            numbers.append(self._number())
            if not self._accept(","):
                self._expect("]")
                break
        return numbers if dtype is None else torch.tensor(numbers, dtype=dtype)

    def _dtype(self) -> torch.dtype:
        dtype = getattr(torch, self._take().text, None)
        if not isinstance(dtype, torch.dtype):
            raise self._error("a floating-point type", self._tokens[self._next - 1])
        return dtype

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
        return ValueError(f"{self._caller}: expected {expected} in {self._text!r}, got {got}.")


def _tokens(text: str, caller: str) -> Iterable[_Token]:
    position = 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            column = position + len(text[position:]) - len(text[position:].lstrip())
            raise ValueError(f"{caller}: cannot read {text[column]!r} at column {column + 1} of {text!r}.")
        yield _Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup))
        position = match.end()
    yield _Token("end", "", len(text))


def _as_float32(numbers: list[float]) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float32)


def _is_loss(factory: Callable[..., Any]) -> TypeGuard[type[ClassificationLoss]]:
    return isinstance(factory, type) and issubclass(factory, ClassificationLoss)
