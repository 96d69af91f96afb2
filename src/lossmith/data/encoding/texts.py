"""Texts as numbers: hashed n-grams, or words in their order."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lossmith.data.sources.examples import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["hashed_ngrams", "word_count", "word_numbers"]

_WORD = re.compile(r"\w+|[^\w\s]")
_BUCKETS = 2048
_LENGTH = 8.0
_VOCABULARY = 20_000
_LONGEST = 256
_UNKNOWN = 1  # 0 is where a text is over


def word_count(texts: Iterable[str]) -> float:
    """Return how many words a text has on average.

    Args:
        texts: Some texts.

    Returns:
        The mean; 0 without texts.
    """
    counts = [len(text.split()) for text in texts]
    return sum(counts) / max(len(counts), 1)


def hashed_ngrams(texts: Sequence[str], train: Array) -> "csr_array":
    """Return words and pairs of words, hashed into numbered buckets and weighted by how rare they are in training texts.

    Texts that do not part their words by spaces are cut into two to four characters instead. Every text is a vector of length
    8, as long as 64 standardised numbers: it neither drowns a few other columns nor drowns in them.

    Args:
        texts: All texts.
        train: The places of the training texts among them.

    Returns:
        One row a text, in single precision; sparse, for a text has a few of the buckets only.
    """
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

    words = word_count(texts[row] for row in train) >= 2
    analyzer, ngrams = ("word", (1, 2)) if words else ("char_wb", (2, 4))
    counts = HashingVectorizer(n_features=_BUCKETS, analyzer=analyzer, ngram_range=ngrams, norm=None)
    hashed = counts.transform(texts)
    weighted = TfidfTransformer(sublinear_tf=False).fit(abs(hashed[train])).transform(hashed)
    return csr_array((weighted * _LENGTH).astype(np.float32))


def word_numbers(texts: Sequence[str], train: Array) -> Array:
    """Return the words of each text as numbers, 0 where the text is over.

    Words that come twice or more in training texts have numbers of their own from 2 on, the most frequent ones first; all
    others are 1. Texts are cut at a length that covers 95 % of the training texts.

    Args:
        texts: All texts.
        train: The places of the training texts among them.

    Returns:
        Numbers, ``(texts, length)``.
    """
    words = [_WORD.findall(text.lower()) for text in texts]
    counts = Counter(word for row in train for word in words[row])
    frequent = [word for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if count > 1]
    number = {word: place + _UNKNOWN + 1 for place, word in enumerate(frequent[:_VOCABULARY])}
    length = int(np.clip(np.quantile([len(words[row]) for row in train], 0.95), 1, _LONGEST))
    numbers = np.zeros((len(texts), length), dtype=np.int64)
    for row, text in enumerate(words):
        kept = [number.get(word, _UNKNOWN) for word in text[:length]] or [_UNKNOWN]
        numbers[row, : len(kept)] = kept
    return numbers
