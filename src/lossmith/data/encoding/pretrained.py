"""Texts as a pretrained encoder reads them: vectors that are computed once, or tokens for an encoder that is trained further."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lossmith.data.sources.examples import Array
from lossmith.encoders.encoder import padded, token_lists
from lossmith.encoders.model_folder import ModelFolder, open_model_folder
from lossmith.encoders.text_features import OnTexts, cache_folder, text_features
from lossmith.expressions.quotes import quote

__all__ = ["TextEncoding", "text_encoding"]

_ALIKE = 1e-6  # deviation of vectors that comes from rounding


@dataclass(frozen=True)
class TextEncoding:
    """Which encoder reads the texts, and how."""

    folder: ModelFolder
    fine_tune: bool
    """Whether it is trained further, and hence gets tokens."""
    cache: Path
    on_texts: OnTexts | None = None
    device: str | torch.device = "cpu"
    """What computes vectors."""

    def vectors(self, texts: Sequence[str], train: Array) -> Array:
        """Return a vector for each text, with mean 0 and deviation 1 over all numbers of the training rows.

        They have one scale: encoders have numbers that hardly vary, and made as large as others those would be noise.

        Args:
            texts: All texts.
            train: The places of the training texts among them.

        Returns:
            ``(texts, d)`` in single precision.

        Raises:
            ValueError: If the encoder takes all training texts for the same.
        """
        vectors = text_features(self.folder, texts, self.cache, self.on_texts, self.device)
        vectors -= vectors[train].mean(0, dtype=np.float64).astype(np.float32)
        deviation = np.sqrt(np.mean(np.square(vectors[train], dtype=np.float64)))
        if not deviation > _ALIKE:
            raise ValueError(f"encoder: the model in {self.folder.path} gives all training texts the same vector.")
        vectors /= deviation
        return vectors

    def tokens(self, texts: Sequence[str]) -> Array:
        """Return the tokens of each text, 0 where the text is over.

        Args:
            texts: All texts.

        Returns:
            Whole numbers, ``(texts, length)``.
        """
        return padded(token_lists(self.folder, texts)).numpy()


def text_encoding(
    encoder: Any, fine_tune: Any, cache: Any, on_texts: OnTexts | None = None, device: str | torch.device = "cpu"
) -> TextEncoding | None:
    """Return how texts are encoded, from what the user gave, or None where no encoder was.

    Args:
        encoder: The folder of a model.
        fine_tune: Whether it is trained further.
        cache: The folder where vectors are kept.
        on_texts: Called as vectors are computed.
        device: What computes them.

    Returns:
        The encoding, whose folder holds all that is needed.

    Raises:
        TypeError: If an argument is of a type that is never right.
        ValueError: If the folder cannot be used, or there is none to train further.
    """
    for name, value in (("encoder", encoder), ("cache", cache)):
        if value is not None and not isinstance(value, str | Path):
            raise TypeError(f"load_data: {name} must be the path of a folder, got {quote(value)}.")
    if encoder is None:
        if fine_tune:
            raise ValueError("load_data: fine_tune needs an encoder to train further, got none.")
        return None
    return TextEncoding(open_model_folder(encoder), bool(fine_tune), cache_folder(cache), on_texts, device)
