"""Win rates under human judgement: of the left side, or of every item.

A task has a left and a right item: those of its votes or, if it was shown both ways round, the item
that comes first in the vocabulary and the other one. The prediction is the mean vote of a task, in
which a tie is half a win; no fit is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wisecrowd.core.arrow import is_missing
from wisecrowd.core.attributes import Groups
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.gold import as_pairs
from wisecrowd.core.messages.descriptions import Places, suggestion
from wisecrowd.core.targets import Targets
from wisecrowd.core.types import Floats, Ints, Mask
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.outcomes import WORD_CODE, as_outcomes, plain_word

OF = ("win-rate",)
WINS = np.array([1.0, 0.0, 0.5])  # of the left item, by outcome
QUANTITY = "win rate"


def targets(data: CrowdPairs, known: Any, fit: Callable[[], Any], of: str) -> Targets:
    """Return how often the left item wins, by the person and by the mean vote.

    Examples
    --------
    >>> votes = CrowdPairs.from_arrays(
    ...     ["t1", "t1", "t2"], None, ["x", "y", "x"], ["y", "x", "y"], ["left", "left", "tie"])
    >>> found = targets(votes, {"t1": "y"}, lambda: None, "win-rate")
    >>> found.prediction[:2].ravel().tolist(), found.answer[:2].ravel().tolist()
    ([0.5, 0.5], [0.0, nan])
    """
    left, right, turned, both = sides(data)
    win = np.where(turned, 1 - WINS[data.outcome], WINS[data.outcome])
    weight = data.weights
    mass = np.bincount(data.task, weight, data.n_tasks)
    vote = np.bincount(data.task, weight * win, data.n_tasks) / np.where(mass > 0, mass, 1.0)
    answer = known_wins(known, data, left, right, both)
    n = data.n_tasks
    items = Groups(
        np.concatenate([left, right]).astype(np.int32), tuple(map(str, data.items.tolist()))
    )
    return Targets(
        (QUANTITY,), np.concatenate([answer, 1 - answer])[:, None],
        np.concatenate([vote, 1 - vote])[:, None], True,
        np.concatenate([np.arange(n), np.arange(n)]), win == answer[data.task], items,
    )  # fmt: skip


def sides(data: CrowdPairs) -> tuple[Ints, Ints, Mask, Mask]:
    """Return left and right item of the tasks, which votes are turned, and tasks shown both ways.

    Examples
    --------
    >>> votes = CrowdPairs.from_arrays(["t", "t"], None, ["y", "x"], ["x", "y"], ["left", "left"])
    >>> [one.tolist() for one in sides(votes)]
    [[0], [1], [False, True], [True]]
    """
    left, right = np.zeros(data.n_tasks, dtype=np.int64), np.zeros(data.n_tasks, dtype=np.int64)
    left[data.task], right[data.task] = data.left, data.right
    turned = data.left != left[data.task]
    other = turned & ((data.left != right[data.task]) | (data.right != left[data.task]))
    other |= ~turned & (data.right != right[data.task])
    if other.any():
        task = data.tasks[data.task[other]].tolist()[0]
        raise DataError(
            f"Task {task!r} has votes on different pairs of items, and a win rate needs one pair "
            "per task; leave out the column of tasks, so that each pair is a task."
        )
    both = np.zeros(data.n_tasks, dtype=bool)
    both[data.task[turned]] = True
    low, high = np.minimum(left, right), np.maximum(left, right)
    left, right = np.where(both, low, left), np.where(both, high, right)
    return left, right, data.left != left[data.task], both


def known_wins(known: Any, data: CrowdPairs, left: Ints, right: Ints, both: Mask) -> Floats:
    """Return whether the left item of a task wins by the known answers, NaN where unknown."""
    codes, values = as_pairs(known, data, "gold")
    ids, said = values if isinstance(values, tuple) else (data.tasks.tolist(), values)
    kept = [row for row, value in enumerate(said) if not is_missing(value) and value != ""]
    found = np.full(data.n_tasks, np.nan)
    for row in kept:
        task = ids[row]
        if codes[row] < 0:
            raise DataError(
                f"Gold names task {task!r}, which has no votes{suggestion(task, data.tasks)}; "
                "remove it from the gold."
            )
        word = WORD_CODE.get(plain_word(said[row]))
        if both[codes[row]] and (word in (0, 1) or plain_word(said[row]) in ("0", "1")):
            raise DataError(
                f"Gold gives task {task!r} the outcome {said[row]!r}, and votes were shown both "
                "ways round; give the id of the winning item."
            )
    if not kept:
        return found
    place = codes[kept]
    answers = as_outcomes(
        [said[row] for row in kept], left[place].astype(np.int32), right[place].astype(np.int32),
        data.items, Places({}),
    )  # fmt: skip
    found[place] = WINS[answers]
    differs = found[place] != WINS[answers]
    if differs.any():
        task = data.tasks[place[differs]].tolist()[0]
        raise DataError(f"Gold gives task {task!r} two outcomes; keep one.")
    return found
