"""Pretrained encoders: what their vectors are, what is kept of them, and what folders are refused."""

import io
import json
import shutil
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lossmith.command_line import main
from lossmith.data import load_data
from lossmith.data.encoding import pretrained
from lossmith.encoders import encoder as encoder_module
from lossmith.encoders import text_features as features_module
from lossmith.encoders.model_folder import open_model_folder
from lossmith.encoders.text_features import cache_folder, text_features
from lossmith.studies.progress import texts_display
from lossmith.studies.study import open_study
from tiny_encoder import reviews, tiny_encoder

TEXTS = ["good film", "the plot was very very bad and the music awful", "", "good film", "unheard words"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("encoder") / "tiny", pooling="mean_tokens")


@pytest.fixture
def copied(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copied")


def states_by_hand(folder, text):
    """The network's output for one text, without padding, batches or anything of ours."""
    import transformers

    network = transformers.AutoModel.from_pretrained(folder).eval()
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    with torch.no_grad():
        return network(**tokens).last_hidden_state[0]


@pytest.mark.parametrize(
    ("pooling", "by_hand"),
    [
        ("mean_tokens", lambda states: states.mean(0)),
        ("cls_token", lambda states: states[0]),
        ("max_tokens", lambda states: states.amax(0)),
        ("lasttoken", lambda states: states[-1]),
    ],
)
def test_vectors_are_pooled_as_the_folder_says(folder, tmp_path, pooling, by_hand):
    config = folder / "1_Pooling" / "config.json"
    own = shutil.copytree(folder, tmp_path / "own")
    (own / config.relative_to(folder)).write_text(json.dumps({f"pooling_mode_{pooling}": True}))
    vectors = text_features(open_model_folder(own), TEXTS, tmp_path / "cache")
    expected = torch.stack([by_hand(states_by_hand(folder, text)) for text in TEXTS]).numpy()
    np.testing.assert_allclose(vectors, expected, atol=2e-5)
    assert np.array_equal(vectors[0], vectors[3])  # equal texts


def test_vectors_have_length_1_where_the_folder_says_so(tmp_path):
    folder = tiny_encoder(tmp_path / "tiny", pooling="mean_tokens", normalized=True)
    vectors = text_features(open_model_folder(folder), TEXTS, tmp_path / "cache")
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_a_plain_folder_takes_the_mean(folder, copied):
    (copied / "modules.json").unlink()
    assert open_model_folder(copied).pooling == "mean"
    assert not open_model_folder(copied).normalized


def test_long_texts_are_cut_where_the_tokenizer_says(folder, tmp_path):
    opened = open_model_folder(folder)
    long, longer = text_features(opened, ["good " * 22, "good " * 200], tmp_path)
    np.testing.assert_allclose(long, longer, atol=1e-5)


def test_kept_vectors_need_no_network(folder, tmp_path, monkeypatch):
    opened = open_model_folder(folder)
    first = text_features(opened, TEXTS, tmp_path)
    monkeypatch.setattr(features_module, "load_encoder", None)
    seen = []
    assert np.array_equal(text_features(opened, TEXTS, tmp_path, lambda *progress: seen.append(progress)), first)
    assert not seen
    with pytest.raises(TypeError):
        text_features(opened, [*TEXTS, "another text"], tmp_path)


def test_a_computation_that_was_killed_goes_on(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(features_module, "TEXTS_AT_ONCE", 2)
    opened, computed = open_model_folder(folder), []

    def counted(own, texts):
        computed.extend(texts)
        return encoder_module.token_lists(own, texts)

    def killed(done, total):
        assert total == 4  # of five texts two are equal
        if done:
            raise KeyboardInterrupt

    monkeypatch.setattr(features_module, "token_lists", counted)
    with pytest.raises(KeyboardInterrupt):
        text_features(opened, TEXTS, tmp_path, killed)
    seen = []
    vectors = text_features(opened, TEXTS, tmp_path, lambda *progress: seen.append(progress))
    assert sorted(computed) == sorted(set(TEXTS))  # each once
    assert seen == [(2, 4), (4, 4)]
    assert not list(tmp_path.rglob("tmp*"))
    monkeypatch.undo()
    np.testing.assert_allclose(vectors, text_features(opened, TEXTS, tmp_path / "other"), atol=1e-5)


def test_progress_is_shown_once_there_is_any():
    stream = io.StringIO()
    with texts_display(stream):
        pass
    assert not stream.getvalue()
    with texts_display(stream) as on_texts:
        on_texts(0, 2000)
        on_texts(2000, 2000)
    assert stream.getvalue().startswith("encoding texts: 2000 texts")


def test_a_damaged_piece_is_computed_again(folder, tmp_path):
    opened = open_model_folder(folder)
    first = text_features(opened, TEXTS, tmp_path)
    (piece,) = tmp_path.rglob("*.npy")
    for content in (b"", piece.read_bytes()[:-5], b"nonsense"):
        piece.write_bytes(content)
        assert np.array_equal(text_features(opened, TEXTS, tmp_path), first)


def test_the_digest_is_that_of_what_counts(folder, copied):
    first = open_model_folder(folder).digest()
    (copied / "README.md").write_text("about")
    assert open_model_folder(copied).digest() == first
    weights = copied / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert open_model_folder(copied).digest() != first
    assert replace(open_model_folder(folder), pooling="cls").digest() != first


def test_where_vectors_are_kept(monkeypatch, tmp_path):
    assert cache_folder(tmp_path) == tmp_path
    monkeypatch.setenv("LOSSMITH_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("LOSSMITH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "lossmith"


def _without(*names):
    def spoil(folder):
        for name in names:
            (folder / name).unlink()

    return spoil


def _pickled(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _config(**changes):
    def spoil(folder):
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, **changes}))

    return spoil


def _cut(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])


def _pooling(**config):
    return lambda folder: (folder / "1_Pooling" / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (shutil.rmtree, "must be the folder of a Hugging Face model, got nothing there"),
        (_without("config.json"), "has no config.json"),
        (_without("model.safetensors"), "has no weights; expected model.safetensors"),
        (_pickled, "must have its weights as safetensors, got pytorch_model.bin, a pickle"),
        (_without("tokenizer.json", "vocab.txt"), "has no tokenizer"),
        (_config(model_type=None), "must name a model_type, got none"),
        (_config(model_type="never-heard-of"), "cannot be used: .*never-heard-of"),
        (_config(model_type="own", auto_map={"AutoModel": "own.Model"}), "cannot be used: "),
        (_config(num_hidden_layers=3), "lacks 16 weights of its model, such as encoder.layer.2"),
        (_cut, "the model in .* cannot be used: "),
        (_pooling(pooling_mode="attention"), "must ask for one pooling of mean, cls, max, last, got attention"),
        (_pooling(), "got none of them"),
        (lambda folder: (folder / "modules.json").write_text("[1]"), "must list modules with type and path"),
        (lambda folder: (folder / "modules.json").write_text("{"), "must be JSON"),
    ],
)
def test_folders_that_are_refused(copied, tmp_path, spoil, said):
    spoil(copied)
    with pytest.raises(ValueError, match=said) as caught:
        load_data(reviews(), encoder=copied, cache=tmp_path)
    assert str(caught.value).startswith("encoder: ")
    assert "\n" not in str(caught.value)


def test_a_missing_extra_is_named(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ModuleNotFoundError, match=r"transformers, which is not installed: pip install 'lossmith\[encoders\]'"):
        load_data(reviews(), encoder=folder, cache=tmp_path)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"encoder": 3}, TypeError, "encoder must be the path of a folder, got 3"),
        ({"fine_tune": True}, ValueError, "fine_tune needs an encoder"),
    ],
)
def test_arguments_that_are_refused(options, error, said):
    with pytest.raises(error, match=said):
        load_data(reviews(), **options)


def test_an_encoder_needs_texts(folder, tmp_path):
    with pytest.raises(ValueError, match="iris: an encoder needs texts, got numbers"):
        load_data("iris", encoder=folder, cache=tmp_path)
    with pytest.raises(ValueError, match="an encoder needs a column of texts, got 'a'"):
        load_data(pd.DataFrame({"a": range(30), "y": [0, 1] * 15}).sample(frac=1, random_state=0), target="y", encoder=folder)


def test_inputs_are_vectors_with_one_scale(folder, tmp_path, monkeypatch):
    texts, labels = reviews()
    vectors = text_features(open_model_folder(folder), texts, tmp_path)
    vectors[:, 3] = np.linspace(0, 1e-20, len(texts))  # as good as constant, which some encoders have
    monkeypatch.setattr(pretrained, "text_features", lambda *_: vectors.copy())
    data = load_data((texts, labels), encoder=folder, cache=tmp_path)
    assert (data.kind, data.input_shape) == ("text", (16,))
    train = data.inputs[data.train]
    torch.testing.assert_close(train.mean(0), torch.zeros(16), atol=1e-5, rtol=0)
    torch.testing.assert_close(train.square().mean(), torch.tensor(1.0))
    assert data.inputs[:, 3].abs().max() < 1e-10
    distances = torch.cdist(data.inputs, data.inputs) / torch.cdist(torch.from_numpy(vectors), torch.from_numpy(vectors))
    assert distances[~torch.eye(len(texts), dtype=torch.bool)].std() < 1e-3 * distances[0, 1]


def test_an_encoder_that_tells_nothing_is_refused(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(pretrained, "text_features", lambda *_: np.ones((60, 16), np.float32))
    with pytest.raises(ValueError, match="gives all training texts the same vector"):
        load_data(reviews(), encoder=folder, cache=tmp_path)


def test_other_columns_stand_beside_vectors(folder, tmp_path):
    texts, labels = reviews()
    sizes = np.random.default_rng(0).normal(size=len(texts))
    table = pd.DataFrame({"title": texts, "size": sizes, "text": texts[::-1], "rating": labels})
    data = load_data(table, target="rating", encoder=folder, cache=tmp_path)
    assert data.kind == "mixed"
    assert data.input_shape == (17,)
    assert data.texts.inputs.tolist() == [False, *[True] * 16]


def test_the_fingerprint_is_that_of_texts_and_model(folder, copied, tmp_path):
    data = load_data(reviews(), encoder=folder, cache=tmp_path)
    rounded = replace(data, inputs=data.inputs * (1 + 1e-7))
    assert rounded.fingerprint() == data.fingerprint()
    texts, labels = reviews()
    other = replace(data, texts=replace(data.texts, strings=("another", *data.texts.strings[1:])))
    assert other.fingerprint() != data.fingerprint()
    _pooling(pooling_mode="cls")(copied)
    assert load_data((texts, labels), encoder=copied, cache=tmp_path).fingerprint() != data.fingerprint()


def test_a_study_from_the_command_line(folder, tmp_path, capsys, monkeypatch):
    texts, labels = reviews()
    pd.DataFrame({"review": texts, "rating": labels}).to_csv(tmp_path / "reviews.csv", index=False)
    study, toml = tmp_path / "study", tmp_path / "study.toml"
    shutil.copytree(folder, tmp_path / "model")
    toml.write_text(
        'data = "reviews.csv"\ntarget = "rating"\nencoder = "model"\nlosses = ["ce", "gce"]\nnoise = [0]\nepochs = 3\n'
    )
    monkeypatch.setenv("LOSSMITH_CACHE", str(tmp_path / "cache"))
    given = ["compare", str(toml), "--seeds", "2", "--trials", "1", "--workers", "1", "--output", str(study), "--no-report"]
    assert main(given) == 0
    assert open_study(study).settings.recipe.model == "hidden"
    names = {row["name"] for row in open_study(study).store.references()}
    assert names >= {"logistic regression", "linear SVM", "logistic regression, encoder", "linear SVM, encoder"}
    assert len(list((tmp_path / "cache").rglob("*.npy"))) == 1  # for both replicates
    assert main(["resume", str(study), "--workers", "1"]) == 0
    shutil.rmtree(tmp_path / "model")
    assert main(["resume", str(study)]) == 2
    assert "must be the folder of a Hugging Face model" in capsys.readouterr().err
