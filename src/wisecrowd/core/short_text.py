"""Codes of short text that repeats itself, such as labels, by one multiplication per row.

Text of at most eight bytes fits into a machine word. Among few distinct words a multiplier is found
that sends each to a place of its own in a small table; every row is then looked up and compared,
which is several times faster than a general hash table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.numbered import first_words, text_lengths

_MOST = 256
_TABLE_BITS = 14
_TRIALS = 50


class Words(NamedTuple):
    """Text as machine words, zero bytes after its end, and its lengths: equal only together."""

    words: NDArray[np.uint64]
    lengths: NDArray[np.integer[Any]]


def short_words(chunk: Any) -> Words | None:
    """Return an Arrow text array as words; None if a text is null or longer than eight bytes."""
    if chunk.null_count or len(chunk) == 0:
        return None
    lengths = text_lengths(chunk)
    if lengths.max() > 8:
        return None
    return Words(first_words(chunk, 0), lengths)


class WordTable:
    """Codes of known words."""

    def __init__(self, known: Words) -> None:
        self._known = known
        self._places = _find_places(known.words)

    def codes(self, asked: Words) -> NDArray[np.int32] | None:
        """Return the code of each word, or None if one is unknown."""
        if self._places is None:
            return None
        multiplier, code_at = self._places
        codes = code_at[_place(asked.words, multiplier)]
        if not np.array_equal(self._known.words[codes], asked.words):
            return None
        if not np.array_equal(self._known.lengths[codes], asked.lengths):
            return None
        return codes


def _place(words: NDArray[np.uint64], multiplier: np.uint64) -> NDArray[np.int64]:
    product = words * multiplier
    product >>= np.uint64(64 - _TABLE_BITS)
    return product.view(np.int64)


def _find_places(words: NDArray[np.uint64]) -> tuple[np.uint64, NDArray[np.int32]] | None:
    """Return a multiplier that tells all words apart and the code at each place, if there is one.

    Words that differ in length only (by trailing zero bytes) share a place, and there is none.
    """
    if not 0 < len(words) <= _MOST:
        return None
    rng = np.random.default_rng(0)
    for multiplier in rng.integers(1, 2**64 - 1, _TRIALS, dtype=np.uint64):
        multiplier |= np.uint64(1)
        places = _place(words, multiplier)
        if len(np.unique(places)) == len(words):
            code_at = np.zeros(1 << _TABLE_BITS, dtype=np.int32)
            code_at[places] = np.arange(len(words), dtype=np.int32)
            return multiplier, code_at
    return None
