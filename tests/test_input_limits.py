"""Input that claims, or unpacks to, more than any machine has; that never ends; or that no column of a table should hold."""

import gzip
import os
import struct
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lossmith import load_data
from lossmith.command_line import main
from lossmith.data.sources import table_files
from lossmith.data.sources.size_limit import MOST_BYTES, most_bytes
from lossmith.theory import average_error

LABELS = np.arange(60) % 2


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setenv("LOSSMITH_MAX_BYTES", "10000")


def refused(source, pattern, **options):
    with pytest.raises(ValueError, match=pattern) as caught:
        load_data(source, **options)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def claims(rows: int, columns: int = 1) -> bytes:
    """Return an NPY header without the numbers that it announces."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()


def test_an_npz_file_must_hold_what_it_claims(tmp_path):
    file = tmp_path / "claims.npz"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("X.npy", claims(10**13))
        archive.writestr("y.npy", claims(10**13))
    refused(file, r"claims\.npz: needs 80,000 GB of memory, and one input may take 8\.6 GB; LOSSMITH_MAX_BYTES sets the limit\.")
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("X.npy", claims(1000))
    refused(file, r"claims\.npz: X\.npy must hold 8,000 bytes, got 128\.")


def test_an_npz_file_of_zeros_is_refused_by_its_unpacked_size(tmp_path, small_limit):
    file = tmp_path / "zeros.npz"
    np.savez_compressed(file, X=np.zeros((100, 20)), y=np.arange(100) % 2)
    assert file.stat().st_size < 10000
    refused(file, r"zeros\.npz: needs 0\.0 GB of memory")


def test_an_idx_file_is_refused_by_its_header(tmp_path):
    header = b"\0\0\x08\x03" + struct.pack(">III", 2**31, 2**31, 2**31)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(header)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01" + struct.pack(">I", 3) + b"\0\1\2")
    refused(tmp_path, r"train-images-idx3-ubyte: needs [\d,]+ GB of memory")
    (tmp_path / "train-images-idx3-ubyte").write_bytes(header[:7])
    refused(tmp_path, r"train-images-idx3-ubyte: not an IDX file\.")


def test_a_packed_idx_file_is_not_unpacked_beyond_its_header(tmp_path):
    with gzip.open(tmp_path / "train-images-idx3-ubyte.gz", "wb") as file:
        file.write(b"\0\0\x08\x01" + struct.pack(">I", 3) + bytes(10**6))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01" + struct.pack(">I", 3) + b"\0\1\2")
    refused(tmp_path, r"the file must hold 3 numbers, got more\.")


def test_parquet_is_refused_by_its_rows(tmp_path, small_limit):
    file = tmp_path / "constant.parquet"
    pd.DataFrame({"x": np.ones(5000), "y": np.arange(5000) % 2}).to_parquet(file)
    refused(file, r"constant\.parquet: needs 0\.0 GB of memory", target="y")


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.bz2", "csv.xz"])
def test_tables_are_refused_by_their_size(ending, tmp_path, small_limit):
    file = tmp_path / f"table.{ending}"
    pd.DataFrame({"x": np.zeros(5000), "y": np.arange(5000) % 2}).to_csv(file, index=False)
    assert ending == "csv" or file.stat().st_size < 10000
    refused(file, r"needs 0\.0 GB of memory", target="y")


def images(folder, size=(4, 4)):
    for label in ("cats", "dogs"):
        (folder / label).mkdir(parents=True, exist_ok=True)
        for number in range(6):
            pixels = np.random.default_rng(number).integers(0, 256, (*size, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / label / f"{number}.png")
    return folder


def test_images_are_refused_by_their_sizes(tmp_path, monkeypatch):
    folder = images(tmp_path / "photos")
    refused(folder, r"photos: needs 360 GB of memory", resize=100_000)
    refused(folder, r"resize must be in \[1, 1e\+06\], got 10000000\.", resize=10**7)
    refused(folder, r"resize must be one side, or height and width, got \(1, 2, 3\)", resize=(1, 2, 3))
    assert load_data(folder, resize=[8, 6]).input_shape == (3, 8, 6)
    monkeypatch.setenv("LOSSMITH_MAX_BYTES", "200")
    refused(folder, r"photos: needs 0\.0 GB of memory")


def test_a_pipe_among_images_is_left_alone(tmp_path):
    folder = images(tmp_path / "photos")
    os.mkfifo(folder / "cats" / "pipe.png")
    assert len(load_data(folder).labels) == 12


@pytest.mark.parametrize("name", ["pipe.npz", "pipe.parquet", "pipe.csv"])
def test_a_pipe_is_no_file(name, tmp_path):
    os.mkfifo(tmp_path / name)
    refused(tmp_path / name, r"must be a file or a folder, got neither\.")


def test_large_images_are_read_without_a_warning_of_pillow(tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)  # it warns of more, and refuses twice as many
    folder = images(tmp_path / "photos")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert load_data(folder).input_shape == (3, 4, 4)
    assert not [warning for warning in heard if issubclass(warning.category, Image.DecompressionBombWarning)]
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 4)
    refused(folder, r"\.png: too many pixels for an image\.")


def test_the_limit_is_that_of_the_environment(monkeypatch):
    monkeypatch.delenv("LOSSMITH_MAX_BYTES", raising=False)
    assert most_bytes() == MOST_BYTES
    monkeypatch.setenv("LOSSMITH_MAX_BYTES", "123")
    assert most_bytes() == 123
    for wrong in ("0", "-1", "1e9", "much", "9" * 5000):
        monkeypatch.setenv("LOSSMITH_MAX_BYTES", wrong)
        with pytest.raises(ValueError, match=r"^LOSSMITH_MAX_BYTES must be a whole number of bytes > 0"):
            most_bytes()


def test_numbers_that_double_precision_cannot_tell_apart(tmp_path):
    numbers = [10**30 + row for row in range(60)]
    pd.DataFrame({"x": numbers, "y": LABELS}).to_csv(tmp_path / "huge.csv", index=False)
    for source in (tmp_path / "huge.csv", pd.DataFrame({"x": numbers, "y": LABELS})):
        refused(source, r"no column tells rows from one another", target="y")
    refused(pd.DataFrame({"x": [10**400 + row for row in range(60)], "y": LABELS}), r"no column tells", target="y")


@pytest.mark.parametrize("role", ["target", "true_label", "split_column", "groups"])
@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, (1, 2), np.array([1])])
def test_a_column_with_a_role_must_hold_single_values(role, value, tmp_path):
    lists = pd.Series([value] * 60, dtype=object)
    frame = pd.DataFrame({"x": np.random.default_rng(0).random(60), "y": LABELS, "lists": lists})
    refused(frame, r"column 'lists' must hold single values, got \w+\.", **({"target": "y"} | {role: "lists"}))


def test_a_parquet_target_of_lists(tmp_path, capsys):
    frame = pd.DataFrame({"x": np.random.default_rng(0).random(60), "y": [[1, 2], [3]] * 30})
    frame.to_parquet(tmp_path / "lists.parquet")
    assert main(["compare", str(tmp_path / "lists.parquet"), "--target", "y", "--dry-run"]) == 2
    assert capsys.readouterr().err == "lossmith: lists.parquet: column 'y' must hold single values, got ndarray.\n"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"folder": 7}, TypeError, "load_data: folder must be a path, got 7."),
        ({"groups": 7}, TypeError, "table: groups must be a column, or a group for each class, got 7."),
        ({"groups": [[1], [2]]}, ValueError, "table: groups must be numbers or names, got [1]."),
        ({"split_column": 7}, ValueError, "table: no column 7. The columns are 'x', 'y'."),
        ({"target": True}, ValueError, "table: no column True. The columns are 'x', 'y'."),
        ({"resize": "32"}, TypeError, "load_data: resize must be an integer in [1, 1e+06], got str '32'."),
    ],
)
def test_arguments_of_the_wrong_type(options, error, message):
    frame = pd.DataFrame({"x": np.random.default_rng(0).random(60), "y": LABELS})
    with pytest.raises(error) as caught:
        load_data(frame, **({"target": "y"} | options))
    assert str(caught.value) == message


def test_numbers_of_classes_have_an_end(capsys):
    assert main(["advise", "--classes", "99999999999999999999"]) == 2
    assert capsys.readouterr().err == "lossmith: advise: num_classes must be at most 10,000,000, got 99999999999999999999.\n"
    with pytest.raises(ValueError, match=r"average_error: num_classes must be at most 10,000,000, got 100000000\."):
        average_error("ce", 10**8)


def test_large_tables_are_read_in_parts(tmp_path, monkeypatch):
    """Whatever the parts are, the table is the one that is read at once."""
    rows, draw = 500, np.random.default_rng(0)
    same = pd.DataFrame(
        {"real": draw.random(rows), "whole": draw.integers(0, 9, rows), "word": draw.choice(["a", "bé", "c\nd"], rows)}
    )
    gaps = same.assign(real=same["real"].where(same["real"] > 0.1), late=[*range(rows - 1), 0.5])
    mixed = same.assign(
        mixed=[*range(rows - 1), "text"], empty=[None] * (rows - 1) + ["x"], large=[2**60 + 1] * (rows - 1) + [0.5]
    )
    for number, frame in enumerate((same, gaps, mixed)):
        file = tmp_path / f"{number}.csv"
        frame.to_csv(file, index=False)
        expected = table_files.read_table(file).frame
        with monkeypatch.context() as patch:
            patch.setattr(table_files, "_LARGE", 0)
            patch.setattr(table_files, "_ROWS_AT_ONCE", 64)
            pd.testing.assert_frame_equal(table_files.read_table(file).frame, expected)


def test_tables_that_are_given_stay_as_they_are():
    frame = pd.DataFrame({"x": np.random.default_rng(0).random(60), "z": np.arange(60.0) ** 2, "y": LABELS})
    features, before = frame[["x", "z"]], frame.copy()
    first = load_data(frame, target="y")
    second = load_data((features, LABELS))
    assert first.inputs.equal(second.inputs)
    assert first.inputs.equal(load_data(frame, target="y").inputs)
    pd.testing.assert_frame_equal(frame, before)
    pd.testing.assert_frame_equal(features, before[["x", "z"]])
