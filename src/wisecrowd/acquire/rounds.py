"""One round of queries: cover first, then the policy's choice, one query per task and pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.acquire.candidates import NOBODY, Candidates, Pairs
from wisecrowd.acquire.shrunken_models import CrowdBelief, TaskPosterior
from wisecrowd.acquire.worker_gate import WorkerGate, worker_gate
from wisecrowd.core.labels import CrowdLabels

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

DIGITS = 12  # scores that agree to so many decimals are ties, whatever the rounding
COVER = "cover: too few labels"


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
