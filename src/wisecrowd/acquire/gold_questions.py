"""Gold questions: tasks of known class that check workers without their knowledge."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.acquire.candidates import NOBODY, Pairs
from wisecrowd.acquire.rounds import Chosen, RoundState
from wisecrowd.core.exceptions import WisecrowdWarning

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

SCREENING = 5  # first queries of a new worker
WIDEST, NARROWEST = 2.0, 0.5  # bounds of the factor by which wide intervals are checked more often


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
