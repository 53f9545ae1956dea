"""Edit distances and alignments of texts as codes of words: the specification.

Edit distances are those of many pairs of texts at once. The alignment of a text depends on all
before it, so it is in Python; large data run compiled.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Ints, Longs

Slots = tuple[Longs, Longs, Longs, Longs, NDArray[np.bool_]]

FIRST_WIDTH = 32  # words, the first width of the band of edit costs that is computed
CELLS = 1 << 20  # entries of a row of costs of all pairs that are compared at once
FAR = 1 << 40  # cost of what is outside of the band
PAIR, SKIP, NEW = 0, 1, 2  # a word in a slot, a slot without a word, a word in a new slot
MARGIN = 32  # first limit of the costs of an alignment
WHOLE = 1 << 22  # cells of a table whose moves are all in memory


def edit_distances(words: Ints, pointer: Longs, first: Longs, second: Longs) -> Longs:
    """Return the least numbers of words to change, insert or remove, one per pair of texts.

    Parameters
    ----------
    words : (n_words,)
        Ints of words, one text after the other.
    pointer : (n_texts + 1,)
        Text ``e`` is ``words[pointer[e]:pointer[e + 1]]``.
    first, second : (n_pairs,)
        Numbers of the texts to compare.

    Examples
    --------
    >>> words, pointer = np.array([3, 5, 7, 3, 7, 8]), np.array([0, 3, 6, 6])
    >>> edit_distances(words, pointer, np.array([0, 0]), np.array([1, 2]))
    array([2, 3])
    """
    length = np.diff(pointer)
    swap = length[first] > length[second]
    short, long = np.where(swap, second, first), np.where(swap, first, second)
    found = np.zeros(len(first), dtype=np.int64)
    order, margin = np.argsort(length[long], kind="stable"), FIRST_WIDTH
    while len(order):
        rest = []
        for rows in _batches(order, length[long[order]] + 1):
            found[rows], exact = _batch(words, pointer, short[rows], long[rows], margin)
            rest.append(rows[~exact])
        order, margin = np.concatenate(rest), 4 * margin
    return found


def _batches(order: Longs, width: Longs) -> Iterator[Longs]:
    """Yield pairs of similar width together; widths are ascending."""
    start = 0
    while start < len(order):
        size = max(1, int(CELLS // width[start]))
        end = int(min(start + size, np.searchsorted(width, 2 * width[start] + 8, side="right")))
        end = max(end, start + 1)
        yield order[start:end]
        start = end


def _batch(
    words: Ints, pointer: Longs, short: Longs, long: Longs, margin: int
) -> tuple[Longs, NDArray[np.bool_]]:
    """Return the distances of some pairs, and whether they are exact.

    A way through the table of costs that goes on by more than ``margin`` words in one text alone,
    beyond the difference of the lengths, costs more than ``2 * margin`` and that difference. So a
    band of the table is enough for a smaller distance.
    """
    n, m = np.diff(pointer)[short], np.diff(pointer)[long]
    apart = m - n
    if 2 * margin + int(apart.max()) >= int(m.max()):
        return _whole_table(words, pointer, short, long), np.ones(len(n), dtype=bool)
    found = _banded(words, pointer, short, long, margin)
    return found, found <= 2 * margin + apart


def _whole_table(words: Ints, pointer: Longs, short: Longs, long: Longs) -> Longs:
    """Return the distances; the table of costs has one row per word of ``short``."""
    n, m = np.diff(pointer)[short], np.diff(pointer)[long]
    columns = np.arange(int(m.max()))
    at = np.minimum(pointer[long][:, None] + columns, max(len(words) - 1, 0))
    other = words[at] if len(words) else np.zeros(at.shape, np.int64)
    step = np.arange(len(columns) + 1)
    row = np.tile(step, (len(n), 1))
    for s in range(1, int(n.max(initial=0)) + 1):
        own = words[np.minimum(pointer[short] + s - 1, len(words) - 1)]
        new = row + 1
        np.minimum(new[:, 1:], row[:, :-1] + (own[:, None] != other), out=new[:, 1:])
        new = np.minimum.accumulate(new - step, axis=1) + step  # inserted words
        row = np.where((s <= n)[:, None], new, row)
    return np.asarray(row[np.arange(len(n)), m])


def _banded(words: Ints, pointer: Longs, short: Longs, long: Longs, margin: int) -> Longs:
    """Return the least costs of ways inside of a band, whose columns move on with the rows."""
    n, m = np.diff(pointer)[short], np.diff(pointer)[long]
    step = np.arange(-margin, int((m - n).max()) + margin + 1)  # place in `long` minus the row
    row = np.tile(np.where(step >= 0, step, FAR), (len(n), 1))
    for s in range(1, int(n.max()) + 1):
        own = words[np.minimum(pointer[short] + s - 1, len(words) - 1)]
        at = pointer[long][:, None] + (s - 1 + step)
        new = row + (own[:, None] != words[np.clip(at, 0, len(words) - 1)])
        new[:, s + step < 1] = FAR
        np.minimum(new[:, :-1], row[:, 1:] + 1, out=new[:, :-1])  # removed words
        new = np.minimum.accumulate(new - step, axis=1) + step  # inserted words
        row = np.where((s <= n)[:, None], new, row)
    return np.asarray(row[np.arange(len(n)), m - n + margin])


# ------------------------------------------------------------------------------------ alignment


def slots_of_words(words: Ints, pointer: Longs, order: Longs, indptr: Longs) -> tuple[Longs, Longs]:
    """Align the texts of each task, one after the other, into a sequence of slots.

    A word joins a slot that holds it already at no cost, and another one at the cost of 1. A slot
    without a word of the text costs 1, or nothing if an earlier text has none there. A new slot
    costs 1.

    Parameters
    ----------
    words, pointer
        Ints of words, one text after the other: text ``e`` is
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


def _aligned(words: Ints, pointer: Longs, texts: Longs, slot: Longs) -> int:
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


def _holds(own: int, word: int, head: Longs, before: Longs, held: Longs) -> bool:
    """Return whether a slot holds a word."""
    at = head[own]
    while at >= 0 and held[at] != word:
        at = before[at]
    return bool(at >= 0)


def _join(
    text: Ints, n: int, slots: Slots, spare: Longs, made: int, slot: Longs, is_later: bool
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


def _band(s: int, n: int, m: int, required: Longs, limit: int) -> tuple[int, int]:
    """Return the first and last column of a row that a way of at most this cost may enter."""
    low = max(0, required[s] - limit, m - (n - s) - limit)
    return low, min(m, s + limit, m - required[n] + required[s] + limit)


def _fill(
    text: Ints, n: int, slots: Slots, required: Longs, limit: int, kept: Longs,
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
    text: Ints, n: int, slots: Slots, required: Longs, limit: int, first: int, row: Longs,
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
