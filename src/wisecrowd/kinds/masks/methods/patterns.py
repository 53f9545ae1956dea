"""Patterns: pixels of an image that the same workers cover are one weighted row.

The pixels that matter are those of the union of all masks, with a rim. They are found from run
lengths, without an image in memory: wherever a mask begins or ends, a new interval of pixels
begins. Intervals that the same annotations cover form a pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.ids.packed_sort import ragged_places
from wisecrowd.core.types import Floats, Longs
from wisecrowd.kinds.masks.container import CrowdMasks
from wisecrowd.kinds.masks.run_lengths import Runs, joined_runs, widened

# Pixels around the union of the masks that count as marked by nobody, relative to the radius of a
# disc with the mean area of the image's masks: a rim of fixed width would make answers depend on
# the resolution of images. The share was chosen on simulated crowds.
LEAST_RIM, RELATIVE_RIM = 3, 0.15
BLOCK = 1 << 18  # number of runs to work on at a time
_WORD = 63  # annotations per integer


class Block(NamedTuple):
    """Consecutive images: their intervals, and which annotations cover each pattern.

    Attributes
    ----------
    runs : Runs
        Intervals of the region, with the position of the task.
    pattern : (n_intervals,) int64
        Pattern of each interval, counted within the block.
    task : (n_patterns,) int64
    row, annotation : (n_entries,) int64
        Patterns, and the annotations that cover them.
    """

    runs: Runs
    pattern: Longs
    task: Longs
    row: Longs
    annotation: Longs


@dataclass(frozen=True, eq=False)
class MaskPatterns:
    """Patterns of all images.

    Attributes
    ----------
    data : CrowdMasks
    runs : Runs
        Intervals of the regions of all images.
    pattern : (n_intervals,) int64
    task : (n_patterns,) int64
        The image of each pattern.
    cover : (n_patterns, n_annotations) sparse
        1 where an annotation covers a pattern.
    """

    data: CrowdMasks
    runs: Runs
    pattern: Longs
    task: Longs
    cover: Any

    @classmethod
    def of(cls, data: CrowdMasks) -> MaskPatterns:
        """Return the patterns of masks, computed for a block of images at a time."""
        from scipy.sparse import csr_array

        blocks = list(_blocks(data, rims(data)))
        base = np.cumsum([0, *(len(block.task) for block in blocks)])
        task = np.concatenate([block.task for block in blocks])
        pattern, row = (
            np.concatenate([part + shift for part, shift in zip(parts, base[:-1], strict=True)])
            for parts in ([one.pattern for one in blocks], [one.row for one in blocks])
        )
        ends = np.append(0, np.cumsum(np.bincount(row, minlength=len(task))))
        entries = np.concatenate([block.annotation for block in blocks])
        shape = (len(task), data.n_annotations)
        cover = csr_array((np.ones(len(entries)), entries, ends), shape=shape)
        limits = zip(*(block.runs for block in blocks), strict=True)
        return cls(data, Runs(*(np.concatenate(part) for part in limits)), pattern, task, cover)

    @cached_property
    def pixels(self) -> Floats:
        """(n_patterns,) number of pixels of each pattern."""
        size = self.runs.end - self.runs.start
        return np.bincount(self.pattern, size, len(self.task)).astype(np.float64)

    @cached_property
    def votes(self) -> Floats:
        """(n_tasks,) weight of the annotations of each image."""
        return sums_by(self.data.task, self.data.weights, self.data.n_tasks)

    @cached_property
    def empty(self) -> Floats:
        """(n_tasks,) confidence in an empty mask: the share of empty ones, with a prior."""
        none = self.data.weights * (self.data.area == 0)
        return (np.bincount(self.data.task, none, self.data.n_tasks) + 1) / (self.votes + 2)

    @cached_property
    def share(self) -> Floats:
        """(n_patterns,) share of the weight of an image's annotations that covers each pattern."""
        votes = self.cover @ self.data.weights
        return np.asarray(votes / np.maximum(self.votes[self.task], 1e-300))

    def sums(self, per_worker: Floats, otherwise: Floats) -> Floats:
        """Return sums over the annotations of each pattern's image, (n_patterns,).

        Parameters
        ----------
        per_worker, otherwise : (n_workers,)
            What an annotation counts if it covers the pattern, and if it does not.
        """
        worker, weight = self.data.worker, self.data.weights
        given = np.bincount(self.data.task, weight * otherwise[worker], self.data.n_tasks)
        more = weight * (per_worker - otherwise)[worker]
        return np.asarray(given[self.task] + self.cover @ more)

    def of_annotations(self, values: Floats) -> Floats:
        """Return sums over the patterns that each annotation covers, (n_annotations,)."""
        return np.asarray(self.cover.T @ values)

    def of_images(self, values: Floats) -> Floats:
        """Return sums over the patterns of each image, (n_tasks,)."""
        return sums_by(self.task, values, self.data.n_tasks)

    def by_worker(self, values: Floats) -> tuple[Floats, Floats]:
        """Return sums over patterns, by worker: of those covered, and of the others."""
        inside, n = self.of_annotations(values), self.data.n_workers
        outside = np.maximum(self.of_images(values)[self.data.task] - inside, 0)
        worker, weight = self.data.worker, self.data.weights
        return sums_by(worker, weight * inside, n), sums_by(worker, weight * outside, n)


def sums_by(group: NDArray[np.integer[Any]], values: Floats, size: int) -> Floats:
    """Return the sum of the values of each group, (size,) float64."""
    return np.asarray(np.bincount(group, values, size), dtype=np.float64)


def rims(data: CrowdMasks) -> Longs:
    """Return the width of the rim of each image in pixels, (n_tasks,)."""
    weight = data.weights
    weight = weight * (data.area > 0)
    total = sums_by(data.task, weight * data.area, data.n_tasks)
    area = total / np.maximum(sums_by(data.task, weight, data.n_tasks), 1e-300)
    rim = np.rint(RELATIVE_RIM * np.sqrt(area / np.pi))
    return np.maximum(rim, LEAST_RIM).astype(np.int64)


def _blocks(data: CrowdMasks, rim: Longs) -> Iterator[Block]:
    """Return consecutive images together whose masks have a bounded number of runs."""
    ends = np.searchsorted(data.runs.image, data.indptr)  # runs before each task
    begin = 0
    while begin < data.n_tasks:
        most = np.searchsorted(ends, ends[begin] + BLOCK, side="right") - 1
        end = min(max(int(most), begin + 1), data.n_tasks)
        chosen = slice(int(ends[begin]), int(ends[end]))
        runs = Runs(*(part[chosen] for part in data.runs))
        yield _block(data, runs, np.arange(begin, end), rim)
        begin = end


def _block(data: CrowdMasks, runs: Runs, tasks: Longs, rim: Longs) -> Block:
    """Return the intervals and patterns of some images."""
    first = int(tasks[0])
    height, width = data.height[tasks], data.width[tasks]
    pixels = height * width
    own = Runs(data.task[runs.image].astype(np.int64) - first, runs.start, runs.end)
    region = widened(joined_runs(own, pixels)[0], height, width, rim[tasks])
    base = np.append(0, np.cumsum(pixels + 1))
    place = runs.image - data.indptr[tasks][own.image]  # number of the annotation in its image
    begin, end = (base[own.image] + limit for limit in (own.start, own.end))
    edges = [base[region.image] + limit for limit in (region.start, region.end)]
    limits = np.unique(np.concatenate([begin, end, *edges]))
    n_words = 1 + int(place.max(initial=0)) // _WORD
    codes = np.zeros((max(len(limits) - 1, 0), n_words), dtype=np.int64)
    for word in range(n_words):
        chosen = place // _WORD == word
        bit = np.int64(1) << (place[chosen] % _WORD)
        change = np.zeros(len(limits), dtype=np.int64)
        for edge in (begin[chosen], end[chosen]):
            np.bitwise_xor.at(change, np.searchsorted(limits, edge), bit)
        codes[:, word] = np.bitwise_xor.accumulate(change)[:-1]
    inside = np.zeros(len(limits), dtype=np.int64)
    np.add.at(inside, np.searchsorted(limits, edges[0]), 1)
    np.add.at(inside, np.searchsorted(limits, edges[1]), -1)
    kept = np.cumsum(inside)[:-1] > 0
    start, stop, codes = limits[:-1][kept], limits[1:][kept], codes[kept]
    image = np.searchsorted(base, start, side="right") - 1
    found = Runs(image + first, start - base[image], stop - base[image])
    keys = np.column_stack([image, codes])
    distinct, pattern = np.unique(keys, axis=0, return_inverse=True)
    return _entries(data, found, pattern.ravel(), distinct[:, 0] + first, distinct[:, 1:])


def _entries(data: CrowdMasks, runs: Runs, pattern: Longs, task: Longs, codes: Longs) -> Block:
    """Return a block with one entry per pattern and annotation that covers it."""
    annotation, ends = ragged_places(data.indptr, task)
    row = np.repeat(np.arange(len(task)), np.diff(ends))
    place = annotation - data.indptr[task][row]
    covers = (codes[row, place // _WORD] >> (place % _WORD)) & 1 == 1
    return Block(runs, pattern, task, row[covers], annotation[covers])
