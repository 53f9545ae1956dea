"""Validation of user data: every accepted form becomes checked CrowdLabels.

Decisions are recorded in ``CrowdLabels.notes``. Every error names the column, the row (counted
from 1, without the header) and the remedy.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Set
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import ANNOTATION_COLUMNS, Annotations, other_kind
from wisecrowd.core.arrow import as_arrow, is_empty
from wisecrowd.core.class_evidence import check_kind, require_classes
from wisecrowd.core.columns import LABEL, OPTIONAL_ROLES, find_columns, unknown_workers
from wisecrowd.core.duplicates import DUPLICATES, arrange
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.gold import as_gold, as_pairs
from wisecrowd.core.ids.encoding import Encoded, encode, lookup
from wisecrowd.core.ids.lookalike_ids import warn_of_lookalikes
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.long_tables import refuse_long_table
from wisecrowd.core.messages.descriptions import Places, describe_ids, describe_rows, suggestion
from wisecrowd.core.messages.option_spelling import for_reader, option
from wisecrowd.core.ordered_classes import ORDERED, grades_like, in_numeric_order
from wisecrowd.core.repeated_header import header_rows, header_sentence
from wisecrowd.core.value_columns import as_numbers, as_texts, as_timestamps, as_weights

__all__ = [
    "annotations_from_frame", "as_crowd_labels", "as_gold", "as_pairs",
    "labels_from_arrays", "labels_from_frame", "suggestion",
]  # fmt: skip

Codes = NDArray[np.int32]
Container = TypeVar("Container", bound=Annotations)
_SAMPLE = 1000  # rows to look at if the column names are not sufficient


def as_crowd_labels(data: Any, *, type: str | None = None) -> CrowdLabels:
    """Return ``data`` as CrowdLabels: itself, a long frame, (task, worker, label) or a matrix.

    A 2-D array or list of lists is a tasks × workers matrix; a tuple of three arrays is task,
    worker, label. An array of long rows, one (task, worker, label) each, is refused.
    ``type="labels"`` declares that all labels are classes. ``type="ordered"`` declares that classes
    are ordered; those of CrowdLabels without an order must be numbers.

    Examples
    --------
    >>> as_crowd_labels(np.array([[0, 1], [1, 1]]))
    CrowdLabels(2 tasks, 2 workers, 2 classes, 4 annotations)
    """
    if isinstance(data, CrowdLabels):
        return _in_order(data) if type == ORDERED and not data.ordered else data
    if isinstance(data, Annotations):
        raise other_kind(data, CrowdLabels)
    if isinstance(data, tuple) and len(data) == 3:
        return labels_from_arrays(*data, type=type)
    if isinstance(data, np.ndarray | list | tuple):
        from wisecrowd.core.wide_matrix import labels_from_matrix

        if (data.ndim != 2) if isinstance(data, np.ndarray) else _rank(data) != 2:
            raise DataError(
                "An array that is not two-dimensional cannot be read as labels; give a tasks × "
                "workers matrix, a frame, or CrowdLabels.from_arrays(task, worker, label)."
            )
        refuse_long_table(data)
        return labels_from_matrix(data, type=type)
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        raise DataError(f"{str(data)!r} is a path; read it first with wisecrowd.read(path).")
    return labels_from_frame(data, type=type)


def _in_order(labels: CrowdLabels) -> CrowdLabels:
    """Return labels whose classes are numbers with the classes in order."""
    codes, classes = in_numeric_order(labels.label, labels.classes)
    return replace(labels, label=codes, classes=classes, ordered=True)


def _rank(rows: Any) -> int:
    """Return the number of dimensions of nested lists, judged by the first elements."""
    return 1 + (np.ndim(rows[0]) if len(rows) and not isinstance(rows[0], str) else 0)


def labels_from_frame(
    frame: Any,
    *,
    task: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    duplicates: str = "auto",
    abstain: Any = (),
    classes: Any = None,
    tasks: Any = None,
    workers: Any = None,
    wide: bool = False,
    worker_columns: Any = None,
    type: str | None = None,
    ordered: bool = False,
    **columns: str | None,
) -> CrowdLabels:
    """Build CrowdLabels from a frame; see :meth:`CrowdLabels.from_frame`."""
    check_roles(columns)
    native, names, library = _open_frame(frame)
    asked = {"task": task, "worker": worker, "label": label, **columns}
    original = {str(name): name for name in names}
    if wide or worker_columns is not None:
        from wisecrowd.core.wide_matrix import labels_from_wide_frame

        cells = {name: _column(native, original[name]) for name in original}
        return labels_from_wide_frame(
            cells, asked, worker_columns, getattr(frame, "index", None), frame_library=library,
            duplicates=duplicates, abstain=abstain, classes=classes, tasks=tasks, workers=workers,
            type=type, ordered=ordered,
        )  # fmt: skip
    try:
        found, note = find_columns([str(name) for name in names], asked)
    except DataError:
        from wisecrowd.core.wide_matrix import refuse_wide

        cells = {name: _column(native, original[name]) for name in original}
        refuse_wide({name: v[:_SAMPLE] for name, v in cells.items() if _is_column(v)})
        raise
    values = {role: _column(native, original[name]) for role, name in found.items()}
    _refuse_header(values, found)
    empty = _drop_empty_weight(values, found, asked)
    return labels_from_arrays(
        values.pop("task"),
        values.pop("worker"),
        values.pop("label"),
        tasks=tasks,
        workers=workers,
        duplicates=duplicates,
        abstain=abstain,
        classes=classes,
        type=type,
        ordered=ordered,
        places=Places(found, header=[str(name) for name in names]),
        notes=tuple(said for said in (note, empty) if said),
        frame_library=library,
        **values,
    )


def annotations_from_frame(container: type[Container], frame: Any, **options: Any) -> Container:
    """Build annotations of any kind from a frame; see :meth:`Annotations.from_frame`."""
    native, names, library = _open_frame(frame)
    roles = container.roles()
    options.pop("type", None)
    if "label" in options:  # the column with the labels, under the name that the kind uses
        options[container.label_role or next(iter(roles))] = options.pop("label")
    asked = {role: options.pop(role, None) for role in ("task", "worker", *roles, *OPTIONAL_ROLES)}
    original = {str(name): name for name in names}
    found, note = find_columns(list(original), asked, roles, container.optional_roles)
    values = {role: _column(native, original[name]) for role, name in found.items()}
    _refuse_header(values, found)
    said = (
        note, unknown_workers(list(original), found), _drop_empty_weight(values, found, asked),
    )  # fmt: skip
    return container.from_arrays(
        **{**dict.fromkeys(("task", "worker")), **values},
        places=Places(found, header=list(original)),
        notes=tuple(filter(None, said)),
        frame_library=library,
        **options,
    )


def _refuse_header(values: Mapping[str, Any], found: Mapping[str, str]) -> None:
    """Refuse a row of a frame that holds the names of the columns."""
    columns = {found[role]: column for role, column in values.items() if _is_column(column)}
    rows = header_rows(columns)
    if len(rows):
        raise DataError(header_sentence(f"The table's {describe_rows(rows)}", list(columns)))


def _drop_empty_weight(
    values: dict[str, Any], found: Mapping[str, str], asked: Mapping[str, Any]
) -> str:
    """Remove the weights if the column is empty and nobody asked for it, as in files; say so."""
    weight = values.get("weight")
    if weight is None or asked.get("weight") or not _is_column(weight) or not len(weight):
        return ""
    try:
        if not is_empty(as_arrow(weight, "weight")):
            return ""
    except DataError:
        return ""  # what is wrong with it is said where weights are read
    del values["weight"]
    return f"the column {found['weight']!r} is empty and not read"


def check_roles(columns: Mapping[str, Any], payload: Collection[str] = LABEL) -> None:
    """Refuse an option that is neither a role of a column nor a policy."""
    for name in sorted(set(columns) - {*OPTIONAL_ROLES, *payload}):
        options = ("task", "worker", *payload, *OPTIONAL_ROLES, "duplicates", "abstain", "classes")
        raise ParameterError(
            f"Unknown option {name!r}{suggestion(name, options)}; known are {', '.join(options)}, "
            "tasks, workers, type."
        )


def _open_frame(frame: Any) -> tuple[Any, list[Any], str | None]:
    if isinstance(frame, Mapping):
        return frame, list(frame), None
    import narwhals as nw

    if hasattr(frame, "collect"):
        raise DataError(
            f"A {type(frame).__name__} cannot be read as labels; call its collect() first."
        )
    names = [str(name) for name in getattr(frame, "columns", ()) if isinstance(name, Hashable)]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"There are several columns named {twice[0]!r}; rename or remove one.")
    try:
        native = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise DataError(
            f"A {type(frame).__name__} cannot be read as labels; give a pandas, polars or pyarrow "
            "frame, a tasks × workers matrix, or CrowdLabels."
        ) from None
    return native, list(native.columns), str(native.implementation).rsplit(".", 1)[-1].lower()


def _is_column(values: Any) -> bool:
    """Return whether a value of a mapping can be a column; those of frames always can."""
    return hasattr(values, "__len__") and not isinstance(values, Mapping | Set | str | bytes)


def _column(frame: Any, name: Any) -> Any:
    if isinstance(frame, Mapping):
        return frame[name]
    return values_of(frame.get_column(name))


def values_of(series: Any) -> Any:
    """Convert a narwhals series to an Arrow array; return mixed Python objects unchanged."""
    import narwhals as nw

    if series.dtype == nw.Object:
        return series.to_numpy()  # Arrow reads [1.0, True] as [1.0, 1.0]
    try:
        return series.to_arrow()
    except Exception:
        # Mixed Python objects: the object path reports the rows that differ.
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
    duplicates: str = "auto",
    abstain: Any = (),
    type: str | None = None,
    ordered: bool = False,
    places: Places | None = None,
    notes: tuple[str, ...] = (),
    frame_library: str | None = None,
    **columns: Any,
) -> CrowdLabels:
    """Build CrowdLabels from columns; see :meth:`CrowdLabels.from_arrays`.

    Columns that are `Encoded` already are not copied.
    """
    check_columns(duplicates, columns)
    check_kind(type)
    places = places or Places({})
    given = {"task": task, "worker": worker, "label": label, "weight": weight,
             "worker_kind": worker_kind, **columns}  # fmt: skip
    check_lengths(given)
    task_codes, task_ids = complete_ids(task, "task", places, declared=tasks)
    worker_codes, worker_ids = complete_ids(worker, "worker", places, declared=workers)
    ordered = ordered or type == ORDERED
    label_codes, class_ids, abstained = _classes(label, classes, abstain, places, ordered)
    if ordered and classes is None:
        label_codes, class_ids = in_numeric_order(label_codes, class_ids)
    if len(task_codes) == 0 or (abstained is not None and abstained.all()):
        raise DataError("There are no annotations: the table has no data rows with a label.")
    if type is None and classes is None:
        given_labels = label_codes if abstained is None else np.where(abstained, -1, label_codes)
        require_classes(task_codes, given_labels, class_ids, places)
    notes = (*notes, *warn_of_lookalikes(task_ids, worker_ids, class_ids))
    extra = measured_columns({**columns, "weight": weight}, places)
    kinds = worker_kinds(worker_kind, worker_codes, worker_ids, places)
    codes, rows = (task_codes, worker_codes, label_codes), None
    if abstained is not None:
        rows = np.flatnonzero(~abstained)
        codes = (task_codes[rows], worker_codes[rows], label_codes[rows])
        notes = (*notes, f"{int(abstained.sum())} abstentions count as no label")
    sizes = (len(task_ids), len(worker_ids), len(class_ids))
    table = arrange(codes, sizes, rows, extra, duplicates, places)
    return CrowdLabels(
        table.task, table.worker, table.label, task_ids, worker_ids, class_ids,
        weight=table.extra.pop("weight", None),
        columns=table.extra,
        worker_kind=kinds,
        notes=(*notes, table.note) if table.note else notes,
        frame_library=frame_library,
        ordered=ordered,
    )  # fmt: skip


def check_columns(duplicates: str, columns: Mapping[str, Any]) -> None:
    """Refuse an unknown policy for duplicates, and columns of unknown roles."""
    if duplicates not in DUPLICATES:
        raise ParameterError(
            f"duplicates is {duplicates!r}; choose one of {', '.join(DUPLICATES)}."
        )
    for name in sorted(set(columns) - set(ANNOTATION_COLUMNS)):
        raise ParameterError(f"Unknown column {name!r}; known are {', '.join(ANNOTATION_COLUMNS)}.")


def check_lengths(columns: Mapping[str, Any]) -> None:
    """Require columns, all of the same length."""
    given = {
        role: values
        for role, values in columns.items()
        if values is not None and not (role == "worker_kind" and isinstance(values, Mapping))
    }
    for role, values in given.items():
        if not _is_column(values) and not isinstance(values, Encoded):
            raise DataError(
                f"The {role} column is a {type(values).__name__}; give a list or an array with one "
                "value per annotation."
            )
    sizes = {
        role: len(values.codes if isinstance(values, Encoded) else values)
        for role, values in given.items()
    }
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{role} {size}" for role, size in sizes.items())
        raise DataError(
            f"Columns have different lengths ({listed}); give one value per annotation."
        )


# -------------------------------------------------------------------------- tasks, workers, classes


def complete_ids(values: Any, role: str, places: Places, declared: Any) -> Encoded:
    """Return a column of ids without gaps, in the declared vocabulary if there is one."""
    encoded = encode(values, places.column(role))
    if len(encoded.codes) and encoded.codes.min() < 0:
        raise DataError(
            f"The {places.column(role)} column is empty in {places.where(encoded.codes < 0)}; "
            f"fill in the {role} or remove the row."
        )
    if declared is None:
        return encoded
    vocabulary = distinct_ids(declared, role + "s")
    return Encoded(_recode(encoded, vocabulary, f"{role}s", places, None), vocabulary)


def distinct_ids(declared: Any, what: str) -> NDArray[Any]:
    """Return declared ids as a vocabulary; each must be given once."""
    if isinstance(declared, str | bytes) or not hasattr(declared, "__iter__"):
        raise ParameterError(f"{what} is {declared!r}; give a list of all {what}.")
    column = encode(list(declared), what)
    if not len(column.codes) or column.codes.min() < 0:
        raise ParameterError(f"The declared {what} must be distinct and not empty; name each.")
    if len(column.vocabulary) != len(column.codes):
        repeated = column.vocabulary[np.bincount(column.codes) > 1]
        raise ParameterError(
            f"The declared {what} must be distinct; {describe_ids(repeated)} is named twice."
        )
    return np.array(column.vocabulary[column.codes])


def _recode(
    encoded: Encoded,
    vocabulary: NDArray[Any],
    what: str,
    places: Places,
    ignored: Any,
    declared_by: str | None = None,
) -> Codes:
    """Convert codes to a vocabulary that contains all ids, except those of ignored rows."""
    position = np.append(lookup(encoded.vocabulary, vocabulary), np.int32(-1))
    codes: Codes = position[encoded.codes]
    if (position[:-1] < 0).any():
        outside = codes < 0 if ignored is None else (codes < 0) & ~ignored
        if outside.any():
            code = encoded.codes[np.argmax(outside)]
            value = encoded.vocabulary[code]
            one = {"tasks": "Task", "workers": "Worker", "classes": "Label"}[what]
            raise DataError(
                f"{one} {value!r}{suggestion(value, vocabulary)} in "
                f"{places.where(encoded.codes == code)} is not among the declared {what} "
                f"({describe_ids(vocabulary)}); correct it, or add it to {declared_by or what}."
            )
    return codes


def _classes(
    values: Any, classes: Any, abstain: Any, places: Places, ordered: bool = False
) -> tuple[Codes, NDArray[Any], NDArray[np.bool_] | None]:
    """Return codes, vocabulary and a mask of abstentions, which are not classes."""
    encoded = encode(values, places.column("label"))
    abstained = _abstentions(encoded, abstain)
    missing = encoded.codes < 0
    if abstained is not None:
        missing &= ~abstained
    if missing.any():
        raise DataError(
            f"The {places.column('label')} column is empty in {places.where(missing)}; fill it in, "
            f"remove the row, or declare the empty label an abstention ({option('abstain', '')})."
        )
    if classes is not None:
        declared = grades_like(encoded.vocabulary, classes) if ordered else classes
        vocabulary = distinct_ids(declared, "classes")
        source = for_reader("classes", "--scale" if ordered else "classes")
        codes = _recode(encoded, vocabulary, "classes", places, abstained, source)
        return codes, vocabulary, abstained
    if abstained is None:
        return encoded.codes, encoded.vocabulary, None
    used = np.zeros(len(encoded.vocabulary), dtype=bool)
    used[encoded.codes[~abstained]] = True
    new_code = np.append(np.cumsum(used, dtype=np.int32) - 1, 0).astype(np.int32)
    return new_code[encoded.codes], encoded.vocabulary[used], abstained


def _abstentions(encoded: Encoded, abstain: Any) -> NDArray[np.bool_] | None:
    if isinstance(abstain, str | bytes) or not hasattr(abstain, "__iter__"):
        abstain = [abstain]
    declared = [x for x in abstain if x is not None]
    if not declared:
        return None
    named = [x for x in declared if not (isinstance(x, str) and x.strip() == "")]
    is_abstention = np.zeros(len(encoded.vocabulary) + 1, dtype=bool)
    found = lookup(named, encoded.vocabulary)
    is_abstention[found[found >= 0]] = True
    is_abstention[-1] = len(named) < len(declared)  # code -1: the empty label was declared
    abstained = is_abstention[encoded.codes] if is_abstention.any() else None
    return abstained if abstained is not None and abstained.any() else None


# ------------------------------------------------------------------------------- optional columns


def measured_columns(columns: Mapping[str, Any], places: Places) -> dict[str, NDArray[Any]]:
    """Return weights, times, questions and other measures as arrays, by role."""
    measures: dict[str, NDArray[Any]] = {}
    for role, values in columns.items():
        if values is None:
            continue
        if role == "weight":
            measures[role] = as_weights(values, places)
        elif role == "timestamp":
            measures[role] = as_timestamps(values, places)
        elif role == "question":
            measures[role] = as_texts(values, role, places)
        else:
            measures[role] = as_numbers(values, role, places)
    return measures


def worker_kinds(
    worker_kind: Any, worker: Codes, workers: NDArray[Any], places: Places
) -> NDArray[Any] | None:
    """Return (n_workers,) kinds from a mapping or from one value per annotation."""
    if worker_kind is None:
        return None
    kinds = np.full(len(workers), None, dtype=object)
    if isinstance(worker_kind, Mapping):
        kinds[:] = [worker_kind.get(w) for w in workers.tolist()]
        return kinds
    column = encode(worker_kind, places.column("worker_kind"))
    known = np.flatnonzero(column.codes >= 0)
    code = np.full(len(workers), -1, dtype=np.int32)
    code[worker[known]] = column.codes[known]
    differs = np.flatnonzero(code[worker[known]] != column.codes[known])
    if len(differs):
        row = known[differs[0]]
        here, elsewhere = column.vocabulary[[column.codes[row], code[worker[row]]]].tolist()
        raise DataError(
            f"Worker {workers[worker[row]]!r} is of kind {here!r} in "
            f"{places.rows(np.array([row]))} and {elsewhere!r} elsewhere; "
            "give each worker one kind."
        )
    kinds[code >= 0] = column.vocabulary[code[code >= 0]]
    return kinds
