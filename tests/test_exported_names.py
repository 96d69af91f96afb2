"""Names of losses in exported files: printed as they are, and run by nothing."""

import re
from types import SimpleNamespace

import pandas as pd
import pytest

from lossmith.report.result_tables import export_results, latex_table, markdown_table
from study_frames import results_frame

HOSTILE = [
    r"\input{/etc/passwd}",
    "a&b%c$d#e_f{g}h~i^j",
    r"\\",
    "=cmd|' /C calc'!A0",
    "+1",
    "-1*ce + mae",
    "@SUM(A1)",
    "\tx",
    "a|b`c",
    "two\nlines",
]


@pytest.fixture
def results():
    return results_frame(dict.fromkeys(HOSTILE, (0.9, 0.8)), noise=("none", r"matrix(\x_1)"))


def test_latex_prints_names_as_they_are(results):
    written = latex_table(results)
    names = re.findall(r"\\texttt\{(.*)\} &", written)
    assert names[0] == r"\textbackslash{}input\{/etc/passwd\}"
    assert names[1] == r"a\&b\%c\$d\#e\_f\{g\}h\textasciitilde{}i\textasciicircum{}j"
    assert names[2] == r"\textbackslash{}\textbackslash{}"
    assert len(names) == len(HOSTILE)
    # What is left once the escapes are taken out is plain.
    escape = r"\\text(backslash|asciicircum|asciitilde|bar|less|greater)\{\}|\\[&%$#_{}]"
    assert not re.search(r"[\\&%$#_{}^~]", re.sub(escape, "", "".join(names)))
    assert r"Loss & none & matrix(\textbackslash{}x\_1) \\" in written


def test_markdown_cells_stay_cells(results):
    lines = markdown_table(results).splitlines()
    assert len(lines) == 2 + len(HOSTILE)
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {4}
    assert r"| `` a\|b`c `` |" in "\n".join(lines)


def test_spreadsheets_see_no_formulas(results, tmp_path):
    file = export_results(SimpleNamespace(results=results), tmp_path / "results.csv")
    read = pd.read_csv(file)
    assert not read["loss"].str.startswith(("=", "+", "-", "@", "\t")).any()
    assert "'-1*ce + mae" in set(read["loss"])
    assert r"\input{/etc/passwd}" in set(read["loss"])
    pd.testing.assert_series_equal(read["accuracy"], results["accuracy"])
    assert list(results["loss"].unique()) == HOSTILE  # the study itself is as it was


def test_parquet_keeps_names(results, tmp_path):
    file = export_results(SimpleNamespace(results=results), tmp_path / "results.parquet")
    assert list(pd.read_parquet(file)["loss"].unique()) == HOSTILE
