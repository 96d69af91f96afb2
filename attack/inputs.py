"""Files that are no data, or hardly: each is read, or refused in one line, in a moment and without filling the memory."""

import io
import random
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np

from attack.command import run
from attack.kind import Kind
from attack.odd_values import odd_text

__all__ = ["INPUTS"]

OPTIONS = (
    *("--losses", "ce", "--noise", "0", "--seeds", "1", "--rates", "0.1", "--epochs", "1", "--model", "linear", "--rows", "200"),
    *("--dry-run", "--workers", "1"),
)
CELLS = (
    "",
    "0",
    "1",
    "1.5",
    "nan",
    "inf",
    "-1e400",
    "a",
    "b",
    "yes",
    "2020-01-01",
    '"',
    ",",
    "\0",
    "é",
    "1,5",
    " 1 ",
    "NULL",
    "0x1",
)


def attempt(chance: random.Random, folder: Path, _: object) -> None:
    """Write a file or folder and plan a study of it."""
    (folder / "data").mkdir()
    source = chance.choice(WAYS)(chance, folder / "data")
    options = (
        ["--target", chance.choice(("y", "label", "0", odd_text(chance).replace("\0", "")))] if chance.random() < 0.3 else []
    )
    run(["compare", source, *OPTIONS, *options, "--output", folder / "study"], folder)


def table(chance: random.Random, folder: Path) -> Path:
    """A table of odd cells, of rows of several lengths, in an odd encoding."""
    file = folder / f"table.{chance.choice(('csv', 'tsv', 'txt', 'csv.gz', 'CSV'))}"
    width, separator = chance.randrange(5), chance.choice(",;\t|")
    header = [chance.choice(("x", "y", "label", "x", "", "target", odd_text(chance))) for _ in range(width)]
    rows = [[chance.choice(CELLS) for _ in range(chance.choice((width, width, width, chance.randrange(7))))] for _ in range(30)]
    text = chance.choice(("\n", "\r\n", "\r")).join(separator.join(row) for row in (header, *rows[: chance.randrange(31)]))
    file.write_bytes(text.encode(chance.choice(("utf-8", "utf-8-sig", "utf-16", "latin-1")), "replace"))
    return file


def plausible_table(chance: random.Random, folder: Path) -> Path:
    """A table of numbers and classes in which one cell, or one byte, is odd."""
    file = folder / "table.csv"
    rows = [[f"{chance.gauss(0, 1):.3f}", str(chance.randrange(9)), chance.choice("abc")] for _ in range(60)]
    rows[chance.randrange(60)][chance.randrange(3)] = chance.choice(CELLS)
    content = bytearray("\n".join(map(",".join, [["x", "z", "label"], *rows])).encode())
    if chance.random() < 0.5:
        content[chance.randrange(len(content))] = chance.randrange(256)
    file.write_bytes(content)
    return file


def bytes_only(chance: random.Random, folder: Path) -> Path:
    """Bytes with the name of data."""
    beginning = chance.choice((b"", b"PAR1", b"PK\x03\x04", b"\x93NUMPY", b"\x00\x00\x08\x03", b"\x1f\x8b", b"SQLite format 3\0"))
    file = folder / f"data.{chance.choice(('csv', 'npz', 'npy', 'parquet', 'pt', 'png', 'toml', 'json', 'sqlite', ''))}"
    file.write_bytes(beginning + chance.randbytes(chance.randrange(300)))
    return file


def arrays(chance: random.Random, folder: Path) -> Path:
    """Arrays that do not fit together, hold no numbers, or are cut off."""
    rows = chance.choice((0, 1, 2, 40))
    inputs = np.random.default_rng(chance.randrange(99)).normal(
        size=chance.choice(((rows, 3), (rows,), (rows, 2, 4, 4), (rows, 0)))
    )
    if inputs.size and chance.random() < 0.4:
        inputs.flat[0] = chance.choice((np.nan, np.inf, 1e308))
    kinds = (
        np.arange(rows) % 3,
        np.zeros(rows),
        np.array(["a"] * rows, object),
        np.arange(rows + 1),
        np.eye(3),
        np.array(5),
        -np.arange(rows),
    )
    stream = io.BytesIO()
    names = chance.choice((("X", "y"), ("inputs", "labels"), ("a", "b"), ("x_train", "y_train")))
    np.savez(stream, allow_pickle=True, **dict(zip(names, (inputs, chance.choice(kinds)), strict=True)))
    content = stream.getvalue()
    file = folder / "data.npz"
    file.write_bytes(content[: chance.randrange(len(content))] if chance.random() < 0.2 else content)
    return file


def images(chance: random.Random, folder: Path) -> Path:
    """Folders of files that are hardly images."""
    from PIL import Image

    for number in range(chance.randrange(4)):
        (folder / f"class {number}").mkdir()
        for image in range(chance.randrange(5)):
            file = folder / f"class {number}" / f"{image}.{chance.choice(('png', 'jpg', 'txt'))}"
            size, mode = chance.choice(((8, 8), (8, 8), (1, 1), (9, 4))), chance.choice(("RGB", "L", "1", "P", "RGBA", "LA"))
            if chance.random() < 0.7 and file.suffix != ".txt":
                Image.new(mode if file.suffix == ".png" else "RGB", size).save(file)
            if not file.exists() or chance.random() < 0.2:
                file.write_bytes(chance.randbytes(40))
    return folder


def idx_files(chance: random.Random, folder: Path) -> Path:
    """IDX files whose heads promise more than there is, up to petabytes."""
    for name, rank in (("train-images-idx3-ubyte", 3), ("train-labels-idx1-ubyte", 1)):
        lengths = [chance.choice((0, 1, 5, 20, 2**31 - 1, 2**32 - 1)) for _ in range(rank)]
        head = bytes([0, 0, chance.choice((8, 9, 13, 99)), chance.choice((rank, rank, 0, 255))])
        content = head + b"".join(struct.pack(">I", length) for length in lengths) + chance.randbytes(chance.randrange(500))
        (folder / name).write_bytes(content)
    return folder


WAYS: tuple[Callable[[random.Random, Path], Path], ...] = (table, plausible_table, bytes_only, arrays, images, idx_files)
INPUTS = Kind("inputs", attempt)
