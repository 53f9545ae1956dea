"""Run lengths of binary masks: pixels column by column, as in COCO, from text and back.

The run lengths of a mask ("counts") alternate between pixels outside and inside, beginning with
those outside. In canonical form only the first may be 0, so that equal masks have equal counts.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.types import Longs, Mask

Counts = NDArray[np.integer[Any]]  # run lengths
_FIRST, _BITS = 48, 5  # COCO's text: each character holds five bits, beginning with the digit 0
_MORE, _SIGN, _LOW = 32, 16, 31


class Runs(NamedTuple):
    """Intervals of pixels of several images, sorted by image and position.

    Attributes
    ----------
    image : (n,) int64
    start, end : (n,) int64
        Positions in the image, column by column; ``end`` is the one after the last.
    """

    image: Longs
    start: Longs
    end: Longs


# ------------------------------------------------------------------------------------- one mask


def canonical(counts: Longs) -> Longs:
    """Return run lengths without runs of length 0, except the first.

    Examples
    --------
    >>> canonical(np.array([2, 0, 1, 3, 0])).tolist()
    [3, 3]
    """
    inside = np.arange(len(counts)) % 2 == 1
    kept = counts > 0
    counts, inside = counts[kept], inside[kept]
    new = np.append(True, inside[1:] != inside[:-1]) if len(counts) else np.zeros(0, dtype=bool)
    merged = np.add.reduceat(counts, np.flatnonzero(new)) if len(counts) else counts
    return np.append(0, merged) if len(counts) and inside[0] else merged


def counts_of(mask: Any) -> Longs:
    """Return the run lengths of a (height, width) mask.

    Examples
    --------
    >>> counts_of([[0, 1], [1, 1]]).tolist()
    [1, 3]
    """
    pixels = np.asarray(mask, dtype=bool).ravel(order="F")
    change = np.flatnonzero(pixels[1:] != pixels[:-1]) + 1
    counts = np.diff(np.concatenate([[0], change, [len(pixels)]]))
    return np.append(0, counts) if len(pixels) and pixels[0] else counts


def dense_mask(counts: Counts, height: int, width: int) -> Mask:
    """Return the (height, width) mask with these run lengths.

    Examples
    --------
    >>> dense_mask(np.array([1, 3]), 2, 2).astype(int).tolist()
    [[0, 1], [1, 1]]
    """
    require_memory(
        3 * height * width, f"An image of {height} × {width} pixels would", "use its run lengths"
    )
    inside = np.arange(len(counts)) % 2 == 1
    return np.repeat(inside, counts).reshape((height, width), order="F")


def compressed(counts: Longs) -> str:
    """Return run lengths as COCO's text.

    Examples
    --------
    >>> compressed(np.array([6, 1, 40, 4, 5, 4, 5, 4, 21]))
    '61X13mN000`0'
    """
    value = counts.astype(np.int64)
    value[3:] -= counts[1:-2]
    # The number of characters: the first k with -2^(5k - 1) <= value < 2^(5k - 1).
    limits = np.int64(1) << (_BITS * np.arange(1, 12) - 1)
    size = 1 + np.searchsorted(limits, np.where(value < 0, -value - 1, value), side="right")
    end = np.cumsum(size)
    place = np.arange(end[-1] if len(end) else 0) - np.repeat(end - size, size)
    letters = (np.repeat(value, size) >> (_BITS * place)) & _LOW
    letters[place < np.repeat(size, size) - 1] |= _MORE
    return str((letters + _FIRST).astype(np.uint8).tobytes(), "ascii")


def decompressed(text: str) -> Longs:
    """Return the run lengths in COCO's text.

    Raises
    ------
    ValueError
        If a character cannot occur, or the text ends within a number.

    Examples
    --------
    >>> decompressed('61X13mN000`0').tolist()
    [6, 1, 40, 4, 5, 4, 5, 4, 21]
    """
    letters = np.frombuffer(text.encode("utf-8"), dtype=np.uint8).astype(np.int64) - _FIRST
    if ((letters < 0) | (letters > _MORE + _LOW)).any():
        raise ValueError("has a character that does not occur in run lengths")
    if not len(letters):
        return np.zeros(0, dtype=np.int64)
    last = letters & _MORE == 0
    if not last[-1]:
        raise ValueError("ends within a number")
    end = np.flatnonzero(last) + 1
    size = np.diff(np.append(0, end))
    if size.max() > 7:
        raise ValueError("has a number that is too large")
    place = np.arange(len(letters)) - np.repeat(end - size, size)
    value = np.add.reduceat((letters & _LOW) << (_BITS * place), end - size)
    value -= np.where(letters[end - 1] & _SIGN, np.int64(1) << (_BITS * size), 0)
    value[1::2] = np.cumsum(value[1::2])
    value[2::2] = np.cumsum(value[2::2])
    return np.asarray(value)


def rle_text(counts: Longs, height: int, width: int) -> str:
    """Return a mask as COCO's run-length JSON.

    Examples
    --------
    >>> rle_text(np.array([1, 3]), 2, 2)
    '{"size": [2, 2], "counts": "13"}'
    """
    return json.dumps({"size": [int(height), int(width)], "counts": compressed(counts)})


# --------------------------------------------------------------------------------- several masks


def rle_texts(runs: Longs, pointer: Longs, height: Longs, width: Longs) -> NDArray[np.object_]:
    """Return masks as COCO's run-length JSON; mask ``e`` is ``runs[pointer[e]:pointer[e + 1]]``."""
    ends, sizes = pointer.tolist(), list(zip(height.tolist(), width.tolist(), strict=True))
    texts = np.empty(len(sizes), dtype=object)
    for e, (tall, wide) in enumerate(sizes):
        texts[e] = rle_text(runs[ends[e] : ends[e + 1]], tall, wide)
    return texts


def inside_runs(counts: Counts, pointer: Longs) -> Runs:
    """Return the intervals inside the masks; ``image`` is the number of the mask."""
    size = np.diff(pointer)
    owner = np.repeat(np.arange(len(size)), size)
    place = np.arange(len(counts)) - pointer[owner]
    total = np.append(0, np.cumsum(counts, dtype=np.int64))
    end = total[1:] - total[pointer[owner]]
    inside = (place % 2 == 1) & (counts > 0)
    return Runs(owner[inside], (end - counts)[inside], end[inside])


def joined_runs(runs: Runs, pixels: Longs) -> tuple[Runs, Longs]:
    """Return the union of intervals, and the first position of each image in one long row.

    Parameters
    ----------
    runs : Runs
        In any order; they may overlap.
    pixels : (n_images,) int64
    """
    base = np.append(0, np.cumsum(pixels + 1))  # one pixel between images, so that none touch
    start, end = runs.start + base[runs.image], runs.end + base[runs.image]
    order = np.argsort(start, kind="stable")
    start, furthest = start[order], np.maximum.accumulate(end[order])
    new = np.append(True, start[1:] > furthest[:-1]) if len(start) else np.zeros(0, dtype=bool)
    first = np.flatnonzero(new)
    end = furthest[np.append(first[1:], len(start)) - 1] if len(start) else start
    start = start[first]
    image = np.searchsorted(base, start, side="right") - 1
    return Runs(image, start - base[image], end - base[image]), base


def counts_of_runs(runs: Runs, pixels: Longs) -> tuple[Longs, Longs]:
    """Return the run lengths of the masks of all images, and their pointers.

    Parameters
    ----------
    runs : Runs
        Sorted intervals that neither overlap nor touch.
    pixels : (n_images,) int64
        Number of pixels of each image; those without pixels have no run lengths.
    """
    n = len(pixels)
    own = np.bincount(runs.image, minlength=n)
    # Limits of the runs of each image: 0, the starts and ends, and the end of the image.
    limit = np.concatenate([np.zeros(n, np.int64), runs.start, runs.end, pixels])
    image = np.concatenate([np.arange(n), runs.image, runs.image, np.arange(n)])
    kind = np.repeat([0, 1, 1, 2], [n, len(runs.start), len(runs.end), n])
    order = np.lexsort((limit, kind, image))
    limit, image = limit[order], image[order]
    counts = np.diff(limit)
    kept = image[1:] == image[:-1]
    last = np.cumsum(2 * own + 2) - 2  # the run up to the end of each image
    kept[last[(counts[last] == 0)]] = False
    counts, owner = counts[kept], image[1:][kept]
    return counts, np.append(0, np.cumsum(np.bincount(owner, minlength=n)))


def widened(runs: Runs, height: Longs, width: Longs, rim: Longs) -> Runs:
    """Return the intervals with all pixels at most ``rim`` rows and columns away, joined.

    Parameters
    ----------
    runs : Runs
    height, width, rim : (n_images,) int64
    """
    image, column, top, bottom = _in_columns(runs, height)
    top = np.maximum(top - rim[image], 0)
    bottom = np.minimum(bottom + rim[image], height[image])
    # One pixel between columns keeps their intervals apart; columns beside the image are cut later.
    tall = height + 1
    pixels, base = tall * (width + 2 * rim), (column + rim[image]) * tall[image]
    found = joined_runs(Runs(image, base + top, base + bottom), pixels)[0]
    done = np.zeros_like(rim)
    while (done < rim).any():
        # Three copies of what reaches `done` columns far, next to each other, reach 3 times as far.
        step = np.minimum(2 * done + 1, rim - done)
        move = (step * tall)[found.image]
        parts = [Runs(found.image, found.start + shift, found.end + shift)
                 for shift in (-move, 0 * move, move)]  # fmt: skip
        together = Runs(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        found, done = joined_runs(together, pixels)[0], done + step
    image, beside = found.image, rim[found.image]
    column = found.start // tall[image]
    kept = (column >= beside) & (column < beside + width[image])
    back = column + beside * height[image]
    plain = Runs(image[kept], (found.start - back)[kept], (found.end - back)[kept])
    return joined_runs(plain, height * width)[0]


def _in_columns(runs: Runs, height: Longs) -> tuple[Longs, Longs, Longs, Longs]:
    """Return intervals cut at the ends of columns: image, column, and first and last row."""
    tall = height[runs.image]
    first, last = runs.start // tall, (runs.end - 1) // tall
    size = last - first + 1
    owner = np.repeat(np.arange(len(size)), size)
    column = first[owner] + np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size)
    base = column * tall[owner]
    top = np.maximum(runs.start[owner] - base, 0)
    return runs.image[owner], column, top, np.minimum(runs.end[owner] - base, tall[owner])


def overlap(one: Counts, other: Counts) -> tuple[int, int, int]:
    """Return the pixels in both masks, in the first and in the second.

    Examples
    --------
    >>> overlap(np.array([1, 3]), np.array([0, 2, 2]))
    (1, 3, 2)
    """
    ends = np.cumsum(one), np.cumsum(other)
    limits = np.union1d(*ends)
    size = np.diff(np.append(0, limits))
    inside = [np.searchsorted(end, limits, side="left") % 2 == 1 for end in ends]
    both, first, second = inside[0] & inside[1], inside[0], inside[1]
    return int(size[both].sum()), int(size[first].sum()), int(size[second].sum())


def overlap_shares(one: Counts, other: Counts) -> tuple[float, float]:
    """Return intersection over union and the Dice coefficient; 1 if both masks are empty.

    Examples
    --------
    >>> overlap_shares(np.array([1, 3]), np.array([0, 2, 2]))
    (0.25, 0.4)
    """
    both, first, second = overlap(one, other)
    if not first + second:
        return 1.0, 1.0
    return both / (first + second - both), 2 * both / (first + second)
