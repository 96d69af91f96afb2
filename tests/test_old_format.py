"""Studies of format 1: read as they were meant by the lossmith that made them, never changed, and never gone on with.

The file in ``tests/data`` was made by the last commit that wrote format 1, by ``lossmith compare iris --losses ce,bi-tempered
--noise 0,0.4 --seeds 2 --rates 0.03,0.3 --epochs 2 --model linear --weight-decay 0.01 --keep features,weights``.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from shutil import copyfile

import numpy as np
import pytest
import torch

from lossmith.command_line import main
from lossmith.data import load_data
from lossmith.report import write_report
from lossmith.statistics.differences.overlapping import Overlap
from lossmith.studies import StoreError, analyse, compare, open_study
from lossmith.studies.storage.old_format import OLD_PROTOCOL
from lossmith.training.recipe import Cell

FILE = Path(__file__).parent / "data" / "study-of-format-1.sqlite"
REFUSED = "is a study of an older lossmith, which can be read but not gone on with"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "old").mkdir()
    copyfile(FILE, tmp_path / "old" / "study.sqlite")
    return tmp_path / "old"


@pytest.fixture
def study(folder):
    return open_study(folder)


def change(folder, query, *values):
    with closing(sqlite3.connect(folder / "study.sqlite")) as connection:
        connection.execute(query, values)
        connection.commit()


def change_json(folder, table, column, where, **changes):
    with closing(sqlite3.connect(folder / "study.sqlite")) as connection:
        (text,) = connection.execute(f"SELECT {column} FROM {table} WHERE {where}").fetchone()  # noqa: S608
    query = f"UPDATE {table} SET {column} = ? WHERE {where}"  # noqa: S608
    change(folder, query, json.dumps({**json.loads(text), **changes}))


def change_settings(folder, **changes):
    change_json(folder, "meta", "value", "name = 'settings'", **changes)


def change_accuracy(folder, run, accuracy):
    change_json(folder, "run", "measures", f"id = {run}", validation_accuracy=accuracy)


class TestWhatItSays:
    def test_settings_are_those_of_today(self, study):
        assert study.is_old
        settings = study.settings
        assert (settings.data, settings.losses, settings.noise) == ("iris", ("ce", "bi-tempered"), ("none", "symmetric(0.4)"))
        assert (settings.seeds, settings.rates, settings.decays) == (2, (0.03, 0.3), (0.01,))
        assert (settings.tune_on, settings.metric, settings.references) == ("clean", "accuracy", False)
        assert (settings.recipe.model, settings.recipe.epochs, settings.recipe.keep) == ("linear", 2, ("features", "weights"))
        assert study.provenance["versions"]["lossmith"] == "0.1.0"
        assert study.classes == ("setosa", "versicolor", "virginica")

    def test_table_is_the_one_that_was_printed_when_it_was_made(self, study):
        assert study.table().to_dict("index") == {
            "ce": {"none": "0.767 +- 0.100", "symmetric(0.4)": "0.667 +- 0.067"},
            "bi-tempered": {"none": "0.700 +- 0.067", "symmetric(0.4)": "0.617 +- 0.017"},
        }

    def test_results_are_runs_at_the_rate_that_was_chosen(self, study):
        results = study.results
        assert list(results.run) == [2, 4, 9, 10, 6, 8, 11, 12]
        assert set(results.learning_rate) == {0.3}
        assert set(results.weight_decay) == {0.01}
        assert set(results.epochs) == {2}
        assert not results.second_chance.any()
        assert set(results.untrained) == {""}
        assert (results.validation_score == results.validation_accuracy).all()
        assert results.macro_f1.isna().all()  # which was not measured

    def test_trials_stand_for_no_others(self, study):
        trials = study.trials
        assert sorted(trials.run) == list(range(1, 13))
        assert set(trials.weight) == {0.0}
        assert not trials.stopped.any()
        assert set(trials[trials.counts].run) == set(study.results.run)
        assert study.references.empty
        assert study.overlap == Overlap(0.0, rows=True)

    def test_all_seeds_have_the_same_rows(self, study):
        data = load_data("iris")
        for seed in (0, 1):
            assert np.array_equal(study.test_labels(seed), data.labels[data.test])
            assert torch.equal(study.load(seed).test, data.test)
        with pytest.raises(StoreError, match=r"has no replicate 2\.$"):
            study.test_labels(2)

    def test_predictions_fit_the_measures(self, study):
        for row in study.results.itertuples():
            predicted = study.test_probabilities(row.run).argmax(1)
            assert np.mean(predicted == study.test_labels(row.seed)) == pytest.approx(row.accuracy)
            again = study.model(row.run)(study.load(row.seed).inputs[study.load(row.seed).test])
            np.testing.assert_allclose(again.detach().numpy(), study.test_logits(row.run), atol=1e-5)

    def test_curves_of_runs_that_count(self, study):
        curves = study.curves
        assert len(curves) == 2 * 8
        last = curves[curves.epoch == 2].set_index(["loss", "noise", "seed"]).test_accuracy
        expected = study.results.set_index(["loss", "noise", "seed"]).accuracy
        assert last.loc[expected.index].to_numpy() == pytest.approx(expected.to_numpy())
        assert set(curves.weight_decay) == {0.01}

    def test_noise(self, study):
        assert study.noise_matrix("0.4").shape == (3, 3)
        assert np.mean(study.noisy_labels("0.4", 1) != study.load().labels.numpy()) > 0.2

    def test_status(self, study):
        said = study.status().splitlines()
        assert said[0] == f"{study.folder}: 8 of 8 results are there, from 12 trainings."
        assert said[-1] == OLD_PROTOCOL


class TestChoices:
    def test_rates_are_chosen_by_the_mean_over_seeds(self, folder):
        """Today each replicate would choose for itself: 0.03 in the first, where it is better now."""
        change_accuracy(folder, 1, 0.95)  # ce, seed 0, 0.03: against 0.917 of 0.3
        assert set(open_study(folder).results.learning_rate) == {0.3}
        change_accuracy(folder, 3, 0.65)  # ce, seed 1, 0.03: now 0.80 against 0.79 on average
        results = open_study(folder).results
        assert set(results[results.loss == "ce"].learning_rate) == {0.03}
        assert set(results[results.loss == "ce"].noise) == {"none"}  # at the other noise that rate was not trained
        assert set(results[results.loss == "bi-tempered"].learning_rate) == {0.3}

    def test_a_run_that_diverged_counts_as_0(self, folder):
        change(folder, "UPDATE run SET diverged = 1 WHERE id IN (2, 4)")
        results = open_study(folder).results
        assert set(results[(results.loss == "ce")].learning_rate) == {0.03}
        change(folder, "UPDATE run SET diverged = 1 WHERE id IN (1, 3)")
        results = open_study(folder).results
        assert set(results[(results.loss == "ce")].learning_rate) == {0.03}  # of equal ones the smaller
        assert set(results[results.loss == "ce"].untrained) == {"diverged"}

    def test_rates_of_each_noise(self, folder):
        change_settings(folder, search_noise="each", search_seeds=1)
        assert open_study(folder).settings.tune_on == "own"
        assert set(open_study(folder).results.noise) == {"none"}  # the rate 0.03 was not tried at the other one
        change_settings(folder, rates=[0.3], search_noise="each")
        assert len(open_study(folder).results) == 8

    def test_a_first_noise_that_is_not_clean(self, folder):
        change_settings(folder, noise=["symmetric(0.4)", "none"], rates=[0.3])
        study = open_study(folder)
        assert study.settings.tune_on == "own"
        assert list(study.results.noise.unique()) == ["symmetric(0.4)", "none"]

    def test_an_unfinished_search(self, folder):
        change(folder, "DELETE FROM run WHERE id = 3")
        study = open_study(folder)
        assert study.progress() == (4, 8)
        assert set(study.results.loss) == {"bi-tempered"}
        assert study.unfinished.startswith("The study is unfinished: 4 of 8 results are there")
        assert "resume" not in study.status()
        with pytest.raises(ValueError, match=r"is not finished, 4 of 8 results are there\.$"):
            analyse(study)

    def test_cells(self, study):
        assert study.store.choices()[Cell("bi-tempered", "symmetric(0.4)", 1)] == (12, "")


class TestItIsLeftAsItIs:
    def test_whatever_is_read_and_analysed(self, folder, study):
        study.recommend(), study.status(), study.curves, study.noise_matrix("none")
        write_report(study)
        found = analyse(study, rows=20)
        assert list(study.analyses) == list(found) == ["none", "symmetric(0.4)"]
        assert (folder / "study.sqlite").read_bytes() == FILE.read_bytes()
        assert sorted(file.name for file in folder.iterdir()) == ["report.html", "study.sqlite"]
        assert open_study(folder).analyses == {}

    def test_by_commands(self, folder, tmp_path, capsys):
        commands = [
            ["status", folder],
            ["report", folder, "--output", tmp_path / "report.html"],
            *(["export", folder, tmp_path / f"table.{ending}"] for ending in ("csv", "md", "tex")),
            ["rank", folder],
        ]
        for words in commands:
            assert main([str(word) for word in words]) == 0, words
            said = capsys.readouterr()
            assert "less sure than it looks" in said.out + said.err, words
            assert (folder / "study.sqlite").read_bytes() == FILE.read_bytes()
        assert main(["analyse", str(folder), "--rows", "20"]) == 0
        assert "The analysis is not stored" in capsys.readouterr().out
        assert 'id="temperature"' in (folder / "report.html").read_text()
        assert (folder / "study.sqlite").read_bytes() == FILE.read_bytes()

    def test_resume_refuses(self, folder, capsys):
        assert main(["resume", str(folder)]) == 2
        assert capsys.readouterr().err == f"lossmith: {folder} {REFUSED}; compare anew.\n"
        change(folder, "UPDATE meta SET value = '\"losses of its own\"' WHERE name = 'from_python'")
        assert main(["resume", str(folder)]) == 2
        assert REFUSED in capsys.readouterr().err

    def test_compare_refuses_its_folder(self, folder, capsys):
        few = ["--losses", "ce,bi-tempered", "--noise", "0,0.4", "--seeds", "2", "--rates", "0.03,0.3", "--epochs", "2"]
        assert main(["compare", "iris", *few, "--model", "linear", "--output", str(folder)]) == 2
        assert (
            capsys.readouterr().err.splitlines()[-1] == f"lossmith: {folder / 'study.sqlite'} {REFUSED}; give another --output."
        )
        with pytest.raises(StoreError, match=REFUSED):
            compare("iris", losses=["ce"], output=folder, progress=False)
        assert (folder / "study.sqlite").read_bytes() == FILE.read_bytes()

    def test_compare_takes_another_folder_where_none_is_given(self, folder, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        folder.rename(tmp_path / "old-iris")
        (tmp_path / "studies").mkdir()
        (tmp_path / "old-iris").rename(tmp_path / "studies" / "iris")
        few = {"losses": ["ce"], "noise": [0], "seeds": 1, "rates": [0.1], "epochs": 1, "model": "linear", "references": False}
        assert compare("iris", **few, workers=1, progress=False).folder == Path("studies/iris-2")

    def test_nothing_is_written(self, study):
        with pytest.raises(StoreError, match=REFUSED):
            study.store.choose([])
        with pytest.raises(StoreError, match=REFUSED):
            study.store.add_noise("none", 0, 0.0, np.eye(3), np.arange(3))


class TestItIsSaid:
    def test_in_the_recommendation_and_on_the_page(self, study):
        assert OLD_PROTOCOL in study.recommend().evidence
        assert "less sure than it looks" in write_report(study).read_text()

    def test_not_of_studies_of_today(self, tmp_path):
        few = {"losses": ["ce", "mae"], "noise": [0], "seeds": 2, "rates": [0.1], "epochs": 1, "model": "linear"}
        study = compare("iris", **few, references=False, output=tmp_path / "new", workers=1, progress=False)
        assert not study.is_old
        assert study.caution == ""
        assert "older" not in str(study.recommend()) + study.status()

    def test_changed_data(self, folder, tmp_path):
        change(folder, "UPDATE meta SET value = '\"0123\"' WHERE name = 'fingerprint'")
        expected = r"old: the data 'iris' has changed since the study began, or this lossmith reads it differently\.$"
        with pytest.raises(ValueError, match=expected):
            open_study(folder).load()


class TestAnalysis:
    def test_seeds_are_compared_on_the_same_rows(self, study):
        found = analyse(study, rows=20, seeds=2)["symmetric(0.4)"]
        assert found.notes == ("The analysis is not stored: the study's file is that of an older lossmith, and stays as it is.",)
        predicted = {
            (row.loss, row.seed): study.test_probabilities(row.run).argmax(1)
            for row in study.results.itertuples()
            if row.noise == "symmetric(0.4)"
        }
        same = np.mean([np.mean(predicted["ce", seed] == predicted["bi-tempered", 1 - seed]) for seed in (0, 1)])
        assert found.agreement["same_prediction"].loc["ce", "bi-tempered"] == pytest.approx(same)
        assert found.ensembles.shape == (2, 2)
        for table in (found.separation, found.features, found.transfer, found.corruption):
            assert np.isfinite(table.xs("mean", axis=1, level=1).to_numpy()).all()
        assert np.isfinite(found.layers.cka).all()


DAMAGES = {
    "settings of today": ("UPDATE meta SET value = '{}' WHERE name = 'settings'", "meta, settings"),
    "no settings": ("DELETE FROM meta WHERE name = 'settings'", "meta, settings"),
    "a seed that is text": ("UPDATE run SET seed = 'many' WHERE id = 1", "run, run 1"),
    "measures without validation": ("UPDATE run SET measures = '{\"accuracy\": 1}' WHERE id = 1", "run, run 1"),
    "measures that are none": ("UPDATE run SET measures = '[]' WHERE id = 3", "run, run 3"),
    "a curve of text": ("UPDATE curve SET train_loss = 'low' WHERE run = 2", "curve, run 2"),
    "test labels that are text": ("UPDATE meta SET value = '[\"a\"]' WHERE name = 'test_labels'", "meta, test_labels"),
    "test labels of other classes": ("UPDATE meta SET value = '[7]' WHERE name = 'test_labels'", "replicate, seed 0"),
    "logits that are none": ("UPDATE array SET content = 'x' WHERE run = 2", "array, logits of run 2"),
    "a loss that is not the study's": ("UPDATE run SET loss = 'mae' WHERE id = 2", "run, run 2"),
    "data without rows": ("UPDATE meta SET value = '{}' WHERE name = 'data'", "meta, data"),
}


def read_everything(study):
    study.progress(), study.results, study.trials, study.curves, study.provenance, study.test_labels(0)
    for run in study.results.run:
        study.test_probabilities(run)


class TestDamage:
    @pytest.mark.parametrize("case", DAMAGES)
    def test_is_one_line_that_names_the_place(self, folder, case):
        query, place = DAMAGES[case]
        change(folder, query)
        with pytest.raises(StoreError) as caught:
            read_everything(open_study(folder))
        said = str(caught.value)
        assert said.startswith(f"{folder / 'study.sqlite'}: table {place} is damaged (")
        assert said.endswith("; it was left as it is.")
        assert "\n" not in said

    @pytest.mark.parametrize(
        "changes",
        [
            {"seeds": 0},
            {"seeds": "2"},
            {"search_seeds": 0},
            {"search_noise": "last"},
            {"rates": []},
            {"losses": "ce"},
            {"more": 1},
        ],
    )
    def test_settings_that_the_older_one_would_not_have_written(self, folder, changes):
        change_settings(folder, **changes)
        with pytest.raises(StoreError, match=r"table meta, settings is damaged \(.*\); it was left as it is\.$"):
            open_study(folder)

    def test_other_tables(self, folder):
        change(folder, "CREATE VIEW choice AS SELECT 1")
        with pytest.raises(StoreError, match=r"has other tables than a study of lossmith has; it was left as it is\.$"):
            open_study(folder)

    def test_pages(self, folder):
        whole = FILE.read_bytes()
        (folder / "study.sqlite").write_bytes(whole[:3000] + bytes(20_000) + whole[23_000:])
        with pytest.raises(StoreError, match=r"left as it is\.$"):
            read_everything(open_study(folder))
