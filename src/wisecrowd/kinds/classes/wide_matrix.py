"""Wide tables: one row per task, one column per worker, missing values without a label."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import as_arrow, is_missing, unmasked
from wisecrowd.core.columns import find_columns, listed
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdWarning
from wisecrowd.core.ids.encoding import Encoded, IdColumn, encode
from wisecrowd.core.validation import values_of
from wisecrowd.kinds.classes.columns import labels_from_arrays
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.evidence import LEAST_ROWS, looks_long
from wisecrowd.kinds.classes.wide_columns import (
    check_worker_columns,
    choose_columns,
    label_texts,
    require_workers,
    wide_hint,
)


def labels_from_matrix(
    matrix: Any,
    *,
    tasks: Any = None,
    workers: Any = None,
    classes: Any = None,
    missing: Any = None,
    type: str | None = None,
) -> CrowdLabels:
    """Build CrowdLabels from a wide matrix; see :meth:`CrowdLabels.from_matrix`."""
    library = None
    label: Any
    if hasattr(matrix, "columns") or hasattr(matrix, "column_names"):
        columns, tasks, workers, library = _open_wide_frame(matrix, tasks, workers)
        n_tasks = len(columns[0]) if columns else 0
        task, worker, label = _long_from_columns(columns, missing)
        shape = (n_tasks, len(columns))
    else:
        array = _as_matrix(matrix)
        shape = array.shape
        present = _present(array, missing)
        task, worker = (codes.astype(np.int32) for codes in np.nonzero(present))
        label = array[present]
    tasks = np.arange(shape[0]) if tasks is None else list(tasks)
    workers = np.arange(shape[1]) if workers is None else list(workers)
    _check_sides(shape, tasks, workers)
    if not len(task):
        raise DataError("There are no annotations: every entry of the matrix is missing.")
    task_side, worker_side = _side(tasks, "tasks"), _side(workers, "workers")
    labels = labels_from_arrays(
        Encoded(task_side.codes[task], task_side.vocabulary),
        Encoded(worker_side.codes[worker], worker_side.vocabulary),
        label,
        classes=classes,
        type=type,
        frame_library=library,
    )
    if classes is None and missing is None:
        _warn_of_minus_one(labels)
    return labels


def labels_from_wide_frame(
    cells: Mapping[str, Any],
    asked: Mapping[str, str | None],
    worker_columns: Any,
    index: Any,
    **options: Any,
) -> CrowdLabels:
    """Build CrowdLabels from a frame with one row per task and one column per worker.

    Parameters
    ----------
    cells : mapping of name to column
        The whole frame.
    asked : mapping of role to column name or None
        Columns named by the user; only the task can be named.
    worker_columns : sequence of str, optional
        The columns of the workers; detected if not given.
    index : array-like, optional
        Ids of the rows, used if no column contains the task ids.
    **options
        Options of :func:`labels_from_arrays`.
    """
    for role, name in asked.items():
        if name is not None and role != "task":
            raise ParameterError(
                f"{role}={name!r} has no meaning in a wide frame, where only the task is one "
                "column; leave it out."
            )
    task = asked["task"]
    if task is not None:
        find_columns(list(cells), {"task": task})
    workers = None if worker_columns is None else check_worker_columns(worker_columns)
    if workers is not None:
        require_workers(workers, list(cells), task)
    chosen = choose_columns(_texts(cells), task, workers)
    arrays = [as_arrow(cells[name], f"label of {name!r}", ids=True) for name in chosen.workers]
    task_code, worker_code, label = _long_from_columns(arrays, None)
    ids: Any = np.arange(len(arrays[0]))
    if chosen.task is not None:
        ids = cells[chosen.task]
    elif index is not None and not callable(index):
        ids = list(index)
    side = _side(ids, "tasks")
    note = chosen._replace(
        left_out=tuple(name for name in cells if name not in {chosen.task, *chosen.workers})
    ).note(recognised=workers is None)
    named = _side(list(chosen.workers), "workers")
    return labels_from_arrays(
        Encoded(side.codes[task_code], side.vocabulary),
        Encoded(named.codes[worker_code], named.vocabulary),
        label,
        notes=(note,) if note else (),
        **options,
    )


def refuse_wide(cells: Mapping[str, Any]) -> None:
    """Refuse a frame that looks wide but has no known worker column; explain how to read it."""
    if len(cells) == 3 and all(map(str.isdigit, cells)) and _looks_long(cells):
        raise DataError(
            f"The columns {listed(list(cells))} have numbers for names and look like a long table; "
            "call them task, worker and label in their order."
        )
    hint = wide_hint(list(cells), _texts(cells))
    if hint is not None:
        raise DataError(f"The frame is not read: {hint}")


def _looks_long(cells: Mapping[str, Any]) -> bool:
    columns = list(_texts(cells).values())
    if len(columns) < 3 or len(columns[0]) < LEAST_ROWS:
        return False
    return looks_long(np.column_stack([np.array(c.to_pylist(), dtype=object) for c in columns]))


def _texts(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that can hold labels as text."""
    import pyarrow as pa

    found = {}
    for name, values in cells.items():
        with suppress(DataError, pa.ArrowException):  # lists, records, mixed types
            found[name] = label_texts(as_arrow(values, name))
    return found


def _as_matrix(matrix: Any) -> NDArray[Any]:
    if isinstance(matrix, np.ma.MaskedArray):
        matrix = unmasked(matrix)
    elif not isinstance(matrix, np.ndarray):
        # Through objects, because numpy would silently turn [["a", None]] and [[1, "a"]] into text.
        rows = [list(row) for row in matrix if np.ndim(row) == 1]
        if len({len(row) for row in rows}) > 1:
            raise DataError("The rows of the matrix differ in length; give tasks × workers.")
        matrix = np.array(rows, dtype=object) if rows else np.asarray(matrix)
    if matrix.ndim != 2:
        raise DataError(f"The matrix has {matrix.ndim} dimensions; give tasks × workers.")
    return np.asarray(matrix)


def _present(matrix: NDArray[Any], missing: Any) -> NDArray[np.bool_]:
    present: NDArray[np.bool_]
    if matrix.dtype.kind == "f":
        present = ~np.isnan(matrix)
    elif matrix.dtype == object:
        present = np.asarray([not is_missing(x) for x in matrix.ravel().tolist()], dtype=bool)
        present = present.reshape(matrix.shape)
    else:
        present = np.ones(matrix.shape, dtype=bool)
    absent = [""] if matrix.dtype.kind in "OUT" else []
    for value in absent if missing is None else [*absent, missing]:
        # A missing value may have no truth value in a comparison: pandas' NA.
        present[present] = np.asarray(matrix[present] != value, dtype=bool)
    return present


def _warn_of_minus_one(labels: CrowdLabels) -> None:
    """Warn if -1 occurs with the classes 0, 1, 2 ..., where it usually means "no label"."""
    if labels.classes.dtype.kind == "i" and labels.classes[:2].tolist() == [-1, 0]:
        count = int(np.count_nonzero(labels.label == 0))
        warnings.warn(
            f"-1 counts as a class in {count} of {labels.n_annotations} entries of the matrix; if "
            "it stands for no label, give missing=-1.",
            WisecrowdWarning,
            stacklevel=4,
        )


def _check_sides(shape: tuple[int, ...], tasks: Any, workers: Any) -> None:
    if (len(tasks), len(workers)) != shape:
        raise DataError(
            f"The matrix is {shape[0]} × {shape[1]} but there are {len(tasks)} task ids and "
            f"{len(workers)} worker ids; give one id per row and one per column."
        )


def _side(ids: Any, what: str) -> Encoded:
    side = encode(ids, what)
    if len(side.vocabulary) != len(side.codes) or (side.codes < 0).any():
        raise DataError(f"The {what} of the matrix must be distinct and not empty.")
    return side


def _open_wide_frame(frame: Any, tasks: Any, workers: Any) -> tuple[list[Any], Any, Any, str]:
    """Return the label columns as Arrow arrays, the ids of both sides and the frame's library."""
    import narwhals as nw

    native = nw.from_native(frame, eager_only=True)
    library = str(native.implementation).rsplit(".", 1)[-1].lower()
    names = list(native.columns)
    if isinstance(tasks, str):
        if tasks not in names:
            raise ParameterError(f"There is no column {tasks!r} for the tasks; there are {names}.")
        names.remove(tasks)
        tasks = native.get_column(tasks).to_list()
    elif tasks is None and hasattr(frame, "index") and not callable(frame.index):
        tasks = list(frame.index)
    columns = [
        as_arrow(values_of(native.get_column(name)), f"label of {name!r}", ids=True)
        for name in names
    ]
    return columns, tasks, names if workers is None else workers, library


def _long_from_columns(
    columns: list[Any], missing: Any
) -> tuple[NDArray[np.int32], NDArray[np.int32], Encoded]:
    import pyarrow as pa
    import pyarrow.compute as pc

    labels = IdColumn("label")
    tasks, workers = [], []
    for j, column in enumerate(columns):
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
        present = _present_in_column(array, missing)
        task = np.flatnonzero(present).astype(np.int32)
        tasks.append(task)
        workers.append(np.full(len(task), j, dtype=np.int32))
        if len(task):
            labels.add(pc.filter(array, pa.array(present)))
    empty = np.empty(0, dtype=np.int32)
    return np.concatenate([empty, *tasks]), np.concatenate([empty, *workers]), labels.finish()


def _present_in_column(array: Any, missing: Any) -> NDArray[np.bool_]:
    import pyarrow as pa
    import pyarrow.compute as pc

    present = array.is_valid()
    if pa.types.is_floating(array.type):
        present = pc.and_(present, pc.invert(pc.is_nan(array)))
    absent: list[Any] = [] if missing is None else [missing]
    if str(array.type) in ("string", "large_string", "string_view"):
        absent.append("")
    for value in absent:
        try:
            scalar = pa.scalar(value).cast(array.type)
        except pa.ArrowException:
            continue  # a value of another type is not in this column
        present = pc.and_(present, pc.not_equal(array, scalar))
    return np.asarray(present.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)
