"""``lossmith report`` and ``lossmith export`` on a study that was trained."""

import pandas as pd
import pytest

from lossmith.command_line import main
from lossmith.experiments import compare


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
    assert page.inner_text("#rerun .copyable code") == study.settings["command"]
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
