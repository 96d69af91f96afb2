"""The report of a study in which much goes wrong: what must be known first is said first, and fits a phone."""

import numpy as np
import pandas as pd
import pytest

from fake_study import NOISE, TEN_LOSSES, FakeStudy, full_study, troubled_study
from lossmith.report.sections.learning_curves import _of_one_length
from lossmith.report.sections.learning_rates import running_mean
from lossmith.report.sections.protocol import protocol
from lossmith.report.study_page import render_report, write_report
from lossmith.report.subject import Subject
from lossmith.report.table_cells import reference_cells, table_cells
from lossmith.statistics.differences.overlapping import Overlap
from lossmith.studies.luck_of_rows import luck_of_rows
from study_frames import results_frame


class CountsReads:
    """A study that knows how often its results were read."""

    def __init__(self, study):
        self.study, self.reads = study, 0

    def __getattr__(self, name):
        self.reads += name == "results"
        return getattr(self.study, name)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return troubled_study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def file(study):
    return write_report(study)


@pytest.fixture
def opened(page, file):
    page.goto(file.as_uri())
    return page


@pytest.fixture
def phone(opened):
    opened.set_viewport_size({"width": 390, "height": 800})
    return opened


def test_what_is_said_before_the_headline(opened, study):
    before = opened.locator("#answer > p").all_inner_texts()
    assert before[0] == study.unfinished
    assert before[1].startswith("The plan was made smaller to fit into the time: 3000 of 20000 training rows")
    assert before[1].endswith("about 3 hours.")
    assert before[2] == study.recommend().references[0]
    assert before[2].startswith("RBF-SVM is ")
    order = opened.evaluate("[...document.querySelector('#answer').children].map((each) => each.className || each.tagName)")
    assert order[:4] == ["unfinished", "unfinished", "ahead", "H1"]
    assert opened.title().startswith("Unfinished: ")


def test_added_noise_is_answered_line_by_line(phone):
    rows = phone.locator(".choices tbody tr")
    assert rows.count() == len(NOISE) - 1
    for row in rows.all():
        assert "beats ce by" in row.inner_text()
        assert "RBF-SVM is" in row.inner_text()
        assert row.locator("small").last.is_visible()
    assert "Untrained: mae." in rows.last.inner_text()


def test_what_looks_untrained_is_marked_with_its_reason(opened):
    row = opened.locator("#results .case:visible tbody tr", has_text="mae").filter(has=opened.get_by_text("mae", exact=True))
    mark = row.locator("td").nth(2).locator("abbr").first
    assert mark.inner_text() == "\N{DAGGER}"
    assert mark.get_attribute("title") == "looks untrained: predicts one class, in 5 of 5 replicates"
    assert row.locator("td").nth(0).locator("abbr").count() == 0
    notes = opened.locator("#results .notes li").all_inner_texts()
    assert notes[0] == "\N{DAGGER} looks untrained: mae at symmetric(0.4), predicts one class, in 5 of 5 replicates."
    assert notes[1].startswith(
        "(\N{DAGGER}) looks untrained in fewer than half of the replicates: label-smoothing(alpha=0.1) at none, "
    )
    assert notes[1].endswith(", still rising at the end, in 1 of 5 replicates.")
    assert "sce at none, in 1 of 5 replicates" in notes[2]
    opened.select_option("#choice-difference", label="symmetric(0.4): 36 % wrong labels")
    faint = opened.locator("#figure-differences .case:visible tr.untrained")
    assert faint.locator("th").inner_text().startswith("mae")


def test_references_stand_below_the_losses(opened, study):
    assert opened.locator("#results .case:visible caption").inner_text() == "Balanced accuracy (%)"  # the study's metric is first
    below = opened.locator("#results .case:visible tbody.references tr")
    assert below.locator("th").all_inner_texts()[1:] == ["largest class", "logistic regression", "RBF-SVM"]
    mean = study.references.query("reference == 'logistic regression' and noise == 'none'")["balanced_accuracy"].mean()
    assert below.nth(2).locator("td").first.inner_text().startswith(f"{100 * mean:.2f} ± ")


def test_the_width_of_the_plateau_is_a_column(opened):
    table = opened.locator("#results .case:visible table")
    assert "Good settings" in table.locator("thead th").last.inner_text()
    cell = table.locator("tbody:first-of-type td.plateau").first
    shares = [float(share) for share in cell.inner_text().removesuffix(" %").split(", ")]
    assert len(shares) == len(NOISE)
    assert all(0 < share <= 100 for share in shares)
    assert f"no noise added: {shares[0]:.0f} % of the settings are good" in cell.get_attribute("title")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_difference_table_fits_a_phone(phone, observed, scheme):
    phone.emulate_media(color_scheme=scheme)
    assert phone.evaluate("document.documentElement.scrollWidth") == 390
    for number in range(len(NOISE)):
        phone.select_option("#choice-difference", index=number)
        box = phone.locator("#figure-differences .case:visible .scroll")
        assert box.evaluate("each => each.scrollWidth <= each.clientWidth")
        for row in box.locator("tbody tr").all():
            cells = [cell.bounding_box() for cell in row.locator("th, td").all()]
            assert all(cell["x"] >= 0 and cell["x"] + cell["width"] <= 390 for cell in cells)
            assert len(row.locator("td").nth(2).inner_text().split(" to ")) == 2
    assert observed.errors == []


def test_many_losses_have_a_panel_each(phone):
    shown = phone.locator("#figure-curves .case:visible .small .panel")
    assert shown.count() == len(TEN_LOSSES) - 1
    boxes = [panel.bounding_box() for panel in shown.all()]
    assert len({round(box["x"]) for box in boxes}) == 2  # two columns on a phone
    ticks = shown.first.locator("svg text").first
    assert ticks.evaluate("each => each.getBoundingClientRect().height") > 9


def test_how_trials_were_stopped_and_chosen_in_words(tmp_path):
    study = full_study(tmp_path)
    study.trials["epoch"] = np.where(study.trials["stopped"], 4, 12)
    decides = "within one standard error of the best, the one counts by which the labels are likeliest"
    text = " ".join(protocol(Subject(study)))
    assert "All trials trained for 4 epochs." in text
    assert decides not in text  # of a study of an earlier version no likelihood is known
    study.trials["validation_likelihood"] = -0.5
    assert decides in " ".join(protocol(Subject(study)))
    study.trials = study.trials.drop(columns="epoch")
    assert "All trials trained for a part of the epochs." in " ".join(protocol(Subject(study)))


def test_what_was_run_in_words(opened, study):
    text = opened.inner_text("#rerun")
    assert "A replicate is the whole procedure, and there are 5: each has its own split" in text
    assert "Every loss had the same number of trials, 9 in each replicate" in text
    assert f"the other {study.trials['stopped'].sum()} were stopped" in text
    assert "Settings were chosen at each noise level by balanced accuracy on validation rows as noisy" in text
    assert "(1/J + 0.25) s²" in text
    assert "References (largest class, logistic regression, RBF-SVM)" in text
    assert f"This page rests on {len(study.results)} runs, chosen from {len(study.trials)} trainings." in text
    rates = study.results.query("loss == 'ce' and noise == 'none'")["learning_rate"]
    assert f"rate {rates.min():.2g} to {rates.max():.2g}" in opened.locator(".settings tbody tr").first.inner_text()


def test_the_cost_counts_all_trials(opened, study):
    mine = study.trials[study.trials["loss"] == "ce"]
    row = opened.locator("#figure-cost tbody tr").first.inner_text()
    assert f"{len(mine)}\n{mine['stopped'].sum()} stopped early" in row
    assert f"{mine['seconds'].sum() / 60:.0f} minutes" in row


def test_no_word_of_seeds(opened):
    opened.locator("#rerun details").evaluate_all(
        "all => all.forEach((each) => each.remove())"
    )  # the settings as they are stored
    assert "seed" not in opened.inner_text("body").lower()


class TestOtherProtocols:
    def make(self, folder, **changes):
        return FakeStudy(folder, results_frame({"ce": [0.9, 0.6], "gce": [0.95, 0.7]}), epochs=4, **changes)

    def test_tuned_on_clean_labels(self, tmp_path):
        study = self.make(tmp_path)
        study.provenance["tune_on"] = "clean"
        assert "on validation rows with labels as they are, and used at every noise level" in render_report(study)

    def test_a_test_split_of_the_users(self, tmp_path):
        study = self.make(tmp_path)
        study.keeps_predictions = True
        study.overlap = Overlap(0.25, rows=True)
        text = render_report(study)
        assert "All replicates are judged on the same test rows" in text
        assert "each has its own validation rows" in text
        found = study.recommend().differences
        for noise, error in zip(found["noise"], found["error"], strict=True):
            assert error**2 > luck_of_rows(study)("gce", "ce", noise).mean > 0

    def test_results_are_read_once_for_the_luck_of_all_rows(self, tmp_path):
        study = self.make(tmp_path)
        study.keeps_predictions = True
        study.overlap = Overlap(0.25, rows=True)
        counted = CountsReads(study)
        luck = luck_of_rows(counted)
        assert counted.reads == 0
        assert luck("gce", "ce", "none").mean > 0
        assert counted.reads == 1

    def test_a_study_of_the_old_protocol(self, tmp_path):
        study = self.make(tmp_path)
        study.caution = "Made by an older protocol: less sure than it looks."
        study.trials = study.trials.assign(weight=0.0, stopped=False)
        study.references = study.references.iloc[:0]
        study.overlap = Overlap(0.0, rows=True)
        text = render_report(study)
        assert text.count(study.caution) == 2  # in the answer, and where it is told how the comparison is made
        assert "How much will you tune?" not in text
        assert "References" not in text
        assert "Good settings" not in text

    def test_one_setting_and_no_references(self, page, observed, tmp_path):
        study = self.make(tmp_path, references={})
        study.trials = study.trials[study.trials["counts"]].assign(learning_rate=0.1, weight=1.0)
        page.goto(write_report(study).as_uri())
        assert page.locator("#rates, #tuning, .references").count() == 0
        assert observed.errors == []

    def test_a_metric_that_is_no_share(self, page, observed, tmp_path):
        study = self.make(tmp_path, metric="nll")
        study.results["validation_score"] = -study.results["nll"]
        study.trials["nll"] = 1.5 - study.trials["accuracy"]
        study.trials["validation_score"] = -study.trials["nll"]
        page.goto(write_report(study).as_uri())
        assert "negative log-likelihood" in page.inner_text("#figure-differences figcaption")
        assert "where less is better" in page.inner_text("#figure-differences figcaption")
        assert page.locator("#results .case:visible caption").inner_text() == "Negative log-likelihood"
        assert observed.errors == []

    def test_a_second_chance_does_not_stretch_the_curves_of_all(self, page, tmp_path):
        study = full_study(tmp_path, {"ce": (0.9, 0.8, 0.7), "mae": (0.8, 0.7, 0.6)}, epochs=4)
        curves = study.curves
        longer = curves[(curves["loss"] == "mae") & (curves["seed"] == 0)]
        stretched = pd.concat([curves, longer.assign(epoch=longer["epoch"] + 4)], ignore_index=True)
        study.curves = stretched
        page.goto(write_report(study).as_uri())
        assert page.locator("#figure-curves details tbody tr").count() == 4 * len(NOISE)


def test_curves_do_not_jump_where_the_usual_epochs_are_over():
    runs = [("nce", seed, 6 if seed < 2 else 2) for seed in range(4)]
    runs += [("mae", seed, 6 if seed < 3 else 2) for seed in range(4)]
    rows = [(loss, "none", seed, epoch) for loss, seed, epochs in runs for epoch in range(1, epochs + 1)]
    kept = _of_one_length(pd.DataFrame(rows, columns=["loss", "noise", "seed", "epoch"]), 2)
    assert set(kept[kept["loss"] == "nce"]["seed"]) == {2, 3}  # half had a second chance: the usual ones
    assert set(kept[kept["loss"] == "mae"]["seed"]) == {0, 1, 2}  # most had one


def test_what_looks_untrained_is_not_bold():
    reason = ["predicts one class", ""]
    results = pd.DataFrame(
        {
            "loss": ["ce"] * 2 + ["mae"] * 2,
            "noise": "none",
            "seed": [0, 1] * 2,
            "accuracy": [0.8, 0.82, 0.1, 0.8],
            "untrained": ["", "", *reason],
        }
    )
    cells = table_cells(results)
    assert cells["mae"]["none"].untrained
    assert (cells["ce"]["none"].bold, cells["mae"]["none"].bold) == (True, False)
    assert table_cells(results.assign(untrained=""))["mae"]["none"].bold


def test_a_likelihood_of_zero_has_no_spread_and_no_warning(recwarn):
    references = pd.DataFrame({"reference": "largest class", "noise": "none", "nll": [np.inf, np.inf]})
    assert reference_cells(references, "nll")["largest class"]["none"].error_text == ""
    assert not recwarn


def test_a_running_mean_is_the_mean_of_what_is_near():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 4000)
    places = np.linspace(0.2, 0.8, 4)
    np.testing.assert_allclose(running_mean(x, 3 * x, np.ones(4000), places, 0.05), 3 * places, atol=0.02)
    weighted = running_mean(np.zeros(2), np.array([0.0, 1.0]), np.array([1.0, 3.0]), np.zeros(1), 0.1)
    assert weighted[0] == pytest.approx(0.75)
