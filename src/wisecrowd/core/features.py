"""Validation of features, and the assignment of feature rows to tasks or items."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.arrow import is_missing
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.labels import CrowdLabels, stable_order
from wisecrowd.core.memory_check import available_memory, readable_bytes
from wisecrowd.core.messages.descriptions import describe_ids, suggestion
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.core.sets import CrowdSets
from wisecrowd.core.validation import as_crowd_labels

Data = TypeVar("Data", bound=Annotations)
LARGEST_FEATURE = 1e30  # standardised, larger numbers may overflow in single precision
_CHUNK = 1 << 24  # numbers checked at a time, so that the check does not copy the whole array


def is_hugging_face(X: Any) -> bool:
    """Return whether ``X`` is a ``Dataset`` of Hugging Face's library, a table of named columns."""
    return hasattr(X, "column_names") and hasattr(X, "with_format")


def is_dataset(X: Any) -> bool:
    """Return whether ``X`` is read item by item, like a torch Dataset, and is not an array."""
    arrays = ("__array__", "columns", "column_names", "tocsr")
    if isinstance(X, list | tuple | str) or any(hasattr(X, name) for name in arrays):
        return False
    return hasattr(X, "__getitem__") and hasattr(X, "__len__")


def is_mapped(X: Any) -> bool:
    """Return whether ``X`` is an array of a file mapped into memory, or a view of one."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            return True
        X = X.base
    return False


def as_features(
    X: Any, *, n_features: int | None = None, owner: str = "The model", sparse: bool = False,
    mapped: bool = False,
) -> Any:  # fmt: skip
    """Return features as a float array with two or more dimensions, or a dataset unchanged.

    Parameters
    ----------
    X : array-like (n, d) or (n, ...), sparse matrix, dataframe of numbers, or dataset
    n_features : int, optional
        Number of features in the fit.
    owner : str
        Name of the method that expects them, for the message.
    sparse : bool
        Whether sparse features stay sparse (csr); otherwise they become dense if they fit into
        memory.
    mapped : bool
        Whether integers of a mapped file stay as they are, because floats would be a copy of all.

    Examples
    --------
    >>> as_features([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    if X is None:
        raise DataError("There are no features: X is None; give an array with one row per task.")
    if is_dataset(X):
        return X
    if is_hugging_face(X):
        raise DataError(
            "X is a Hugging Face data set, whose columns are not all features; read features and "
            "ids with wisecrowd.read_features(X)."
        )
    array = as_numbers(X, mapped)
    if array.ndim < 2:
        raise DataError(
            f"X has {array.ndim} dimension(s), Expected 2D array; Reshape your data: one row per "
            + for_reader(
                "task, X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one task.",
                "task and one column per feature.",
            )
        )
    if array.shape[0] == 0:
        raise DataError(f"Found array with 0 sample(s) (shape={array.shape}): X has no rows.")
    if 0 in array.shape[1:]:
        raise DataError(
            f"Found array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is required."
        )
    if n_features is not None and array.shape[1] != n_features:
        raise DataError(
            f"X has {array.shape[1]} features, but {owner} is expecting {n_features} features as "
            "input; give the columns that the fit had."
        )
    require_finite(array)
    return array if sparse or not is_sparse(array) else dense_features(array)


def is_sparse(X: Any) -> bool:
    """Return whether ``X`` is a sparse matrix or array of SciPy."""
    return hasattr(X, "tocsr")


def n_rows_of(X: Any) -> int:
    """Return the number of rows of features, which may be sparse."""
    return int(X.shape[0]) if is_sparse(X) else len(X)


def dense_features(X: Any) -> NDArray[Any]:
    """Return sparse features (n, d) as a dense array, if that takes a quarter of memory at most."""
    size, limit = math.prod(X.shape) * X.dtype.itemsize, available_memory() // 4
    if size > limit:
        raise DataError(
            f"X is sparse and has {X.shape[0]} × {X.shape[1]} numbers, which would take "
            f"{readable_bytes(size)} as a dense array, over the limit of {readable_bytes(limit)}; "
            "reduce its columns, for instance by a truncated SVD, or use the method raykar, which "
            "needs no dense array."
        )
    dense: NDArray[Any] = X.toarray()
    return dense


def as_numbers(X: Any, mapped: bool = False) -> NDArray[Any]:
    """Return an array, or a sparse matrix in the csr format, of floats.

    With ``mapped``, an array of a mapped file keeps its own type of numbers.
    """
    if is_sparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:  # entries of one place count together
            X = X.copy()
            X.sum_duplicates()
        if X.dtype.kind == "c":
            raise DataError(f"Complex data not supported: X has the type {X.dtype}.")
        floats: Any = X if X.dtype.kind == "f" else X.astype(np.float64)
        return cast("NDArray[Any]", floats)
    try:
        array = np.asarray(X)
        if array.dtype.kind == "c":
            raise DataError(f"Complex data not supported: X has the type {array.dtype}.")
        if mapped and array.dtype.kind in "fiub" and is_mapped(array):
            return array
        if array.dtype.kind not in "fiub" or array.dtype == np.float16:
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        message = f"X cannot be read as numbers ({error}); encode text and categories first."
        # scikit-learn distinguishes a wrong type of argument from a wrong value.
        raise (TypeError if isinstance(error, TypeError) else DataError)(message) from None
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def require_finite(array: Any, name: str = "Input X", ids: NDArray[Any] | None = None) -> None:
    """Refuse NaN, infinity and numbers beyond single precision, and name their place.

    Parameters
    ----------
    array : (n, ...) array of floats, or csr matrix
    name : str
        What the message calls the features.
    ids : (n,), optional
        Ids of the rows, for the message.
    """
    found = _first_bad(array)
    if found is not None:
        row, column, value = found
        who = "" if ids is None else f", of {ids[row]!r}"
        where = f"in row {row}{who}, column {column} (counted from 0)"
        if np.isfinite(value):
            raise DataError(
                f"{name} contains {value:g} {where}, which is too large for single precision; "
                "rescale the column."
            )
        raise DataError(
            f"{name} contains {'NaN' if np.isnan(value) else 'infinity'} {where}; fill in or "
            "remove such rows."
        )


def _first_bad(array: Any) -> tuple[int, str, float] | None:
    """Return row, column and value of the first number that is not finite or too large."""
    if is_sparse(array):
        bad = np.flatnonzero(_is_bad(array.data))
        if not len(bad):
            return None
        row = int(np.searchsorted(array.indptr, bad[0], side="right")) - 1
        return row, str(array.indices[bad[0]]), float(array.data[bad[0]])
    if array.dtype.kind in "iub":
        return None
    step = max(1, _CHUNK // max(1, math.prod(array.shape[1:])))
    for start in range(0, len(array), step):
        chunk = array[start : start + step]
        wrong = _is_bad(chunk)
        if wrong.any():
            where = np.argwhere(wrong)[0]
            column = ", ".join(map(str, where[1:].tolist()))
            return start + int(where[0]), column, float(chunk[tuple(where)])
    return None


def _is_bad(numbers: Any) -> Any:
    """Return which numbers are NaN, infinite or too large; a copy of each is not made."""
    return ~((numbers <= LARGEST_FEATURE) & (numbers >= -LARGEST_FEATURE))


# ------------------------------------------------------------------------------------- annotations


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
    if y is None:
        raise DataError("fit requires y to be passed, but the target y is None.")
    if _is_one_dimensional(y):
        labels = _one_worker(np.asarray(y), n_rows)
    elif isinstance(y, list) or _is_array(y):
        labels = as_crowd_labels(y if isinstance(y, list) else np.asarray(y))
        if labels.n_tasks != n_rows:
            raise _wrong_counts(n_rows, f"y has {labels.n_tasks} rows")
    else:
        return _by_rows(as_crowd_labels(y), n_rows, tasks)
    if tasks is None:
        return labels
    ids = _as_ids(tasks, n_rows, TASK_ROWS)
    return _recoded(labels, np.arange(n_rows), ids)


def _is_one_dimensional(y: Any) -> bool:
    if isinstance(y, Annotations | tuple) or hasattr(y, "columns") or hasattr(y, "column_names"):
        return False
    if hasattr(y, "__array__"):
        return np.asarray(y).ndim == 1
    return isinstance(y, list) and np.ndim(y) == 1


def _is_array(y: Any) -> bool:
    frames = hasattr(y, "columns") or hasattr(y, "column_names")
    return hasattr(y, "__array__") and not frames and not isinstance(y, Annotations)


def _one_worker(y: NDArray[Any], n_rows: int) -> CrowdLabels:
    if len(y) != n_rows:
        raise _wrong_counts(n_rows, f"y has {len(y)} labels")
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


def _by_rows(labels: Data, n_rows: int, tasks: Any) -> Data:
    """Assign to each task the row that its id states."""
    if tasks is None and labels.rows is not None:  # labels[rows] with X[rows]: positions must agree
        if labels.n_tasks != n_rows:
            raise _wrong_counts(n_rows, f"there are {labels.n_tasks} selected tasks")
        if (_row_numbers(labels.tasks) != labels.rows).any():
            raise _no_row_numbers(labels.tasks, n_rows, TASK_ROWS)
        return labels
    row, ids = row_of_ids(labels.tasks, labels.labels_per_task > 0, n_rows, tasks, TASK_ROWS)
    return _recoded(labels, row, ids)


class RowWords(NamedTuple):
    """Words of messages about the rows of X: what they are, and the argument with their ids."""

    one: str
    many: str
    used: str  # with annotations
    fix: str


TASK_ROWS = RowWords("task", "tasks", "labelled tasks", "labels")
ITEM_ROWS = RowWords("item", "items", "compared items", "votes")


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
        known = _as_ids(given, n_rows, words)
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


def _wrong_counts(n_rows: int, other: str) -> DataError:
    return DataError(
        f"X has {n_rows} rows and {other}, so they do not align; give one row of X per task, or "
        f"say which task each row is with {for_reader('tasks=ids', '--ids FILE')}."
    )


def _as_ids(tasks: Any, n_rows: int, words: RowWords) -> NDArray[Any]:
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


def _recoded(labels: Data, row: NDArray[Any], ids: NDArray[Any]) -> Data:
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


# ------------------------------------------------------------------------- numbers and comparisons


def as_number_targets(y: Any, n_rows: int, tasks: Any = None) -> CrowdNumbers:
    """Return numbers with one task per row of the features, in that order.

    Parameters
    ----------
    y : CrowdNumbers, long frame, (task, worker, value), matrix, or (n_rows,) numbers
        A tasks × workers matrix has NaN where there is no number. One-dimensional numbers come
        from one worker.
    n_rows, tasks
        As in :func:`as_targets`.

    Examples
    --------
    >>> as_number_targets([0.5, 2.0, 1.5], 3)
    CrowdNumbers(3 tasks, 1 workers, 3 annotations)
    """
    if y is None:
        raise DataError("fit requires y to be passed, but the target y is None.")
    if not isinstance(y, list) and not _is_array(y):
        return _by_rows(CrowdNumbers.coerce(y), n_rows, tasks)
    try:
        matrix = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"y cannot be read as numbers ({error}); give numbers.") from None
    if len(matrix) != n_rows:
        raise _wrong_counts(n_rows, f"y has {len(matrix)} rows")
    if matrix.ndim == 1 and not np.isfinite(matrix).all():
        bad = int(np.argmin(np.isfinite(matrix)))
        raise DataError(f"Input y contains NaN or infinity in row {bad}: every row needs a number.")
    matrix = matrix.reshape(n_rows, -1)
    row, worker = np.nonzero(~np.isnan(matrix))
    ids = np.arange(n_rows) if tasks is None else _as_ids(tasks, n_rows, TASK_ROWS)
    numbers = CrowdNumbers.from_arrays(
        row, worker, matrix[row, worker], tasks=range(n_rows), workers=range(matrix.shape[1])
    )
    return _recoded(numbers, np.arange(n_rows), ids)


def as_set_targets(y: Any, n_rows: int, tasks: Any = None) -> CrowdSets:
    """Return sets with one task per row of the features, in that order.

    Parameters
    ----------
    y : CrowdSets, long frame, or (task, worker, label)
    n_rows, tasks
        As in :func:`as_targets`.
    """
    if y is None:
        raise DataError("fit requires y to be passed, but the target y is None.")
    return _by_rows(CrowdSets.coerce(y), n_rows, tasks)


def as_pair_targets(y: Any, n_rows: int, items: Any = None) -> CrowdPairs:
    """Return comparisons whose item ``a`` is row ``a`` of the features.

    Parameters
    ----------
    y : CrowdPairs, frame, or tuple of columns
    n_rows : int
        Number of rows of the features.
    items : (n_rows,) ids, optional
        The item of each row. Without it the items must be the row numbers.

    Examples
    --------
    >>> as_pair_targets((["x", "y"], ["y", "z"], ["left", "tie"]), 3, ["z", "y", "x"]).left.tolist()
    [2, 1]
    """
    if y is None:
        raise DataError("fit requires y to be passed, but the target y is None.")
    pairs = CrowdPairs.coerce(y)
    used = pairs.comparisons_per_item > 0
    row, ids = row_of_ids(pairs.items, used, n_rows, items, ITEM_ROWS)
    left, right = (row[code].astype(np.int32) for code in (pairs.left, pairs.right))
    return replace(pairs, left=left, right=right, items=ids)
