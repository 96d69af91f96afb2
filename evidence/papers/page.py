"""The page of reproductions: ``python -m evidence.papers.page`` writes ``docs/reproductions.md`` and a picture for each paper.

Everything on it comes from ``evidence/results/papers``; of what has not been run it says so.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from benchmarks.measure import markdown_table
from evidence.papers import page_tables as tables
from evidence.papers import pictures
from evidence.papers.__main__ import TABLES, state
from evidence.papers.paper_table import PaperTable

__all__ = ["main", "page"]

DOCS = Path(__file__).parents[2] / "docs"
OPENING = """\
# Papers' tables on real data

Five papers, their headline tables made again on two cores: ours over theirs. Every table is one command, can be stopped, and
goes on where it was. What is smaller than in the paper stands beside it.

Where labels are wrong, there are two conventions: **clean**, as papers do, takes the learning rate that is best on validation
rows without wrong labels, and **noisy**, as anybody with such data must, the one that is best on rows as noisy as those of
training. Both are choices from the same runs. Where the order of losses changes between them, that is the finding.
[Misprints](misprints.md) of the papers have a page of their own.

This page is written by `python -m evidence.papers.page` from `evidence/results/papers`.
"""
SECTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "amid": ("Robust bi-tempered logistic loss (Amid, Warmuth, Anil and Koren 2019)", ("amid-figure-2", "amid-mnist")),
    "staats": (
        "Noise-robust loss functions (Staats, Thamm and Rosenow)",
        ("staats-fashion", "staats-many-classes", "staats-cifar-10n"),
    ),
    "battash": (
        "Mixing cross-entropy and expectation loss (Battash, Hazan and Wolf)",
        ("battash-linear", "battash-hidden", "battash-escaping", "battash-texts"),
    ),
    "kornblith": (
        "What's in a loss function (Kornblith, Lee, Chen and Norouzi 2021)",
        ("kornblith-fashion", "kornblith-cifar-10"),
    ),
    "berrada": ("Smooth loss functions for top-k (Berrada, Zisserman and Kumar 2018)", ("berrada-noise", "berrada-rows")),
}
WRITERS: Mapping[str, Callable[[Mapping[str, pd.DataFrame]], str]] = {
    "amid-figure-2": tables.boundaries,
    "amid-mnist": tables.amid_mnist,
    "staats-fashion": tables.staats_fashion,
    "staats-many-classes": tables.many_classes,
    "staats-cifar-10n": tables.human_labels,
    "battash-linear": tables.battash_linear,
    "battash-hidden": tables.battash_hidden,
    "battash-escaping": tables.escaping,
    "battash-texts": tables.texts,
    "kornblith-fashion": tables.objectives,
    "kornblith-cifar-10": tables.objectives,
    "berrada-noise": tables.top_k_noise,
    "berrada-rows": tables.top_k_rows,
}
"""By the table: from its exported frames to Markdown."""


def frames_of(results: Path) -> dict[str, pd.DataFrame]:
    """Return the exported frames of a table by name; none where it has not been run."""
    return {file.stem: pd.read_csv(file) for file in sorted(results.glob("*.csv"))}


def page(results: Path, figures: Path) -> str:
    """Draw the pictures and return the page.

    Args:
        results: The folder of exported results of all tables.
        figures: Where pictures go.

    Returns:
        Markdown.
    """
    parts = [OPENING.rstrip(), _overview(results)]
    for paper, (title, names) in SECTIONS.items():
        frames = {name: frames_of(results / name) for name in names}
        parts.append(f"## {title}")
        drawn = pictures.DRAWN[paper]({name: found for name, found in frames.items() if found})
        if drawn is not None:
            drawn.savefig(figures / f"reproduction-{paper}.png", dpi=110)
            parts.append(f"![Ours over theirs](figures/reproduction-{paper}.png)")
        parts += [_section(TABLES[name], frames[name], results / name) for name in names]
    return "\n\n".join(parts) + "\n"


def _overview(results: Path) -> str:
    lines = [[f"`{each.name}`", each.paper, str(each.minutes), state(results / each.name)] for each in TABLES.values()]
    return "## All of them\n\n" + markdown_table(
        ["python -m evidence.papers", "table", "minutes of two quiet cores", "state"], lines
    )


def _section(table: PaperTable, frames: Mapping[str, pd.DataFrame], results: Path) -> str:
    heading = f"### {table.about[0].upper()}{table.about[1:]}"
    command = (
        f"`python -m evidence.papers {table.name}`, about {table.minutes} minutes. Other than in the paper: {table.reduced}."
    )
    if not frames:
        return f"{heading}\n\nNot run yet: {command}"
    about = json.loads((results / "settings.json").read_text())
    caution = "" if about.get("finished") else f" **{state(results)}: no result yet.**"
    return f"{heading}\n\n{command}{caution}\n\n{WRITERS[table.name](frames)}"


def main() -> None:
    """Write page and pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path(__file__).parents[1] / "results" / "papers", help="of the tables")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where the page goes (default: %(default)s)")
    options = parser.parse_args()
    figures = options.docs / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    (options.docs / "reproductions.md").write_text(page(options.results, figures), encoding="utf-8")
    print(options.docs / "reproductions.md")


if __name__ == "__main__":
    main()
