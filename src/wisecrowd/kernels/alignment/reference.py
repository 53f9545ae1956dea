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

PAIR, SKIP, NEW = 0, 1, 2  # a word in a slot, a slot without a word, a word in a new slot


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
    size, longest = 0, 0
    for e in texts:
        size += pointer[e + 1] - pointer[e]
        longest = max(longest, pointer[e + 1] - pointer[e])
    chain = np.zeros(size, dtype=np.int64)  # slots by their place, numbered as they were made
    spare = np.zeros(size, dtype=np.int64)
    head = np.full(size, -1, dtype=np.int64)  # the last word that joined each slot
    before = np.full(size, -1, dtype=np.int64)  # the word that joined the same slot before
    held = np.zeros(size, dtype=np.int64)
    optional = np.zeros(size, dtype=np.bool_)  # slots without a word of some text
    cost = np.zeros((size + 1, longest + 1), dtype=np.int64)
    move = np.zeros((size + 1, longest + 1), dtype=np.int8)
    n, used, made = 0, 0, 0
    for k in range(len(texts)):
        a = pointer[texts[k]]
        m = pointer[texts[k] + 1] - a
        text = words[a : a + m]
        _fill(text, chain[:n], head, before, held, optional, cost, move)
        n, made = _follow(move, n, m, chain, spare, optional, made, slot[a : a + m], k)
        for w in range(m):
            own = slot[a + w]
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


def _fill(
    text: Codes, chain: Ints, head: Ints, before: Ints, held: Ints,
    optional: NDArray[np.bool_], cost: Ints, move: NDArray[np.int8],
) -> None:  # fmt: skip
    """Fill in the least costs of aligning the first words with the first slots."""
    for t in range(len(text) + 1):
        cost[0, t], move[0, t] = t, NEW
    for s in range(1, len(chain) + 1):
        own = chain[s - 1]
        skip = 0 if optional[own] else 1
        cost[s, 0], move[s, 0] = cost[s - 1, 0] + skip, SKIP
        for t in range(1, len(text) + 1):
            at = head[own]
            while at >= 0 and held[at] != text[t - 1]:
                at = before[at]
            best, how = cost[s - 1, t - 1] + (at < 0), PAIR
            if cost[s - 1, t] + skip < best:
                best, how = cost[s - 1, t] + skip, SKIP
            if cost[s, t - 1] + 1 < best:
                best, how = cost[s, t - 1] + 1, NEW
            cost[s, t], move[s, t] = best, how


def _follow(
    move: NDArray[np.int8], n: int, m: int, chain: Ints, spare: Ints,
    optional: NDArray[np.bool_], made: int, slot: Ints, n_before: int,
) -> tuple[int, int]:  # fmt: skip
    """Give the words of a text their slots; return the numbers of slots in use and ever made."""
    s, t, place = n, m, len(spare)
    while s > 0 or t > 0:
        how, place = move[s, t], place - 1
        if how == NEW:
            spare[place], slot[t - 1] = made, made
            optional[made] = n_before > 0
            made, t = made + 1, t - 1
        else:
            s -= 1
            spare[place] = chain[s]
            if how == SKIP:
                optional[chain[s]] = True
            else:
                slot[t - 1] = chain[s]
                t -= 1
    for k in range(place, len(spare)):
        chain[k - place] = spare[k]
    return len(spare) - place, made
