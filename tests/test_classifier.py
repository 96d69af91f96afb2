"""The estimator for scikit-learn; tests/integrations has scikit-learn's own checks of it."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler

import lossmith
from lossmith import LossmithClassifier, make_loss

ROWS, LABELS = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[LABELS]
SPORTS = ["the team won the match", "a goal in the second half", "the coach changed the team", "they lost the cup match"]
FOOD = ["boil the rice with salt", "a soup of beans and salt", "bake the bread an hour", "rice and beans for dinner"]
TEXTS, KINDS = SPORTS * 10 + FOOD * 10, ["sports"] * 40 + ["food"] * 40


def quick(loss="ce", **options):
    return LossmithClassifier(loss, **{"epochs": 60, "learning_rate": 0.02, "random_state": 0, **options})


def test_tables_and_the_probabilities_of_a_loss():
    model = quick("bi-tempered(t1=0.5, t2=2)").fit(ROWS, NAMES)
    assert model.score(ROWS, NAMES) > 0.93
    found = model.predict_proba(ROWS)
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)
    logits = model._learner.logits(model._encoded(ROWS))
    np.testing.assert_allclose(found, lossmith.BiTemperedLoss(0.5, 2.0).predict_proba(logits).numpy())
    assert pickle.loads(pickle.dumps(model)).predict(ROWS[:3]).tolist() == ["setosa"] * 3


def test_texts_as_they_are_and_as_sparse_rows():
    for model in (quick("gce"), make_pipeline(TfidfVectorizer(), quick("gce"))):
        model.fit(TEXTS, KINDS)
        assert model.score(TEXTS, KINDS) == 1
        assert list(model.predict(["salt and rice", "the team in the cup"])) == ["food", "sports"]


def test_tables_with_texts_categories_and_gaps():
    texts = [f"{text} {place}" for place, text in enumerate(TEXTS)]
    table = pd.DataFrame({"text": texts, "length": [float(len(text)) for text in TEXTS], "day": ["mon", "tue"] * 40})
    table.loc[3, "text"], table.loc[5, "length"], table.loc[7, "day"] = None, np.nan, None
    model = quick().fit(table, KINDS)
    assert model.score(table, KINDS) > 0.95
    assert list(model.predict(table.iloc[60:62].assign(day="sun"))) == ["food", "food"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table.rename(columns={"day": "weekday"}))


def test_search_over_losses_in_a_pipeline():
    pipeline = make_pipeline(RobustScaler(), quick(epochs=20))
    losses = ["ce", "logit-bias(mae)", make_loss("gce(q=0.5)")]
    search = GridSearchCV(pipeline, {"lossmithclassifier__loss": losses}, cv=2).fit(ROWS, NAMES)
    assert search.best_score_ > 0.85
    assert clone(search.best_estimator_).get_params()["lossmithclassifier__epochs"] == 20


def test_weights_of_rows_and_classes():
    doubled = quick().fit(np.concatenate([ROWS, ROWS[:50]]), np.concatenate([LABELS, LABELS[:50]]))
    weighted = quick().fit(ROWS, LABELS, sample_weight=np.where(LABELS == 0, 2.0, 1.0))
    np.testing.assert_allclose(weighted.predict_proba(ROWS), doubled.predict_proba(ROWS), rtol=1e-6, atol=1e-9)
    by_class = quick(class_weight={0: 2.0, 1: 1.0, 2: 1.0}, epochs=5).fit(ROWS, LABELS).predict_proba(ROWS)
    by_loss = quick(make_loss("ce", weight=[2.0, 1.0, 1.0]), epochs=5).fit(ROWS, LABELS).predict_proba(ROWS)
    assert np.array_equal(by_class, by_loss)
    assert not np.array_equal(by_class, quick(epochs=5).fit(ROWS, LABELS).predict_proba(ROWS))
    rare = np.concatenate([np.arange(55), np.arange(100, 150)])
    assert quick(class_weight="balanced").fit(ROWS[rare], LABELS[rare]).loss_.weight[1] == pytest.approx(105 / 15)


def test_batches_follow_one_another():
    model = quick()
    with pytest.raises(ValueError, match=r"classes must be passed on the first call to partial_fit"):
        model.partial_fit(ROWS, NAMES)
    for _ in range(30):
        model.partial_fit(ROWS[::2], NAMES[::2], classes=np.unique(NAMES))
        model.partial_fit(ROWS[1::2], NAMES[1::2])
    assert model.score(ROWS, NAMES) > 0.93
    with pytest.raises(ValueError, match=r"LossmithClassifier: y must hold the classes .*, got .*rose"):
        model.partial_fit(ROWS[:1], ["rose"])


def test_objectives_train_with_their_heads_and_schedules():
    model = quick("scheduled(cosine-softmax(loss=gce), q=linear(0.2, 0.8))").fit(ROWS, NAMES)
    assert model.loss_.q == pytest.approx(0.8)
    assert type(model._learner.network.head).__name__ == "CosineLinear"


def test_many_rows_are_trained_in_batches_and_alike_by_one_seed():
    rows, labels = np.tile(ROWS, (3, 1)), np.tile(LABELS, 3)
    first, second, other = (quick(epochs=3, random_state=seed).fit(rows, labels).predict_proba(ROWS) for seed in (0, 0, 1))
    assert first.dtype == np.float32
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_random_numbers_of_others_are_left_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    quick(epochs=2).fit(ROWS, LABELS)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("options", "labels", "message"),
    [
        ({}, ["a"] * 150, "LossmithClassifier: needs two classes at least, got one class, "),
        ({"loss": "gcee"}, NAMES, "unknown"),
        ({"model": "cnn"}, NAMES, "make_backbone: cnn takes images"),
    ],
)
def test_errors(options, labels, message):
    with warnings.catch_warnings(), pytest.raises(ValueError, match=message):
        quick(**options).fit(ROWS, labels)
