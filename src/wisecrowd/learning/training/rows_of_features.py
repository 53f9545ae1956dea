"""The task or item that each row of features is about: in the annotations, or in the fit.

:func:`as_targets` reads classes; other kinds have their own function beside their learners.

The posterior of a training task may depend on more than the classifier and the worker parameters:
belief propagation estimates each worker from its other tasks. A new task has no such posterior. The
fit therefore stores what identifies its tasks by their labels and the classifier's output, and
``CrowdClassifier.predict_proba`` repeats their posteriors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.arrow import is_missing
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import describe_ids, suggestion
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.kinds.classes.container import CrowdLabels, stable_order

if TYPE_CHECKING:
    from wisecrowd.learning.training.crowd_classifier import CrowdClassifier, Training
    from wisecrowd.learning.training.crowd_data import CrowdData

Data = TypeVar("Data", bound=Annotations)
Keys = NDArray[np.int64]
Bits = NDArray[np.uint64]
SAME_OUTPUT = 1e-5  # tolerance, because rounding depends on the batch in single precision
NEAREST = 4  # number of candidates with the same labels on either side


def as_targets(y: Any, n_rows: int, tasks: Any = None) -> CrowdLabels:
    """Return annotations with one task per row of the features, in that order.

    Parameters
    ----------
    y : CrowdLabels, long frame, tasks × workers matrix, or (n_rows,) labels
        One-dimensional labels come from one worker who labelled every task. Matrices and
        one-dimensional labels are in the order of the rows.
    n_rows : int
        Number of rows of the features.
    tasks : (n_rows,) ids, optional
        The task of each row. Without it the tasks must be the row numbers.

    Examples
    --------
    >>> as_targets(["cat", "dog", "cat"], 3)
    CrowdLabels(3 tasks, 1 workers, 2 classes, 3 annotations)
    """
    require_given(y)
    if _is_one_dimensional(y):
        labels = _one_worker(np.asarray(y), n_rows)
    elif isinstance(y, list) or is_array(y):
        labels = as_crowd_labels(y if isinstance(y, list) else np.asarray(y))
        if labels.n_tasks != n_rows:
            raise wrong_counts(n_rows, f"y has {labels.n_tasks} rows")
    else:
        return by_rows(as_crowd_labels(y), n_rows, tasks)
    if tasks is None:
        return labels
    ids = as_ids(tasks, n_rows, TASK_ROWS)
    return recoded(labels, np.arange(n_rows), ids)


def require_given(y: Any) -> None:
    """Refuse a fit without annotations."""
    if y is None:
        raise DataError("fit requires y to be passed, but the target y is None.")


def _is_one_dimensional(y: Any) -> bool:
    if isinstance(y, Annotations | tuple) or hasattr(y, "columns") or hasattr(y, "column_names"):
        return False
    if hasattr(y, "__array__"):
        return np.asarray(y).ndim == 1
    return isinstance(y, list) and np.ndim(y) == 1


def is_array(y: Any) -> bool:
    """Return whether y is an array, and neither a frame nor annotations."""
    frames = hasattr(y, "columns") or hasattr(y, "column_names")
    return hasattr(y, "__array__") and not frames and not isinstance(y, Annotations)


def _one_worker(y: NDArray[Any], n_rows: int) -> CrowdLabels:
    if len(y) != n_rows:
        raise wrong_counts(n_rows, f"y has {len(y)} labels")
    if y.dtype.kind == "f":
        if not np.isfinite(y).all():
            kind = "NaN" if np.isnan(y).any() else "infinity"
            row = int(np.argmin(np.isfinite(y)))
            raise DataError(f"Input y contains {kind} in row {row}: every row needs a label.")
        if (y != np.floor(y)).any():
            raise DataError(
                f"Unknown label type: continuous values such as {y[y != np.floor(y)][0]} are no "
                "classes; give integers or text."
            )
    elif any(map(is_missing, y.tolist())):
        row = [is_missing(value) for value in y.tolist()].index(True)
        raise DataError(f"Input y contains NaN in row {row}: every row needs a label.")
    values, codes = np.unique(y, return_inverse=True)
    rows = np.arange(n_rows)
    return CrowdLabels(
        rows.astype(np.int32), np.zeros(n_rows, np.int32), codes.astype(np.int32),
        rows, np.zeros(1, np.int64), values,
    )  # fmt: skip


def by_rows(labels: Data, n_rows: int, tasks: Any) -> Data:
    """Assign to each task the row that its id states."""
    if tasks is None and labels.rows is not None:  # labels[rows] with X[rows]: positions must agree
        if labels.n_tasks != n_rows:
            raise wrong_counts(n_rows, f"there are {labels.n_tasks} selected tasks")
        if (_row_numbers(labels.tasks) != labels.rows).any():
            raise _no_row_numbers(labels.tasks, n_rows, TASK_ROWS)
        return labels
    row, ids = row_of_ids(labels.tasks, labels.labels_per_task > 0, n_rows, tasks, TASK_ROWS)
    return recoded(labels, row, ids)


class RowWords(NamedTuple):
    """Words of messages about the rows of X: what they are, and the argument with their ids."""

    one: str
    many: str
    used: str  # with annotations
    fix: str
    counts: str  # the container's attribute with the number of annotations of each


TASK_ROWS = RowWords("task", "tasks", "labelled tasks", "labels", "labels_per_task")
ITEM_ROWS = RowWords("item", "items", "compared items", "votes", "comparisons_per_item")


def row_of_ids(
    ids: NDArray[Any], used: NDArray[np.bool_], n_rows: int, given: Any, words: RowWords
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the row of each id, -1 for unused ids without one, and the id of each row.

    Parameters
    ----------
    ids : (n,)
        Ids in the annotations.
    used : (n,)
        Whether an id has annotations.
    n_rows : int
        Number of rows of the features.
    given : (n_rows,) ids or None
        The id of each row; without it ids must be row numbers.
    words : RowWords
    """
    if given is not None:
        known = as_ids(given, n_rows, words)
        found = lookup(ids, known)
        lost = (found < 0) & used
        if lost.any():
            first = ids[lost].tolist()[0]
            raise DataError(
                f"{int(lost.sum())} of {len(ids)} {words.used} have no features, such as "
                f"{first!r}{suggestion(first, known)}; add their rows to X and {words.many}, or "
                f"remove their {words.fix}."
            )
        return found, known
    row = _row_numbers(ids)
    if ((row < 0) | (row >= n_rows)).any():
        raise _no_row_numbers(ids, n_rows, words)
    known = np.arange(n_rows)
    if ids.dtype.kind not in "iu":
        known = np.array([str(i) for i in range(n_rows)], dtype=object)
    return row, known


def _row_numbers(ids: NDArray[Any]) -> NDArray[np.int64]:
    """Return ids as integers; -1 where an id is not the canonical text of one."""
    if ids.dtype.kind in "iu":
        return ids.astype(np.int64)
    plain = [
        int(x) if isinstance(x, str) and x.isdecimal() and x.isascii() and str(int(x)) == x else -1
        for x in ids.tolist()
    ]
    return np.array(plain, dtype=np.int64)


def _no_row_numbers(ids: NDArray[Any], n_rows: int, words: RowWords) -> DataError:
    return DataError(
        f"X has {n_rows} rows and y has {len(ids)} {words.many} ({describe_ids(ids, 3)}) "
        f"that are not the row numbers 0 to {n_rows - 1}; say which {words.one} each row of X is: "
        + for_reader(f"fit(X, y, {words.many}=ids).", "--ids FILE.")
    )


def wrong_counts(n_rows: int, other: str) -> DataError:
    """Return the error for features and annotations with different numbers of rows."""
    return DataError(
        f"X has {n_rows} rows and {other}, so they do not align; give one row of X per task, or "
        f"say which task each row is with {for_reader('tasks=ids', '--ids FILE')}."
    )


def as_ids(tasks: Any, n_rows: int, words: RowWords) -> NDArray[Any]:
    """Return the ids of the rows, one for each and all different."""
    ids = np.asarray(tasks)
    if ids.dtype.kind in "US":
        ids = ids.astype(object)
    if ids.shape != (n_rows,):
        raise DataError(
            f"{words.many} has shape {ids.shape} and X has {n_rows} rows; give one id per row."
        )
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        twice = values[counts > 1].tolist()[0]
        raise DataError(f"{words.many} names {twice!r} twice; give each row its own id.")
    return ids


def recoded(labels: Data, row: NDArray[Any], ids: NDArray[Any]) -> Data:
    """Return the annotations with task codes that are rows of the features."""
    task = row[labels.task]
    order = stable_order(task, len(ids))
    return replace(
        labels._rows(order),
        task=task[order].astype(np.int32),
        tasks=ids,
        task_columns={},
        rows=None,
    )


def label_keys(labels: CrowdLabels) -> Keys:
    """Return (N,) hashes of each task's workers, labels and weights; 0 without labels.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays([0, 0, 1, 1, 2], list("abbac"), [1, 0, 0, 1, 1])
    >>> one, other, third = label_keys(labels)
    >>> bool(one == other), bool(one == third)
    (True, False)
    """
    weight = labels.weights
    cell = labels.worker.astype(np.uint64) * np.uint64(labels.n_classes) + labels.label.astype(
        np.uint64
    )
    each = _mixed(_mixed(cell) ^ np.asarray(weight, dtype=np.float64).view(np.uint64))
    each[weight == 0] = 0
    until = np.concatenate([np.zeros(1, np.uint64), np.cumsum(each, dtype=np.uint64)])
    total = until[labels.indptr[1:]] - until[labels.indptr[:-1]]  # modulo 2**64
    return np.asarray((total >> np.uint64(1)).astype(np.int64))


def _mixed(value: Bits) -> Bits:
    """Return hashes of numbers, by the finaliser of splitmix64."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def remember(data: CrowdData | Training, log_probas: Floats) -> dict[str, NDArray[Any]]:
    """Return what identifies the training tasks.

    These are ``task_key`` (N,), 0 for tasks with gold, whose labels do not explain their class,
    and ``task_output`` (N, K), the classifier's probabilities.
    """
    keys = np.where(data.gold >= 0, 0, label_keys(data.labels))
    return {"task_key": keys, "task_output": np.exp(log_probas)}


def remembered(optional: bool | Callable[[Any], bool] = False) -> dict[str, Saved]:
    """Declare what :func:`remember` adds, for ``saves``."""
    return {
        "task_key_": SavedArray("N", "count", optional),
        "task_output_": SavedArray("N K", "distribution", optional),
    }


def recall(method: CrowdClassifier, probas: Floats, log_probas: Floats, labels: Any) -> Floats:
    """Return class probabilities, with those of the fit for training tasks.

    Parameters
    ----------
    method : CrowdClassifier
        Fitted, with what :func:`remember` added.
    probas : (n, K)
        Class probabilities if the tasks were new.
    log_probas : (n, K)
        The classifier's output.
    labels : CrowdLabels
        In the vocabularies of the fit.
    """
    known = method.task_key_, method.task_output_
    row = find_tasks(*known, label_keys(labels), np.exp(log_probas))
    return np.where((row >= 0)[:, None], method.probas_[row], probas)


def find_tasks(keys: Keys, output: Floats, wanted: Keys, wanted_output: Floats) -> NDArray[np.intp]:
    """Return (n,) rows of the known tasks with the same key and the nearest output, or -1.

    Parameters
    ----------
    keys, output : (N,), (N, K)
        Keys and outputs of the training tasks; a key of 0 never matches.
    wanted, wanted_output : (n,), (n, K)
    """
    found = np.full(len(wanted), -1, np.intp)
    groups = np.unique(keys[keys != 0])
    if not len(groups):
        return found
    direction = (np.arange(1, output.shape[1] + 1) * 0.6180339887498949) % 1.0
    rows = np.flatnonzero(keys != 0)
    # One sorted line: tasks of a key lie together, in the order of their output's projection.
    place = 2.0 * np.searchsorted(groups, keys[rows]) + output[rows] @ direction
    order = np.argsort(place, kind="stable")
    rows, place = rows[order], place[order]
    group = np.minimum(np.searchsorted(groups, wanted), len(groups) - 1)
    near = np.searchsorted(place, 2.0 * group + wanted_output @ direction)
    least = np.full(len(wanted), SAME_OUTPUT)
    for offset in range(-NEAREST, NEAREST):
        row = rows[np.clip(near + offset, 0, len(rows) - 1)]
        distance = np.abs(output[row] - wanted_output).max(axis=1)
        better = (keys[row] == wanted) & (distance < least)
        found, least = np.where(better, row, found), np.where(better, distance, least)
    return found
