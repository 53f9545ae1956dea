"""The different answers of each task, and their distances from each other."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.statistics import pairs_within
from wisecrowd.core.types import Floats, Longs
from wisecrowd.kernels import kernels_for
from wisecrowd.kinds.texts.container import CrowdTexts
from wisecrowd.kinds.texts.words import TextRules, distinct_texts

DECIMALS = 9  # of distances that are compared
CELLS = 4  # cells of a table of edit costs that take the time of one annotation
MOST_CELLS = 1e10  # of all alignments, which take about as many nanoseconds


class Variants:
    """The answers of each task; those that are the same words are one *variant*.

    Attributes
    ----------
    data : CrowdTexts
    coded : CodedTexts
        The different texts of the data.
    text : (n_annotations,) int64
        The text of each annotation in ``coded``.
    rank : (n_texts,) int64
        Place of each text in the order of words; texts of the same words have the same.
    variant : (n_annotations,) int64
        The variant of each annotation.
    variant_task, variant_text : (n_variants,) int64
        Task of each variant, and one of its texts in ``coded``; sorted by task and words.
    """

    def __init__(self, data: CrowdTexts, rules: TextRules) -> None:
        self.data = data
        texts, text = distinct_texts(data.text)
        self.texts = None if rules.normalise is not None else texts  # it may remove words
        self.coded = rules.code(texts)
        self.rank = rank = self._ranks()
        n_texts = max(len(texts), 1)
        key = data.task.astype(np.int64) * n_texts + rank[text]
        place, first, variant = np.unique(key, return_index=True, return_inverse=True)
        self.text, self.variant = text, variant.ravel()
        self.variant_task = place // n_texts
        self.variant_text = text[first]
        self._require_short()

    def _ranks(self) -> Longs:
        """Return the place of each text among all in the order of their words; equal if same."""
        words, ends = self.coded.words.tolist(), self.coded.pointer.tolist()
        names = [tuple(words[a:b]) for a, b in pairwise(ends)]
        place = {name: rank for rank, name in enumerate(sorted(set(names)))}
        return np.array([place[name] for name in names], dtype=np.int64)

    def _require_short(self) -> None:
        """Refuse texts that would take hours to align: the cost is quadratic in their words."""
        words = np.bincount(self.variant_task, self.length, self.data.n_tasks)
        pairs = float((words**2).sum())
        if pairs > MOST_CELLS:
            task = int(words.argmax())
            raise DataError(
                f"Texts are too long to align: those of task {self.data.tasks[task]!r} have "
                f"{int(words[task])} words in all, and the texts of all tasks {pairs / 1e9:.0f} "
                f"billion pairs of words, of at most {MOST_CELLS / 1e9:.0f}; split them into "
                "sentences or shorter parts."
            )

    @cached_property
    def indptr(self) -> Longs:
        """(n_tasks + 1,) row pointers of tasks into variants."""
        count = np.bincount(self.variant_task, minlength=self.data.n_tasks)
        return np.append(0, np.cumsum(count)).astype(np.int64)

    @cached_property
    def length(self) -> Longs:
        """(n_variants,) number of words of each variant."""
        return self.coded.length[self.variant_text]

    @cached_property
    def distances(self) -> tuple[Longs, Longs, Floats]:
        """Pairs of variants of the same task, and their edits per word of the longer one."""
        first, second = (one.astype(np.int64) for one in pairs_within(self.indptr))
        a, b = self.variant_text[first], self.variant_text[second]
        size = self.coded.length
        kernels = kernels_for("alignment", int((size[a] * size[b]).sum()) // CELLS)
        edits = kernels.edit_distances(self.coded.words, self.coded.pointer, a, b)
        return first, second, edits / np.maximum(np.maximum(size[a], size[b]), 1)

    def sums(self, weight: Floats) -> Floats:
        """Return (n_variants,) sums of weights (n_annotations,)."""
        found = np.bincount(self.variant, weight, len(self.variant_task))
        return np.asarray(found, dtype=np.float64)

    def remoteness(self, weight: Floats) -> Floats:
        """Return (n_variants,) the weighted sum of distances from the other answers of the task."""
        first, second, distance = self.distances
        own, n = self.sums(weight), len(self.variant_task)
        far = np.bincount(first, own[second] * distance, n)
        return np.asarray((far + np.bincount(second, own[first] * distance, n)).round(DECIMALS))

    def least(self, cost: Floats, weight: Floats) -> Longs:
        """Return the variant of least cost (n_variants,) of each task, -1 if it has none.

        Variants without weight do not count. Ties go to the variant whose words come first.
        """
        cost = np.where(self.sums(weight) > 0, cost, np.inf)
        order = np.lexsort((cost.round(DECIMALS), self.variant_task))
        count = np.diff(self.indptr)
        first = np.minimum(self.indptr[:-1], max(len(order) - 1, 0))
        found = order[first] if len(order) else first
        return np.where(count > 0, found, -1)

    def unanimous(self) -> NDArray[np.object_] | None:
        """Return (n_tasks,) texts that all workers of a task wrote, to the letter; else None."""
        if self.texts is None:
            return None
        rows = np.flatnonzero(self.data.weights > 0)
        task, text = self.data.task[rows], self.text[rows]
        least = np.full(self.data.n_tasks, len(self.texts), dtype=np.int64)
        most = np.full(self.data.n_tasks, -1, dtype=np.int64)
        np.minimum.at(least, task, text)
        np.maximum.at(most, task, text)
        names = np.empty(len(self.texts) + 1, dtype=object)
        names[:-1] = self.texts
        return np.asarray(names[np.where(least == most, most, len(self.texts))], dtype=object)
