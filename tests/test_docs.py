"""Pages that people read: every Python block and tutorial runs, or says why not; commands are commands; links lead somewhere."""

import contextlib
import importlib.util
import io
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import lossmith
from docs_names import names, quick_compare, write_reviews
from lossmith import make_loss
from lossmith.command_line import _parser
from lossmith.losses import LOSSES
from lossmith.losses.catalogue.ready import ready_expression

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
TREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.DOTALL | re.MULTILINE)
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
    known = dict(names(place))
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


def test_every_page_is_in_a_table_of_contents():
    trees = [(page, block) for page in PAGES for block in TREE.findall(page.read_text(encoding="utf-8"))]
    entries = [(page.parent, line) for page, block in trees for line in block.splitlines() if not line.startswith(":")]
    reached = {found.resolve() for folder, line in entries for found in folder.glob(f"{line}.md")}
    assert {page for page in PAGES if DOCS in page.parents} - reached == {DOCS / "index.md"}


@pytest.mark.parametrize("page", PAGES, ids=called)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    made = (ROOT / "docs" / "losses", ROOT / "docs" / "reference")  # by `make docs`
    links = [link for link in LINK.findall(text) if "://" not in link]
    places = [(page.parent / link).resolve() for link in links]
    assert not [str(place) for place in places if not place.exists() and place.parent not in made]


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_has_its_picture(name):
    sys.path.insert(0, str(DOCS / "site"))
    from pictures import curves_of

    value, pull = curves_of(make_loss(ready_expression(name)), torch.linspace(-6, 12, 19, dtype=torch.float64))
    assert np.isfinite(value).all()
    assert np.isfinite(pull).all()


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_brackets_of_formulas_close_where_they_opened(loss):
    sys.path.insert(0, str(DOCS / "site"))
    from formulas import latex
    from loss_pages import formula_of

    left = re.sub(r"[^(){}]", "", latex(formula_of(loss)))
    while left != (left := left.replace("()", "").replace("{}", "")):
        pass
    assert left == ""


def test_formulas_of_losses_are_set_as_mathematics():
    pytest.importorskip("latex2mathml", reason="latex2mathml is part of lossmith[docs]")
    sys.path.insert(0, str(DOCS / "site"))
    from formulas import latex, mathml

    assert latex("alpha / ((1 - alpha) K) * sum_c log p_c") == r"\frac{\alpha}{(1 - \alpha) K} \cdot  \sum_{c} \log p_{c}"
    assert mathml("(1 - p**q) / q").count("<mfrac>") == 1
