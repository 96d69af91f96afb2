"""What notebooks show: parts of the report whose style and script stay where they are, and progress."""

import sys
from types import ModuleType, SimpleNamespace

import pandas as pd
import pytest

from fake_study import FakeStudy, full_study
from lossmith.report.notebook.fragment import page_of
from lossmith.report.sections import SECTIONS
from lossmith.report.subject import Subject
from lossmith.studies.progress import NotebookProgress, in_notebook, progress_display
from lossmith.studies.shown import ResultTable, ShownStudy
from study_frames import results_frame

HOST = """<!doctype html><html>
<head><style>table {{ border: 3px solid red; }} th {{ background: rgb(255, 255, 0); }}</style></head>
<body data-jp-theme-light="{light}"><table id="host"><tr><th>host</th></tr></table>{output}</body></html>"""


class Study(FakeStudy, ShownStudy):
    def table(self, measure="accuracy"):
        means = self.results.groupby(["loss", "noise"])[measure].mean().unstack().map("{:.3f}".format)
        table = ResultTable(means)
        table.measure, table.study = measure, self
        return table


@pytest.fixture
def study(tmp_path):
    return Study(tmp_path, results_frame({"ce": [0.9, 0.6], "gce": [0.97, 0.8]}), epochs=4)


@pytest.mark.parametrize("light", [True, False])
def test_outputs_answer_to_the_pointer_and_leave_the_notebook_alone(page, observed, tmp_path, study, light):
    file = tmp_path / "notebook.html"
    shown = study._repr_html_() + study.recommend()._repr_html_() + study.plot("noise")._repr_html_() + study._repr_html_()
    file.write_text(HOST.format(light=str(light).lower(), output=shown), encoding="utf-8")
    page.emulate_media(color_scheme="dark" if light else "light")  # the notebook's own scheme counts, not the system's
    page.goto(file.as_uri())

    style = "element => [getComputedStyle(element).borderTopWidth, getComputedStyle(element).backgroundColor]"
    assert page.locator("#host").evaluate(style)[0] == "3px"
    assert page.locator("#host th").evaluate(style)[1] == "rgb(255, 255, 0)"
    assert page.locator(".sortable table").first.evaluate(style)[0] == "0px"
    assert page.locator(".sortable th").first.evaluate(style)[1] == "rgba(0, 0, 0, 0)"
    ink = page.locator(".answer h1").first.evaluate("element => getComputedStyle(element).color")
    assert ink == ("rgb(28, 30, 33)" if light else "rgb(232, 230, 225)")

    for place in (0, -1):  # the same study shown twice has two tables, each with its own choice
        choice = page.locator("select").nth(place)
        choice.select_option(index=1)
        shown_cases = choice.locator("xpath=ancestor::div[contains(@class, 'cases')]/div[not(@hidden)]")
        assert shown_cases.count() == 1
    assert page.locator("h1", has_text="Train with gce").count() == 3
    panel = page.locator(".panel svg").nth(-1)
    panel.scroll_into_view_if_needed()
    panel.hover()
    tip, box = page.locator("#tip:visible").bounding_box(), panel.bounding_box()
    assert abs(tip["y"] + tip["height"] / 2 - box["y"] - box["height"] / 2) < 40
    assert observed.errors == []
    assert observed.requests == []


def test_every_section_has_the_name_that_links_to_it_have(tmp_path):
    subject = Subject(full_study(tmp_path))
    made = {name: make(subject) for name, make in SECTIONS.items()}
    assert {name: section.anchor for name, section in made.items() if section} == {name: name for name in made if made[name]}


def test_plots_are_known_by_name(study, tmp_path):
    with pytest.raises(ValueError, match=r"must be one of results, .*, got 'nose'; did you mean 'noise'\?"):
        study.plot("nose")
    with pytest.raises(ValueError, match="layers has nothing to show in this study"):
        study.plot("layers")
    file = study.plot("curves").write(tmp_path / "new" / "curves.html")
    assert file.read_text(encoding="utf-8").startswith(page_of("", "Learning curves")[:60])
    assert "write(file)" in repr(study.plot("noise"))


def test_the_report_is_shown_in_a_frame_or_written(study, tmp_path):
    assert study.report()._repr_html_().startswith("<iframe srcdoc=")
    assert study.report(tmp_path / "page.html").read_text(encoding="utf-8").endswith("</html>")


def test_without_results_text_is_shown(study):
    study.results = study.results.iloc[:0]
    assert study._repr_html_() is None


def test_a_table_that_was_changed_is_shown_as_it_is(study):
    assert "sortable" in study.table()._repr_html_()
    changed = study.table()
    changed.iloc[0, 0] = "0.123"
    assert "0.123" in changed._repr_html_()
    assert "sortable" not in changed._repr_html_()
    assert type(study.table().head(1)) is pd.DataFrame


def test_progress_is_one_output_that_changes(monkeypatch):
    shown = []
    handle = SimpleNamespace(update=lambda html: shown.append(html.data))

    def display(html, display_id):
        shown.append(html.data)
        return handle

    parts = ModuleType("IPython.display")
    parts.HTML, parts.display = (lambda data: SimpleNamespace(data=data)), display
    python = ModuleType("IPython")
    python.get_ipython = lambda: SimpleNamespace(kernel=object())
    assert not in_notebook()
    monkeypatch.setitem(sys.modules, "IPython", python)
    monkeypatch.setitem(sys.modules, "IPython.display", parts)
    with progress_display() as progress:
        assert isinstance(progress, NotebookProgress)
        progress.note("digits: 1 < 2")
        progress.start("training", 10, stores=True)
        progress.advance(4)
        progress.advance(6)
        progress.start("analysing", 2)
    assert shown[0] == "<div>digits: 1 &lt; 2</div>"
    assert 'value="10"' in shown[-1]
    assert shown[-1].count("<progress") == 2
    assert len(shown) == 4  # not one for each step
