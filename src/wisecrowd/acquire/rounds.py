r"""One round of queries: cover first, then the policy's choice, one query per task and pass.

Some become gold questions, which check workers without their knowledge.

The gate leaves out workers whom the others show to be poor, each judged without its own labels.

.. math::
    w = 1 - \frac{H(q_i^{-j})}{\log K}, \quad r_j = \sum w\, q_i^{-j}(y_{ij}), \quad n_j = \sum w,
    \quad m_j = \frac{6 + r_j}{8 + n_j}, \quad
    u_j = m_j + 2 \sqrt{\frac{m_j (1 - m_j)}{9 + n_j}}

over the labels of worker j on tasks that others labelled too. A worker is surely poor if
:math:`u_j < (\operatorname{median} m + 1/K) / 2`. Fitted accuracies are not used: a busy worker is
the sole witness of its own early tasks, and a fit then overrates it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.acquire.candidates import NOBODY, Candidates, Pairs
from wisecrowd.acquire.shrunken_models import COIN, STRETCH, CrowdBelief, TaskPosterior, entropy
from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.core.types import Floats, Longs
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.kernels.posteriors import log_normalise

POOR = 0.05  # factor of the score of a surely poor worker
Z = 2.0  # standard errors of the upper end
DIGITS = 12  # scores that agree to so many decimals are ties, whatever the rounding
COVER = "cover: too few labels"
SCREENING = 5  # first queries of a new worker
WIDEST, NARROWEST = 2.0, 0.5  # bounds of the factor by which wide intervals are checked more often


class WorkerGate(NamedTuple):
    """How others judge each worker.

    Attributes
    ----------
    mean : (n_workers,)
        Shrunken share of labels on which the others agree.
    upper : (n_workers,)
        Upper end of an interval of two standard errors.
    judged : (n_workers,)
        Weight of the labels that could be judged.
    poor : (n_workers,) bool
        Whether the upper end is below the bar.
    """

    mean: Floats
    upper: Floats
    judged: Floats
    poor: NDArray[np.bool_]

    @property
    def factor(self) -> Floats:
        """(n_workers,) factor of the score of a query to each worker."""
        return np.where(self.poor, POOR, 1.0)


def worker_gate(
    labels: CrowdLabels, belief: CrowdBelief, known: NDArray[np.bool_] | None = None
) -> WorkerGate:
    """Judge every worker by the others.

    Parameters
    ----------
    labels : CrowdLabels
    belief : CrowdBelief
        A fit of the same labels.
    known : (n_tasks,) bool, optional
        Tasks with gold: a single label on them can be judged too.
    """
    K, J = labels.n_classes, labels.n_workers
    right, judged = np.zeros(J), np.zeros(J)
    shared = labels.labels_per_task >= 2
    if known is not None:
        shared = shared | known
    rows = np.flatnonzero(shared[labels.task]) if K > 1 else np.empty(0, np.int64)
    size = max(1, STRETCH // K)
    for first in range(0, len(rows), size):
        some = rows[first : first + size]
        q, weight = _without_own(labels, belief, some)
        worker = labels.worker[some]
        agreed = weight * q[np.arange(len(some)), labels.label[some]]
        right += np.bincount(worker, agreed, J)
        judged += np.bincount(worker, weight, J)
    mean = (COIN.a + right) / (COIN.a + COIN.b + judged)
    upper = mean + Z * np.sqrt(mean * (1 - mean) / (COIN.a + COIN.b + 1 + judged))
    seen = mean[judged > 0]
    bar = (np.median(seen) + 1 / K) / 2 if len(seen) else 0.0
    return WorkerGate(mean, upper, judged, upper < bar)


def _without_own(
    labels: CrowdLabels, belief: CrowdBelief, rows: NDArray[Any]
) -> tuple[Floats, Floats]:
    """Return the posterior (n, K) of each annotation's task without it, and its information."""
    task, worker, label = labels.task[rows], labels.worker[rows], labels.label[rows]
    K = labels.n_classes
    own = belief.law.log_prob(label[:, None], np.arange(K), worker[:, None], task[:, None])
    if labels.weight is not None:
        own = own * labels.weight[rows, None]
    q = log_normalise(np.log(np.maximum(belief.rows(task), 1e-300)) - own)[0]
    return q, np.clip(1 - entropy(q) / np.log(K), 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class RoundState:
    """What a policy may look at.

    Attributes
    ----------
    labels : CrowdLabels
        Answers so far.
    n_labels : (n_tasks,)
        Answers and open queries of each task.
    belief : CrowdBelief or None
        The driving fit.
    trusted : bool
        Whether that fit has predicted answers better than habit.
    cost : (n_workers,)
        Cost of an answer by each worker.
    n_asked : int
        Queries before this round.
    rng : numpy Generator
    min_labels : int
        Labels that every task gets first.
    known : (n_tasks,) bool, optional
        Tasks with gold in the fit.
    average : TaskPosterior, optional
        Mean posterior of all fits, which orders tasks; by default that of the driving fit.
    """

    labels: CrowdLabels
    n_labels: Longs
    belief: CrowdBelief | None
    trusted: bool
    cost: Floats
    n_asked: int
    rng: np.random.Generator
    min_labels: int = 1
    known: NDArray[np.bool_] | None = None
    average: TaskPosterior | None = None

    @property
    def posterior(self) -> TaskPosterior | None:
        """The posteriors that order tasks."""
        return self.belief if self.average is None else self.average

    @cached_property
    def entropy(self) -> Floats:
        """(n_tasks,) entropy of the posteriors; constant without a fit."""
        if self.posterior is None:
            return np.ones(self.labels.n_tasks)
        return self.posterior.entropy().round(DIGITS)

    @cached_property
    def gate(self) -> WorkerGate:
        """How others judge each worker."""
        if self.belief is None:
            even = np.full(self.labels.n_workers, 0.75)
            return WorkerGate(even, np.ones_like(even), 0 * even, even < 0)
        return worker_gate(self.labels, self.belief, self.known)

    def per_worker(self, values: Floats, worker: Longs) -> Floats:
        """Return the values of workers (n,), and 1 where a query names no worker."""
        if len(worker) and worker[0] == NOBODY:
            return np.ones(len(worker))
        return values[worker]


class Scores(NamedTuple):
    """Scores of pairs (n,): ``rank`` orders tasks, ``worker`` chooses within a task."""

    rank: Floats
    worker: Floats


class Policy:
    """A rule that scores tasks and pairs; larger scores are asked first, ties at random.

    Attributes
    ----------
    name : str
    covers : bool
        Whether tasks with fewer than ``min_labels`` labels come first.
    one_per_task : bool
        Whether a pass asks about a task once only.
    """

    name: ClassVar[str]
    covers: ClassVar[bool] = True
    one_per_task: ClassVar[bool] = True

    def tasks(self, state: RoundState) -> Floats:
        """Return the preference (n_tasks,) by which tasks are shortlisted."""
        raise TypeError(f"{type(self).__name__} must define tasks.")

    def scores(self, state: RoundState, pairs: Pairs) -> Scores:
        """Return the scores of pairs."""
        raise TypeError(f"{type(self).__name__} must define scores.")

    def reason(self, state: RoundState) -> str:
        """Return the reason of the queries in one short phrase."""
        return self.name

    def parts(self, state: RoundState, n: int) -> list[tuple[Policy, int]]:
        """Return policies and the queries that each makes; by default all by this one."""
        return [(self, n)]


class Chosen(NamedTuple):
    """Queries of one round: pairs, scores and reasons."""

    pairs: Pairs
    score: Floats
    reason: list[str]


def choose(policy: Policy, state: RoundState, candidates: Candidates, n: int) -> Chosen:
    """Return up to ``n`` queries; fewer if no pair is left."""
    state = replace(state, n_labels=state.n_labels.copy())
    asked = np.zeros(len(state.n_labels), dtype=bool)  # in the current pass over the tasks
    parts = _cover(state, candidates, n, asked) if policy.covers else []
    left = n - sum(len(part.score) for part in parts)
    for part, share in policy.parts(state, left):
        parts += _passes(part, state, candidates, share, asked)
    return _joined(parts)


def _cover(
    state: RoundState, candidates: Candidates, n: int, asked: NDArray[np.bool_]
) -> list[Chosen]:
    """Return queries about tasks with fewer than ``min_labels`` labels, at random."""
    found: list[Chosen] = []
    while n > 0:
        lacking = state.n_labels < state.min_labels
        if not lacking.any():
            break
        pairs = candidates.pairs(np.where(lacking, 0.0, -np.inf), n, state.rng)
        one = _pick(candidates, pairs, None, n, True, state, COVER)
        if not len(one.score):
            break
        _note(one, state, candidates, asked)
        found.append(one)
        n -= len(one.score)
    return found


def _passes(
    policy: Policy,
    state: RoundState,
    candidates: Candidates,
    n: int,
    asked: NDArray[np.bool_],
) -> list[Chosen]:
    """Return queries in passes over the tasks, until ``n`` are found or no pair is left."""
    found: list[Chosen] = []
    while n > 0:
        preference = policy.tasks(state)
        if policy.one_per_task:
            preference = np.where(asked, -np.inf, preference)
        pairs = candidates.pairs(preference, n, state.rng)
        if not len(pairs.task):
            if not (policy.one_per_task and asked.any()):
                break
            asked[:] = False  # a second pass
            continue
        scores = policy.scores(state, pairs)
        one = _pick(candidates, pairs, scores, n, policy.one_per_task, state, policy.reason(state))
        _note(one, state, candidates, asked)
        found.append(one)
        n -= len(one.score)
    return found


def _note(
    chosen: Chosen, state: RoundState, candidates: Candidates, asked: NDArray[np.bool_]
) -> None:
    candidates.take(chosen.pairs)
    np.add.at(state.n_labels, chosen.pairs.task, 1)
    asked[chosen.pairs.task] = True


def _pick(
    candidates: Candidates,
    pairs: Pairs,
    scores: Scores | None,
    n: int,
    one_per_task: bool,
    state: RoundState,
    reason: str,
) -> Chosen:
    """Return the best ``n`` pairs, at most one per task if wanted, ties at random."""
    size = len(pairs.task)
    noise = state.rng.random(size)
    if scores is None:
        scores = Scores(np.zeros(size), np.zeros(size))
    rank, worker = scores.rank.round(DIGITS), scores.worker.round(DIGITS)
    kept = np.arange(size)
    if one_per_task:
        order = np.lexsort((noise, -worker, pairs.task))
        first = np.ones(size, dtype=bool)
        first[1:] = pairs.task[order][1:] != pairs.task[order][:-1]
        kept = order[first]
    kept = kept[np.lexsort((noise[kept], -rank[kept]))]
    if not one_per_task:  # a sample of workers may contain a pair twice
        kept = kept[: 4 * n]
        both = np.stack([pairs.task[kept], pairs.worker[kept]])
        kept = kept[np.sort(np.unique(both, axis=1, return_index=True)[1])]
    kept = kept[candidates.allowed(pairs.at(kept))][:n]
    chosen = pairs.at(kept)
    return Chosen(chosen, scores.rank[kept], [reason] * len(kept))


def _joined(parts: list[Chosen]) -> Chosen:
    if not parts:
        empty = np.empty(0, dtype=np.int64)
        return Chosen(Pairs(empty, empty, empty), np.empty(0), [])
    pairs = Pairs(
        *(np.concatenate(column) for column in zip(*(p.pairs for p in parts), strict=True))
    )
    score = np.concatenate([part.score for part in parts])
    return Chosen(pairs, score, [reason for part in parts for reason in part.reason])


@dataclass
class GoldQuestions:
    """Which queries become gold questions, and which ones.

    Attributes
    ----------
    gold : (n_tasks,) int
        Classes of gold questions, -1 for other tasks.
    share : float
        Share of the queries after the screening; 0 means no gold questions at all.
    asked : sorted (m,) int64
        Keys ``task * n_workers + worker`` of all pairs with an answer or a lease.
    n_before : (n_workers,) int
        Answers and leases of each worker.
    """

    gold: NDArray[np.int32]
    share: float
    asked: Longs
    n_before: Longs
    _warned: bool = field(default=False, repr=False)

    def place(self, chosen: Chosen, state: RoundState) -> Chosen:
        """Replace some queries by gold questions, in their order.

        A new worker gets gold questions first (screening); later a query becomes one with
        probability ``share``, more often for workers whose accuracy is uncertain (ageing).
        """
        if self.share <= 0 or not (self.gold >= 0).any() or not len(chosen.score):
            return chosen
        if chosen.pairs.worker[0] == NOBODY:
            return chosen
        task, score, reason = chosen.pairs.task.copy(), chosen.score.copy(), list(chosen.reason)
        before, rate = self.n_before.copy(), self._rates(state)
        draws = state.rng.random(len(task))
        taken: set[tuple[int, int]] = set()
        for i, worker in enumerate(chosen.pairs.worker.tolist()):
            screening = before[worker] < SCREENING
            before[worker] += 1
            if not (screening or draws[i] < rate[worker]):
                continue
            found = self._question(worker, taken, state)
            if found is None:
                self._warn()
                continue
            taken.add((found, worker))
            task[i], score[i] = found, 0.0
            reason[i] = "gold: screening" if screening else "gold: ageing"
        return Chosen(Pairs(task, chosen.pairs.worker, chosen.pairs.row), score, reason)

    def _rates(self, state: RoundState) -> Floats:
        width = state.gate.upper - state.gate.mean
        usual = np.median(width) if len(width) else 1.0
        return np.asarray(self.share * np.clip(width / max(usual, 1e-12), NARROWEST, WIDEST))

    def _question(self, worker: int, taken: set[tuple[int, int]], state: RoundState) -> int | None:
        """Return a gold task that the worker has not seen, of the class it has seen least."""
        n_workers = len(self.n_before)
        tasks = np.flatnonzero(self.gold >= 0)
        key = tasks * n_workers + worker
        place = np.minimum(np.searchsorted(self.asked, key), max(len(self.asked) - 1, 0))
        seen = self.asked[place] == key if len(self.asked) else np.zeros(len(tasks), dtype=bool)
        seen |= np.array([(task, worker) in taken for task in tasks.tolist()], dtype=bool)
        if seen.all():
            return None
        classes = self.gold[tasks]
        n_classes = state.labels.n_classes
        had = np.bincount(classes[seen], minlength=n_classes)
        share = np.bincount(classes, minlength=n_classes) / len(tasks)
        deficit = share * (seen.sum() + 1) - had
        left = tasks[~seen]
        sure = self._decided(left, state)
        order = np.lexsort((left, -sure, -deficit[self.gold[left]].round(9)))
        return int(left[order[0]])

    def _decided(self, tasks: Longs, state: RoundState) -> Floats:
        """Return the probability (n,) that the answers alone give to the known class."""
        labels = state.labels
        counts = labels.labels_per_task[tasks]
        agreed = np.zeros(len(tasks))
        for i, task in enumerate(tasks.tolist()):
            some = slice(labels.indptr[task], labels.indptr[task + 1])
            agreed[i] = np.count_nonzero(labels.label[some] == self.gold[task])
        return np.asarray((agreed + 1) / (counts + labels.n_classes)).round(9)

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                "A worker has seen every gold question; add gold, or its answers are no longer "
                "checked.",
                WisecrowdWarning,
                stacklevel=2,
            )


def split_gold(
    gold: NDArray[np.int32], target: Any, rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return (questions, scoring): gold in the fit and gold held out, each with -1 elsewhere.

    Without a target no gold is held out. With one, half of the gold tasks are: they are asked about
    like any task, and only score the labels.
    """
    known = np.flatnonzero(gold >= 0)
    scoring = np.full_like(gold, -1)
    if target is None or not len(known):
        return gold, scoring
    held = rng.permutation(known)[: (len(known) + 1) // 2]
    questions = gold.copy()
    questions[held] = -1
    scoring[held] = gold[held]
    return questions, scoring
