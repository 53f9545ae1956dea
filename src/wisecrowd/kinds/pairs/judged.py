"""Votes on pairs as judges are compared on: the same item, or both a tie.

A question is a pair of items within a task. A worker who answered it with the sides exchanged, and
chose the same side again, counts as a tie.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.core.arrow import is_missing
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.gold import as_pairs
from wisecrowd.core.judged_answers import JudgedAnswers, Sides, Swaps, one_per_question
from wisecrowd.core.messages.descriptions import Places
from wisecrowd.core.types import Floats, Longs
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.outcomes import LEFT, RIGHT, TIE, as_outcomes

TURNED = np.array([RIGHT, LEFT, TIE])


def judged_answers(data: CrowdPairs, swaps: Swaps = ()) -> JudgedAnswers:
    """Return outcomes by the items: 0 for the one with the lower code, 1 for the other, 2 a tie.

    Parameters
    ----------
    data : CrowdPairs
    swaps : pairs of codes of workers
        The votes of the second worker of a pair count as those of the first.

    Examples
    --------
    >>> votes = CrowdPairs.from_arrays(
    ...     None, ["ann", "ann"], ["x", "y"], ["y", "x"], ["left", "left"])
    >>> found = judged_answers(votes)
    >>> found.answer.tolist(), found.sides.flip.tolist(), found.sides.first.tolist()
    ([2.0], [True], [True])
    """
    if not data.has_workers:
        raise DataError("The votes name no workers; add a column worker, which says who voted.")
    rows = np.flatnonzero(data.weights > 0)
    left, right = data.left[rows].astype(np.int64), data.right[rows].astype(np.int64)
    low, high = np.minimum(left, right), np.maximum(left, right)
    task, n = data.task[rows].astype(np.int64), data.n_items
    pair = np.unique(low * n + high, return_inverse=True)[1].ravel()
    n_pairs = int(pair.max(initial=-1)) + 1
    names, question = np.unique(task * n_pairs + pair, return_inverse=True)
    question = question.ravel().astype(np.int64)
    worker, turned = data.worker[rows].astype(np.int64), left > right
    for one, other in swaps:
        worker[worker == other] = one
    chosen = np.where(turned, TURNED[data.outcome[rows]], data.outcome[rows])
    return one_per_question(
        question, worker, chosen.astype(np.float64), names // max(n_pairs, 1), split=float(TIE),
        sides=_sides(question, worker, chosen, turned),
    )  # fmt: skip


def _sides(question: Longs, worker: Longs, chosen: Any, turned: Any) -> Sides:
    """Return the questions that a worker answered once in each order, or the first of several."""
    n_workers = int(worker.max(initial=-1)) + 1
    key = question * max(n_workers, 1) + worker
    ends = []
    for some in (np.flatnonzero(~turned), np.flatnonzero(turned)):
        named, first = np.unique(key[some], return_index=True)
        ends.append((named, some[first]))
    both, at, at_turned = np.intersect1d(
        ends[0][0], ends[1][0], assume_unique=True, return_indices=True
    )
    one, other = chosen[ends[0][1][at]], chosen[ends[1][1][at_turned]]
    # Item 0 is shown first in the one order, item 1 in the other.
    flip = (one != other) & (one != TIE) & (other != TIE)
    asked, by = np.divmod(both, max(n_workers, 1))
    return Sides(by, asked, one == other, flip, flip & (one == 0))


def known_answers(known: Any, data: CrowdPairs, answers: JudgedAnswers) -> Floats:
    """Return the known outcome of each question, NaN where unknown.

    Known answers are outcomes by task: the winning item, or left, right and tie by the sides of
    the task's first row.
    """
    codes, values = as_pairs(known, data, "known answers")
    listed = values[1] if isinstance(values, tuple) else values
    rows = [
        n for n, (code, value) in enumerate(zip(codes.tolist(), listed, strict=True))
        if code >= 0 and not is_missing(value)
    ]  # fmt: skip
    if not rows:
        raise DataError("No known answer is about a task of the votes; correct the ids of tasks.")
    start = data.indptr[codes[rows]]
    left, right = data.left[start], data.right[start]
    given = as_outcomes([listed[n] for n in rows], left, right, data.items, Places({}))
    found = np.full(data.n_tasks, np.nan)
    found[codes[rows]] = np.where(left > right, TURNED[given], given)
    return found[answers.task_of]
