"""Expressions of any length and depth: linear time, short errors, and a reader that knows nothing of losses."""

import ast
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lossmith.expressions
from lossmith import make_loss, make_noise, make_objective
from lossmith.expressions.quotes import quote
from lossmith.expressions.reader import DEEPEST, MOST_NAMES
from lossmith.expressions.tokens import LONGEST_EXPRESSION, Tokens, _cut
from lossmith.losses import WeightedSum
from lossmith.objectives import make_schedule

LONG = LONGEST_EXPRESSION - 100
READERS = (make_loss, make_objective, make_noise, make_schedule)
EXTREMES = {
    "signs": "+" * LONG,
    "signs after a name": "ce " + "+" * LONG,
    "beyond the limit": "+" * 2 * LONGEST_EXPRESSION,
    "spaces": " " * LONG + "$",
    "a name": "c" * LONG,
    "digits": "1" * LONG + "*ce",
    "a parameter": f"gce({'q' * LONG}=1)",
    "a schedule's numbers": f"cyclic([{'1,' * 1000}], length=-{'9' * 900})",
    "a matrix": f"matrix({'[1],' * 1000}[2])",
    "pairs": f"asymmetric(0.4, {'[1, 2, 3], ' * 1000}[1, 2])",
    "a preset": f"nf-mae@{'9' * 900}",
    "parentheses": "(" * LONG,
    "wrappers": "logit-bias(" * 5000,
    "signs that cannot be printed": "\x01" * LONG,
    "a list": f"ce(weight=[{'1e-300, ' * 1000}x])",
}


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("expression", EXTREMES.values(), ids=EXTREMES)
def test_errors_are_one_short_line(read, expression):
    with pytest.raises(ValueError) as caught:
        read(expression)
    message = str(caught.value)
    assert len(message) < 800
    assert "\n" not in message


@pytest.mark.parametrize(
    "weight",
    ["int8[300]", f"float32[{'9' * 400}]", f"[{'9' * 400}]", "quint8[1, 2]", "bits8[1]", "complex64[1, 2]", "bool[1]", "nn[1]"],
)
def test_numbers_that_do_not_fit_are_one_short_line(weight):
    with pytest.raises(ValueError, match=r"every number of a list must fit|a floating-point type"):
        make_loss(f"ce(weight={weight})")


@pytest.mark.parametrize("factor", ["1" * 400, "-" + "9" * 999, "1e999"])
@pytest.mark.parametrize("rest", ["ce", "ce + mae", "(2*ce + mae)"])
def test_factors_that_no_float_holds_are_refused(factor, rest):
    with pytest.raises(ValueError, match=r"WeightedSum: factor must be finite, got -?inf"):
        make_loss(f"{factor}*{rest}")


def test_whole_types_that_fit_are_read():
    assert torch.equal(make_loss("ce(weight=int8[1, 2])").weight, torch.tensor([1.0, 2.0]))


def test_a_sum_is_built_once(monkeypatch):
    terms = 2000
    parts: list[int] = []
    build = WeightedSum.__init__

    def counted(self, losses, factors):
        parts.append(len(losses))
        build(self, losses, factors)

    monkeypatch.setattr(WeightedSum, "__init__", counted)
    loss = make_loss(" + ".join(f"{number}*gce(q=0.5)" for number in range(1, terms + 1)))
    assert loss.factors == tuple(float(number) for number in range(1, terms + 1))
    assert sum(parts) <= 3 * terms  # where a sum that grows term by term would have had two million


def test_sums_within_sums_are_one_sum():
    assert repr(make_loss("2*(ce + 3*mae) + (gce + 0.5*(el))")) == "2.0*ce + 6.0*mae + 1.0*gce(q=0.7) + 0.5*el"
    assert repr(make_loss("2*nce-mae + ce")) == "2.0*nce-mae(alpha=1.0, beta=20.0) + 1.0*ce"


def test_the_limits_are_those_that_are_stated():
    make_loss("(" * (DEEPEST - 1) + "ce" + ")" * (DEEPEST - 1))
    with pytest.raises(ValueError, match="too many parentheses"):
        make_loss("(" * DEEPEST + "ce" + ")" * DEEPEST)
    with pytest.raises(ValueError, match=f"must have {MOST_NAMES:,} names at most"):
        make_schedule(f"constant({'constant(1), ' * MOST_NAMES})")
    with pytest.raises(ValueError, match=f"of {LONGEST_EXPRESSION:,} characters at most, got 1,000,001"):
        make_loss("ce" + " " * (LONGEST_EXPRESSION - 1))
    make_loss("ce" + " " * (LONGEST_EXPRESSION - 2))


def test_what_is_never_reached_is_never_cut():
    tokens = Tokens("+" * LONG, "make_loss")
    tokens.take()
    assert len(tokens._seen) == 0
    assert next(tokens._rest).position == 1


@given(st.text(st.sampled_from("ce1+*() ,=[]-@"), max_size=40))
def test_tokens_cover_the_text(text):
    assert "".join(token.text for token in _cut(text, "make_loss")) == text.replace(" ", "")


@given(
    st.one_of(st.text(max_size=1000), st.integers(), st.lists(st.integers()), st.none(), st.dictionaries(st.text(), st.text()))
)
def test_quotes_are_short(value):
    assert len(quote(value)) <= 200 + len("''...")
    assert quote("x" * 200) == repr("x" * 200)


def test_huge_integers_are_quoted_by_their_length():
    assert quote(10**5000) == "an integer of 5001 digits"


def test_expressions_are_the_lowest_layer():
    for file in Path(lossmith.expressions.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert all(not name.startswith("lossmith") or name.startswith("lossmith.expressions") for name in names), file
