"""Losses, schedules and objectives from text: ``make_loss("1.0*nce + 20*mae")``.

Grammar::

    sum      = term { "+" term }
    term     = [ number "*" ] atom
    atom     = name [ "@" preset ] [ "(" [ argument { "," argument } ] ")" ]  |  "(" sum ")"
    argument = [ key "=" ] value, where a key may be a path such as losses.1.q
    value    = sum  |  number  |  "true"  |  "false"  |  word  |  [ dtype ] "[" number { "," number } "]"

An expression has a million characters at most, ten thousand names, and a hundred parentheses within one another. The reader
knows nothing of what it makes but what its caller says: a catalogue of what can be called, and what of it can be added.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from lossmith.expressions.addable import NOTHING, Addable
from lossmith.expressions.making import made_by, tensor_of, without_list
from lossmith.expressions.nearest import nearest
from lossmith.expressions.quotes import quote, shortened
from lossmith.expressions.tokens import Token, Tokens
from lossmith.expressions.written import WrittenPart

__all__ = ["DEEPEST", "MOST_NAMES", "ExpressionReader"]

MOST_NAMES = 10_000
"""The losses, or whatever else can be called by name, of one expression."""
DEEPEST = 100
"""The parentheses within one another."""
_LONGEST_NUMBER = 1000
_LONGEST_PRESET = 20
_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_WORDS = ("mean", "sum", "none")


class ExpressionReader:
    """Reads one expression against a catalogue of what can be called by name: losses, schedules, objectives.

    Args:
        text: The expression.
        catalogue: What can be called, by name.
        options: Keywords for whatever can be added, unless it wraps another that has them already.
        addable: What of the catalogue can be added and multiplied; nothing if not given.
        caller: Whom errors name.
        kind: What errors call what is read.

    >>> ExpressionReader("pair(1, b=[2, 3])", {"pair": lambda a, b: (a, b)}, caller="make_pair", kind="pair").read()
    (1, [2, 3])
    """

    def __init__(
        self,
        text: str,
        catalogue: Mapping[str, Callable[..., Any]],
        options: Mapping[str, Any] | None = None,
        *,
        addable: Addable | None = None,
        caller: str = "make_loss",
        kind: str = "loss",
    ) -> None:
        self._text = text
        self._catalogue = catalogue
        self._options = options or {}
        self._addable = addable or NOTHING
        self._caller = caller
        self._kind = kind
        self._tokens = Tokens(text, caller)
        self._depth = 0
        self._names = 0
        self.written: list[WrittenPart] = []
        """The calls and sums that have been read, inner ones before those that hold them."""

    def read(self) -> Any:
        """Return what the whole text describes.

        Raises:
            ValueError: If it cannot be read, or what it describes cannot be made. The line names the place.
        """
        try:
            result = self._sum()
        except RecursionError:  # the caller's own functions may have left little room
            raise self._too_deep() from None
        if self._peek().kind != "end":
            raise self._error("the end")
        return result

    def _sum(self) -> Any:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._too_deep()
        start = self._peek().position
        terms = [self._term()]
        while self._accept("+"):
            terms.append(self._term())
        self._depth -= 1
        factor, alone = terms[0]
        if len(terms) == 1 and factor is None:
            return alone
        whole = self._addable.combine([(1.0 if factor is None else factor, self._part(part)) for factor, part in terms])
        self.written.append(WrittenPart("", start, self._tokens.taken_to, whole))
        return whole

    def _term(self) -> tuple[float | None, Any]:
        written = self._peek()
        if written.kind != "number":
            return None, self._atom()
        self._number()
        self._expect("*")
        return float(written.text), self._atom()  # infinity, where a whole number is too large, is for the sum to refuse

    def _part(self, part: object) -> Any:
        if not isinstance(part, self._addable.kind):
            raise ValueError(f"{self._caller}: only losses can be added and multiplied, got {quote(self._text)}.")
        return part

    def _too_deep(self) -> ValueError:
        return ValueError(f"{self._caller}: too many parentheses within one another, got {quote(self._text, 40)}")

    def _atom(self) -> Any:
        if self._accept("("):
            result = self._sum()
            self._expect(")")
            return result
        if self._peek().kind != "name":
            raise self._error(f"{'an' if self._kind[0] in 'aeiou' else 'a'} {self._kind}")
        start = self._peek().position
        name = self._take().text
        factory = self._called(name)
        preset = self._preset(name, factory) if self._accept("@") else {}
        places: dict[int | str, tuple[int, int]] = {}
        arguments, keywords = self._arguments(factory, places) if self._accept("(") else ([], {})
        made = self._build(factory, name, arguments, {**preset, **keywords})
        names: dict[int | str, str] = dict(enumerate(inspect.signature(factory).parameters))
        given = {**preset, **dict(zip(names.values(), arguments, strict=False)), **keywords}
        named = {names.get(key, str(key)): place for key, place in places.items()}
        self.written.append(WrittenPart(name, start, self._tokens.taken_to, made, given, named))
        return made

    def _called(self, name: str) -> Callable[..., Any]:
        """Return what the catalogue has under this name."""
        self._names += 1
        if self._names > MOST_NAMES:
            raise ValueError(f"{self._caller}: expression must have {MOST_NAMES:,} names at most, got {quote(self._text, 40)}")
        if name not in self._catalogue:
            hint = nearest(name, self._catalogue)
            advice = " 'lossmith list' names all." if self._kind in ("loss", "objective") else ""
            if not advice and hint == ".":
                hint = f"; known are {', '.join(self._catalogue)}."
            raise ValueError(f"{self._caller}: unknown {self._kind} {quote(name)} in {quote(self._text)}{hint}{advice}")
        return self._catalogue[name]

    def _build(self, factory: Callable[..., Any], name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        owner = factory.__name__ if isinstance(factory, type) else name
        self._check_keywords(factory, owner, keywords)
        options: Mapping[str, Any] = {}
        if self._addable.makes(factory):
            keywords = {key: without_list(value, owner) for key, value in keywords.items()}
            wraps = any(isinstance(value, self._addable.kind) for value in (*arguments, *keywords.values()))
            options = {} if wraps else self._options  # a wrapper has the options of what it wraps
        keywords = {**options, **keywords}
        try:
            inspect.signature(factory).bind(*arguments, **keywords)
        except TypeError as error:
            raise ValueError(f"{owner}: {shortened(str(error))} in {quote(self._text)}.") from error
        return made_by(factory, arguments, keywords)

    def _check_keywords(self, factory: Callable[..., Any], owner: str, keywords: Iterable[str]) -> None:
        parameters = inspect.signature(factory).parameters.values()
        names = [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
        if self._addable.makes(factory):
            names += self._addable.options
        elif len(names) < len(parameters):
            return  # it takes any keyword, and says itself what it knows
        for key in keywords:
            if key not in names:
                hint = nearest(key, names)
                known = f"; it has {', '.join(names) or 'none'}." if hint == "." else hint
                raise ValueError(f"{owner}: unknown parameter {quote(key)} in {quote(self._text)}{known}")

    def _preset(self, name: str, factory: Callable[..., Any]) -> dict[str, Any]:
        token = self._take()
        if not self._addable.makes(factory):
            raise ValueError(f"{self._caller}: {name} has no presets, got {quote(self._text)}.")
        if token.kind != "number" or not token.text.isdigit() or len(token.text) > _LONGEST_PRESET:
            raise self._error("a number of classes", token)
        published: Any = factory
        classes = self._number_of(token)
        published.for_classes(classes)  # raises where there is no such preset
        return dict(published.presets[classes])

    def _arguments(
        self, factory: Callable[..., Any], places: dict[int | str, tuple[int, int]]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return what a call is given by position and by keyword, and note where it stands."""
        arguments: list[Any] = []
        keywords: dict[str, Any] = {}
        while not self._accept(")"):
            if self._peek().kind == "name" and self._peek(1).text == "=":
                key = self._take().text
                self._take()
                if key in keywords:
                    raise ValueError(f"{self._caller}: {quote(key)} must be given once, got {quote(self._text)}.")
                with self._words_of(factory, key):
                    keywords[key] = self._noted_value(key, places)
            else:
                arguments.append(self._noted_value(len(arguments), places))
            if not self._accept(","):
                self._expect(")")
                break
        return arguments, keywords

    @contextmanager
    def _words_of(self, factory: Callable[..., Any], key: str) -> Iterator[None]:
        """Read what has words of its own, such as ``matrix=pair(0.2)``, with these in place of the catalogue."""
        before = self._catalogue, self._kind
        if words := getattr(factory, "vocabularies", {}).get(key):
            self._catalogue, self._kind = words, key
        yield
        self._catalogue, self._kind = before

    def _noted_value(self, key: int | str, places: dict[int | str, tuple[int, int]]) -> Any:
        start = self._peek().position
        value = self._value()
        places[key] = (start, self._tokens.taken_to)
        return value

    def _value(self) -> Any:
        token = self._peek()
        if token.kind == "number" and self._peek(1).text != "*":
            return self._number()
        if token.text == "[" or self._peek(1).text == "[":
            return self._list()
        if token.text.lower() in ("true", "false"):
            return self._take().text.lower() == "true"
        if token.text in _WORDS:
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
        return numbers if dtype is None else tensor_of(numbers, dtype, self._caller)

    def _dtype(self) -> torch.dtype:
        token = self._take()
        dtype = getattr(torch, token.text, None)
        if not isinstance(dtype, torch.dtype) or not (dtype.is_floating_point or dtype in _WHOLE):
            raise self._error("a floating-point type", token)
        return dtype

    def _number(self) -> float | int:
        token = self._take()
        if token.kind != "number":
            raise self._error("a number", token)
        return self._number_of(token)

    def _number_of(self, token: Token) -> float | int:
        if len(token.text) > _LONGEST_NUMBER:
            raise self._error(f"a number of {_LONGEST_NUMBER} digits at most", token)
        return int(token.text) if re.fullmatch(r"-?\d+", token.text) else float(token.text)

    def _peek(self, ahead: int = 0) -> Token:
        return self._tokens.peek(ahead)

    def _take(self) -> Token:
        return self._tokens.take()

    def _accept(self, sign: str) -> bool:
        if self._peek().text != sign:
            return False
        self._take()
        return True

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise self._error(repr(sign))

    def _error(self, expected: str, token: Token | None = None) -> ValueError:
        token = token or self._peek()
        got = f"{quote(token.text)} at column {token.position + 1}" if token.kind != "end" else "the end"
        return ValueError(f"{self._caller}: expected {expected} in {quote(self._text)}, got {got}.")
