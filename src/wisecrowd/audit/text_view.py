"""Texts compared with those of the other workers of the same tasks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.text_words import TextRules
from wisecrowd.core.texts import CrowdTexts
from wisecrowd.families.text_method import Others, edits_to_others, worker_errors
from wisecrowd.families.word_votes import WordVotes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

PSEUDO_WORDS = 5.0  # by which error rates of workers are shrunk, for their weights


@dataclass(frozen=True, eq=False)
class TextView:
    """Texts compared with the others; case and punctuation do not count.

    Attributes
    ----------
    data : CrowdTexts
    votes : WordVotes
    edits, words : (n_annotations,)
        Edits to the text of the other workers, and words compared; 0 without others.
    others : Others
        Number of workers of each task.
    right : (n_annotations,) bool
        Whether the words are those of the weighted vote of all workers.
    """

    data: CrowdTexts
    votes: WordVotes
    edits: Floats
    words: Floats
    others: Others
    right: Mask

    @cached_property
    def compared(self) -> Mask:
        """(n_annotations,) whether there are others to compare with."""
        return np.asarray(self.others.size > 1)

    @cached_property
    def error(self) -> Floats:
        """(n_annotations,) share of words that differ from the others, at most 1."""
        return np.where(self.words > 0, self.edits / np.maximum(self.words, 1), 0.0)

    @cached_property
    def n(self) -> Ints:
        """(n_workers,) number of answers that are compared."""
        return np.bincount(self.data.worker[self.compared], minlength=self.data.n_workers)

    @cached_property
    def rate(self) -> Floats:
        """(n_workers,) mean error of the answers; NaN without any."""
        total = np.bincount(self.data.worker, self.error * self.compared, self.data.n_workers)
        return np.where(self.n > 0, total / np.maximum(self.n, 1), np.nan)

    @cached_property
    def typical(self) -> float:
        """Median of the workers' error rates."""
        return float(np.median(self.rate[self.n > 0])) if (self.n > 0).any() else float("nan")

    @cached_property
    def rate_error(self) -> Floats:
        """(n_workers,) standard error of the rate; spreads are shrunk to that of all answers."""
        data, n = self.data, self.n
        rate = np.nan_to_num(self.rate)
        apart = np.where(self.compared, (self.error - rate[data.worker]) ** 2, 0.0)
        own = np.bincount(data.worker, apart, data.n_workers)
        freedom = max(int(n.sum() - (n > 0).sum()), 1)
        pooled = max(float(own.sum()) / freedom, 1e-4)
        variance = (own + 3 * pooled) / (np.maximum(n - 1, 0) + 3)
        return np.where(n > 0, np.sqrt(variance / np.maximum(n, 1)), np.nan)

    @cached_property
    def text_rank(self) -> Ints:
        """(n_annotations,) number of the words of each answer; equal if the words are."""
        return self.votes.rank[self.votes.text]

    @cached_property
    def alone(self) -> Mask:
        """(n_annotations,) whether no other worker of the task has the same words."""
        data, votes = self.data, self.votes
        key = votes.variant * data.n_workers + data.worker
        pairs = np.unique(key)
        n_workers = np.bincount(pairs // data.n_workers, minlength=len(votes.variant_task))
        return np.asarray((n_workers[votes.variant] == 1) & self.compared)


def text_view(data: CrowdTexts, fit: Any = None) -> TextView:
    """Return the view of texts: every answer beside the weighted vote of the other workers.

    Examples
    --------
    >>> data = CrowdTexts.from_arrays(["r"] * 3, list("abc"), ["a small dog", "A small dog", "no"])
    >>> text_view(data).alone
    array([False, False,  True])
    """
    votes = WordVotes(data, TextRules())
    first = worker_errors(votes, votes.elected, data.weights, PSEUDO_WORDS)
    weight = data.weights * first.weight[data.worker]
    edits, words = edits_to_others(votes, votes.elected, weight)
    wrong, _ = votes.edits(votes.elected(weight), np.arange(data.n_annotations))
    return TextView(data, votes, edits, words, Others.of(data), wrong == 0)
