"""Known answers of tasks: gold and truth in every accepted form, and the columns that hold them.

The column names of the annotations are preferred if the table has them, but not required.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.columns import TRUTH_NAMES, find_columns, guess, listed, plain_name
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import lookup

_SUREST = [plain_name(name) for name in TRUTH_NAMES if name != "class"]
_RIVALS = ("label", "answer")  # labels by workers, if the table also has a column of the truth
_LAST = ("score", "tags", "cluster", "mask")  # answers of other kinds, if no other column is one
DEFAULT_REMEDY = "call them task and label"


def find_truth_columns(
    columns: Sequence[str],
    preferred: Mapping[str, str | None] | None = None,
    *,
    asked: Mapping[str, str | None] | None = None,
    remedy: str = DEFAULT_REMEDY,
) -> tuple[dict[str, str], str | None]:
    """Return the columns of the task and the label, and a sentence if they were guessed.

    Parameters
    ----------
    columns : sequence of str
        The names that the table has.
    preferred : mapping of role to name, optional
        Column names of the annotations, used if the table has such columns.
    asked : mapping of role to name, optional
        Column names of this table, which must exist.
    remedy : str
        What to do if the columns cannot be detected.

    Examples
    --------
    >>> find_truth_columns(["x", "gold"], {"task": "x"})
    ({'task': 'x', 'label': 'gold'}, "columns recognised: task = 'x', label = 'gold'")
    """
    given = {role: name for role, name in (asked or {}).items() if name is not None}
    found = find_columns(columns, given)[0] if given else {}
    found = {role: name for role, name in found.items() if role in given}
    wanted = {role: name for role, name in (preferred or {}).items() if name in columns}
    for role in ("task", "label"):
        if role in found:
            continue
        free = [name for name in columns if name not in found.values()]
        chosen = _truth(free, remedy) if role == "label" else None
        chosen = chosen or wanted.get(role) or _guess(role, free, remedy)
        if chosen is None and role == "label":
            chosen = _only([name for name in free if plain_name(name) in _LAST], role, remedy)
        if chosen is None:
            raise DataError(
                f"No column looks like the {role}: there are {listed(columns)}; {remedy}."
            )
        found[role] = chosen
    shown = [f"{role} = {found[role]!r}" for role in ("task", "label")]
    usual = all(found[role] in (role, given.get(role)) for role in ("task", "label"))
    return found, None if usual else f"columns recognised: {', '.join(shown)}"


def _truth(columns: Sequence[str], remedy: str) -> str | None:
    """Return the column whose name means the truth."""
    truths = [name for name in columns if plain_name(name) in _SUREST]
    rivals = [name for name in columns if plain_name(name) in _RIVALS] if truths else []
    return _only([*rivals, *truths], "label", remedy)


def _only(candidates: Sequence[str], role: str, remedy: str) -> str | None:
    if len(candidates) > 1:
        raise DataError(f"The columns {listed(candidates)} could each be the {role}; {remedy}.")
    return candidates[0] if candidates else None


def _guess(role: str, columns: Sequence[str], remedy: str) -> str | None:
    try:
        return guess(role, columns)
    except DataError as error:
        raise DataError(f"{str(error).partition(';')[0]}; {remedy}.") from None


def as_pairs(values: Any, labels: Annotations, what: str) -> tuple[NDArray[np.int32], Any]:
    """Return (task codes, class values) from a mapping, a (task, label) frame or an aligned array.

    The class values are a list aligned to ``labels.tasks`` for an array, else a pair of lists: the
    task ids as given (code ``-1`` where unknown) and their classes.
    """
    if isinstance(values, Mapping):
        ids, classes = list(values.keys()), list(values.values())
    elif hasattr(values, "items") and hasattr(values, "index") and not hasattr(values, "columns"):
        ids, classes = list(values.index), list(values)  # a pandas Series by task
    elif hasattr(values, "columns") or hasattr(values, "column_names"):
        import narwhals as nw

        frame = nw.from_native(values, eager_only=True)
        remedy = "give a mapping from task to class, or call its columns task and label"
        try:
            found, _ = find_truth_columns([str(c) for c in frame.columns], remedy=remedy)
        except DataError as error:
            raise DataError(f"The {what}: {error}") from None
        ids, classes = frame[found["task"]].to_list(), frame[found["label"]].to_list()
    else:
        array = np.asarray(values)
        if array.shape != (labels.n_tasks,):
            raise DataError(
                f"The {what} array has shape {array.shape}; give one class per task "
                f"({labels.n_tasks}), or a mapping from task to class."
            )
        return np.arange(labels.n_tasks, dtype=np.int32), array.tolist()
    return lookup(ids, labels.tasks), (ids, classes)


def known_answers(
    truth: Any, tasks: NDArray[Any], answer: str, names: Collection[str], what: str = "truth"
) -> tuple[list[Any], list[Any]]:
    """Return ids of tasks and their answers from a mapping, a frame, or one answer per task.

    Parameters
    ----------
    truth : mapping from task to answer, frame with a column of tasks, or (n_tasks,) list
    tasks : (n_tasks,)
        The tasks of the data.
    answer : str
        What messages call an answer.
    names : collection of str
        Names that the column of answers may have, in lower case, the surest first.
    what : str
        What messages call the truth.
    """
    if isinstance(truth, Mapping) and not hasattr(truth, "column_names"):
        return list(truth.keys()), list(truth.values())
    if hasattr(truth, "columns") or hasattr(truth, "column_names"):
        import narwhals as nw

        frame = nw.from_native(truth, eager_only=True)
        columns = {str(name).lower(): name for name in frame.columns}
        named = next((columns[name] for name in names if name in columns), None)
        if "task" not in columns or named is None:
            listed = ", ".join(map(repr, frame.columns))
            raise DataError(f"The {what} has the columns {listed}; call them task and {answer}.")
        return frame[columns["task"]].to_list(), frame[named].to_list()
    return tasks.tolist(), one_per_task(truth, tasks, answer, what)


def one_per_task(truth: Any, tasks: NDArray[Any], answer: str, what: str = "truth") -> list[Any]:
    """Return a list of answers, as many as there are tasks."""
    values = list(truth)
    if len(values) != len(tasks):
        raise DataError(
            f"The {what} has {len(values)} entries for {len(tasks)} tasks; give one per task, or a "
            f"mapping from task to {answer}."
        )
    return values
