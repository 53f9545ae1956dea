"""Classes as judges are compared on: equal or not."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.judged_answers import JudgedAnswers, Swaps, one_per_question, with_sides
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.truth import as_truth

TIES = frozenset({"tie", "ties", "tied", "draw", "equal", "both", "neither", "same"})


def judged_answers(data: CrowdLabels, swaps: Swaps = ()) -> JudgedAnswers:
    """Return the classes of all labels with weight.

    Parameters
    ----------
    data : CrowdLabels
    swaps : pairs of codes of workers
        The second worker of a pair is the first one who saw two classes with the sides exchanged.
        The first of these classes is the one that the first worker saw first.

    Examples
    --------
    >>> data = CrowdLabels.from_arrays(["t", "t"], ["ann", "bob"], ["cat", "dog"])
    >>> judged_answers(data).answer.tolist()
    [0.0, 1.0]
    """
    rows = np.flatnonzero(data.weights > 0)
    found = one_per_question(
        data.task[rows].astype(np.int64), data.worker[rows].astype(np.int64),
        data.label[rows].astype(np.float64), np.arange(data.n_tasks), distance=data.ordered,
        classes=data.classes,
    )  # fmt: skip
    return with_sides(found, swaps, _two_sides(data)) if swaps else found


def _two_sides(data: CrowdLabels) -> tuple[int, int]:
    """Return the codes of the two classes that are sides."""
    names = [str(name).strip().lower() for name in data.classes.tolist()]
    sides = [code for code, name in enumerate(names) if name not in TIES]
    if len(sides) != 2 or data.ordered:
        raise DataError(
            f"Sides can be exchanged where there are two classes, and perhaps a tie, and there are "
            f"{describe_ids(data.classes)}; leave out {for_reader('swap', '--swap')}."
        )
    return sides[0], sides[1]


def known_answers(known: Any, data: CrowdLabels, answers: JudgedAnswers) -> Floats:
    """Return the known class of each task (n_tasks,), NaN where unknown."""
    found = as_truth(known, data)
    missing = (found < 0) | (data.ordered & (found >= data.n_classes))
    return np.where(missing, np.nan, found)[answers.task_of]
