"""Texts as numbers: weighted n-grams of words and characters, or words in their order."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from lossmith.data.sources.examples import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["characters_of_text", "weighted_ngrams", "word_count", "word_numbers", "words_of_text"]

_WORD = re.compile(r"\w+|[^\w\s]")
_CHARACTERS = (2, 3, 4)
_MOST_TERMS = 10_000
"""Of words and of characters each: beyond that neither a linear SVM nor a network gains on real texts."""
_LONGEST_TEXT = 2_000  # characters: a longer one costs more and says hardly more
_FITTED_TEXTS = 20_000  # from which terms are chosen and weighted
_TEXTS_AT_ONCE = 5_000
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


def weighted_ngrams(texts: Sequence[str], train: Array) -> "csr_array":
    """Return TF-IDF of words, of pairs of words, and of two to four characters within words.

    Terms are the 10,000 of words and the 10,000 of characters that come most often in training texts, twice at least where
    there are any such; their weights are fitted there, too. Counts enter by their logarithm. Either part of a text has length 1.

    Args:
        texts: All texts, of which the first 2,000 characters count.
        train: The places of the training texts among them; terms are chosen from 20,000 of these.

    Returns:
        One row a text, in single precision.
    """
    from scipy.sparse import csr_array, hstack, vstack

    step = -(-len(train) // _FITTED_TEXTS)
    fitted = [texts[row] for row in train[::step]]
    vectorizers = [_fitted_vectorizer(fitted, terms_of) for terms_of in (words_of_text, characters_of_text)]
    blocks = (texts[start : start + _TEXTS_AT_ONCE] for start in range(0, len(texts), _TEXTS_AT_ONCE))
    # Block by block, so that there is never more than one other copy of all entries.
    rows = (hstack([own.transform(block) for own in vectorizers], format="csr", dtype=np.float32) for block in blocks)
    return csr_array(vstack(list(rows), format="csr"))


def _fitted_vectorizer(texts: Sequence[str], terms_of: Callable[[str], list[str]]) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    options = {"analyzer": terms_of, "sublinear_tf": True, "max_features": _MOST_TERMS, "dtype": np.float32}
    try:
        return TfidfVectorizer(min_df=2, **options).fit(texts)
    except ValueError:  # no term comes twice: there are few texts, or all are different
        return TfidfVectorizer(**options).fit([*texts, "-"])  # and where all of them are empty, there is one term


def _beginning(text: str) -> str:
    return text[:_LONGEST_TEXT].lower()


def words_of_text(text: str) -> list[str]:
    """Return the words of a text and its pairs of words.

    Args:
        text: A text, of which the first 2,000 characters count.

    Returns:
        Terms, as often as they come.
    """
    words = _WORD.findall(_beginning(text))
    return words + [f"{first} {second}" for first, second in pairwise(words)]


def characters_of_text(text: str) -> list[str]:
    """Return two to four characters within the words of a text.

    Args:
        text: A text, of which the first 2,000 characters count.

    Returns:
        Terms, as often as they come.
    """
    return [part for word in _beginning(text).split() for part in _parts(word)]


@lru_cache(maxsize=100_000)
def _parts(word: str) -> tuple[str, ...]:
    """Return the n-grams of characters of one word, its ends marked by spaces.

    >>> _parts("of")
    (' o', 'of', 'f ', ' of', 'of ', ' of ')
    """
    whole = f" {word} "
    return tuple(whole[start : start + size] for size in _CHARACTERS for start in range(len(whole) - size + 1))


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
