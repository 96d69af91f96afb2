"""``lossmith inspect``: labels that were made wrong are found, and the page on which they are looked through."""

import csv

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import softmax

from lossmith import compare, inspect_labels, load_data
from lossmith.analysis import noisy_test
from lossmith.command_line import main
from lossmith.report import write_inspection
from lossmith.studies import LabelInspection
from lossmith.studies.labels.cross_validation import CrossValidation
from lossmith.studies.protocol.prepared_replicate import PreparedReplicate
from lossmith.training.recipe import Run

ROWS, WRONG, SHOWN = 150, 15, 300


def clusters(seed=0):
    """Return a table of three clusters, the rows whose label is wrong, and a row that is there twice, with two labels."""
    generator = np.random.default_rng(seed)
    truth = np.arange(ROWS) % 3
    inputs = 4 * np.eye(3)[truth] + generator.normal(size=(ROWS, 3))
    labels = truth.copy()
    wrong = generator.permutation(ROWS - 2)[:WRONG]
    labels[wrong] = (truth[wrong] + 1) % 3
    inputs[-1], labels[-1], labels[-2] = inputs[-2] + 1e-3, (truth[-2] + 1) % 3, truth[-2]
    names = np.array(["red", "green, dark", "blue"], dtype=object)
    return pd.DataFrame({"a": inputs[:, 0], "b": inputs[:, 1], "c": inputs[:, 2], "colour": names[labels]}), wrong


@pytest.fixture(scope="module")
def found():
    frame, wrong = clusters()
    return inspect_labels(frame, target="colour", epochs=30, progress=False), wrong


def test_wrong_labels_are_found(found):
    inspection, wrong = found
    assert set(inspection.suspects["row"]) >= set(wrong[:12])
    assert len(inspection.suspects) < WRONG + 8
    low, high = inspection.estimate.interval
    assert low < (WRONG + 1) / ROWS < high
    assert inspection.estimate.rate == pytest.approx((WRONG + 1) / ROWS, abs=0.04)
    assert inspection.by_loss.keys() == {"ce", "gce"}
    twice = inspection.ranked.set_index("row").loc[ROWS - 1]
    assert twice["duplicate"] == ROWS - 2
    assert twice["duplicate_label"] != twice["label"]
    assert "15" in str(inspection).splitlines()[0]
    assert "confident learning" in str(inspection)


def test_the_same_seed_gives_the_same(found):
    data = load_data(clusters()[0], target="colour")
    rows = torch.arange(ROWS)
    trained = [
        CrossValidation(data, rows, data.labels, "tabular", ("ce",), 2, epochs=1, seed=3).probabilities() for _ in range(2)
    ]
    np.testing.assert_array_equal(trained[0]["ce"], trained[1]["ce"])


def test_files(found, tmp_path):
    inspection, _ = found
    inspection.write(tmp_path / "a" / "b")
    suspects, labels = (pd.read_csv(tmp_path / "a" / "b" / f"{name}.csv") for name in ("suspects", "labels"))
    assert list(suspects["row"]) == list(inspection.suspects["row"])
    assert list(labels["row"]) == list(range(ROWS))
    matrix = np.loadtxt(tmp_path / "a" / "b" / "matrix.csv", delimiter=",")
    np.testing.assert_allclose(matrix, inspection.estimate.transition)


def made(kind):
    """Return an inspection that nothing was trained for."""
    generator = np.random.default_rng(0)
    labels = np.arange(SHOWN) % 3
    given = labels.copy()
    given[:15] = (labels[:15] + 1) % 3
    probabilities = softmax(generator.uniform(4, 9, (SHOWN, 1)) * np.eye(3)[labels] + generator.random((SHOWN, 3)), axis=1)
    names = ["<b>cat</b>", 'a "dog"', "cow, calf"]
    if kind == "image":
        data = load_data((generator.random((SHOWN, 1, 8, 8), dtype=np.float32), given))
    elif kind == "text":
        texts = [f"<script>alert({row})</script> a story about {names[label]}" for row, label in enumerate(labels)]
        data = load_data(pd.DataFrame({"text": texts, "animal": np.array(names)[given]}), target="animal")
    else:
        data = load_data((generator.random((SHOWN, 4)), given))
    return LabelInspection(data, np.arange(SHOWN), data.labels.numpy(), {"ce": probabilities}, "tabular", 5)


@pytest.mark.parametrize("kind", ["text", "image", "table"])
def test_the_page_shows_rows_as_they_are(page, observed, tmp_path, kind):
    inspection = made(kind)
    page.goto(write_inspection(inspection, tmp_path / "inspect.html").as_uri())
    first = inspection.suspects.iloc[0]
    assert page.locator("#place").inner_text() == f"1 of {len(inspection.suspects)}, row {first['row']}"
    assert page.locator("#label").inner_text() == str(first["label"])
    if kind == "text":
        assert "<script>alert(" in page.locator("#content").inner_text()
    elif kind == "image":
        assert page.locator("#content img").evaluate("image => image.naturalWidth") == 8
    else:
        assert page.locator("#content dt").count() == 4
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not observed.errors
    assert not observed.requests


def test_verdicts_by_keyboard_are_saved(page, observed, tmp_path):
    inspection = made("text")
    rows = inspection.suspects["row"].tolist()
    assert len(rows) >= 12
    file = write_inspection(inspection, tmp_path / "inspect.html")
    page.goto(file.as_uri())
    page.keyboard.press("w")
    page.keyboard.press("r")
    page.locator("#other").select_option(index=0)
    page.keyboard.press("w")
    page.keyboard.press("u")
    assert page.locator("#count").inner_text().startswith("3 looked at")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#place").inner_text().startswith(f"3 of {len(rows)}")
    page.locator("#list button").first.click()
    assert page.locator("#done").inner_text() == f"Your verdict: {inspection.suspects.iloc[0]['probably']}"
    with page.expect_download() as saved:
        page.locator("#save").click()
    saved.value.save_as(tmp_path / "corrected.csv")
    with (tmp_path / "corrected.csv").open() as lines:
        table = {int(line["row"]): line for line in csv.DictReader(lines)}
    assert len(table) == SHOWN
    assert table[rows[0]]["label"] == inspection.suspects.iloc[0]["probably"]
    third = "changed" if inspection.labels[rows[2]] else "right"
    assert [table[row]["verdict"] for row in rows] == ["changed", "right", third, *[""] * (len(rows) - 3)]
    assert all(line["label"] == line["given"] for row, line in table.items() if row not in rows)
    page.reload()
    assert page.locator("#count").inner_text().startswith("3 looked at")  # the browser remembers
    assert not observed.errors


def test_without_suspects_the_page_says_so(page, observed, tmp_path):
    inspection = made("table")
    sound = LabelInspection(inspection.data, inspection.rows, np.arange(SHOWN) % 3, inspection.by_loss, "tabular", 5)
    page.goto(write_inspection(sound, tmp_path / "inspect.html").as_uri())
    assert "No label is more likely wrong than right" in page.locator("#review").inner_text()
    assert not observed.errors


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    clusters()[0].to_csv("colours.csv", index=False)
    assert main(["inspect", "colours.csv", "--epochs", "1", "--folds", "2", "--workers", "1", "--losses", "ce"]) == 0
    said = capsys.readouterr().out
    assert "of the labels are wrong" in said
    assert "lossmith advise --classes 3 --noise 0." in said
    assert (tmp_path / "inspections" / "colours" / "inspect.html").is_file()
    assert (tmp_path / "inspections" / "colours" / "suspects.csv").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.csv"], "no such file"),
        (["iris", "--folds", "1"], "folds must be >= 2, got 1"),
        (["iris", "--folds", "1000"], "folds must be from 2 to the number of rows, 150, got 1000"),
        (["iris", "--losses", "cee"], "unknown objective 'cee'"),
        (["iris", "--model", "tabula"], "model must be one of"),
        (["iris", "--rows", "0"], "rows must be"),
        (["iris", "--epochs", "-1"], "epochs must be"),
    ],
)
def test_bad_input_is_one_line(arguments, message, capsys):
    assert main(["inspect", *arguments]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert said.startswith("lossmith: ")
    assert "\n" not in said


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Return a study whose test labels are as wrong as its others, with a loss that is corrected by what its rows show."""
    losses = ["ce", "forward-correction(ce, matrix=estimate)"]
    how = {"seeds": 3, "rates": [0.01], "decays": [0.1], "epochs": 15, "references": False, "progress": False, "workers": 1}
    return compare(
        clusters()[0], target="colour", losses=losses, noise=[0], output=tmp_path_factory.mktemp("st") / "colours", **how
    )


def test_a_study_tells_which_of_its_labels_are_wrong(study, capsys):
    wrong = {*clusters()[1].tolist(), ROWS - 1}
    found = study.suspects()
    assert {*found["row"]} & wrong
    assert len({*found["row"]} & wrong) > 0.7 * len(found)
    judged = study.judged_by()
    assert len(judged.rows) == len(judged.labels) == len(judged.probabilities) < ROWS
    table = judged.accuracies()
    assert list(table.index) == list(study.settings.losses)
    np.testing.assert_allclose(table["given"], study.results.groupby("loss", sort=False)["accuracy"].mean()[table.index])
    assert (table["cleaned"] > table["given"]).all()
    assert main(["inspect", str(study.folder)]) == 0
    said = capsys.readouterr().out
    assert "leave the order of losses as it is" in said
    assert "cleaned" in said
    with pytest.raises(ValueError, match="noise must be one that results are there for"):
        study.suspects("pair(0.2)")


def test_estimated_matrices_are_those_of_the_training_rows(study):
    """The corrected loss is not cross-entropy, and its matrix is found once for each noise of a replicate."""
    data = study.load(0)
    replicate = PreparedReplicate(study.settings, data, 0, {})
    run = Run("forward-correction(ce, matrix=estimate)", "none", 0, 0.01, 0.1)
    loss = replicate._objective(run).loss
    assert not loss.lacking()
    matrix = loss.matrix.matrix.numpy()
    np.testing.assert_allclose(matrix.sum(1), 1.0)
    assert 0.7 < np.diag(matrix).mean() < 0.98
    assert replicate._matrix("none") is replicate._matrix("none")


@pytest.mark.parametrize(
    ("matrix", "rate", "keeps"),
    [
        (np.full((3, 3), 0.1) + 0.7 * np.eye(3), 0.2, True),
        ([[0.6, 0.4, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], 0.13, False),
        ([[0.4, 0.6], [0.6, 0.4]], 0.6, False),
    ],
)
def test_what_wrong_test_labels_allow(matrix, rate, keeps):
    """Accuracy on labels that are wrong evenly is a straight line; by hand for predictions that are right at random."""
    found = noisy_test(matrix, rate)
    assert found.keeps_order is keeps
    generator = np.random.default_rng(0)
    truth = generator.integers(3, size=200_000)
    if keeps:
        labels = np.where(generator.random(len(truth)) < rate, (truth + generator.integers(1, 3, len(truth))) % 3, truth)
        for accuracy in (0.5, 0.9):
            wrong = (truth + generator.integers(1, 3, len(truth))) % 3
            predicted = np.where(generator.random(len(truth)) < accuracy, truth, wrong)
            assert np.mean(predicted == labels) == pytest.approx(found.factor * accuracy + found.offset, abs=0.01)
        assert "leave the order of losses as it is" in str(found)
