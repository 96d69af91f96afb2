"""Folders of images, one folder a class."""

import math
import struct
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from lossmith.data.sources.column_roles import split_name
from lossmith.data.sources.examples import Array, Examples, joined
from lossmith.data.sources.size_limit import check_size
from lossmith.expressions.quotes import shortened

__all__ = ["IMAGE_SUFFIXES", "image_examples"]

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
_UNREADABLE = (OSError, SyntaxError, EOFError, struct.error, OverflowError)  # what Pillow's readers raise for broken files
_GREY = ("1", "L", "I", "I;16", "F")


def image_examples(folder: Path, name: str, resize: int | tuple[int, int] | None = None) -> Examples:
    """Read a folder with a folder for each class, or with such folders in ``train``, ``test`` and perhaps ``validation``.

    Images of different sizes are refused, unless ``resize`` gives one side, or height and width.

    Args:
        folder: The folder.
        name: What to call the data.
        resize: The size that all images get.

    Returns:
        The images as bytes, ``(n, channels, height, width)``, with the names of their folders as labels.

    Raises:
        ValueError: If there are no images, one cannot be read, they differ in size, or take too much memory together.
    """
    splits = {split_name(inner.name): inner for inner in _folders(folder)}
    if "train" in splits:
        found = {split: _files(inner) for split, inner in splits.items() if split is not None}
    else:
        found = {"": _files(folder)}
    everything = [path for files in found.values() for path, _ in files]
    if not everything:
        raise ValueError(f"{folder}: no images in folders, one folder a class, of type {', '.join(IMAGE_SUFFIXES)}.")
    shape = _shape(everything, folder, resize)
    check_size(len(everything) * math.prod(shape), folder)
    parts = {split: _examples(files, shape, name) for split, files in found.items() if files}
    return joined(parts)


def _folders(folder: Path) -> list[Path]:
    return sorted(inner for inner in folder.iterdir() if inner.is_dir() and not inner.name.startswith((".", "__")))


def _files(folder: Path) -> list[tuple[Path, str]]:
    """Return the images of all classes with their classes."""
    return [
        (path, inner.name)
        for inner in _folders(folder)
        for path in sorted(inner.rglob("*"))
        if path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith(".") and path.is_file()  # a pipe would never end
    ]


def _shape(paths: Sequence[Path], folder: Path, resize: int | tuple[int, int] | None) -> tuple[int, int, int]:
    """Return the channels, height and width that all images shall have; one channel if all are grey."""
    sizes: dict[tuple[int, int], Path] = {}
    channels = 1
    for path in paths:
        with _opened(path) as image:
            check_size(4 * image.height * image.width, path)
            sizes.setdefault((image.height, image.width), path)
            channels = channels if image.mode in _GREY else 3
    if resize is not None:
        height, width = (resize, resize) if isinstance(resize, int) else resize
        return channels, height, width
    if len(sizes) > 1:
        (first, one), (second, other) = list(sizes.items())[:2]
        shown = f"{first[0]}x{first[1]} ({one.relative_to(folder)}) and {second[0]}x{second[1]} ({other.relative_to(folder)})"
        raise ValueError(f"{folder}: images must have one size, got {shown}; resize=32 makes all of them 32x32.")
    return channels, *next(iter(sizes))


def _opened(path: Path) -> Image.Image:
    try:
        with warnings.catch_warnings():  # Pillow warns of large images; how large one may be is for us to say
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            return Image.open(path)
    except Image.DecompressionBombError as error:
        raise ValueError(f"{path}: too many pixels for an image.") from error
    except (UnidentifiedImageError, *_UNREADABLE) as error:
        raise ValueError(f"{path}: not a readable image.") from error


def _examples(files: Sequence[tuple[Path, str]], shape: tuple[int, int, int], name: str) -> Examples:
    images = np.empty((len(files), *shape), dtype=np.uint8)
    for place, (path, _) in enumerate(files):
        images[place] = _pixels(path, shape)
    return Examples(name, images, np.array([label for _, label in files], dtype=object))


def _pixels(path: Path, shape: tuple[int, int, int]) -> Array:
    channels, height, width = shape
    try:
        with _opened(path) as stored:
            image = _as_bytes(stored) if channels == 1 else stored.convert("RGB")
            pixels = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR)).reshape(height, width, channels)
    except _UNREADABLE as error:
        raise ValueError(f"{path}: not a readable image ({shortened(str(error))}).") from error
    return np.moveaxis(pixels, 2, 0)


def _as_bytes(image: Image.Image) -> Image.Image:
    """Return grey levels from 0 to 255; deep ones lose their lower byte, which clipping would do far worse to."""
    if image.mode in ("I", "I;16"):
        return Image.fromarray((np.asarray(image).astype(np.int64) // 256).clip(0, 255).astype(np.uint8))
    return image.convert("L")
