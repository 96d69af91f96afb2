"""The report in a real browser: what a reader sees, points at, sorts, toggles, prints."""

import re
from itertools import pairwise

import numpy as np
import pytest
from markupsafe import Markup

from fake_study import CLASSES, LOSSES, NOISE, REFERENCES, FakeStudy, full_study
from lossmith.report.elements import Section
from lossmith.report.study_page import render_report, write_report
from lossmith.report.svg import ticks
from lossmith.statistics.budgets import tuning_curves, tuning_differences
from lossmith.statistics.summary import compare_to, summarise
from study_frames import results_frame

FIGURES = ("differences", "tuning", "noise", "rates", "curves", "false-labels", "reliability", "confusion", "cost")
WIDTHS = {"phone": 390, "desktop": 1280}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return full_study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def file(study):
    return write_report(study)


@pytest.fixture
def opened(page, file):
    page.goto(file.as_uri())
    return page


def small_study(folder, means=None, **frame):
    return FakeStudy(folder, results_frame(means or {"ce": [0.9, 0.6], "gce": [0.95, 0.7]}, **frame), epochs=4)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_everything_is_there_and_nothing_is_fetched(page, observed, file, width, scheme):
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    page.goto(file.as_uri())
    assert page.inner_text("h1") == "Train with gce(q=0.7)"
    for name in FIGURES:
        box = page.locator(f"#figure-{name}").bounding_box()
        assert box["height"] > 100
        assert box["width"] <= width
        assert page.locator(f"#figure-{name} svg").count() > 0 or name == "cost"
    assert page.evaluate("document.documentElement.scrollWidth") == width  # nothing sticks out
    red = int(re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))[0])
    assert (red > 128) == (scheme == "light")
    assert observed.errors == []
    assert observed.requests == []


def test_is_small(file):
    assert file.stat().st_size < 2_000_000


def test_the_answer_comes_first_with_evidence_costs_and_doubts(opened, study):
    advice = study.recommend()
    answer = opened.inner_text("#answer").replace("\N{MINUS SIGN}", "-")
    reasons = [choice.reason for choice in advice.by_noise]
    for line in (*advice.evidence, *advice.costs, *advice.tuning, *advice.would_change, *reasons):
        assert line in answer
    assert [choice.noise for choice in advice.by_noise] == list(NOISE[1:])  # the headline is about the labels as they are
    assert "Strong evidence" in answer
    assert 'lossmith.make_loss("gce(q=0.7)")' in answer
    assert opened.locator("h1, section").first.inner_text().startswith("Train with")


def test_the_table_has_the_statistics(opened, study):
    summary = summarise(study.results, overlap=study.overlap).set_index(["loss", "noise"])
    rows = opened.locator("#results .case[data-case='0'] tbody:first-of-type tr").all()
    assert len(rows) == len(LOSSES)
    for row in rows:
        loss = row.locator("th").inner_text()
        for noise, cell in zip(NOISE, row.locator("td").all(), strict=False):
            expected = summary.loc[(loss, noise)]
            assert cell.inner_text() == f"{100 * expected['mean']:.2f} ± {100 * expected['standard_error']:.2f}"
            assert (cell.locator("strong").count() == 1) == expected["bold"]


def test_sorting_by_mouse_and_by_keyboard(opened):
    table = opened.locator("#results .case[data-case='0'] table")
    head = table.locator("thead th[data-key='symmetric(0.4)']")

    def column():
        return [float(cell.get_attribute("data-value")) for cell in table.locator("tbody:first-of-type tr td:nth-child(4)").all()]

    assert head.get_attribute("aria-sort") == "none"
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert column() == sorted(column(), reverse=True)
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert column() == sorted(column())
    table.locator("thead th[data-key='loss'] button").press("Space")
    names = table.locator("tbody:first-of-type th").all_inner_texts()
    assert names == sorted(names, key=str.lower)
    assert table.locator("tbody").last.locator("tr").count() == 1 + len(REFERENCES)  # references stay below
    assert head.get_attribute("aria-sort") == "none"


def test_other_metrics_are_one_choice_away(opened):
    opened.select_option("#choice-metric", label="Expected calibration error")
    shown = opened.locator("#results .case:visible")
    assert shown.count() == 1
    assert shown.locator("caption").inner_text() == "Expected calibration error"


def values_shown(page):
    return dict(re.findall(r"^(\S.*)\n([\d.]+) %", page.inner_text("#tip"), re.MULTILINE))


def point_at_the_end(page, panel):
    panel.scroll_into_view_if_needed()
    box = panel.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.97, box["y"] + box["height"] / 2)


def test_pointing_at_a_panel_shows_its_loss_and_the_baseline(opened, study):
    assert opened.locator("#tip").is_hidden()
    opened.select_option("#choice-curves", label="symmetric(0.4): 36 % wrong labels")
    panels = opened.locator("#figure-curves .case:visible svg[data-places]")
    assert panels.count() == len(LOSSES) - 1  # the baseline is in all of them
    last = study.curves.query("epoch == 40 and noise == 'symmetric(0.4)'").groupby("loss")["test_accuracy"].mean()
    for place, loss in ((0, "focal(gamma=2.0)"), (2, "gce(q=0.7)")):
        point_at_the_end(opened, panels.nth(place))
        assert opened.inner_text("#tip b") == "epoch 40"
        shown = values_shown(opened)
        assert set(shown) == {"ce", loss}
        assert all(float(value) == pytest.approx(100 * last[name], abs=0.051) for name, value in shown.items())
    opened.mouse.move(5, 5)
    assert opened.locator("#tip").is_hidden()


def test_few_losses_share_their_panels(page, tmp_path):
    study = small_study(tmp_path, {"ce": [0.9, 0.6], "gce": [0.95, 0.7], "mae": [0.8, 0.65]})
    page.goto(write_report(study).as_uri())
    panels = page.locator("#figure-curves svg[data-places]")
    assert panels.count() == 2
    point_at_the_end(page, panels.last)
    assert set(values_shown(page)) == {"ce", "gce", "mae"}


def test_arrow_keys_walk_along_a_curve(opened):
    panel = opened.locator("#figure-curves svg[data-places]").first
    panel.focus()
    opened.keyboard.press("End")
    assert opened.inner_text("#tip b") == "epoch 40"
    opened.keyboard.press("ArrowLeft")
    assert opened.inner_text("#tip b") == "epoch 39"
    opened.keyboard.press("Home")
    assert opened.inner_text("#tip b") == "epoch 1"
    opened.keyboard.press("Escape")
    assert opened.locator("#tip").is_hidden()


def test_the_legend_hides_a_loss_everywhere(opened):
    button = opened.locator("#figure-tuning [data-toggle]", has_text="focal")
    number = button.get_attribute("data-toggle")
    marks = opened.locator(f"#figure-tuning > .panels g.series[data-series='{number}']:visible")
    assert marks.count() == len(NOISE)
    button.click()
    assert {each.get_attribute("aria-pressed") for each in opened.locator(f"[data-toggle='{number}']").all()} == {"false"}
    assert opened.locator(f"g.series[data-series='{number}']:visible").count() == 0
    panel = opened.locator("#figure-tuning svg[data-places]").first
    panel.hover()
    assert "focal" not in opened.inner_text("#tip")
    button.click()
    assert marks.count() == len(NOISE)


def test_pointing_at_a_cell_of_a_matrix(opened, study):
    cell = opened.locator("#figure-confusion .case:visible .cells rect").nth(1)
    cell.hover()
    share = study.noise_matrix(NOISE[-1])[0, 1]
    assert opened.inner_text("#tip") == f"true class {CLASSES[0]}, label given {CLASSES[1]}: {100 * share:.1f} %"


def test_every_figure_of_curves_has_its_values_as_a_table(opened):
    for name in ("noise", "curves", "false-labels", "reliability", "rates"):
        figure = opened.locator(f"#figure-{name}")
        assert figure.locator("details table").count() == figure.locator(".case").count()
    table = opened.locator("#figure-curves details table").first
    assert table.locator("tbody tr").count() == 40
    assert table.locator("thead th").all_text_contents() == ["epoch", *LOSSES]


def test_differences_have_the_intervals_of_the_verdicts(opened, study):
    compared = compare_to(study.results, "ce", overlap=study.overlap)
    compared = compared[compared["noise"] == "none"].set_index("loss")
    rows = opened.locator("#figure-differences .case:visible tbody tr").all()
    assert len(rows) == len(LOSSES) - 1
    for row in rows:
        expected = compared.loc[row.locator("th").inner_text()]
        texts = row.locator("td").all_inner_texts()
        assert float(texts[1]) == pytest.approx(100 * expected["difference"], abs=0.0051)
        low, high = (float(end) for end in texts[2].split(" to "))
        assert [low, high] == pytest.approx([100 * expected["low"], 100 * expected["high"]], abs=0.0051)
        assert (row.locator("td strong").count() == 1) == (low > 0 or high < 0)


def test_what_each_loss_gives_after_few_trials_and_many(opened, study):
    means = tuning_curves(study.trials, overlap=study.overlap).set_index(["noise", "loss", "trials"])["mean"]
    told = tuning_differences(study.trials, "ce", overlap=study.overlap).set_index(["noise", "loss", "trials"])
    opened.select_option("#choice-tuning", label="symmetric(0.2): 18 % wrong labels")
    table = opened.locator("#figure-tuning .case:visible .budgets")
    assert table.locator("thead th").all_inner_texts() == ["Loss", "1 trial", "2 trials", "4 trials", "8 trials"]
    for row in table.locator("tbody tr").all():
        loss = row.locator("th").inner_text()
        for budget, cell in zip((1, 2, 4, 8), row.locator("td").all(), strict=True):
            key = (NOISE[1], loss, budget)
            lines = cell.inner_text().split()
            assert float(lines[0]) == pytest.approx(100 * means[key], abs=0.0051)
            if loss != "ce":
                assert float(lines[1]) == pytest.approx(100 * told.loc[key, "difference"], abs=0.051)
                assert (cell.locator("strong").count() == 1) == (told.loc[key, "p_holm"] < 0.05)


def test_every_trial_is_drawn_and_those_stopped_otherwise(opened, study):
    opened.select_option("#choice-rates", label="no noise added")
    drawn = opened.locator("#figure-rates .case:visible")
    assert drawn.locator("svg[data-places]").count() == len(LOSSES)
    trials = study.trials[study.trials["noise"] == "none"]
    counts = {"dash": trials["stopped"], "ring": trials["counts"], "dot": ~trials["stopped"] & ~trials["counts"]}
    for kind, these in counts.items():
        paths = drawn.locator(f"path.mark.{kind}").evaluate_all("all => all.map((each) => each.getAttribute('d'))")
        assert sum(path.count("M") for path in paths) == these.sum() > 0


def test_on_paper_choices_are_named_and_nothing_is_cut_off(opened):
    opened.select_option("#choice-difference", label="no noise added")
    opened.set_viewport_size({"width": 718, "height": 1000})  # A4 without margins of 1 cm
    opened.emulate_media(media="print")
    assert opened.locator("#differences .case:visible .case-name").inner_text() == "no noise added"
    assert opened.locator("nav, select:visible, .copy:visible").first.is_hidden()
    assert opened.evaluate("document.documentElement.scrollWidth") == 718


def test_without_scripts_everything_is_shown(chromium, file):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.locator("#differences .case:visible").count() == len(NOISE)
    assert page.locator("#figure-curves .panel path.line:visible").count() >= len(NOISE) * len(LOSSES)
    context.close()


def test_for_screen_readers(opened):
    nameless = opened.evaluate(
        """() => [...document.querySelectorAll('svg[role=img], button, select, figure, a')].filter((each) =>
            !(each.getAttribute('aria-label') || each.textContent.trim() || each.closest('label'))).length"""
    )
    assert nameless == 0
    assert opened.locator("html").get_attribute("lang") == "en"
    assert opened.locator("th:not([scope])").count() == 0
    levels = [int(tag[1]) for tag in opened.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map((each) => each.tagName)")]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.textContent") == "Skip to the answer"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(opened, scheme):
    opened.emulate_media(color_scheme=scheme)
    colours = opened.evaluate(
        """() => { const style = getComputedStyle(document.documentElement);
            return Object.fromEntries(['paper', 'card', 'faint', 'ink', 'soft', 'accent', 'good', 'unsure'].map((name) =>
                [name, style.getPropertyValue('--' + name).trim()])); }"""
    )
    for ground in ("paper", "card", "faint"):
        for text in ("ink", "soft", "accent", "good", "unsure"):
            assert contrast(colours[ground], colours[text]) >= 4.5, (ground, text)  # WCAG AA


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours as WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_command_is_there_to_copy(opened, study):
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.locator("#rerun .copy").click()
    assert opened.inner_text("#rerun .copyable code") == study.provenance["command"]
    assert opened.locator("#rerun .copy").inner_text() in ("Copied", "Selected")


class TestOtherStudies:
    def test_one_seed_one_noise_one_loss(self, page, observed, tmp_path):
        study = small_study(tmp_path, {"ce": [0.9]}, noise=["none"], rates=[0.0], seeds=1)
        page.goto(write_report(study).as_uri())
        assert page.inner_text("h1") == "Stay with ce"
        assert "Nothing can be said" in page.inner_text("#answer")
        assert page.locator("#figure-curves svg").count() > 0
        assert page.locator("#figure-differences, #figure-noise, #figure-false-labels").count() == 0
        assert observed.errors == []

    def test_a_loss_that_diverged_everywhere(self, page, observed, tmp_path):
        study = small_study(tmp_path)
        failed = study.results["loss"] == "gce"
        study.results.loc[failed, ["accuracy", "nll", "ece", "brier", "top5", "balanced_accuracy"]] = np.nan
        study.results.loc[failed, "diverged"] = True
        page.goto(write_report(study, tmp_path / "other" / "page.html").as_uri())
        assert "gce diverged in 5 of 5 replicates." in page.inner_text("#answer")
        assert observed.errors == []

    def test_every_loss_diverged(self, page, observed, tmp_path):
        study = small_study(tmp_path)
        study.results["diverged"] = study.trials["diverged"] = True
        page.goto(write_report(study).as_uri())
        assert page.inner_text("h1") == "No loss to recommend"
        assert "In your training loop" not in page.inner_text("#answer")
        assert "90 of 90" in page.inner_text("#cost")
        assert observed.errors == []

    def test_missing_runs(self, tmp_path):
        study = small_study(tmp_path)
        study.results = study.results[(study.results["loss"] == "ce") | (study.results["noise"] == "none")]
        text = render_report(study)
        assert 'aria-label="no run"' in text

    def test_names_are_escaped(self, page, observed, tmp_path):
        name = "<script>alert('x')</script>"
        study = small_study(tmp_path, {"ce": [0.9, 0.6], name: [0.95, 0.7]})
        page.goto(write_report(study).as_uri())
        assert page.inner_text("h1") == f"Train with {name}"
        assert observed.errors == []

    def test_many_losses_have_different_looks(self, tmp_path):
        text = render_report(small_study(tmp_path, {f"loss{number}": [0.9, 0.6] for number in range(20)}))
        looks = re.findall(r'<button type="button" aria-pressed="true" data-toggle="\d+" class="([^"]+)"', text)
        assert len(looks) == len(set(looks)) == 20

    def test_a_hundred_classes_are_one_image(self, page, observed, tmp_path):
        study = FakeStudy(
            tmp_path, results_frame({"ce": [0.9, 0.6], "gce": [0.9, 0.7]}), epochs=4, classes=tuple(map(str, range(100)))
        )
        file = write_report(study)
        page.goto(file.as_uri())
        assert page.locator("#figure-confusion image").count() == 2 + 3
        assert file.stat().st_size < 500_000
        assert observed.errors == []
        assert observed.requests == []

    def test_kinds_of_noise_stand_side_by_side(self, page, tmp_path):
        means = {"ce": [0.9, 0.6, 0.7], "gce": [0.9, 0.7, 0.7]}
        study = small_study(tmp_path, means, noise=["none", "symmetric(0.4)", "pair(0.4)"], rates=[0.0, 0.36, 0.4])
        page.goto(write_report(study).as_uri())
        assert "pair(0.4)" in page.locator("#figure-noise svg[data-places] .grid").first.text_content()

    def test_made_in_python(self, tmp_path):
        study = small_study(tmp_path)
        study.provenance["from_python"] = "a model of its own"
        assert "run in Python with a model of its own" in render_report(study)

    def test_sections_can_be_added(self, page, tmp_path):
        added = Section("agreement", "Agreement", "Who agrees.", Markup("<p id='mine'>here</p>"))
        page.goto(write_report(small_study(tmp_path), more=[added]).as_uri())
        assert page.inner_text("#mine") == "here"
        assert page.locator("nav a[href='#agreement']").count() == 1
        assert page.locator("main > section").last.get_attribute("id") == "rerun"

    def test_no_results(self, tmp_path):
        study = small_study(tmp_path)
        study.results = study.results.iloc[:0]
        with pytest.raises(ValueError, match=r"^report: the study has no results yet\.$"):
            render_report(study)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.123, 0.124), (-5, 17), (1, 40), (0.9, 0.97)])
def test_ticks_are_round_and_inside(low, high):
    at = ticks(low, high)
    assert 2 <= len(at) <= 8
    assert low - 1e-9 <= at[0]
    assert at[-1] <= high + 1e-9
    steps = np.diff(at)
    np.testing.assert_allclose(steps, steps[0])
