"""Results as files, read back by other programs."""

import re

import pandas as pd
import pytest

from fake_study import full_study
from lossmith.report.result_tables import export_results, latex_table, markdown_table
from lossmith.statistics.summary import summarise
from study_frames import results_frame


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return full_study(tmp_path_factory.mktemp("study"), epochs=2)


def test_csv_has_every_run(study, tmp_path):
    written = pd.read_csv(export_results(study, tmp_path / "results.csv"), dtype={"parameters": str, "untrained": str})
    written = written.assign(**{name: written[name].fillna("") for name in ("parameters", "untrained")})
    pd.testing.assert_frame_equal(written, study.results, check_dtype=False)


def test_parquet_has_every_run_with_its_types(study, tmp_path):
    written = pd.read_parquet(export_results(study, str(tmp_path / "results.parquet")))
    pd.testing.assert_frame_equal(written, study.results)


def test_markdown_table(study, tmp_path):
    lines = export_results(study, tmp_path / "table.md").read_text("utf-8").splitlines()
    assert lines[0] == "| loss | none | symmetric(0.2) | symmetric(0.4) |"
    assert len(lines) == 2 + study.results["loss"].nunique() + study.references["reference"].nunique()
    assert lines[-1].startswith("| *RBF-SVM* | ")
    for row in summarise(study.results, overlap=study.overlap).itertuples():
        line = next(line for line in lines if line.startswith(f"| `{row.loss}` |"))
        mean = f"{100 * row.mean:.2f}"
        assert f" {f'**{mean}**' if row.bold else mean} ± {100 * row.standard_error:.2f} |" in line


def test_latex_table(study, tmp_path):
    text = export_results(study, tmp_path / "table.tex").read_text("utf-8")
    assert re.findall(r"\\(toprule|midrule|bottomrule)", text) == ["toprule", "midrule", "midrule", "bottomrule"]
    _, rows, references = (part.split("    \\bottomrule")[0].splitlines() for part in text.split("    \\midrule\n"))
    assert [line.split(" & ")[0].strip() for line in references] == ["largest class", "logistic regression", "RBF-SVM"]
    assert [row.count("&") for row in rows] == [3] * len(rows)
    for row in summarise(study.results, overlap=study.overlap).itertuples():
        line = next(line for line in rows if line.startswith(f"    \\texttt{{{row.loss}}} &"))
        mean = f"{100 * row.mean:.2f}"
        mean = rf"\mathbf{{{mean}}}" if row.bold else mean
        assert rf"${mean} \pm {100 * row.standard_error:.2f}$" in line
    assert r"Accuracy (\%), mean $\pm$ standard error over 5 replicates." in text


def test_what_looks_untrained_is_marked(tmp_path):
    study = full_study(tmp_path, epochs=2)
    assert "untrained" not in export_results(study, tmp_path / "table.md").read_text("utf-8")
    study.leave_untrained("mae", "symmetric(0.4)")
    text = export_results(study, tmp_path / "table.md").read_text("utf-8")
    assert "| 11.00 ± 0.00 \N{DAGGER} |" in text
    assert text.count("\N{DAGGER}") == 2
    assert text.endswith("\n\N{DAGGER} looks untrained in half of the replicates or more.\n")
    text = export_results(study, tmp_path / "table.tex").read_text("utf-8")
    assert r"$11.00 \pm 0.00^{\dagger}$" in text
    assert r"$\dagger$ looks untrained" in text


def test_the_metric_is_that_of_the_study(tmp_path):
    study = full_study(tmp_path, epochs=2, metric="balanced_accuracy")
    assert "Balanced accuracy" in export_results(study, tmp_path / "table.tex").read_text("utf-8")
    assert "Macro F1" in export_results(study, tmp_path / "table.tex", "macro_f1").read_text("utf-8")


def test_latex_escapes_names():
    results = results_frame({"my_loss & {50%}": [0.5]}, noise=["none"], rates=[0.0])
    assert r"\texttt{my\_loss \& \{50\%\}}" in latex_table(results)


def test_one_seed_has_no_error_and_nothing_bold():
    results = results_frame({"ce": [0.5], "gce": [0.9]}, noise=["none"], rates=[0.0], seeds=1)
    assert "±" not in markdown_table(results)
    assert "**" not in markdown_table(results)
    assert "pm" not in latex_table(results).split("midrule")[1]


def test_missing_cells_are_empty():
    results = results_frame({"ce": [0.5, 0.4], "gce": [0.9, 0.8]})
    results = results[(results["loss"] == "ce") | (results["noise"] == "none")]
    assert markdown_table(results).splitlines()[-1].endswith("|  |")


def test_metrics_that_are_no_shares():
    results = results_frame({"ce": [0.5]}, noise=["none"], rates=[0.0], ece={"ce": 0.05})
    assert re.search(r"\| \*\*0\.0[45]\d\*\* ± 0\.00\d \|", markdown_table(results, "ece"))


@pytest.mark.parametrize("name", ["results.xls", "results"])
def test_unknown_endings(study, tmp_path, name):
    with pytest.raises(ValueError, match=rf"^export: the file must end in \.csv, \.parquet, \.tex, \.md, got {name}\.$"):
        export_results(study, tmp_path / name)
