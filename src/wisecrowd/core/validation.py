"""The only gate for user data: whatever comes in leaves as a checked CrowdLabels.

Nothing is guessed in silence: what was decided is kept in ``CrowdLabels.notes``, and every refusal
names the column, the row (counted from 1, without the header) and the remedy.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.columns import OPTIONAL_ROLES, find_columns
from wisecrowd.core.encoding import Encoded, as_arrow, encode, lookup
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdWarning
from wisecrowd.core.labels import ANNOTATION_COLUMNS, CrowdLabels, describe_ids, stable_order

DUPLICATES = ("last", "keep", "error")


def as_crowd_labels(data: Any) -> CrowdLabels:
    """Return ``data`` as CrowdLabels: itself, a long frame, (task, worker, label) or a matrix.

    A 2-D array is a tasks × workers matrix; a tuple of three arrays is task, worker, label.
    """
    if isinstance(data, CrowdLabels):
        return data
    if isinstance(data, np.ndarray):
        if data.ndim == 2:
            return labels_from_matrix(data)
        raise DataError(
            f"An array with {data.ndim} dimensions cannot be read as labels; give a tasks × workers "
            "matrix, a frame, or CrowdLabels.from_arrays(task, worker, label)."
        )
    if isinstance(data, tuple | list) and len(data) == 3:
        return labels_from_arrays(*data)
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        raise DataError(f"{str(data)!r} is a path; read it first with wisecrowd.read(path).")
    return labels_from_frame(data)


# ------------------------------------------------------------------------------------- long tables


def labels_from_frame(
    frame: Any,
    *,
    task: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    duplicates: str = "last",
    abstain: Any = (),
    classes: Any = None,
    **columns: str | None,
) -> CrowdLabels:
    """Build CrowdLabels from a long frame; see :meth:`CrowdLabels.from_frame`."""
    import narwhals as nw

    try:
        native = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise DataError(
            f"A {type(frame).__name__} cannot be read as labels; give a pandas, polars or pyarrow "
            "frame, a tasks × workers matrix, or CrowdLabels."
        ) from None
    unknown = set(columns) - set(OPTIONAL_ROLES)
    if unknown:
        raise ParameterError(
            f"Unknown option {sorted(unknown)[0]!r}; known are task, worker, label, "
            f"{', '.join(OPTIONAL_ROLES)}, duplicates, abstain, classes."
        )
    asked = {"task": task, "worker": worker, "label": label, **columns}
    found, note = find_columns([str(name) for name in native.columns], asked)
    values = {role: _column(native, name) for role, name in found.items()}
    library = str(native.implementation).rsplit(".", 1)[-1].lower()
    return labels_from_arrays(
        values.pop("task"),
        values.pop("worker"),
        values.pop("label"),
        duplicates=duplicates,
        abstain=abstain,
        classes=classes,
        names=found,
        notes=(note,) if note else (),
        frame_library=library,
        **values,
    )


def _column(frame: Any, name: str) -> Any:
    series = frame[name]
    try:
        return series.to_arrow()
    except Exception:
        # Mixed Python objects: let the object path say which rows disagree.
        return series.to_numpy()


def labels_from_arrays(
    task: Any,
    worker: Any,
    label: Any,
    *,
    tasks: Any = None,
    workers: Any = None,
    classes: Any = None,
    weight: Any = None,
    worker_kind: Any = None,
    duplicates: str = "last",
    abstain: Any = (),
    names: Mapping[str, str] | None = None,
    notes: tuple[str, ...] = (),
    frame_library: str | None = None,
    **columns: Any,
) -> CrowdLabels:
    """Build CrowdLabels from columns; see :meth:`CrowdLabels.from_arrays`."""
    if duplicates not in DUPLICATES:
        raise ParameterError(
            f"duplicates is {duplicates!r}; choose one of {', '.join(DUPLICATES)}."
        )
    unknown = set(columns) - set(ANNOTATION_COLUMNS)
    if unknown:
        raise ParameterError(
            f"Unknown column {sorted(unknown)[0]!r}; known are {', '.join(ANNOTATION_COLUMNS)}."
        )
    names = names or {}
    raw = {"task": task, "worker": worker, "label": label}
    arrow = {role: as_arrow(values, _called(role, names)) for role, values in raw.items()}
    _check_lengths({**arrow, "weight": weight, "worker_kind": worker_kind, **columns})
    task_codes, task_ids = _complete(arrow["task"], "task", names, declared=tasks)
    worker_codes, worker_ids = _complete(arrow["worker"], "worker", names, declared=workers)
    label_codes, class_ids, abstained = _classes(arrow["label"], classes, abstain, names)
    kept = ~abstained
    if not kept.all():
        notes = (*notes, f"{int(abstained.sum())} abstentions count as no label")
    if len(task_codes) == 0 or not kept.any():
        raise DataError("There are no annotations: the table has no data rows with a label.")
    extra = {k: _plain(v) for k, v in columns.items() if v is not None}
    rows = np.flatnonzero(kept)
    rows = rows[
        _sorting_order(task_codes[rows], len(task_ids), worker_codes[rows], len(worker_ids))
    ]
    rows, notes = _resolve_duplicates(rows, task_codes, worker_codes, extra, duplicates, notes)
    if duplicates == "keep":  # among replicates, order by label: row order must not matter
        rows = rows[np.lexsort((label_codes[rows], worker_codes[rows], task_codes[rows]))]
    weights = None if weight is None else _weights(weight, names)[rows]
    return CrowdLabels(
        task_codes[rows],
        worker_codes[rows],
        label_codes[rows],
        task_ids,
        worker_ids,
        class_ids,
        weight=weights,
        columns={name: values[rows] for name, values in extra.items()},
        worker_kind=_kinds(worker_kind, worker_codes, worker_ids),
        notes=notes,
        frame_library=frame_library,
    )


def _called(role: str, names: Mapping[str, str]) -> str:
    name = names.get(role, role)
    return role if name == role else f"{role} ({name!r})"


def _check_lengths(columns: Mapping[str, Any]) -> None:
    sizes = {
        role: len(values)
        for role, values in columns.items()
        if values is not None and not isinstance(values, Mapping)
    }
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{role} {size}" for role, size in sizes.items())
        raise DataError(
            f"Columns have different lengths ({listed}); give one value per annotation."
        )


def _rows(mask: NDArray[np.bool_], limit: int = 5) -> str:
    where = np.flatnonzero(mask) + 1
    shown = ", ".join(str(row) for row in where[:limit])
    more = f" and {len(where) - limit} more" if len(where) > limit else ""
    return f"row{'s' if len(where) > 1 else ''} {shown}{more}"


def _complete(values: Any, role: str, names: Mapping[str, str], declared: Any) -> Encoded:
    encoded = encode(values, _called(role, names))
    missing = encoded.codes < 0
    if missing.any():
        raise DataError(
            f"The {_called(role, names)} column is empty in {_rows(missing)}; "
            f"fill in the {role} or remove the row."
        )
    if declared is None:
        return encoded
    vocabulary = _distinct(declared, role + "s")
    return Encoded(_recode(encoded, vocabulary, role), vocabulary)


def _distinct(declared: Any, what: str) -> NDArray[Any]:
    column = encode(list(declared), what)
    if len(column.vocabulary) != len(column.codes):
        raise ParameterError(f"The declared {what} must be distinct and not empty.")
    return np.array(column.vocabulary[column.codes])


def _recode(encoded: Encoded, vocabulary: NDArray[Any], role: str) -> NDArray[np.int32]:
    """Codes of one vocabulary as codes of another that must contain it."""
    position = lookup(encoded.vocabulary, vocabulary)
    if (position < 0).any():
        code = int(np.argmax(position < 0))
        value = encoded.vocabulary[code]
        raise DataError(
            f"{role.capitalize()} {value!r} in {_rows(encoded.codes == code)} is not among the "
            f"declared ones ({describe_ids(vocabulary)}){suggestion(value, vocabulary)}."
        )
    return position[encoded.codes]


def suggestion(value: Any, known: Iterable[Any]) -> str:
    """Return '; did you mean …?' when a known id is close to ``value``, else nothing."""
    texts = {str(x): x for x in known}
    if str(value) in texts:
        match = texts[str(value)]
        return (
            f"; there is {match!r} of type {type(match).__name__}, "
            f"not {type(value).__name__}: convert one of them"
        )
    close = difflib.get_close_matches(str(value), list(texts), n=1)
    return f"; did you mean {texts[close[0]]!r}?" if close else ""


def _classes(
    values: Any, classes: Any, abstain: Any, names: Mapping[str, str]
) -> tuple[NDArray[np.int32], NDArray[Any], NDArray[np.bool_]]:
    """Codes, vocabulary and which rows abstain; an abstention is no class and may be empty."""
    abstain = [abstain] if isinstance(abstain, str) else list(abstain)
    encoded = encode(values, _called("label", names))
    missing = encoded.codes < 0
    named = [x for x in abstain if not (isinstance(x, str) and x.strip() == "")]
    is_abstention = np.zeros(len(encoded.vocabulary) + 1, dtype=bool)
    if named:
        is_abstention[np.setdiff1d(lookup(named, encoded.vocabulary), [-1])] = True
    is_abstention[-1] = len(named) < len(abstain)  # code -1: the empty label was declared
    abstained = is_abstention[encoded.codes]
    if (missing & ~abstained).any():
        raise DataError(
            f"The {_called('label', names)} column is empty in {_rows(missing & ~abstained)}; fill "
            "it in, remove the row, or declare the empty label an abstention (abstain='')."
        )
    if classes is not None:
        vocabulary = _distinct(classes, "classes")
        kept = ~abstained
        codes = np.zeros(len(kept), dtype=np.int32)
        codes[kept] = _recode_labels(encoded, kept, vocabulary)
        return codes, vocabulary, abstained
    used = np.flatnonzero(~is_abstention[:-1])
    new_code = np.zeros(len(is_abstention), dtype=np.int32)
    new_code[used] = np.arange(len(used), dtype=np.int32)
    return new_code[encoded.codes], encoded.vocabulary[used], abstained


def _recode_labels(
    encoded: Encoded, kept: NDArray[np.bool_], vocabulary: NDArray[Any]
) -> NDArray[np.int32]:
    position = lookup(encoded.vocabulary, vocabulary)
    outside = (position[encoded.codes] < 0) & kept
    if outside.any():
        value = encoded.vocabulary[encoded.codes[np.argmax(outside)]]
        same = outside & (encoded.codes == encoded.codes[np.argmax(outside)])
        raise DataError(
            f"Label {value!r} in {_rows(same)} is not among the declared classes "
            f"({describe_ids(vocabulary)}){suggestion(value, vocabulary)}."
        )
    return position[encoded.codes][kept]


def _sorting_order(
    task: NDArray[np.int32], n_tasks: int, worker: NDArray[np.int32], n_workers: int
) -> NDArray[np.int64]:
    """Order by (task, worker), equal pairs in the given order: two stable counting sorts."""
    later_task = task[1:] > task[:-1]
    later_worker = (task[1:] == task[:-1]) & (worker[1:] >= worker[:-1])
    if bool(np.all(later_task | later_worker)):
        return np.arange(len(task), dtype=np.int64)
    order = stable_order(worker, n_workers)
    return order[stable_order(task[order], n_tasks)]


def _resolve_duplicates(
    rows: NDArray[np.int64],
    task: NDArray[np.int32],
    worker: NDArray[np.int32],
    columns: Mapping[str, NDArray[Any]],
    policy: str,
    notes: tuple[str, ...],
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    if policy == "keep":
        return rows, notes
    repeated = (task[rows[1:]] == task[rows[:-1]]) & (worker[rows[1:]] == worker[rows[:-1]])
    if not repeated.any():
        return rows, notes
    if policy == "error":
        first = int(np.argmax(repeated))
        a, b = sorted((int(rows[first]) + 1, int(rows[first + 1]) + 1))
        raise DataError(
            f"The same worker labelled the same task in rows {a} and {b}; remove one of them, or "
            "choose duplicates='last' or duplicates='keep'."
        )
    how = "the last in the table counts"
    if "timestamp" in columns:
        how = "the latest timestamp counts"
        rows = rows[np.lexsort((columns["timestamp"][rows], worker[rows], task[rows]))]
    last = np.append(~repeated, True)
    note = (
        f"{int(repeated.sum())} annotations repeat a (task, worker) pair: {how} "
        "(duplicates='keep' counts all, duplicates='error' refuses)"
    )
    warnings.warn(note, WisecrowdWarning, stacklevel=2)
    return rows[last], (*notes, note)


def _weights(weight: Any, names: Mapping[str, str]) -> NDArray[np.float64]:
    try:
        values = np.array(_plain(weight), dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"The {_called('weight', names)} column holds text; weights must be numbers."
        ) from None
    bad = ~np.isfinite(values) | (values < 0)
    if bad.any():
        raise DataError(
            f"The {_called('weight', names)} column is negative, infinite or missing in "
            f"{_rows(bad)}; weights must be finite and at least 0."
        )
    return values


def _plain(values: Any) -> NDArray[Any]:
    if hasattr(values, "to_numpy"):
        try:
            return np.array(values.to_numpy(zero_copy_only=False))
        except TypeError:
            return np.array(values.to_numpy())
    return np.array(values)


def _kinds(
    worker_kind: Any, worker: NDArray[np.int32], workers: NDArray[Any]
) -> NDArray[Any] | None:
    if worker_kind is None:
        return None
    kinds = np.full(len(workers), None, dtype=object)
    if isinstance(worker_kind, Mapping):
        kinds[:] = [worker_kind.get(w) for w in workers.tolist()]
    else:
        kinds[worker] = _plain(worker_kind)  # one kind per worker: the last row's
    return kinds


# ------------------------------------------------------------------------------------ wide matrices


def labels_from_matrix(
    matrix: Any,
    *,
    tasks: Any = None,
    workers: Any = None,
    classes: Any = None,
    missing: Any = None,
) -> CrowdLabels:
    """Build CrowdLabels from a wide matrix; see :meth:`CrowdLabels.from_matrix`."""
    library = None
    if hasattr(matrix, "columns") or hasattr(matrix, "column_names"):
        matrix, tasks, workers, library = _open_wide_frame(matrix, tasks, workers)
    if isinstance(matrix, np.ma.MaskedArray):
        matrix = np.where(np.ma.getmaskarray(matrix), None, matrix.astype(object))
    matrix = np.asarray(matrix)
    if matrix.ndim != 2:
        raise DataError(f"The matrix has {matrix.ndim} dimensions; give tasks × workers.")
    present = _present(matrix, missing)
    task, worker = np.nonzero(present)
    tasks = np.arange(matrix.shape[0]) if tasks is None else tasks
    workers = np.arange(matrix.shape[1]) if workers is None else workers
    _check_sides(matrix.shape, tasks, workers)
    task_ids, worker_ids = _distinct(tasks, "tasks"), _distinct(workers, "workers")
    return labels_from_arrays(
        task_ids[task],
        worker_ids[worker],
        matrix[present],
        tasks=np.sort(task_ids) if task_ids.dtype != object else sorted(task_ids.tolist()),
        workers=np.sort(worker_ids) if worker_ids.dtype != object else sorted(worker_ids.tolist()),
        classes=classes,
        frame_library=library,
    )


def _present(matrix: NDArray[Any], missing: Any) -> NDArray[np.bool_]:
    if matrix.dtype.kind == "f":
        present = ~np.isnan(matrix)
    elif matrix.dtype == object:
        present = np.array([[x is not None and x == x for x in row] for row in matrix.tolist()])
        present = present.reshape(matrix.shape)
    else:
        present = np.ones(matrix.shape, dtype=bool)
    if missing is not None:
        present &= matrix != missing
    return np.asarray(present, dtype=bool)


def _check_sides(shape: tuple[int, ...], tasks: Any, workers: Any) -> None:
    if (len(tasks), len(workers)) != shape:
        raise DataError(
            f"The matrix is {shape[0]} × {shape[1]} but there are {len(tasks)} task ids and "
            f"{len(workers)} worker ids; give one id per row and one per column."
        )


def _open_wide_frame(frame: Any, tasks: Any, workers: Any) -> tuple[Any, Any, Any, str]:
    import narwhals as nw

    native = nw.from_native(frame, eager_only=True)
    library = str(native.implementation).rsplit(".", 1)[-1].lower()
    if isinstance(tasks, str):
        tasks, native = native[tasks].to_list(), native.drop(tasks)
    elif tasks is None and hasattr(frame, "index") and not callable(frame.index):
        tasks = list(frame.index)
    workers = list(native.columns) if workers is None else workers
    columns = [native[name].to_numpy() for name in native.columns]
    kinds = {column.dtype.kind for column in columns}
    if kinds - set("if"):
        columns = [column.astype(object) for column in columns]
    return np.column_stack(columns), tasks, workers, library


# ------------------------------------------------------------------------- gold, truth, task priors


def as_pairs(values: Any, labels: CrowdLabels, what: str) -> tuple[NDArray[np.int32], Any]:
    """Return (task codes, class values) from a mapping, a (task, label) frame or an aligned array."""
    if isinstance(values, Mapping):
        ids, classes = list(values.keys()), list(values.values())
    elif hasattr(values, "items") and hasattr(values, "index") and not hasattr(values, "columns"):
        ids, classes = list(values.index), list(values)  # a pandas Series by task
    elif hasattr(values, "columns") or hasattr(values, "column_names"):
        import narwhals as nw

        frame = nw.from_native(values, eager_only=True)
        found, _ = find_columns([str(c) for c in frame.columns], {"task": None, "label": None})
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


def as_gold(gold: Any, labels: CrowdLabels) -> NDArray[np.int32] | None:
    """Return gold as one class code per task, ``-1`` where unknown; ``None`` if there is none."""
    if gold is None:
        return None
    codes, values = as_pairs(gold, labels, "gold")
    ids, classes = values if isinstance(values, tuple) else (labels.tasks.tolist(), values)
    present = np.array([x is not None and x == x for x in classes], dtype=bool)
    if (codes < 0).any():
        task = ids[int(np.argmax(codes < 0))]
        raise DataError(
            f"Gold names task {task!r}, which has no row in the labels"
            f"{suggestion(task, labels.tasks)}; remove it from the gold or add the task."
        )
    class_codes = lookup(classes, labels.classes)
    unknown = (class_codes < 0) & present
    if unknown.any():
        where = int(np.argmax(unknown))
        raise DataError(
            f"Gold gives task {ids[where]!r} the class {classes[where]!r}, which is not among the "
            f"classes ({describe_ids(labels.classes)}){suggestion(classes[where], labels.classes)}; "
            "declare it with classes=[...] or correct the gold."
        )
    result = np.full(labels.n_tasks, -1, dtype=np.int32)
    result[codes[present]] = class_codes[present]
    return result
