"""Numbers as judges are compared on: by their distance."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.judged_answers import JudgedAnswers, Swaps, one_per_question
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.types import Floats
from wisecrowd.kinds.numbers.answers import known_numbers
from wisecrowd.kinds.numbers.container import CrowdNumbers


def judged_answers(data: CrowdNumbers, swaps: Swaps = ()) -> JudgedAnswers:
    """Return all numbers with weight; they have no sides that ``swaps`` could exchange.

    Examples
    --------
    >>> data = CrowdNumbers.from_arrays(["t", "t"], ["ann", "bob"], [3, 4.5])
    >>> judged_answers(data).answer.tolist()
    [3.0, 4.5]
    """
    if swaps:
        raise ParameterError(f"Numbers have no sides; leave out {for_reader('swap', '--swap')}.")
    rows = np.flatnonzero(data.weights > 0)
    return one_per_question(
        data.task[rows].astype(np.int64), data.worker[rows].astype(np.int64), data.value[rows],
        np.arange(data.n_tasks), distance=True,
    )  # fmt: skip


def known_answers(known: Any, data: CrowdNumbers, answers: JudgedAnswers) -> Floats:
    """Return the known number of each task (n_tasks,), NaN where unknown."""
    return known_numbers(known, data, "known answers")[answers.task_of]
