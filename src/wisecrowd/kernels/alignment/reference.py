"""Edit distances and alignments of texts as codes of words: the specification.

The alignment of a text depends on all before it, so it is in Python; large data run compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.edit_distance import edit_distances as edit_distances

Ints = NDArray[np.int64]
Codes = NDArray[np.integer[Any]]

Slots = tuple[Ints, Ints, Ints, Ints, NDArray[np.bool_]]

PAIR, SKIP, NEW = 0, 1, 2  # a word in a slot, a slot without a word, a word in a new slot
MARGIN = 32  # first limit of costs
WHOLE = 1 << 22  # cells of a table whose moves are all in memory
FAR = 1 << 40  # cost outside of the band


def slots_of_words(words: Codes, pointer: Ints, order: Ints, indptr: Ints) -> tuple[Ints, Ints]:
    """Align the texts of each task, one after the other, into a sequence of slots.

    A word joins a slot that holds it already at no cost, and another one at the cost of 1. A slot
    without a word of the text costs 1, or nothing if an earlier text has none there. A new slot
    costs 1.

    Parameters
    ----------
    words, pointer
        Codes of words, one text after the other: text ``e`` is
        ``words[pointer[e]:pointer[e + 1]]``.
    order : (n_aligned,)
        The texts, task by task, each task in the order of alignment.
    indptr : (n_tasks + 1,)
        Row pointers of the tasks into ``order``.

    Returns
    -------
    slot : (n_words,)
        Place of the slot of each word in the sequence of its task; -1 for texts not in ``order``.
    n_slots : (n_tasks,)
    """
    slot = np.full(len(words), -1, dtype=np.int64)
    n_slots = np.zeros(len(indptr) - 1, dtype=np.int64)
    for i in range(len(indptr) - 1):
        texts = order[indptr[i] : indptr[i + 1]]
        if len(texts):
            n_slots[i] = _aligned(words, pointer, texts, slot)
    return slot, n_slots


def _aligned(words: Codes, pointer: Ints, texts: Ints, slot: Ints) -> int:
    """Fill in the slots of the words of one task and return their number."""
    size = 0
    for e in texts:
        size += pointer[e + 1] - pointer[e]
    chain = np.zeros(size, dtype=np.int64)  # slots by their place, numbered as they were made
    spare = np.zeros(size, dtype=np.int64)
    head = np.full(size, -1, dtype=np.int64)  # the last word that a slot got
    before = np.full(size, -1, dtype=np.int64)  # the word that the same slot got before
    held = np.zeros(size, dtype=np.int64)
    optional = np.zeros(size, dtype=np.bool_)  # slots without a word of some text
    n, used, made = 0, 0, 0
    for k in range(len(texts)):
        a = pointer[texts[k]]
        m = pointer[texts[k] + 1] - a
        text = words[a : a + m]
        slots = (chain, head, before, held, optional)
        n, made = _join(text, n, slots, spare, made, slot[a : a + m], k > 0)
        for w in range(m):
            own = slot[a + w]
            if not _holds(own, text[w], head, before, held):
                held[used], before[used] = text[w], head[own]
                head[own] = used
                used += 1
    rank = np.zeros(size, dtype=np.int64)
    for place in range(n):
        rank[chain[place]] = place
    for e in texts:
        for w in range(pointer[e], pointer[e + 1]):
            slot[w] = rank[slot[w]]
    return n


def _holds(own: int, word: int, head: Ints, before: Ints, held: Ints) -> bool:
    """Return whether a slot holds a word."""
    at = head[own]
    while at >= 0 and held[at] != word:
        at = before[at]
    return bool(at >= 0)


def _join(
    text: Codes, n: int, slots: Slots, spare: Ints, made: int, slot: Ints, is_later: bool
) -> tuple[int, int]:
    """Give the words of a text their slots; return the numbers of slots in use and ever made.

    Costs are computed in a band of the table, which is widened until the least cost shows that it
    holds every best way. Of a large table some rows are kept, and the moves between them are
    computed again on the way back, so that memory does not grow with the square of the words.
    """
    chain, optional, m = slots[0], slots[4], len(text)
    required = np.zeros(n + 1, dtype=np.int64)  # slots so far that cost something to skip
    for s in range(n):
        required[s + 1] = required[s] + (not optional[chain[s]])
    block = max(n, 1) if n * m <= WHOLE else int(np.sqrt(n)) + 1
    kept = np.zeros((n // block + 1, m + 1), dtype=np.int64)
    moves = np.zeros((block, m + 1), dtype=np.int8)
    limit = max(MARGIN, m - n, required[n] - m)
    while True:
        cost = _fill(text, n, slots, required, limit, kept, moves)
        if cost <= limit:
            break
        limit *= 2
    s, t, place = n, m, len(spare)
    for first in range(n - 1 - (n - 1) % block, -1, -block):
        if block < n:
            _rows(text, n, slots, required, limit, first, kept[first // block], moves)
        while s > first:
            how, place = moves[s - first - 1, t], place - 1
            if how == NEW:
                spare[place], slot[t - 1] = made, made
                optional[made] = is_later
                made, t = made + 1, t - 1
                continue
            s -= 1
            spare[place] = chain[s]
            if how == SKIP:
                optional[chain[s]] = True
            else:
                slot[t - 1] = chain[s]
                t -= 1
    while t > 0:  # words before the first slot
        place -= 1
        spare[place], slot[t - 1] = made, made
        optional[made] = is_later
        made, t = made + 1, t - 1
    for k in range(place, len(spare)):
        chain[k - place] = spare[k]
    return len(spare) - place, made


def _band(s: int, n: int, m: int, required: Ints, limit: int) -> tuple[int, int]:
    """Return the first and last column of a row that a way of at most this cost may enter."""
    low = max(0, required[s] - limit, m - (n - s) - limit)
    return low, min(m, s + limit, m - required[n] + required[s] + limit)


def _fill(
    text: Codes, n: int, slots: Slots, required: Ints, limit: int, kept: Ints,
    moves: NDArray[np.int8],
) -> int:  # fmt: skip
    """Return the least cost of a way in the band, and fill in the rows that are kept."""
    block, m = len(moves), len(text)
    row = np.arange(m + 1)
    for first in range(0, n, block):
        kept[first // block] = row
        _rows(text, n, slots, required, limit, first, row, moves)
    return int(row[m])


def _rows(
    text: Codes, n: int, slots: Slots, required: Ints, limit: int, first: int, row: Ints,
    moves: NDArray[np.int8],
) -> None:  # fmt: skip
    """Go on from a row of least costs to those of a block of slots, and fill in their moves.

    ``row`` has the least costs of aligning the first words with the ``first`` slots, and then with
    those of the block.
    """
    chain, head, before, held, optional = slots
    m = len(text)
    _, last = _band(first, n, m, required, limit)
    for s in range(first + 1, min(first + len(moves), n) + 1):
        own, move = chain[s - 1], moves[s - first - 1]
        skip = 0 if optional[own] else 1
        low, high = _band(s, n, m, required, limit)
        if high > last:
            row[high] = FAR
        last, diagonal = high, row[max(low - 1, 0)]
        if low == 0:
            row[0], move[0] = row[0] + skip, SKIP
        else:
            row[low - 1] = FAR
        for t in range(max(low, 1), high + 1):
            best, how = diagonal + (not _holds(own, text[t - 1], head, before, held)), PAIR
            diagonal = row[t]
            if diagonal + skip < best:
                best, how = diagonal + skip, SKIP
            if row[t - 1] + 1 < best:
                best, how = row[t - 1] + 1, NEW
            row[t], move[t] = best, how


HELPERS = (_aligned, _holds, _join, _band, _fill, _rows)
