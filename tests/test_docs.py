"""Pages that people read: every Python block and tutorial runs, or says why not; commands are commands; links lead somewhere."""

import contextlib
import importlib.util
import io
import re
import shlex
import sys
from pathlib import Path

import pytest

import lossmith
from docs_names import names, quick_compare, write_reviews
from lossmith.command_line import _parser

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    *(page for place in (".", "integrations", "tutorials") for page in sorted((DOCS / place).glob("*.md"))),
]
WITH_CLIENTS = {
    *(f"integrations/{name}" for name in ("distributed", "lightning", "scikit-learn", "searches", "transformers")),
    *("tutorials/cluster", "tutorials/language-model"),
}
"""Pages about tools that the suite does without; `tests/integrations/test_docs.py` runs their blocks."""
BLOCK = re.compile(r"(<!-- fragment: (?P<reason>.+?) -->\n)?```(?:python|\{code-cell\} ipython3)\n(?P<code>.*?)```", re.DOTALL)
IN_TERMINALS = re.compile(r"^```\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def blocks(page):
    return list(BLOCK.finditer(page.read_text(encoding="utf-8")))


def called(page):
    return page.with_suffix("").relative_to(DOCS if DOCS in page.parents else ROOT).as_posix()


WITH_CODE = [page for page in PAGES if blocks(page) and called(page) not in WITH_CLIENTS]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    write_reviews(folder)
    return folder


@pytest.mark.parametrize("page", WITH_CODE, ids=called)
def test_every_block_runs(page, place, monkeypatch):
    monkeypatch.chdir(place)
    monkeypatch.setattr(lossmith, "compare", quick_compare, raising=False)
    known = names(place)
    for found in blocks(page):
        if found["reason"]:
            continue
        line = page.read_text(encoding="utf-8")[: found.start("code")].count("\n")
        code = compile("\n" * line + found["code"], page.name, "exec")
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, known)  # noqa: S102


def test_only_a_few_blocks_do_not_run():
    found = [each for page in WITH_CODE for each in blocks(page)]
    assert sum(bool(each["reason"]) for each in found) / len(found) < 0.35


@pytest.mark.parametrize("page", PAGES, ids=called)
def test_commands_are_understood(page):
    lines = [line for block in IN_TERMINALS.findall(page.read_text(encoding="utf-8")) for line in block.splitlines()]
    for words in (shlex.split(line, comments=True) for line in lines if re.match(r"(lossmith|make|python -m) ", line)):
        if words[0] == "lossmith":
            _parser().parse_args(words[1:])
        elif words[0] == "make":
            assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE), words
        else:
            assert importlib.util.find_spec(words[2]), words


@pytest.mark.parametrize("page", PAGES, ids=called)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    made = (ROOT / "docs" / "losses", ROOT / "docs" / "reference")  # by `make docs`
    links = [link for link in LINK.findall(text) if "://" not in link]
    places = [(page.parent / link).resolve() for link in links]
    assert not [str(place) for place in places if not place.exists() and place.parent not in made]


def test_formulas_of_losses_are_set_as_mathematics():
    pytest.importorskip("latex2mathml", reason="latex2mathml is part of lossmith[docs]")
    sys.path.insert(0, str(ROOT / "docs" / "site"))
    from formulas import latex, mathml

    assert latex("alpha / ((1 - alpha) K) * sum_c log p_c") == r"\frac{\alpha}{(1 - \alpha) K} \cdot  \sum_{c} \log p_{c}"
    assert mathml("(1 - p**q) / q").count("<mfrac>") == 1
