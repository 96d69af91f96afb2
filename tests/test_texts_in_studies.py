"""Studies of texts: sparse rows all the way, from file to analysis."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from lossmith import compare, load_data
from lossmith.data import make_noise
from lossmith.data.encoding.texts import weighted_ngrams
from lossmith.data.sparse_rows import SparseRows
from lossmith.studies.study_analysis import analyse

TOPICS = {"sea": ["ship", "wave", "harbour", "sailor"], "sky": ["cloud", "pilot", "wing", "storm"]}
QUICK = {"losses": ["ce", "gce"], "noise": [0, 0.2], "seeds": 2, "rates": [0.01], "epochs": 2, "workers": 1, "progress": False}


def stories(rows: int = 120) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    topics = [("sea", "sky")[number % 2] for number in range(rows)]
    texts = [" ".join([*draw.choice(TOPICS[topic], 3), *draw.choice(["the", "a", "of", "and"], 4)]) for topic in topics]
    return pd.DataFrame({"text": texts, "length": draw.random(rows), "topic": topics})


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    stories().to_csv(folder / "stories.csv", index=False)
    how = {"target": "topic", "keep": ["weights", "features"], "output": folder / "study", **QUICK}
    return compare(str(folder / "stories.csv"), **how)


def test_terms_are_chosen_and_weighted_by_training_texts_alone():
    texts = ["red red fish", "red bird", "blue fish", "blue bird", "zebra zebra"]
    found = weighted_ngrams(texts, np.arange(4)).toarray()
    changed = weighted_ngrams([*texts[:4], "another thing altogether"], np.arange(4)).toarray()
    assert np.array_equal(found[:4], changed[:4])
    np.testing.assert_allclose(np.square(found[:4]).sum(1), 2.0, rtol=1e-5)  # words and characters have length 1 each


@pytest.mark.parametrize("texts", [["", "", ""], ["a", "b", "c"], ["一二三四", "二三四五", "三四五六"]])
def test_odd_texts_have_rows_too(texts):
    found = weighted_ngrams(texts, np.arange(2))
    assert found.shape[0] == 3
    assert np.isfinite(found.toarray()).all()


def test_a_bag_is_what_texts_are_trained_with(study):
    assert study.settings.recipe.model == "bag"
    assert study.settings.recipe.optimizer == "adamw"
    assert set(study.references["reference"]) >= {"logistic regression", "linear SVM", "RBF-SVM"}
    data = study.load()
    assert isinstance(data.inputs, SparseRows)
    assert data.kind == "mixed"


def test_a_kept_model_predicts_what_the_study_measured(study):
    result = study.results.iloc[0]
    data, model = study.load(int(result["seed"])), study.model(int(result["run"]))
    with torch.no_grad():
        predicted = model(data.inputs[data.test]).argmax(1)
    assert (predicted == data.labels[data.test]).double().mean().item() == pytest.approx(result["accuracy"])


def test_an_analysis_of_texts_has_layers_and_damaged_inputs(study):
    found = analyse(study)["none"]
    assert found.corruption is not None
    assert {"clean", "missing"} < set(found.corruption.columns.get_level_values(0))
    assert "gaussian-noise" not in found.corruption.columns.get_level_values(0)
    assert found.layers is not None


def test_a_study_of_texts_gives_the_same_numbers_again(study, tmp_path):
    again = compare(stories(), target="topic", output=tmp_path / "again", **QUICK)
    columns = ["loss", "noise", "seed", "accuracy", "nll"]
    pd.testing.assert_frame_equal(study.results[columns], again.results[columns])


def test_a_model_of_ones_own_gets_rows_written_out(tmp_path):
    seen = []

    def own(shape, classes):
        seen.append(shape)
        return nn.Sequential(nn.Linear(shape[0], 8), nn.ReLU(), nn.Linear(8, classes))

    found = compare(stories(), target="topic", model=own, output=tmp_path / "own", **QUICK)
    assert len(found.results) == 8
    assert seen[0] == load_data(stories(), target="topic").input_shape


@pytest.mark.parametrize("noise", ["small-margin(0.2)", "instance(0.2)"])
def test_noise_that_looks_at_features_reads_sparse_rows(noise):
    data = load_data(stories(), target="topic")
    noisy = make_noise(noise).corrupt(data, data.train, 0)
    assert 0.05 < (noisy != data.labels[data.train]).double().mean() < 0.4
