"""Known classes of tasks, as codes of the classes of the labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import is_missing
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.gold import as_pairs
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import describe_ids, suggestion
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.kinds.classes.container import CrowdLabels


def as_gold(gold: Any, labels: CrowdLabels, what: str = "gold") -> NDArray[np.int32] | None:
    """Return gold as one class code per task, ``-1`` where unknown; ``None`` without gold.

    Messages call it ``what``.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays(["t1", "t2"], ["ann", "ann"], ["cat", "dog"])
    >>> as_gold({"t2": "cat"}, labels).tolist()
    [-1, 0]
    """
    if gold is None:
        return None
    codes, values = as_pairs(gold, labels, what)
    called = "Gold" if what == "gold" else f"The {what}"
    ids, classes = values if isinstance(values, tuple) else (labels.tasks.tolist(), values)
    present = np.array([not is_missing(x) for x in classes], dtype=bool)
    unknown_task = (codes < 0) & present
    if unknown_task.any():
        task = ids[int(np.argmax(unknown_task))]
        raise DataError(
            f"{called} names task {task!r}, which has no row in the labels"
            f"{suggestion(task, labels.tasks)}; remove it from the {what} or add the task."
        )
    class_codes = lookup(_whole(classes), labels.classes)
    unknown = (class_codes < 0) & present
    if unknown.any():
        where = int(np.argmax(unknown))
        raise DataError(
            f"{called} gives task {ids[where]!r} the class {classes[where]!r}"
            f"{suggestion(classes[where], labels.classes)}, which is not among the classes "
            f"({describe_ids(labels.classes)}); declare it with "
            f"{for_reader('classes=[...]', '--classes A,B,C')} or correct the {what}."
        )
    result = np.full(labels.n_tasks, -1, dtype=np.int32)
    codes, class_codes = codes[present], class_codes[present]
    result[codes] = class_codes
    if (result[codes] != class_codes).any():
        where = int(np.argmax(result[codes] != class_codes))
        raise DataError(
            f"{called} gives task {labels.tasks[codes[where]]!r} two classes, "
            f"{labels.classes[class_codes[where]]!r} and {labels.classes[result[codes[where]]]!r}; "
            "keep one."
        )
    return result


def as_truth(truth: Any, labels: CrowdLabels) -> NDArray[np.int32]:
    """Return the truth for scoring as one class code per task, ``-1`` where unknown.

    Unlike gold, truth may contain other tasks, which are ignored. It may also contain classes that
    no label has. Those get the code ``n_classes``, so the answer to such a task is always wrong.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays(["t1", "t2"], ["ann", "ann"], ["cat", "dog"])
    >>> as_truth({"t2": "cow", "t9": "cat"}, labels).tolist()
    [-1, 2]
    """
    codes, values = as_pairs(truth, labels, "truth")
    classes = _whole(values[1] if isinstance(values, tuple) else values)
    known = (codes >= 0) & np.array([not is_missing(x) for x in classes], dtype=bool)
    if not known.any():
        given = values[0] if isinstance(values, tuple) else []
        hint = suggestion(given[0], labels.tasks) if len(given) else ""
        raise DataError(f"The truth names none of these tasks{hint}; there is nothing to score.")
    class_codes = lookup(classes, labels.classes)
    class_codes[class_codes < 0] = labels.n_classes
    result = np.full(labels.n_tasks, -1, dtype=np.int32)
    result[codes[known]] = class_codes[known]
    return result


def _whole(classes: list[Any]) -> list[Any]:
    """Convert floats back to integers where missing entries turned 1 into 1.0."""
    floats = [x for x in classes if isinstance(x, float) and x == x]
    if not floats or not all(x.is_integer() for x in floats):
        return classes
    return [int(x) if isinstance(x, float) and x == x else x for x in classes]


def known_classes(truth: Any, labels: CrowdLabels) -> tuple[list[Any], list[Any]]:
    """Return the ids of the tasks with a known class, as given, and their classes.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays(["t1", "t2"], ["ann", "ann"], ["cat", "dog"])
    >>> known_classes([None, "cow"], labels)
    (['t2'], ['cow'])
    """
    _, values = as_pairs(truth, labels, "truth")
    ids, classes = values if isinstance(values, tuple) else (labels.tasks.tolist(), values)
    classes = _whole(classes)
    known = [i for i, value in enumerate(classes) if not is_missing(value)]
    return [ids[i] for i in known], [classes[i] for i in known]
