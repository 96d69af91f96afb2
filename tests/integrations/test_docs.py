"""Every block of Python on the pages about integrations, run from top to bottom of its page."""

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "integrations"
NEEDED = {
    "transformers": "accelerate",
    "lightning": "lightning",
    "scikit-learn": "skorch",
    "searches": "optuna",
    "distributed": "torch",
}


@pytest.mark.filterwarnings("ignore")  # clients warn about tiny models and loaders
@pytest.mark.parametrize("page", sorted(path.stem for path in PAGES.glob("*.md") if path.stem in NEEDED))
def test_blocks_run(page, tmp_path, monkeypatch):
    pytest.importorskip(NEEDED[page], reason="make test-integrations has it")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", (PAGES / f"{page}.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    names: dict[str, object] = {"__name__": "__main__"}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page}.md, block {number + 1}", "exec"), names)  # noqa: S102
