"""Reference models against scikit-learn itself, and on data that is awkward."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score, log_loss
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_info, threadpool_limits

from lossmith.data import PreparedData, load_data, make_noise
from lossmith.studies.measures import MEASURES, METRICS, merit_of, score_of
from lossmith.studies.references import families, search
from lossmith.studies.references.inputs import fair_order, reference_inputs
from lossmith.studies.references.predictions import fitted_model
from lossmith.studies.references.train_references import LINEAR, train_references
from lossmith.training.merit import Merit

TOPICS = {
    "sport": "match goal team player coach league season score",
    "food": "bread soup cheese baker oven pepper dinner plate",
    "space": "planet orbit rocket star moon telescope comet launch",
}
FILLERS = ["the", "a", "and", "with", "was", "very", "about", "we", "it", "saw", "today", "again"]


def given(data, noise="none", seed=0):
    kind = make_noise(noise)
    return kind.corrupt(data, data.train, seed=seed), kind.corrupt(data, data.validation, seed=seed)


def trained(data, *labels, metric="accuracy", seed=0, **options):
    found = train_references(data, *(labels or given(data)), metric=metric, seed=seed, **options)
    return {reference.name: reference for reference in found}


def setting(reference):
    first = reference.settings.split(";")[0]
    return {name: float(value) for name, value in (part.split("=") for part in first.split(", "))}


def table(rows=200, classes=3, columns=5, seed=0, spread=1.0):
    """Make clusters, one a class, of which half are for training."""
    generator = np.random.default_rng(seed)
    labels = np.arange(rows) % classes
    inputs = generator.normal(size=(classes, columns))[labels] + spread * generator.normal(size=(rows, columns))
    order = torch.from_numpy(generator.permutation(rows))
    splits = order[: rows // 2], order[rows // 2 : 3 * rows // 4], order[3 * rows // 4 :]
    names = tuple(map(str, range(classes)))
    return PreparedData("table", torch.from_numpy(inputs).float(), torch.from_numpy(labels), names, *splits)


def stories(rows=240, seed=0):
    generator = np.random.default_rng(seed)
    topics = [list(TOPICS)[place % 3] for place in range(rows)]
    lines = [[*generator.choice(TOPICS[topic].split(), 2), *generator.choice(FILLERS, 8)] for topic in topics]
    return pd.DataFrame({"text": [" ".join(generator.permutation(line)) for line in lines], "topic": topics})


def numbers_of(data, rows):
    return data.inputs[rows].flatten(1).numpy()


def right_shares(model, data, labels):
    """Fit a model of scikit-learn, and return its accuracy on validation and test rows."""
    model.fit(numbers_of(data, data.train), labels[0].numpy())
    truth = data.labels if data.true_labels is None else data.true_labels
    return [
        float(np.mean(model.predict(numbers_of(data, rows)) == expected.numpy()))
        for rows, expected in ((data.validation, labels[1]), (data.test, truth[data.test]))
    ]


@pytest.mark.parametrize("noise", ["none", "symmetric(0.3)"])
def test_digits_against_scikit_learn(noise):
    data = load_data("digits")
    labels = given(data, noise)
    found = trained(data, *labels)
    assert list(found) == ["largest class", "logistic regression", "RBF-SVM"]
    linear = LogisticRegression(max_iter=200, tol=1e-3, **setting(found[LINEAR]))
    kernel = SVC(break_ties=True, **setting(found["RBF-SVM"]))
    for name, model in (("logistic regression", linear), ("RBF-SVM", kernel)):
        validation, test = right_shares(model, data, labels)
        assert found[name].validation_score == pytest.approx(validation, abs=0.004)
        assert found[name].measures["accuracy"] == pytest.approx(test, abs=0.004)
        assert (
            found[name].measures["validation_accuracy"] == found[name].validation_correct.mean() == found[name].validation_score
        )
    assert found["RBF-SVM"].measures["accuracy"] > (0.97 if noise == "none" else 0.9)


@pytest.mark.parametrize("name", ["wine", "breast-cancer"])
def test_tables_against_scikit_learn(name):
    data = load_data(name)
    labels = given(data, "symmetric(0.1)")
    found = trained(data, *labels)
    assert list(found) == ["largest class", "logistic regression", "RBF-SVM", "gradient boosting"]
    boosting = {key: int(value) for key, value in setting(found["gradient boosting"]).items()}
    models = {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(**setting(found[LINEAR]))),
        "RBF-SVM": SVC(break_ties=data.num_classes > 2, **setting(found["RBF-SVM"])),
        "gradient boosting": HistGradientBoostingClassifier(
            max_iter=boosting["iterations"],
            max_leaf_nodes=boosting["leaves"],
            min_samples_leaf=max(3, len(data.train) // 50),
            max_bins=63,
        ),
    }
    for kind, model in models.items():
        validation, test = right_shares(model, data, labels)
        assert found[kind].validation_score == pytest.approx(validation, abs=0.02)
        assert found[kind].measures["accuracy"] == pytest.approx(test, abs=0.03)


def test_the_largest_class():
    data = table(classes=2)
    labels = torch.zeros(len(data.train), dtype=torch.int64)
    labels[:30] = 1
    found = trained(data, labels, data.labels[data.validation])["largest class"]
    truth = data.labels[data.test].numpy()
    assert found.settings == "'0'"
    assert found.measures["accuracy"] == np.mean(truth == 0)
    assert found.measures["nll"] == pytest.approx(log_loss(truth, np.tile([0.7, 0.3], (len(truth), 1))))
    np.testing.assert_array_equal(found.validation_correct, data.labels[data.validation].numpy() == 0)


def test_measures_against_scikit_learn():
    data = table(classes=7, rows=700)
    found = trained(data)[LINEAR]
    model = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-3, max_iter=200, **setting(found)))
    model.fit(numbers_of(data, data.train), data.labels[data.train].numpy())
    probabilities, truth = model.predict_proba(numbers_of(data, data.test)), data.labels[data.test].numpy()
    predicted = probabilities.argmax(1)
    assert found.measures["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(truth, predicted), abs=0.01)
    assert found.measures["macro_f1"] == pytest.approx(f1_score(truth, predicted, average="macro"), abs=0.01)
    assert found.measures["nll"] == pytest.approx(log_loss(truth, probabilities), rel=1e-2)
    assert found.measures["brier"] == pytest.approx(-score_of("brier", probabilities, truth), rel=1e-2)
    assert found.measures["top5"] == pytest.approx(score_of("top5", probabilities, truth), abs=0.01)
    assert found.measures.keys() == {*METRICS, "validation_accuracy"} <= MEASURES.keys()


@pytest.mark.parametrize("metric", METRICS)
def test_settings_are_chosen_by_the_metric(metric):
    data = table(rows=300, classes=6, spread=2.0)
    labels = given(data, "symmetric(0.2)")
    found = trained(data, *labels, metric=metric)[LINEAR]
    merits = {}
    for strength in (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0):
        model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, tol=1e-3, max_iter=200))
        model.fit(numbers_of(data, data.train), labels[0].numpy())
        merits[strength] = merit_of(metric, model.predict_proba(numbers_of(data, data.validation)), labels[1].numpy())
    first = [merits[strength] for strength in (1e-3, 1e-1, 10.0)]
    highest = max(first)
    taken = merits[setting(found)["C"]]
    assert found.validation_score == pytest.approx(taken.score, abs=0.015)
    assert taken.score >= highest.score - highest.error - 0.015
    near = [merit for merit in first if merit.score >= taken.score]
    assert all(merit.likelihood <= taken.likelihood + 1e-3 for merit in near)


def test_without_probabilities_there_is_nothing_to_judge():
    data = table()
    by_likelihood, by_accuracy = trained(data, metric="nll")["RBF-SVM"], trained(data)["RBF-SVM"]
    assert by_likelihood.settings == by_accuracy.settings
    assert math.isnan(by_likelihood.validation_score)
    assert math.isnan(by_accuracy.measures["nll"])
    assert math.isnan(by_accuracy.measures["brier"])
    assert by_likelihood.measures["accuracy"] == by_accuracy.measures["accuracy"] > 0.5


def test_of_equally_good_settings_the_simplest_is_chosen():
    data = table()
    labels = search.Labels(data.labels[data.train].numpy(), data.labels[data.validation].numpy(), 3)
    for family in families.families_for(reference_inputs(data, 0), 3, seed=0):
        chosen = search.choose(family, labels, lambda *_: Merit(0.5), search.Clock(None))
        first = family.first_places()[0]
        lowest = min(family.near(first))  # a step down, on the first ladder if there is one
        assert chosen.setting == family.setting(lowest)


def test_the_model_of_the_chosen_setting_is_kept():
    """The first is the likeliest near the highest score, until the third raises that; then it is the second."""
    data = table()
    labels = search.Labels(data.labels[data.train].numpy(), data.labels[data.validation].numpy(), 3)
    linear = families.families_for(reference_inputs(data, 0), 3, seed=0)[0]
    family = replace(linear, ladders={"C": (0.1, 1.0, 10.0)}, first={"C": (0, 1, 2)})
    merits = {0.1: Merit(0.85, 0.04, -0.5), 1.0: Merit(0.88, 0.04, -0.6), 10.0: Merit(0.91, 0.04, -0.8)}
    chosen = search.choose(family, labels, lambda model, *_: merits[model.estimator[-1].C], search.Clock(None))
    assert chosen.setting == {"C": 1.0}
    assert chosen.model.estimator[-1].C == 1.0


@pytest.mark.parametrize("name", ["wine", "digits"])
def test_the_seed_decides(name):
    data = load_data(name)
    labels = given(data, "symmetric(0.2)")
    for first, second in zip(*(train_references(data, *labels, metric="nll", seed=3) for _ in range(2)), strict=True):
        assert (first.name, first.settings) == (second.name, second.settings)
        assert first.measures == pytest.approx(second.measures, abs=0.0, nan_ok=True)
        np.testing.assert_array_equal(first.validation_correct, second.validation_correct)


def test_inputs_serve_every_noise():
    data = load_data(stories(), target="topic")
    inputs = reference_inputs(data, 0)
    labels = given(data, "symmetric(0.2)")
    with_inputs, without = trained(data, *labels, inputs=inputs), trained(data, *labels)
    assert with_inputs.keys() == without.keys()
    for name, found in with_inputs.items():
        assert found.measures == pytest.approx(without[name].measures, abs=0.0, nan_ok=True)


@pytest.mark.parametrize("text", ["ngrams", "words"])
def test_texts_against_scikit_learn(text):
    data = load_data(stories(), target="topic", text=text)
    assert data.kind == "text"
    found = trained(data)
    assert list(found) == ["largest class", "logistic regression", "linear SVM"]
    assert found["linear SVM"].settings.endswith("; TF-IDF")
    lines = np.array(data.texts.strings)
    words = TfidfVectorizer(analyzer="word", ngram_range=(1, 2), sublinear_tf=True)
    parts = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True)
    terms = make_union(words, parts).fit(lines[data.train])
    for name, model in ((LINEAR, LogisticRegression), ("linear SVM", LinearSVC)):
        fitted = model(**setting(found[name])).fit(terms.transform(lines[data.train]), data.labels[data.train])
        expected = fitted.score(terms.transform(lines[data.test]), data.labels[data.test])
        assert found[name].measures["accuracy"] == pytest.approx(expected, abs=0.03)
        assert expected > 0.9


def test_words_without_their_texts():
    generator = np.random.default_rng(0)
    labels = np.arange(200) % 2
    words = np.where(generator.random((200, 6)) < 0.5, generator.integers(1, 10, (200, 6)), 10 + 5 * labels[:, None])
    words[::3, 3:] = 0  # texts that are over
    rows = torch.from_numpy(generator.permutation(200))
    data = PreparedData(
        "words", torch.from_numpy(words), torch.from_numpy(labels), ("a", "b"), rows[:120], rows[120:160], rows[160:]
    )
    found = trained(data)
    assert list(found) == ["largest class", "logistic regression", "linear SVM"]
    assert found["linear SVM"].measures["accuracy"] > 0.85


def test_texts_beside_other_columns():
    """Neither the text nor the number tells all classes; both together do."""
    frame = stories(300)
    generator = np.random.default_rng(1)
    late = np.arange(len(frame)) // 3 % 2
    frame["hour"] = 12 + 6 * late + generator.normal(size=len(frame))
    frame["class"] = [f"{topic} {part}" for topic, part in zip(frame.pop("topic"), late, strict=True)]
    data = load_data(frame, target="class")
    assert data.kind == "mixed"
    assert (~data.texts.inputs).sum() == 1
    found = trained(data)
    assert list(found) == ["largest class", "logistic regression", "linear SVM", "RBF-SVM", "gradient boosting"]
    assert found[LINEAR].settings.endswith("; texts as TF-IDF")
    assert all(found[name].measures["accuracy"] > 0.85 for name in (LINEAR, "linear SVM"))
    assert all(found[name].measures["accuracy"] > 0.6 for name in ("RBF-SVM", "gradient boosting"))  # half, with the text alone


def test_texts_are_not_in_the_fingerprint():
    data = load_data(stories(), target="topic")
    assert data.texts.strings[:2] == tuple(stories().text[:2])
    assert replace(data, texts=None).fingerprint() == data.fingerprint()
    assert replace(data, texts=None).kind == load_data("wine").kind == "table"
    assert load_data("digits").kind == "image"


@pytest.mark.parametrize("name", ["wine", "digits"])
def test_a_class_without_training_rows(name):
    data = load_data(name)
    labels, validation = given(data)
    labels = torch.where(labels == 1, 0, labels)
    for metric in ("accuracy", "nll"):
        for found in trained(data, labels, validation, metric=metric).values():
            assert not (found.validation_correct & (validation.numpy() == 1)).any()
            assert found.measures["accuracy"] <= np.mean(data.labels[data.test].numpy() != 1)
            assert found.name in ("RBF-SVM", "linear SVM") or 0.0 < found.measures["nll"] < 10.0


@pytest.mark.parametrize("model", [LogisticRegression(), SVC(), LinearSVC(dual=True), HistGradientBoostingClassifier(max_iter=5)])
@pytest.mark.parametrize("present", [[0, 2], [1, 3, 4]])
def test_scores_of_all_classes(model, present):
    generator = np.random.default_rng(0)
    labels = generator.choice(present, 80)
    inputs = np.eye(5)[labels] + 0.1 * generator.normal(size=(80, 5))
    fitted = fitted_model(model, inputs, labels, 5)
    scores = fitted.scores(inputs)
    absent = np.setdiff1d(np.arange(5), present)
    assert scores.shape == (80, 5)
    np.testing.assert_array_equal(scores.argmax(1), model.predict(inputs))
    if fitted.has_probabilities:
        np.testing.assert_allclose(scores.sum(1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(scores[:, absent], 1 / 85)
        np.testing.assert_allclose(scores[:, present], model.predict_proba(inputs) * (1 - len(absent) / 85))
    else:
        assert scores[:, absent].max() < scores[:, present].min()
    assert fitted.scores(inputs[:0]).shape == (0, 5)


def test_training_rows_of_one_class():
    data = table()
    labels = torch.full((len(data.train),), 2)
    for found in trained(data, labels, data.labels[data.validation]).values():
        np.testing.assert_array_equal(found.validation_correct, data.labels[data.validation].numpy() == 2)
        assert found.measures["nll"] == pytest.approx(found.measures["nll"])


def test_columns_that_are_constant_or_many():
    data = table(rows=80, classes=2, columns=300)
    data.inputs[:, :20] = 3.0
    data.inputs[data.train, 20] = -1.0  # constant in training rows alone
    found = trained(data)
    assert found["RBF-SVM"].settings.endswith("; 40 principal components")
    assert min(found[name].measures["accuracy"] for name in found if name != "largest class") > 0.7


@pytest.mark.parametrize(("classes", "rows"), [(2, 60), (150, 750)])
def test_few_and_many_classes(classes, rows):
    found = trained(table(rows=rows, classes=classes, columns=10, spread=0.3))
    assert found["RBF-SVM"].measures["accuracy"] > 0.5
    assert ("gradient boosting" in found) == (classes == 2)
    assert math.isnan(found[LINEAR].measures["top5"]) == (classes == 2)


def test_a_class_of_one_row():
    data = table(rows=90)
    labels = data.labels[data.train].clone()
    labels[labels == 2] = 0
    labels[5] = 2
    assert len(trained(data, labels, data.labels[data.validation])) == 4


def test_no_validation_rows():
    data = table()
    data = replace(data, validation=data.validation[:0])
    for found in trained(data).values():
        assert math.isnan(found.validation_score)
        assert found.validation_correct.shape == (0,)
        assert found.measures["accuracy"] > 0.2
        assert found.name == "largest class" or found.settings.endswith("not tuned: no validation rows")


def test_true_labels_judge():
    data = table(spread=0.1)
    wrong = make_noise("symmetric(0.4)").corrupt(data, data.train, seed=0)
    noisy = data.labels.clone()
    noisy[data.test] = (noisy[data.test] + 1) % 3
    found = trained(replace(data, labels=noisy, true_labels=data.labels), wrong, data.labels[data.validation])
    assert found["RBF-SVM"].measures["accuracy"] > 0.9


@pytest.mark.parametrize("shape", [(1, 20, 20), (3, 80, 80)])
def test_images_of_any_size(shape):
    generator = np.random.default_rng(0)
    labels = np.arange(120) % 2
    brighter = np.linspace(-1, 1, shape[-1]) * (2 * labels[:, None] - 1)
    images = generator.normal(size=(120, *shape)) + 0.3 * brighter[:, None, None]
    rows = torch.arange(120)
    data = PreparedData(
        "images", torch.from_numpy(images).float(), torch.from_numpy(labels), ("a", "b"), rows[:80], rows[80:100], rows[100:]
    )
    found = trained(data)
    assert list(found) == ["largest class", "logistic regression", "RBF-SVM"]
    assert found["RBF-SVM"].settings.endswith(("" if shape[0] == 1 else "images at 32x32, ") + "50 principal components")
    assert found["RBF-SVM"].measures["accuracy"] > 0.9


def test_many_rows_cost_no_more(monkeypatch):
    monkeypatch.setattr(families, "_KERNEL_ROWS", 200)
    monkeypatch.setattr(search, "_PART", 50)
    sizes = []
    fit = search.fitted_model
    monkeypatch.setattr(search, "fitted_model", lambda *given: sizes.append((type(given[0]), len(given[2]))) or fit(*given))
    found = trained(table(rows=1000))
    assert found["RBF-SVM"].settings.endswith("; 200 of 500 training rows")
    assert "rows" not in found[LINEAR].settings
    kernels = [rows for kind, rows in sizes if kind is SVC]
    assert kernels[-2:] == [200, 200]
    assert set(kernels[:-2]) == {50}


def test_a_time_that_is_over(monkeypatch):
    fits = []
    fit = search.fitted_model
    monkeypatch.setattr(search, "fitted_model", lambda *given: fits.append(given) or fit(*given))
    found = trained(table(), seconds=0.0)
    assert len(fits) == 3  # one of each family
    assert len(found) == 4
    assert found[LINEAR].settings.endswith("; time was over before all settings were tried")


def test_one_thread(monkeypatch):
    threads = []
    fit = search.fitted_model

    def watched(*given):
        threads.append({pool["num_threads"] for pool in threadpool_info()})
        return fit(*given)

    monkeypatch.setattr(search, "fitted_model", watched)
    with threadpool_limits(2):
        trained(table(rows=60))
        assert {pool["num_threads"] for pool in threadpool_info()} != {1}
    assert set().union(*threads) == {1}


def test_no_word_of_models_that_have_not_converged():
    generator = np.random.default_rng(0)
    inputs, labels = 100.0 * generator.normal(size=(60, 4)), generator.integers(3, size=60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted_model(LogisticRegression(max_iter=1), inputs, labels, 3)
        fitted_model(LinearSVC(dual=True, max_iter=1), inputs, labels, 3)


@pytest.mark.parametrize("seed", range(5))
def test_every_beginning_is_a_fair_sample(seed):
    labels = np.random.default_rng(seed).choice(4, 500, p=[0.6, 0.25, 0.13, 0.02])
    order = fair_order(labels, seed)
    assert sorted(order) == list(range(500))
    for rows in (10, 100, 250):
        shares = np.bincount(labels[order[:rows]], minlength=4) / rows
        np.testing.assert_allclose(shares, np.bincount(labels) / 500, atol=4 / rows)
    assert len(np.unique(labels[order[:4]])) == 4


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ([0, 1], {}, "train_labels must have 100 entries, one for each row, got 2"),
        ([3] * 100, {}, r"train_labels must be in \[0, 3\), got 3"),
        ([0] * 100, {"metric": "acuracy"}, "metric must be one of accuracy, .*, got 'acuracy'; did you mean 'accuracy'"),
    ],
)
def test_one_clear_line(labels, options, message):
    data = table()
    with pytest.raises(ValueError, match=f"train_references: {message}"):
        trained(data, torch.tensor(labels), data.labels[data.validation], **options)
