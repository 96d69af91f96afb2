"""``lossmith report`` and ``lossmith export`` on a study that was trained."""

import io
import re
import shutil
import sqlite3

import pandas as pd
import pytest
from rich.console import Console

from lossmith.command_line import main
from lossmith.studies import compare, open_study
from lossmith.studies.compare import planned
from lossmith.studies.design.given_settings import settings_from
from lossmith.studies.progress import PlainProgress, ProgressDisplay, TerminalProgress
from lossmith.training.engines.workplace import Workplace


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies") / "iris"
    settings = {"losses": ["ce", "gce(q=0.5)"], "noise": [0, 0.4], "seeds": 2, "epochs": 3, "rates": [0.1, 0.3]}
    return compare("iris", output=folder, workers=1, progress=False, **settings)


def test_report(study, capsys, page, observed):
    assert main(["report", str(study.folder)]) == 0
    file = study.folder / "report.html"
    assert capsys.readouterr().out == f"{file}\n"
    page.goto(file.as_uri())
    assert page.inner_text("h1") == study.recommend().headline.removesuffix(".")
    assert page.inner_text("#rerun .copyable code") == study.provenance["command"]
    assert page.locator("#figure-rates svg[data-places]").count() > 0
    assert observed.errors == []
    assert observed.requests == []


def test_report_elsewhere(study, tmp_path, capsys):
    assert main(["report", str(study.folder), "--output", str(tmp_path / "new" / "page.html")]) == 0
    assert (tmp_path / "new" / "page.html").read_text("utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("ending", ["csv", "parquet", "tex", "md"])
def test_export(study, tmp_path, capsys, ending):
    file = tmp_path / f"results.{ending}"
    assert main(["export", str(study.folder), str(file)]) == 0
    assert capsys.readouterr().out == f"{file}\n"
    if ending in ("csv", "parquet"):
        read = pd.read_csv(file) if ending == "csv" else pd.read_parquet(file)
        assert read["accuracy"].tolist() == study.results["accuracy"].tolist()
    else:
        assert "gce(q=0.5)" in file.read_text("utf-8")


def test_bad_input_is_one_line(study, tmp_path, capsys):
    assert main(["report", str(tmp_path / "nowhere")]) == 2
    assert main(["export", str(study.folder), str(tmp_path / "results.xls")]) == 2
    assert main(["export", str(study.folder), str(tmp_path / "results.md"), "--metric", "speed"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[1] == "lossmith: export: the file must end in .csv, .parquet, .tex, .md, got results.xls."
    assert "results need a column 'speed'" in lines[2]


@pytest.fixture
def unfinished(study, tmp_path):
    """The same study without two of its eight results."""
    folder = tmp_path / "unfinished"
    shutil.copytree(study.folder, folder)
    with sqlite3.connect(folder / "study.sqlite") as connection:
        connection.execute("DELETE FROM choice WHERE noise != 'none' AND seed = 1")
    connection.close()
    return open_study(folder)


def test_results_of_an_unfinished_study_say_so_first(unfinished, study, tmp_path, capsys, page):
    done, planned = unfinished.progress()
    assert (done, planned) == (6, 8)
    note = "The study is unfinished: 6 of 8 results are there, and the others may change what follows."
    assert study.unfinished == ""
    assert unfinished.recommend().unfinished == note
    assert str(unfinished.recommend()).replace("\n", " ").startswith(note)
    assert "unfinished" not in str(study.recommend())
    folder = str(unfinished.folder)
    for ending, beginning in (("md", f"> {note}\n\n| loss"), ("tex", f"\\textbf{{{note}}} Accuracy")):
        file = tmp_path / f"table.{ending}"
        assert main(["export", folder, str(file)]) == 0
        assert beginning in file.read_text("utf-8")
        assert capsys.readouterr().err == f"{folder}: {note}\n"
    assert main(["report", folder]) == 0
    assert capsys.readouterr().err == f"{folder}: {note}\n"
    page.goto((unfinished.folder / "report.html").as_uri())
    assert page.inner_text("#answer > :first-child") == note
    assert page.title().startswith("Unfinished: ")


class Told(ProgressDisplay):
    """Keeps what would be shown."""

    def __init__(self):
        super().__init__()
        self.shown = []

    def advance(self, runs):
        super().advance(runs)
        self.shown.append(self.progress_text())

    def store(self, runs=1):
        super().store(runs)
        self.shown.append(self.progress_text())


def test_progress_tells_what_is_stored_from_what_is_trained(tmp_path):
    told = Told()
    settings = {"losses": ["ce", "gce"], "noise": [0], "seeds": 2, "epochs": 2, "rates": [0.1], "data": "iris"}
    planned(settings_from(settings), output=tmp_path / "told", workplace=Workplace(workers=1)).train(told)
    counts = [tuple(map(int, re.findall(r"\d+", text))) for text in told.shown]
    assert all(stored <= done <= planned == 4 for done, planned, stored in counts)
    assert counts == sorted(counts)
    assert counts[0][2] == 0
    assert told.shown[-1] == "4 of 4 trainings, 4 stored with trials that were stopped"


def test_progress_on_a_terminal_and_in_a_file_shows_what_is_stored(monkeypatch):
    monkeypatch.setattr("lossmith.studies.progress.SECONDS_BETWEEN_LINES", 0.0)
    plain, terminal = io.StringIO(), io.StringIO()
    bar = TerminalProgress(Console(file=terminal, force_terminal=True, width=200))
    with bar.bar:
        for display in (PlainProgress(plain), bar):
            display.start("training", 20, stores=True)
            display.store()
            display.advance(4)
    assert "training: 4 of 20 trainings, 1 stored" in plain.getvalue()
    assert "4 of 20 trainings, 1 stored" in terminal.getvalue()


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("UPDATE run SET loss = 'other' WHERE id = 2", "run, run 2"),
        ("UPDATE run SET seed = -1 WHERE id = 2", "run, run 2"),
        ("UPDATE run SET measures = '{}' WHERE id = 2", "run, run 2"),
        ("UPDATE meta SET value = '{}' WHERE name = 'settings'", "meta, settings"),
        ("DELETE FROM meta WHERE name = 'settings'", "meta, settings"),
        ("UPDATE meta SET value = json_remove(value, '$.recipe.keep') WHERE name = 'settings'", "meta, settings"),
        ("UPDATE meta SET value = json_set(value, '$.losses', 5) WHERE name = 'settings'", "meta, settings"),
        ("UPDATE meta SET value = json_set(value, '$.classes', 5) WHERE name = 'data'", "meta, data"),
        ("UPDATE replicate SET labels = (SELECT test FROM replicate)", "replicate, seed 0"),
        ("UPDATE noise SET matrix = '[[1.0]]'", "noise, symmetric(0.4)"),
        ("UPDATE array SET shape = '[3, 30]'", "array, logits of run "),
    ],
)
def test_a_study_whose_parts_do_not_fit_together_is_one_line(study, query, place, tmp_path, capsys):
    shutil.copytree(study.folder, tmp_path / "damaged")
    with sqlite3.connect(tmp_path / "damaged" / "study.sqlite") as connection:
        connection.execute(query)
    connection.close()
    assert main(["report", str(tmp_path / "damaged"), "--output", str(tmp_path / "page.html")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"study.sqlite: table {place}" in line
    assert " is damaged (" in line
    assert line.endswith("; it was left as it is.")
