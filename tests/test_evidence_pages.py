"""What pages say of evidence is what is kept of it."""

import importlib.util
import re
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "evidence" / "results"


def cells(page):
    """Return the tables of a page, row by row, with single spaces."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


def kept(name, folder="small_tables"):
    return pd.read_csv(RESULTS / folder / f"{name}.csv").to_dict("records")


@pytest.mark.parametrize("row", cells("docs/evidence.md")[2:], ids=lambda row: row[0][:40])
def test_commands_and_results_are_there(row):
    _, _, commands, folders = row
    names = re.findall(r"`([\w.]+\.\w+)`", commands)
    assert names or "pytest" in commands
    assert all(importlib.util.find_spec(name) for name in names)
    assert all((RESULTS / folder).is_dir() for folder in re.findall(r"`(\w+)`", folders))


def test_what_tables_tell_together():
    printed = {(row[0], row[1].strip("`")): row[2:4] for row in cells("docs/statistics.md") if len(row) == 5}
    for row in kept("over_tables"):
        difference = f"{row['difference']:+.1f} ({row['low']:.1f} to {row['high']:.1f})"
        assert printed[row["noise"], row["loss"]] == [difference, f"{row['ahead']}, {row['behind']}"]


def test_other_tests_on_the_same_replicates():
    printed = cells("docs/statistics.md")
    file = RESULTS / "replication" / "other_tests.csv"
    for row in kept("other_tests", "replication") if file.is_file() else ():
        assert list(map(str, row.values())) in printed
    assert file.is_file() or "nothing is claimed" in (ROOT / "docs/statistics.md").read_text(encoding="utf-8")


def test_the_readme_says_what_tables_tell_together():
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    noisy = {row["loss"]: row for row in kept("over_tables") if row["noise"] == "symmetric(0.2)"}
    best = noisy["gce"]
    said = f"`gce` is ahead of cross-entropy by {best['difference']:.1f} points ({best['low']:.1f} to {best['high']:.1f})"
    assert said in text
    by_size = [f"{noisy[loss]['difference']:.1f}" for loss in ("sce", "logit-bias(mae)", "bi-tempered")]
    assert by_size[0] == by_size[1]
    assert f"`sce` and `logit-bias(mae)` by {by_size[0]}, `bi-tempered` by {by_size[2]};" in text


def test_networks_beside_classical_models():
    printed = {row[0].strip("`"): row[1:] for row in cells("docs/training.md") if len(row) == 4}
    over_all = [row for row in kept("summary", "rivals") if row["tables"].startswith("all")]
    for row in over_all:
        place = ["none", "symmetric(0.2)", "symmetric(0.4)"].index(row["noise"])
        lead = f" ({row['lead over the best reference']:+.1f} ± {row['standard error']:.1f})" if row["standard error"] else ""
        assert printed[row["name"]][place] == f"{row['accuracy']:.1f}{lead}"


def test_which_trial_counts():
    printed = {tuple(row[:2]): row[2:] for row in cells("docs/training.md") if len(row) == 8 and row[0] != "---"}
    columns = [(noise, loss) for noise in ("none", "symmetric(0.2)", "symmetric(0.4)") for loss in ("ce", "gce")]
    trained = {"all": "all nine", "half": "three, after half of the epochs", "a third": "three, after a third of the epochs"}
    for row in kept("summary", "choice"):
        lead = f" ({row['lead']:+.1f} ± {row['standard error']:.1f})" if row["standard error"] else ""
        shown = printed[trained[row["trained"]], row["rule"]][columns.index((row["noise"], row["loss"]))]
        assert shown == f"{row['accuracy']:.1f}{lead}"


def test_images_beside_classical_models():
    printed = {row[0].strip("`"): row[1:] for row in cells("docs/training.md") if "± 0." in row[1] and "(" not in row[1]}
    found = {row["loss"]: list(row.values())[1:] for row in kept("summary", "images/fashion-mnist")}
    del found["largest class"]
    assert printed == {loss: [text.replace("+-", "±") for text in texts] for loss, texts in found.items()}


def test_texts_beside_classical_models():
    printed = {tuple(row[:2]): row[2:] for row in cells("docs/training.md") if len(row) == 5}
    for row in kept("accuracy", "texts"):
        place = ["none", "symmetric(0.2)", "symmetric(0.4)"].index(row["noise"])
        assert printed[row["texts"], row["trained by"]][place] == f"{100 * row['mean']:.1f}"
