"""Every block of Python on pages and in tutorials about other tools, run from top to bottom of its page."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NEEDED = {
    "integrations/transformers": "accelerate",
    "integrations/lightning": "lightning",
    "integrations/scikit-learn": "skorch",
    "integrations/searches": "optuna",
    "integrations/distributed": "torch",
    "tutorials/language-model": "accelerate",
    "tutorials/cluster": "ray",
}
BLOCK = re.compile(r"^```(?:python|\{code-cell\} ipython3)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.filterwarnings("ignore")  # clients warn about tiny models and loaders
@pytest.mark.parametrize("page", NEEDED)
def test_blocks_run(page, tmp_path, monkeypatch):
    pytest.importorskip(NEEDED[page], reason="make test-integrations has it")
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((DOCS / f"{page}.md").read_text(encoding="utf-8"))
    assert blocks
    names: dict[str, object] = {"__name__": "__main__"}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page}.md, block {number + 1}", "exec"), names)  # noqa: S102
