"""Vectors of texts, computed once: in pieces that are kept by content, so that a computation that was killed goes on."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from lossmith.cache_folder import cache_folder
from lossmith.encoders.encoder import Encoder, load_encoder, padded, token_lists
from lossmith.encoders.model_folder import ModelFolder

__all__ = ["OnTexts", "cache_folder", "text_features"]

OnTexts = Callable[[int, int], object]
"""Called before each piece that has to be computed, and at the end, with how many texts have their vectors, and of how many."""

TEXTS_AT_ONCE = 1 << 10
"""Texts of a piece, which is one file of the cache."""


def text_features(
    folder: ModelFolder, texts: Sequence[str], cache: Path, on_texts: OnTexts | None = None, device: str | torch.device = "cpu"
) -> np.ndarray:
    """Return a vector for each text, from the cache as far as it has them.

    Args:
        folder: The model.
        texts: Any texts; equal ones are computed once.
        cache: Where vectors are kept, in a folder for each model.
        on_texts: Called as pieces are computed.
        device: What computes them.

    Returns:
        ``(texts, d)`` in single precision.

    Raises:
        ModuleNotFoundError: If transformers is not installed.
        OSError: If the cache cannot be written to.
        ValueError: If the model cannot be used.
    """
    # Texts of like length fill one another's batches up least; the order depends on the texts alone, and so do the pieces.
    # The longest come first: if they need more memory than there is, that shows at once, and time only gets better.
    distinct = sorted(set(texts), key=lambda text: (-len(text), text))
    kept = _Kept(folder, cache / "features" / folder.digest(), torch.device(device))
    say = on_texts or _ignore
    found, done, computed = [], 0, False
    for piece in _pieces(distinct):
        vectors = kept.read(piece)
        if vectors is None:
            say(done, len(distinct))
            vectors, computed = kept.compute(piece), True
        found.append(vectors)
        done += len(piece)
    if computed:
        say(done, done)
    places = {text: place for place, text in enumerate(distinct)}
    whole: np.ndarray = np.concatenate(found)[[places[text] for text in texts]]
    return whole


def _ignore(done: int, total: int) -> None: ...


def _pieces(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        yield texts[start : start + TEXTS_AT_ONCE]


class _Kept:
    """The pieces of one model that are on disk, and those that will be."""

    def __init__(self, folder: ModelFolder, place: Path, device: torch.device) -> None:
        self.folder = folder
        self.place = place
        self.device = device

    @cached_property
    def encoder(self) -> Encoder:
        """The network, loaded when the first piece is missing."""
        return load_encoder(self.folder).to(self.device)

    def read(self, texts: Sequence[str]) -> np.ndarray | None:
        """Return the vectors of a piece, or None where they are not there."""
        return _read(self._file(texts), len(texts))

    def compute(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of a piece, which are kept from now on."""
        with torch.no_grad():
            tokens = padded(token_lists(self.folder, texts)).to(self.device)
            vectors: np.ndarray = self.encoder(tokens).cpu().numpy()
        if not np.isfinite(vectors).all():
            raise ValueError(f"encoder: the model in {self.folder.path} must give finite numbers, got NaN or infinity.")
        _write(self._file(texts), vectors)
        return vectors

    def _file(self, texts: Sequence[str]) -> Path:
        return self.place / f"{_digest(texts)}.npy"


def _digest(texts: Sequence[str]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "big"))
        digest.update(content)
    return digest.hexdigest()


def _read(file: Path, rows: int) -> np.ndarray | None:
    """Return a piece; None where it is not there, or a disk has damaged it."""
    try:
        vectors = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    fits = vectors.ndim == 2 and len(vectors) == rows and vectors.dtype == np.float32
    return vectors if fits and np.isfinite(vectors).all() else None


def _write(file: Path, vectors: np.ndarray) -> None:
    """Write a piece whole or not at all: others may read it while this process is killed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as room:
        np.save(Path(room) / file.name, vectors)
        os.replace(Path(room) / file.name, file)
