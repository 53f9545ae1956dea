"""Answers of a person to a check list, or known answers of any other origin, as they come back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.arrow import is_missing
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.gold import as_pairs, find_truth_columns
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import describe_value, suggestion
from wisecrowd.core.types import Longs, Mask
from wisecrowd.inference.checking import Checking
from wisecrowd.truth.check_lists import ANYTIME, DONE, SECOND
from wisecrowd.truth.designs import Design, design_of, ids_as_in, numbers_in, task_column

SLACK = 0.05  # share of the rows that may be empty without further ado


class CheckedAnswers(NamedTuple):
    """What a person answered, and what was asked.

    Attributes
    ----------
    answers, second : dict of task to answer
        Those of the first person, and those of a second one.
    design : Design
        Of all tasks of the list, answered or not; one stratum for known answers without a list.
    order : (n_tasks,)
        Place of each task in the list, from 1; 0 for tasks that are not in it.
    planned : tuple of int
        Sizes of the list at its planned looks.
    listed, anytime : bool
        Whether there is a list, and whether it may be read at any time.
    """

    answers: dict[Any, Any]
    second: dict[Any, Any]
    design: Design
    order: Longs
    planned: tuple[int, ...]
    listed: bool
    anytime: bool = False


def read_checked(checked: Any, data: Annotations, checking: Checking) -> CheckedAnswers:
    """Return the answers to a check list, or known answers of some tasks.

    Parameters
    ----------
    checked : frame, mapping from task to answer, or (n_tasks,) array with None
        A frame with the columns ``stratum`` and ``weight`` is a check list.
    data : Annotations
    checking : Checking

    Raises
    ------
    DataError
        If it names a task that the labels do not have, gives a task two answers, has none, or was
        made for another crowd.
    """
    if not (hasattr(checked, "columns") or hasattr(checked, "column_names")):
        return _known(_pairs(checked, data), data, checking)
    import narwhals as nw

    frame = nw.from_native(checked, eager_only=True)
    columns = {str(name).lower(): frame[name].to_list() for name in frame.columns}
    tasks = ids_as_in(frame[task_column(checked)].to_list(), data.tasks)
    names = _answer_columns(columns, checking)
    answers = _collected(tasks, columns, names, checking, data)
    if not {"stratum", "weight"} <= set(columns):
        return _known(list(answers.items()), data, checking)
    _require_tasks(tasks, data)
    second = {}
    if SECOND in columns and len(names) == 1:
        second = _collected(tasks, columns, [SECOND], checking, data)
    if not answers:
        raise DataError(
            f"The check list has no answers yet; fill in its column {names[0]}, and leave the "
            "others as they are."
        )
    labelled = data.labels_per_task > 0
    design = design_of(checked, data, labelled)
    codes = lookup(tasks, data.tasks)
    place = np.arange(1, len(tasks) + 1)
    if "order" in columns:
        place = numbers_in(columns["order"], "order").astype(np.int64)
    order = np.zeros(data.n_tasks, dtype=np.int64)
    order[codes] = place
    n_rows = int((order > 0).sum())
    n_made = int(place.max()) if "order" in columns else n_rows
    _require_crowd(design, n_made / n_rows, int(labelled.sum()))
    looks = [str(one) for one in columns.get("look", ())]
    anytime = ANYTIME in looks
    ends = {one: max(p for p, look in zip(place.tolist(), looks, strict=True) if look == one)
            for one in set(looks)}  # fmt: skip
    planned = (n_made,) if anytime or not ends else tuple(sorted({*ends.values(), n_made}))
    return CheckedAnswers(answers, second, design, order, planned, listed=True, anytime=anytime)


def _pairs(checked: Any, data: Annotations) -> list[tuple[Any, Any]]:
    """Return tasks and answers of a mapping, or of an array with an answer for each task."""
    _, values = as_pairs(checked, data, "checked tasks")
    ids, answers = values if isinstance(values, tuple) else (data.tasks.tolist(), values)
    found = zip(ids_as_in(list(ids), data.tasks), answers, strict=True)
    return [(task, answer) for task, answer in found if not is_missing(answer)]


def _known(pairs: list[tuple[Any, Any]], data: Annotations, checking: Checking) -> CheckedAnswers:
    """Return known answers that no list asked for."""
    _require_tasks([task for task, _ in pairs], data)
    if not pairs:
        raise DataError("No task has a known answer; give the answers of some tasks.")
    answers = dict(pairs)
    if data.of_classes:
        values = ids_as_in(list(answers.values()), np.asarray(getattr(data, "classes", ())))
        answers = dict(zip(answers, values, strict=True))
    order = np.zeros(data.n_tasks, dtype=np.int64)
    order[lookup(list(answers), data.tasks)] = np.arange(1, len(answers) + 1)
    labelled = data.labels_per_task > 0
    stratum = np.where((order > 0) & labelled, 0, -1).astype(np.int64)
    design = Design(stratum, np.array([labelled.sum()], dtype=np.int64))
    return CheckedAnswers(answers, {}, design, order, (len(answers),), listed=False)


def _answer_columns(columns: dict[str, list[Any]], checking: Checking) -> list[str]:
    """Return the columns with the answers."""
    names = list(checking.columns)
    if len(names) > 1:
        missing = [name for name in names if name not in columns and name != "label"]
        if missing:
            raise DataError(
                f"The checked tasks have no column {missing[0]}; give {', '.join(names)}."
            )
        return [name for name in names if name in columns]
    if names[0] in columns:
        return names
    try:
        found, _ = find_truth_columns(list(columns))
    except DataError as error:
        raise DataError(f"The checked tasks: {error}") from None
    return [found["label"]]


def _collected(
    tasks: list[Any],
    columns: dict[str, list[Any]],
    names: list[str],
    checking: Checking,
    data: Annotations,
) -> dict[Any, Any]:
    """Return the answer of each task; one of several columns is a list with one entry per row."""
    done = [not _is_empty(one) for one in columns.get(DONE, [None] * len(tasks))]
    found: dict[Any, Any] = {}
    for task, is_done, *row in zip(tasks, done, *(columns[name] for name in names), strict=True):
        empty = all(_is_empty(one) for one in row)
        if empty and not (is_done and checking.empty_counts):
            continue
        if len(names) > 1:
            found.setdefault(task, [])
            found[task] += [] if empty else [_numbered(row, task)]
            continue
        answer = "" if empty else row[0]
        if found.setdefault(task, answer) != answer:
            raise DataError(
                f"The check list gives task {task!r} two answers, {describe_value(found[task])} "
                f"and {describe_value(answer)}; keep one."
            )
    if data.of_classes:
        values = ids_as_in(list(found.values()), np.asarray(getattr(data, "classes", ())))
        found = dict(zip(found, values, strict=True))
    return found


def _is_empty(value: Any) -> bool:
    return is_missing(value) or (isinstance(value, str) and not value.strip())


def _numbered(row: list[Any], task: Any) -> tuple[Any, ...]:
    """Return four coordinates as numbers, and what follows as it is."""
    try:
        return (*map(float, row[:4]), *row[4:])
    except (TypeError, ValueError):
        raise DataError(
            f"The check list has a row of task {task!r} with {describe_value(row[:4])}; give four "
            "numbers, or leave the row empty."
        ) from None


def _require_tasks(tasks: list[Any], data: Annotations) -> None:
    """Refuse tasks that the labels do not have."""
    codes = lookup(tasks, data.tasks)
    if (codes < 0).any():
        task = tasks[int(np.argmax(codes < 0))]
        raise DataError(
            f"The checked tasks name {task!r}, which has no row in the labels"
            f"{suggestion(task, data.tasks)}; give the list that was made for these labels."
        )


def _require_crowd(design: Design, made: float, n_tasks: int) -> None:
    """Refuse a list that was drawn from another number of tasks."""
    total = float(design.sizes.sum()) * made
    if abs(total - n_tasks) > 0.01 * n_tasks * made + len(design.sizes) * made:
        raise DataError(
            f"The check list was drawn from {total:,.0f} tasks, and {n_tasks:,} have labels; give "
            "the list that was made for these labels, with all of its rows, or make a new one."
        )


class Reached(NamedTuple):
    """How far a person came.

    Attributes
    ----------
    asked : (n_tasks,) bool
        Tasks of the list up to the look.
    n_missing : int
        Of these, the tasks without an answer, and rows that did not come back.
    is_planned : bool
    """

    asked: Mask
    n_missing: int
    is_planned: bool


def reached(given: CheckedAnswers, known: Mask, planned: tuple[int, ...]) -> Reached:
    """Return the look at which a list with these answered tasks is read.

    It is the planned one that at most a twentieth of its last rows lack, or else an unplanned one
    at the last row that is answered.
    """
    if not given.listed:
        return Reached(known, 0, planned == given.planned or int(known.sum()) in planned)
    last = int(given.order[known].max())
    size = next((n for n in planned if last <= n and n - last <= max(SLACK * n, 1)), None)
    asked = (given.order > 0) & (given.order <= (size or last))
    missing = (size or last) - int((asked & known).sum())
    return Reached(asked, missing, size is not None or given.anytime)
