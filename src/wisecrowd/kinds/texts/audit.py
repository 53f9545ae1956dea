"""Audit of texts: error rates of workers, agreement, and texts that were copied.

Every question is asked of the same view: each text beside those of the other workers of its task.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.part import AuditPlan, NotApplicable, Part, Table, WorkerPart
from wisecrowd.core.statistics import (
    WIDTH,
    as_many_by_chance,
    benjamini_hochberg,
    equal_pairs,
    pairs_within,
)
from wisecrowd.core.types import Floats, Longs, Mask
from wisecrowd.kinds.texts.container import CrowdTexts
from wisecrowd.kinds.texts.methods.rover import (
    Others,
    WordVotes,
    edits_to_others,
    worker_errors,
)
from wisecrowd.kinds.texts.words import TextRules

PSEUDO_WORDS = 5.0  # by which error rates of workers are shrunk, for their weights
FEWEST_ANSWERS = 4  # answers of a worker that is tested
UNRELATED, ABOVE, MOST = 0.7, 0.25, 0.9  # error rate; above the typical one; at most this limit
REPEATED = 3  # times that a worker gives the same text alone, at least
HALF = 0.5  # of the worker's answers
LOW = 0.8  # mean difference above which texts have no common wording
FEWEST_WORDS = 3  # of a text that counts; short ones are equal by chance
FEWEST_WORKERS = 4  # of a task; with fewer, two equal texts may well be right
FEWEST_TEXTS = 4  # that both workers of a pair have wrong
COPIED = 0.75  # least share of equal texts of copiers; two good workers share half at times
USUAL_SHARE, USUAL_PAIRS = 0.1, 10.0  # equal wrong texts before any are seen


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
    def n(self) -> Longs:
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
    def text_rank(self) -> Longs:
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


@dataclass(frozen=True, eq=False)
class TextErrors(WorkerPart):
    """Error rates of workers; arrays have one entry per worker.

    Attributes
    ----------
    workers, n_texts
        Ids, and numbers of answers to tasks that others answered too.
    error_rate, low, high
        Mean share of words that differ from the text of the others, with its 95% interval.
    q : float
        False discovery rate at which the error rate exceeds ``limit``.
    unrelated, empty, constant : bool
        Whether most words differ from the others'; and whether half of the answers are empty, or
        are one and the same text, where nobody else has given it.
    limit, typical : float
        Error rate of unrelated texts, and the median of all workers.
    """

    table = "errors"
    noun = "all texts"

    workers: NDArray[Any]
    n_texts: Longs
    error_rate: Floats
    low: Floats
    high: Floats
    q: Floats
    unrelated: Mask
    empty: Mask
    constant: Mask
    limit: float
    typical: float

    def findings(self) -> list[Finding]:
        """Return workers with unrelated, empty and constant texts."""
        rest = self.unrelated & ~self.empty & ~self.constant
        remedy = "Do not give them more tasks; rover gives them little weight."
        return [
            *self.about("empty-texts", self.empty, "left half of their texts or more empty where "
                        "everybody else wrote something", "Ask why: sound or pictures may not have "
                        "loaded. Do not count their empty texts as answers.", by=self.error_rate),
            *self.about("constant-texts", self.constant, "gave one and the same text to half of "
                        "their tasks or more, where nobody else did", remedy, by=self.error_rate),
            *self.about("unrelated-texts", rest, "wrote texts that differ from those of the others "
                        f"in more than {self.limit:.0%} of the words", remedy, by=self.error_rate),
        ]  # fmt: skip


def find_text_errors(
    data: CrowdTexts, *, level: float = 0.05, view: TextView | None = None
) -> TextErrors:
    r"""Measure error rates, and find workers whose texts do not belong to the tasks.

    Texts of a worker are unrelated if a t-test rejects that the mean error is at most the limit, at
    a false discovery rate of ``level``. The limit is 0.7 or, in a crowd that disagrees, a quarter
    above the typical error rate, at most 0.9. A text counts as constant if a worker gives it three
    times or more, to half of the tasks or more, and no other worker of these tasks does.

    Examples
    --------
    >>> rows = [(i, j, f"text number {i}" if j < 4 else "ok") for i in range(6) for j in range(5)]
    >>> report = find_text_errors(CrowdTexts.from_arrays(*zip(*rows)))
    >>> report.workers[report.constant]
    array([4])
    """
    check_number("level", level, 0.0, 1.0)
    view = text_view(data) if view is None else view
    if not view.compared.any():
        raise NotApplicable("Error rates need tasks with texts of two workers, and there are none.")
    from scipy.special import stdtr

    testable = view.n >= FEWEST_ANSWERS
    limit = float(min(max(UNRELATED, view.typical + ABOVE), MOST))
    q = np.ones(data.n_workers)
    excess = (view.rate[testable] - limit) / view.rate_error[testable]
    if testable.any():
        q[testable] = benjamini_hochberg(stdtr(view.n[testable] + 2.0, -excess))
    empty, constant = _repeated(view)
    half = WIDTH * view.rate_error
    return TextErrors(
        data.workers, view.n, view.rate, np.clip(view.rate - half, 0, 1),
        np.clip(view.rate + half, 0, 1), q, q <= level, empty, constant, limit, view.typical,
    )  # fmt: skip


def _repeated(view: TextView) -> tuple[Mask, Mask]:
    """Return the workers who repeat the empty text, and another one, where nobody else has it."""
    data, votes = view.data, view.votes
    rows = np.flatnonzero(view.alone)
    n_texts = len(votes.rank) + 1
    key = data.worker[rows].astype(np.int64) * n_texts + view.text_rank[rows]
    pair, first, count = np.unique(key, return_index=True, return_counts=True)
    worker = pair // n_texts
    often = (count >= REPEATED) & (count >= HALF * view.n[worker])
    is_empty = votes.length[votes.variant[rows[first]]] == 0
    empty, constant = np.zeros(data.n_workers, dtype=bool), np.zeros(data.n_workers, dtype=bool)
    empty[worker[often & is_empty]] = True
    constant[worker[often & ~is_empty]] = True
    return empty, constant


@dataclass(frozen=True, eq=False)
class TextAgreement(Part):
    """Differences between the texts of the same task; arrays have one entry per task.

    Attributes
    ----------
    difference, standard_error : float
        Mean over tasks of the share of words in which two workers differ (word error rate between
        workers, of the longer text), and its standard error.
    equal : float
        Mean share of pairs of workers with the same words.
    tasks, n_texts, task_difference
        Ids, numbers of texts, and mean difference of two texts; NaN with fewer than two.
    """

    difference: float
    standard_error: float
    equal: float
    tasks: NDArray[Any]
    n_texts: NDArray[np.int64]
    task_difference: Floats

    def tables(self) -> dict[str, Table]:
        """Return the table of tasks."""
        return {
            "disagreement": {
                "task": self.tasks, "n_texts": self.n_texts, "difference": self.task_difference,
            }
        }  # fmt: skip

    def findings(self) -> list[Finding]:
        """Return a finding if the texts hardly agree."""
        if not self.difference - 2 * self.standard_error > LOW:  # also if undefined
            return []
        return [Finding(
            "no-common-wording", "low", self.difference, (),
            f"Two texts of the same task differ in {self.difference:.0%} of their words on average "
            f"(± {self.standard_error:.0%}), which is the score.",
            "If tasks have several right wordings, use text-medoid or embedding-medoid, which "
            "return a text that somebody wrote; if not, check that rows belong to their tasks.",
        )]  # fmt: skip


def measure_text_agreement(data: CrowdTexts, *, view: TextView | None = None) -> TextAgreement:
    """Measure how far texts of the same task differ; case and punctuation do not count.

    Examples
    --------
    >>> texts = ["a small dog", "A small dog.", "one small dog"]
    >>> data = CrowdTexts.from_arrays(["r"] * 3, ["ann", "bob", "cem"], texts)
    >>> round(measure_text_agreement(data).difference, 2)
    0.22
    """
    view = text_view(data) if view is None else view
    votes, n = view.votes, data.n_tasks
    own = votes.sums(np.ones(data.n_annotations))
    first, second, distance = votes.distances
    total = np.bincount(votes.variant_task[first], own[first] * own[second] * distance, n)
    count = data.labels_per_task
    pairs = count * (count - 1) / 2
    several = pairs > 0
    if not several.any():
        raise NotApplicable("Agreement needs tasks with two texts or more, and there are none.")
    mean = np.where(several, total / np.maximum(pairs, 1), np.nan)
    same = np.bincount(votes.variant_task, own * (own - 1) / 2, n)[several] / pairs[several]
    spread = float(np.std(mean[several], ddof=1)) if several.sum() > 1 else float("nan")
    return TextAgreement(
        float(mean[several].mean()), spread / float(np.sqrt(several.sum())), float(same.mean()),
        data.tasks, count, mean,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class TextCopies(Part):
    """Pairs of workers who share tasks with wrong texts, the most similar first.

    Attributes
    ----------
    first, second : ids
    n_wrong, n_equal : int
        Number of tasks to which both give a text that the others do not give, and how many of
        these texts are equal as they are written.
    q : float
        False discovery rate at which they share more such texts than other pairs.
    copied : bool
    usual : float
        Share of equal texts among those that two workers have wrong.
    """

    table = "copies"
    column_names = ("first", "second", "n_wrong", "n_equal", "q", "copied")

    first: NDArray[Any]
    second: NDArray[Any]
    n_wrong: Longs
    n_equal: Longs
    q: Floats
    copied: Mask
    usual: float

    def findings(self) -> list[Finding]:
        """Return the workers of pairs with copied texts."""
        if not self.copied.any():
            return []
        both = np.column_stack([self.first, self.second])[self.copied].ravel().tolist()
        ids = np.array(list(dict.fromkeys(both)), dtype=object)
        best = int(np.flatnonzero(self.copied)[0])
        share = float(self.n_equal[best] / self.n_wrong[best])
        return [Finding(
            "copied-texts", "medium", share, tuple(ids.tolist()),
            f"{len(ids)} workers ({describe_ids(ids)}) share texts letter by letter that nobody "
            f"else gives: {self.n_equal[best]} of {self.n_wrong[best]} between "
            f"{both[0]!r} and {both[1]!r}, which is the score, where other "
            f"pairs share {self.usual:.0%}.",
            "Count them as one worker: copies outvote others without knowing more.",
        )]  # fmt: skip


def find_copied_texts(
    data: CrowdTexts, *, level: float = 0.01, view: TextView | None = None
) -> TextCopies:
    """Find pairs of workers who copy from each other.

    Right texts are equal anyway, so only those of tasks with four workers or more count that no
    third worker gives, and that differ from the weighted vote of all. Two workers have both such
    texts, of three words or more, in :math:`n` tasks. That :math:`k` of them are equal as written
    is tested against the binomial distribution with the share among all pairs, at a false discovery
    rate of ``level``; a finding needs four such tasks, and three quarters of them equal.

    Examples
    --------
    >>> said = ["the", "the", "the", "no", "no"]
    >>> rows = [(i, j, f"these are {said[j]} words {i}") for i in range(8) for j in range(5)]
    >>> report = find_copied_texts(CrowdTexts.from_arrays(*zip(*rows)))
    >>> report.first[report.copied], report.second[report.copied]
    (array([3]), array([4]))
    """
    check_number("level", level, 0.0, 1.0)
    view = text_view(data) if view is None else view
    a, b = pairs_within(data.indptr)
    kept = _both_wrong(view, a, b)
    a, b = a[kept], b[kept]
    if not len(a):
        raise NotApplicable(
            "Copies need tasks of four workers, two of whom differ from the others."
        )
    equal = data.text[a] == data.text[b]
    first, second, n_wrong, n_equal = equal_pairs(
        data.worker[a], data.worker[b], equal, data.n_workers
    )
    usual = _usual_share(n_wrong, n_equal)
    tested, q = n_wrong >= FEWEST_TEXTS, np.ones(len(first))
    if tested.any():
        chance = as_many_by_chance(n_equal, n_wrong, usual)
        q[tested] = benjamini_hochberg(chance[tested])
    copied = (q <= level) & (n_equal >= COPIED * n_wrong)
    order = np.lexsort((second, first, -n_equal, q, ~copied))
    return TextCopies(
        data.workers[first[order]], data.workers[second[order]], n_wrong[order], n_equal[order],
        q[order], copied[order], usual,
    )  # fmt: skip


def _both_wrong(view: TextView, a: Longs, b: Longs) -> Mask:
    """Return the pairs of annotations with texts that the other workers of the task do not give."""
    data, votes = view.data, view.votes
    key = np.unique(votes.variant * data.n_workers + data.worker)
    givers = np.bincount(key // data.n_workers, minlength=len(votes.variant_task))
    same = votes.variant[a] == votes.variant[b]
    alone = np.where(same, givers[votes.variant[a]] == 2,
                     (givers[votes.variant[a]] == 1) & (givers[votes.variant[b]] == 1))  # fmt: skip
    words = np.minimum(votes.length[votes.variant[a]], votes.length[votes.variant[b]])
    judged = (view.others.size[a] >= FEWEST_WORKERS) & ~view.right[a] & ~view.right[b]
    two = data.worker[a] != data.worker[b]
    return np.asarray(alone & judged & two & (words >= FEWEST_WORDS))


def _usual_share(n_wrong: Longs, n_equal: Longs) -> float:
    """Return the share of equal texts of ordinary pairs: those with many are cut off."""
    share = n_equal / n_wrong
    usual = share < COPIED
    usual |= n_wrong < FEWEST_TEXTS
    total = float(n_equal[usual].sum() + USUAL_SHARE * USUAL_PAIRS)
    return min(total / float(n_wrong[usual].sum() + USUAL_PAIRS), COPIED)


PLAN = AuditPlan(
    parts={
        "errors": find_text_errors,
        "copies": find_copied_texts,
        "agreement": measure_text_agreement,
    },
    shared={"view": text_view},
)
