"""Edit distances by hand and by both kernels; slots of aligned texts."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from wisecrowd.kinds.texts import kernels as reference
from wisecrowd.kinds.texts import kernels_fast


def random_texts(n=60, seed=0, longest=9, words=5):
    rng = np.random.default_rng(seed)
    size = rng.integers(0, longest, n)
    return rng.integers(0, words, size.sum(), dtype=np.int32), np.append(0, np.cumsum(size)).astype(
        np.int64
    )


def by_hand(one, two):
    """Return the edit distance from its recursion."""
    if not len(one) or not len(two):
        return max(len(one), len(two))
    row = list(range(len(two) + 1))
    for s, a in enumerate(one, 1):
        new = [s]
        for t, b in enumerate(two, 1):
            new.append(min(row[t - 1] + (a != b), row[t] + 1, new[t - 1] + 1))
        row = new
    return row[-1]


@pytest.mark.parametrize("cells", [1 << 20, 30])
def test_edit_distances_are_those_of_the_recursion(monkeypatch, cells):
    monkeypatch.setattr(reference, "CELLS", cells)  # many batches, or one
    words, pointer = random_texts()
    first, second = np.divmod(np.arange(3600), 60)
    texts = [words[pointer[e] : pointer[e + 1]] for e in range(60)]
    wanted = [by_hand(texts[a], texts[b]) for a, b in zip(first, second, strict=True)]
    assert reference.edit_distances(words, pointer, first, second).tolist() == wanted
    assert kernels_fast.edit_distances(words, pointer, first, second).tolist() == wanted


def test_known_distances():
    words, pointer = np.array([1, 2, 3, 2, 3, 4]), np.array([0, 3, 6, 6])
    first, second = np.array([0, 0, 2]), np.array([1, 2, 2])
    assert reference.edit_distances(words, pointer, first, second).tolist() == [2, 3, 0]


@pytest.mark.parametrize("kernels", [reference, kernels_fast])
def test_slots_of_a_small_task(kernels):
    # a b c, then a c, then a x c d: b is optional, x joins its slot, d has a new one.
    words, pointer = np.array([0, 1, 2, 0, 2, 0, 9, 2, 3], np.int32), np.array([0, 3, 5, 9])
    slot, n_slots = kernels.slots_of_words(words, pointer, np.arange(3), np.array([0, 3]))
    assert slot.tolist() == [0, 1, 2, 0, 2, 0, 1, 2, 3]
    assert n_slots.tolist() == [4]


def least_cost(slots, text):
    """Return the least cost of aligning a text with slots, each a set of words; None is nothing."""
    if not slots:
        return len(text)
    first, rest = slots[0], slots[1:]
    costs = [least_cost(rest, text) + (None not in first)]
    if text:
        costs.append(least_cost(rest, text[1:]) + (text[0] not in first))
        costs.append(least_cost(slots, text[1:]) + 1)
    return min(costs)


def slots_of(words, pointer, slot, n_slots, texts):
    """Return the words of each slot, and None where a text has none."""
    found = [set() for _ in range(n_slots)]
    for e in texts:
        own = slice(pointer[e], pointer[e + 1])
        given = dict(zip(slot[own].tolist(), words[own].tolist(), strict=True))
        for place, held in enumerate(found):
            held.add(given.get(place))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_a_text_joins_the_slots_at_the_least_cost(seed):
    words, pointer = random_texts(3, seed, 5, 4)
    before, n_before = reference.slots_of_words(words, pointer, np.arange(2), np.array([0, 2]))
    known = slots_of(words, pointer, before, int(n_before[0]), [0, 1])
    slot, _ = reference.slots_of_words(words, pointer, np.arange(3), np.array([0, 3]))
    places = sorted(set(slot[: pointer[2]].tolist()))  # slots of the first two texts
    assert len(places) == len(known)
    text = words[pointer[2] :].tolist()
    given = dict(zip(slot[pointer[2] :].tolist(), text, strict=True))
    cost = sum(given.get(place) not in held for place, held in zip(places, known, strict=True))
    cost += len(set(given) - set(places))
    assert cost == least_cost(known, text)


def test_kernels_agree_and_keep_the_order_of_words():
    words, pointer = random_texts(80, 3, 12, 6)
    indptr = np.append(np.arange(0, 80, 4), [80, 80]).astype(np.int64)
    order = np.random.default_rng(1).permutation(80).reshape(20, 4)
    order = np.sort(order.ravel()).reshape(20, 4)[:, ::-1].ravel().astype(np.int64)
    found = reference.slots_of_words(words, pointer, order, indptr)
    again = kernels_fast.slots_of_words(words, pointer, order, indptr)
    for one, two in zip(found, again, strict=True):
        assert one.tolist() == two.tolist()
    slot, n_slots = found
    assert n_slots[-1] == 0
    for e in range(80):
        own = slot[pointer[e] : pointer[e + 1]]
        assert (np.diff(own) > 0).all()
        assert (
            own < n_slots[np.searchsorted(indptr, np.flatnonzero(order == e)[0], "right") - 1]
        ).all()


def similar_texts(n=12, longest=260, share=0.1, seed=0):
    """Return texts of tasks of four: copies of one with changed, lost and added words."""
    rng, texts = np.random.default_rng(seed), []
    for _ in range(n // 4):
        truth = rng.integers(0, 30, int(rng.integers(1, longest)))
        for _ in range(4):
            own = np.where(rng.random(len(truth)) < share, rng.integers(0, 30, len(truth)), truth)
            own = own[rng.random(len(truth)) > share]
            texts.append(np.insert(own, rng.integers(0, len(own) + 1, int(9 * share)), 99))
    pointer = np.append(0, np.cumsum([len(text) for text in texts]))
    return np.concatenate(texts).astype(np.int32), pointer.astype(np.int64)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.95])
def test_a_band_of_the_table_gives_the_distances_of_the_whole(monkeypatch, share):
    words, pointer = similar_texts(share=share)
    first, second = np.divmod(np.arange(144), 12)
    texts = [words[pointer[e] : pointer[e + 1]].tolist() for e in range(12)]
    wanted = [by_hand(texts[a], texts[b]) for a, b in zip(first, second, strict=True)]
    assert kernels_fast.edit_distances(words, pointer, first, second).tolist() == wanted
    for margin in (1, 5, 32):
        monkeypatch.setattr(reference, "FIRST_WIDTH", margin)
        assert reference.edit_distances(words, pointer, first, second).tolist() == wanted


@pytest.mark.parametrize("share", [0.02, 0.3, 0.95])
def test_a_band_of_the_table_gives_the_slots_of_the_whole(monkeypatch, share):
    words, pointer = similar_texts(share=share, seed=1)
    order, indptr = np.arange(12), np.array([0, 4, 8, 12])
    monkeypatch.setattr(reference, "MARGIN", 10**6)
    wanted, n_wanted = reference.slots_of_words(words, pointer, order, indptr)
    for margin in (1, 5, 32):
        monkeypatch.setattr(reference, "MARGIN", margin)
        slot, n_slots = reference.slots_of_words(words, pointer, order, indptr)
        assert slot.tolist() == wanted.tolist()
        assert n_slots.tolist() == n_wanted.tolist()
    assert kernels_fast.slots_of_words(words, pointer, order, indptr)[0].tolist() == wanted.tolist()


def test_large_tables_are_not_kept(monkeypatch):
    words, pointer = similar_texts(share=0.1, seed=2)
    order, indptr = np.arange(12), np.array([0, 4, 8, 12])
    wanted = reference.slots_of_words(words, pointer, order, indptr)[0].tolist()
    monkeypatch.setattr(reference, "WHOLE", 100)
    assert reference.slots_of_words(words, pointer, order, indptr)[0].tolist() == wanted


def test_memory_of_an_alignment_is_not_quadratic():
    texts = np.tile(np.arange(4000, dtype=np.int32), 2)
    texts[[5, 6000]] = 9999
    tracemalloc.start()
    found, n_slots = reference.slots_of_words(
        texts, np.array([0, 4000, 8000]), np.arange(2), np.array([0, 2])
    )
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_slots.tolist() == [4000]
    assert np.array_equal(found[:4000], found[4000:])
    assert used < 4000 * 4000
