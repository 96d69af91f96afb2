"""The analysis of a study, against direct calls of what it is made of, and from outside."""

import sqlite3
from itertools import product
from shutil import copytree

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from analysis_checks import each_run, predictions, shared_rows, similarity
from lossmith.analysis.feature_transfer import transfer
from lossmith.analysis.robustness import CorruptionErrors, corruption_errors, mean_corruption_error
from lossmith.analysis.run_tables import RunOutputs, cross_fitted_calibration
from lossmith.analysis.scores import accuracy
from lossmith.analysis.separation import class_separation
from lossmith.command_line import main
from lossmith.report import write_report
from lossmith.studies import compare, open_study
from lossmith.studies.progress import ProgressDisplay
from lossmith.studies.study_analysis import analyse
from lossmith.studies.study_analysis.features import halves, some_rows
from lossmith.studies.study_analysis.trained_models import compared_layers

LOSSES = ["ce", "bi-tempered", "cosine-softmax"]
QUICK = {"epochs": 2, "seeds": 2, "rates": [0.1], "references": False, "progress": False, "workers": 1}
KEPT = {"keep": ["features", "weights"]}
ROWS = 130
ANALYSED = "as one made by 'lossmith compare --analyse' does."
SECTIONS = ("temperature", "separation", "transfer", "agreement", "layers", "corruption")
NOISE = "symmetric(0.4)"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """One whose replicates draw their own test rows, more than half of all, so that two share enough to be compared."""
    folder = tmp_path_factory.mktemp("studies") / "digits"
    return compare("digits", losses=LOSSES, noise=[0.4], rows=800, test_share=0.55, output=folder, **KEPT, **QUICK)


@pytest.fixture(scope="module")
def analysis(study):
    return analyse(study, rows=ROWS, transfer_to=["digits"])[NOISE]


@pytest.fixture(scope="module")
def bare_study(tmp_path_factory):
    """One that keeps nothing but logits."""
    folder = tmp_path_factory.mktemp("studies") / "bare"
    return compare("digits", losses=["ce", "mae"], noise=[0, 0.2, 0.4], output=folder, rows=300, **{**QUICK, "seeds": 1})


def averaged(study, measure):
    """Return mean and standard error over the runs of each loss, of what ``measure`` makes of a run and its labels."""
    values = study.results.assign(value=[measure(row.run, study.test_labels(row.seed)) for row in each_run(study)])
    return values.groupby("loss", sort=False).value.agg(["mean", "sem"])


def assert_measured(table, measure, expected):
    np.testing.assert_allclose(table[measure]["mean"], expected["mean"].loc[table.index], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(table[measure]["se"], expected["sem"].loc[table.index], rtol=1e-9, atol=1e-12)


class TestNumbers:
    def test_replicates_differ(self, study):
        """Otherwise what follows would hold for one split as well."""
        assert not np.array_equal(study.load(0).test, study.load(1).test)
        for seed in (0, 1):
            data = study.load(seed)
            assert np.array_equal(study.test_labels(seed), data.labels[data.test])

    def test_calibration(self, study, analysis):
        def outputs(run):
            own = study.test_probabilities(run) if "probabilities" in study.store.kept(run) else None
            return RunOutputs("any", 0, study.test_logits(run), None, own)

        for name in ("nll", "ece", "scaled_nll", "scaled_ece", "temperature"):
            expected = averaged(study, lambda run, labels, name=name: cross_fitted_calibration(outputs(run), labels)[name])
            assert_measured(analysis.calibration, name, expected)
        for name in ("nll", "ece"):  # what the study itself measured after training
            means = study.results.groupby("loss", sort=False)[name].mean()
            np.testing.assert_allclose(analysis.calibration[name]["mean"], means.loc[LOSSES], rtol=1e-4)
        assert list(analysis.calibration.index) == LOSSES
        assert (analysis.calibration["runs", "count"] == 2).all()

    @pytest.mark.parametrize("distance", ["cosine", "centred-cosine", "euclidean"])
    def test_separation(self, study, analysis, distance):
        def measure(run, labels):
            return class_separation(study.test_features(run), labels, distance).r_squared

        assert_measured(analysis.separation, distance, averaged(study, measure))

    def test_features(self, study, analysis):
        assert_measured(analysis.features, "nonzero", averaged(study, lambda run, _: np.mean(study.test_features(run) != 0)))
        assert (analysis.features["centroid_rank"]["mean"] <= 9).all()  # ten centred means
        assert (analysis.features["rank"]["mean"] > analysis.features["centroid_rank"]["mean"]).all()

    def test_relearned_classifiers(self, study, analysis):
        def own(run, labels):
            fit, judge = halves(labels, 2000)
            assert len(fit) + len(judge) == len(labels)
            return accuracy(study.test_probabilities(run)[judge], labels[judge])

        assert_measured(analysis.transfer, "own", averaged(study, own))

        def relearned(run, labels):
            x = study.test_features(run)
            fit, judge = halves(labels, 2000)
            x = x / x[fit].std(0).max()
            how = {"strengths": np.logspace(-6, 5, 45), "max_iterations": 200, "tolerance": 1e-4}
            return transfer(x[fit], labels[fit], x[judge], labels[judge], **how).accuracy

        assert_measured(analysis.transfer, "relearned", averaged(study, relearned))

    def test_transfer_to_other_data(self, analysis):
        found = analysis.transfer["digits"]["mean"]
        assert list(found.index) == LOSSES
        assert found.between(0.5, 1.0).all()  # chance is 0.1; the data are like the study's own, and labels are true

    def test_agreement_is_that_on_shared_rows(self, study, analysis):
        own, others = shared_rows(study)
        labels, predicted = study.test_labels(0)[own], predictions(study)
        assert np.array_equal(labels, study.test_labels(1)[others])
        assert len(own) >= 50
        for first, second in product(LOSSES, LOSSES):
            pairs = [(predicted[a, 0][own], predicted[b, 1][others]) for a, b in ((first, second), (second, first))]
            same = np.mean([np.mean(a == b) for a, b in pairs])
            alike = np.mean([np.mean((a == labels) == (b == labels)) for a, b in pairs])
            wrong = sum(np.sum((a != labels) & (b != labels)) for a, b in pairs)
            mistakes = sum(np.sum((a == b) & (a != labels)) for a, b in pairs) / wrong
            assert analysis.agreement["same_prediction"].loc[first, second] == pytest.approx(same)
            assert analysis.agreement["both_right_or_wrong"].loc[first, second] == pytest.approx(alike)
            assert analysis.agreement["same_mistake"].loc[first, second] == pytest.approx(mistakes)
        table = analysis.run_agreement
        assert sorted(table.index) == sorted(f"{loss}, seed {seed}" for loss, seed in predicted)
        assert len(analysis.brackets) == len(predicted) - 1
        within = np.mean(predicted["ce", 1] == predicted["bi-tempered", 1])  # on all rows of their replicate
        assert table.loc["ce, seed 1", "bi-tempered, seed 1"] == pytest.approx(within)
        across = np.mean(predicted["ce", 0][own] == predicted["bi-tempered", 1][others])
        assert table.loc["ce, seed 0", "bi-tempered, seed 1"] == pytest.approx(across)
        assert analysis.ensembles is None
        own_rows = "Every replicate has test rows of its own, so that there are no ensembles"
        compared = f"and runs of two replicates are compared on the test rows of both, {len(own)} of them."
        assert analysis.notes == (f"{own_rows}, {compared}",)

    def test_layers(self, study, analysis):
        """Each model runs on the inputs of its own replicate, which encodes them by its own training rows."""
        rows = shared_rows(study)
        chosen = some_rows(len(rows[0]), ROWS)
        inputs = [study.load(seed).inputs[study.load(seed).test[np.array(rows[seed])[chosen]]] for seed in (0, 1)]
        models = {(row.loss, row.seed): study.model(row.run) for row in each_run(study)}
        layers = compared_layers(models["ce", 0])
        assert analysis.layers.layers == ("linear 1", "relu 1", "linear 2", "relu 2", "logits")
        for first, second in product(LOSSES, LOSSES):
            one = similarity(models[first, 0], models[second, 1], *inputs, layers)
            other = similarity(models[second, 0], models[first, 1], *inputs, layers).T
            np.testing.assert_allclose(analysis.layers.between(first, second), (one + other) / 2, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(
            analysis.layers.of_layer("relu 2").loc["ce", "bi-tempered"], analysis.layers.between("ce", "bi-tempered")[3, 3]
        )

    def test_models_are_those_of_their_replicate(self, study):
        for row in each_run(study):
            data = study.load(row.seed)
            with torch.no_grad():
                again = study.model(row.run)(data.inputs[data.test]).numpy()
            np.testing.assert_allclose(again, study.test_logits(row.run), rtol=1e-3, atol=1e-4)

    def test_damaged_inputs(self, study, analysis):
        found = {}
        for row in each_run(study):
            data = study.load(row.seed)
            chosen = some_rows(len(data.test), ROWS)
            inputs, labels = data.inputs[data.test[chosen]], study.test_labels(row.seed)[chosen]
            model = study.model(row.run).requires_grad_(requires_grad=False)
            found[row.run] = corruption_errors(model, inputs, labels)
        baseline = [found[row.run] for row in each_run(study) if row.loss == "ce"]
        reference = CorruptionErrors(0.0, baseline[0].corruptions, np.mean([each.errors for each in baseline], 0))
        assert_measured(analysis.corruption, "clean", averaged(study, lambda run, _: found[run].clean))
        assert_measured(analysis.corruption, "blur", averaged(study, lambda run, _: found[run].errors[2].mean()))
        relative = averaged(study, lambda run, _: mean_corruption_error(found[run], reference))
        assert_measured(analysis.corruption, "relative", relative)

    def test_is_kept_in_the_study(self, study, analysis):
        kept = open_study(study.folder).analyses
        assert list(kept) == [NOISE]
        read = kept[NOISE]
        for name in ("calibration", "separation", "features", "transfer", "corruption", "run_agreement"):
            pd.testing.assert_frame_equal(getattr(read, name), getattr(analysis, name), check_names=False, check_dtype=False)
        for kind, table in analysis.agreement.items():
            pd.testing.assert_frame_equal(read.agreement[kind], table)
        np.testing.assert_array_equal(read.layers.cka, analysis.layers.cka)
        assert (read.layers.layers, read.layers.losses) == (analysis.layers.layers, analysis.layers.losses)
        assert (read.brackets, read.notes) == (analysis.brackets, analysis.notes)


class TestWhatIsMissing:
    def test_nothing_kept(self, bare_study):
        found = analyse(bare_study)
        assert list(found) == ["none", "symmetric(0.4)"]  # the first, and the one with most wrong labels
        one = found["none"]
        assert one.notes == (
            f"No class separation and no transfer: the study keeps no features, {ANALYSED}",
            f"No similarity of layers and no damaged inputs: the study keeps no weights, {ANALYSED}",
        )
        missing = (one.ensembles, one.separation, one.features, one.transfer, one.layers, one.corruption)
        assert missing == (None,) * 6
        assert one.calibration["nll"]["se"].isna().all()  # of a single run

    def test_one_seed_has_pairs_of_that_seed_only(self, bare_study):
        one = analyse(bare_study, "none")["none"].agreement["same_prediction"]
        predicted = [bare_study.test_probabilities(row.run).argmax(1) for row in each_run(bare_study) if row.noise == "none"]
        assert one.loc["ce", "mae"] == pytest.approx(np.mean(predicted[0] == predicted[1]))
        assert np.isnan(one.loc["ce", "ce"])

    def test_diverged_runs_are_left_out(self, study, monkeypatch):
        bad = int(study.results[study.results.loss == "bi-tempered"].run.iloc[1])
        logits = study.test_logits
        monkeypatch.setattr(study, "test_logits", lambda run: logits(run) * (np.nan if run == bad else 1.0))
        monkeypatch.setattr(study, "store_analysis", lambda _: None)
        found = analyse(study, rows=10, seeds=1)[NOISE]
        assert found.notes[0] == "Left out, since they diverged: bi-tempered, seed 1."
        assert list(found.calibration["runs", "count"]) == [2, 1, 2]
        assert np.isnan(found.agreement["same_prediction"].loc["bi-tempered", "bi-tempered"])
        assert np.isfinite(found.corruption.xs("mean", axis=1, level=1).to_numpy()).all()

    def test_every_run_diverged(self, bare_study, monkeypatch):
        logits = bare_study.test_logits
        monkeypatch.setattr(bare_study, "test_logits", lambda run: logits(run) * np.nan)
        with pytest.raises(ValueError, match=r"^analyse: every run with noise none diverged\.$"):
            analyse(bare_study, 0)

    def test_what_was_brought_from_python_cannot_run_again(self, tmp_path):
        losses = {"mine": nn.CrossEntropyLoss()}
        mine = compare(
            "digits", losses=losses, noise=[0], output=tmp_path, rows=300, keep=["weights"], **{**QUICK, "seeds": 1, "epochs": 1}
        )
        assert analyse(mine)["none"].notes[1] == (
            "No similarity of layers and no damaged inputs: the study was run in Python with losses of its own."
        )

    def test_words_are_not_damaged(self, tmp_path):
        texts = [f"number {number} was a {word} day for those who were there" for number in range(60) for word in ("good", "bad")]
        table = pd.DataFrame({"text": texts, "label": ["yes", "no"] * 60})
        table.to_csv(tmp_path / "texts.csv", index=False)
        how = {"losses": ["ce"], "noise": [0], "target": "label", "text": "words", "keep": ["weights"], **QUICK, "epochs": 1}
        found = analyse(compare(str(tmp_path / "texts.csv"), output=tmp_path / "study", **how))["none"]
        assert found.notes[-1] == "No damaged inputs: there is no damage for words."
        assert found.corruption is None
        assert found.layers.layers == ("features", "logits")

    def test_stopped_between_noise_levels(self, bare_study, tmp_path):
        class Stops(ProgressDisplay):
            def start(self, what, runs):
                if "0.2" in what:
                    raise KeyboardInterrupt

        copied = open_study(copytree(bare_study.folder, tmp_path / "copied"))
        copied.store.set_meta("analysis", {})
        with pytest.raises(KeyboardInterrupt):
            analyse(copied, [0.4, 0.2, 0], display=Stops())
        assert list(copied.analyses) == ["symmetric(0.4)"]


class TestCommand:
    def test_prints_tables_and_names_the_report(self, bare_study, capsys):
        assert main(["analyse", str(bare_study.folder), "--noise", "0.2"]) == 0
        shown = capsys.readouterr().out
        table = bare_study.analyses["symmetric(0.2)"].calibration
        for part in ("Label noise: symmetric(0.2)", "NLL, scaled", f"{table['nll', 'mean']['mae']:.3f}", "keeps no features"):
            assert part in shown
        assert shown.endswith(f"Report: {bare_study.folder / 'report.html'}\n")

    def test_compare_does_both(self, tmp_path, capsys, page, observed):
        folder = tmp_path / "both"
        what = ["--rows", "300", "--losses", "ce,mae", "--noise", "0", "--seeds", "1", "--rates", "0.1", "--epochs", "1"]
        assert main(["compare", "digits", *what, "--analyse", "--output", str(folder), "--workers", "1"]) == 0
        study = open_study(folder)
        assert study.settings.recipe.keep == ("features", "weights")
        assert "Error rates on damaged inputs" in capsys.readouterr().out
        page.goto((folder / "report.html").as_uri())
        for name in SECTIONS:
            assert page.locator(f"#{name}").count() == 1, name
        assert observed.errors == []

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--noise", "0.3"], "analyse: noise must be one of none, symmetric(0.2), symmetric(0.4), got 'symmetric(0.3)'."),
            (["--seeds", "0"], "analyse: seeds must be a whole number >= 1, got 0."),
            (["--rows", "-1"], "analyse: rows must be a whole number >= 1, got -1."),
            (["--transfer-to", "digits"], f"analyse: transfer_to needs weights; the study keeps no weights, {ANALYSED}"),
        ],
    )
    def test_bad_options(self, bare_study, capsys, options, message):
        assert main(["analyse", str(bare_study.folder), *options]) == 2
        assert capsys.readouterr().err == f"lossmith: {message}\n"

    def test_data_of_another_shape(self, study, capsys):
        assert main(["analyse", str(study.folder), "--transfer-to", "iris"]) == 2
        assert capsys.readouterr().err == "lossmith: analyse: inputs of iris must have the study's shape, (1, 8, 8), got (4,).\n"

    def test_not_a_study(self, tmp_path, capsys):
        assert main(["analyse", str(tmp_path)]) == 2
        assert capsys.readouterr().err == (
            f"lossmith: {tmp_path / 'study.sqlite'} does not exist; a study is made by 'lossmith compare'.\n"
        )

    def test_not_finished(self, bare_study, tmp_path, capsys):
        folder = copytree(bare_study.folder, tmp_path / "copied")
        with sqlite3.connect(folder / "study.sqlite") as connection:
            connection.execute("DELETE FROM choice WHERE loss = 'mae' AND noise = 'none'")
        connection.close()
        assert main(["analyse", str(folder)]) == 2
        assert capsys.readouterr().err == (
            f"lossmith: analyse: {folder} is not finished, 5 of 6 results are there. Go on with: lossmith resume {folder}\n"
        )


class TestReport:
    @pytest.fixture
    def opened(self, page, study, analysis):
        page.goto(write_report(study).as_uri())
        return page

    def test_has_every_section(self, opened, observed):
        for name in SECTIONS:
            assert opened.locator(f"nav a[href='#{name}']").count() == 1
            assert opened.locator(f"#figure-{name}").bounding_box()["height"] > 100
        opened.set_viewport_size({"width": 390, "height": 800})
        assert opened.evaluate("document.documentElement.scrollWidth") == 390
        assert observed.errors == []
        assert observed.requests == []

    def test_tables_have_the_numbers(self, opened, analysis):
        row = opened.locator("#figure-temperature tbody tr", has_text="bi-tempered")
        found = analysis.calibration.loc["bi-tempered"]
        assert row.locator("td").first.inner_text() == f"{found['nll', 'mean']:.3f} ± {found['nll', 'se']:.3f}"
        errors = opened.locator("#figure-corruption tbody tr", has_text="ce").first.locator("td")
        assert errors.first.inner_text().startswith(f"{100 * analysis.corruption.loc['ce', ('clean', 'mean')]:.1f}")

    def test_drawings_have_tables_behind_them(self, opened, analysis):
        for name in ("agreement", "layers"):
            figure = opened.locator(f"#figure-{name}")
            assert figure.locator("details table").count() == figure.locator("svg[role=img], svg[data-places]").count() > 0
        opened.locator("#figure-agreement .cells rect").first.hover()
        assert "%" in opened.inner_text("#tip")
        tree = opened.locator("#figure-agreement svg", has_text="same prediction")
        assert tree.locator("circle").count() == len(analysis.run_agreement)

    def test_without_an_analysis_there_is_none(self, tmp_path, page, bare_study):
        folder = copytree(bare_study.folder, tmp_path / "copied")
        fresh = open_study(folder)
        fresh.store.set_meta("analysis", None)
        page.goto(write_report(fresh).as_uri())
        assert page.locator(", ".join(f"#{name}" for name in SECTIONS)).count() == 0

    @pytest.mark.usefixtures("analysis")
    def test_losses_whose_runs_went_missing_are_compared_with_nothing(self, study, tmp_path):
        folder = copytree(study.folder, tmp_path / "copied")
        with sqlite3.connect(folder / "study.sqlite") as connection:
            connection.execute("DELETE FROM run WHERE loss = 'bi-tempered'")
        connection.close()
        text = write_report(open_study(folder)).read_text()
        assert 'id="temperature"' in text
        assert 'id="agreement"' not in text

    def test_a_single_run_is_compared_with_nothing(self, page, observed, tmp_path, capsys):
        how = {"losses": ["ce"], "noise": [0], "rows": 200, "keep": ["weights"], **QUICK, "seeds": 1, "epochs": 1}
        single = compare("digits", output=tmp_path / "single", **how)
        assert main(["analyse", str(single.folder)]) == 0
        assert "two runs" not in capsys.readouterr().out
        page.goto((single.folder / "report.html").as_uri())
        assert page.locator("#temperature, #corruption").count() == 2
        assert page.locator("#agreement, #layers").count() == 0
        assert observed.errors == []

    def test_what_is_missing_is_said(self, page, bare_study):
        analyse(bare_study, "none")
        page.goto(write_report(bare_study).as_uri())
        assert "keeps no weights" in page.inner_text("#temperature")
        assert page.locator("#separation, #transfer, #layers, #corruption").count() == 0


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(1, 80))
def test_halves(labels, most):
    labels = np.array(labels)
    first, second = halves(labels, most)
    assert sorted([*first, *second]) == list(some_rows(len(labels), most))
    for label in np.unique(labels):
        assert 0 <= np.sum(labels[first] == label) - np.sum(labels[second] == label) <= 1
