"""Columns of classes, in every accepted form, become checked CrowdLabels.

Here is also the order of classes: declared by the user, or that of numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.columns import (
    find_columns,
)
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import Encoded, encode, lookup
from wisecrowd.core.intake import Intake
from wisecrowd.core.messages.descriptions import Places, describe_ids
from wisecrowd.core.messages.option_spelling import for_reader, option
from wisecrowd.core.types import Codes
from wisecrowd.core.validation import (
    check_roles,
    distinct_ids,
    frame_columns,
    is_column,
    open_frame,
    other_kind,
    recoded,
)
from wisecrowd.kinds import ORDERED
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.evidence import (
    as_numbers_or_nan,
    check_kind,
    refuse_long_table,
    require_classes,
)

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
        from wisecrowd.kinds.classes.wide_matrix import labels_from_matrix

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
    opened = open_frame(frame)
    asked = {"task": task, "worker": worker, "label": label, **columns}
    options: dict[str, Any] = {
        "tasks": tasks, "workers": workers, "duplicates": duplicates, "abstain": abstain,
        "classes": classes, "type": type, "ordered": ordered,
    }  # fmt: skip
    if wide or worker_columns is not None:
        from wisecrowd.kinds.classes.wide_matrix import labels_from_wide_frame

        cells = {name: opened.column(name) for name in opened.names}
        return labels_from_wide_frame(
            cells, asked, worker_columns, getattr(frame, "index", None),
            frame_library=opened.library, **options,
        )  # fmt: skip
    try:
        found, note = find_columns(list(opened.names), asked)
    except DataError:
        from wisecrowd.kinds.classes.wide_matrix import refuse_wide

        cells = {name: opened.column(name) for name in opened.names}
        refuse_wide({name: v[:_SAMPLE] for name, v in cells.items() if is_column(v)})
        raise
    read = frame_columns(opened, asked, found, note)
    return labels_from_arrays(**read, **options)


def labels_from_arrays(
    task: Any,
    worker: Any,
    label: Any,
    *,
    classes: Any = None,
    abstain: Any = (),
    type: str | None = None,
    ordered: bool = False,
    **shared: Any,
) -> CrowdLabels:
    """Build CrowdLabels from columns; see :meth:`CrowdLabels.from_arrays`.

    Columns that are `Encoded` already are not copied.
    """
    check_kind(type)
    rows = Intake({"task": task, "worker": worker, "label": label}, **shared)
    rows.code(task, worker)
    ordered = ordered or type == ORDERED
    codes, class_ids, abstained = _classes(label, classes, abstain, rows.places, ordered)
    if ordered and classes is None:
        codes, class_ids = in_numeric_order(codes, class_ids)
    if len(codes) == 0 or (abstained is not None and abstained.all()):
        raise DataError("There are no annotations: the table has no data rows with a label.")
    if type is None and classes is None:
        given_labels = codes if abstained is None else np.where(abstained, -1, codes)
        require_classes(rows.task, given_labels, class_ids, rows.places)
    rows.note_lookalikes(class_ids)
    rows.measure()
    kept = None
    if abstained is not None:
        kept = np.flatnonzero(~abstained)
        rows.notes += (f"{int(abstained.sum())} abstentions count as no label",)
    table = rows.arrange(codes, len(class_ids), kept)
    return rows.build(CrowdLabels, table, label=table.label, classes=class_ids, ordered=ordered)


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
        codes = recoded(encoded, vocabulary, "classes", places, abstained, source)
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


def in_numeric_order(label: Codes, classes: NDArray[Any]) -> tuple[Codes, NDArray[Any]]:
    """Return codes and classes in the order of their numbers; other classes need a declared order.

    Examples
    --------
    >>> codes, classes = in_numeric_order(np.array([0, 1]), np.array(["10", "9.5"], object))
    >>> codes.tolist(), classes.tolist()
    ([1, 0], ['9.5', '10'])
    """
    numbers = as_numbers_or_nan(classes)
    if np.isnan(numbers).any():
        raise DataError(
            f"The order of the classes {describe_ids(classes)} is not known; give all of them, "
            "the lowest first, with "
            + for_reader("classes=[...] and type='ordered'.", "--scale LOW,...,HIGH.")
        )
    order = np.argsort(numbers, kind="stable")
    same = np.flatnonzero(np.diff(numbers[order]) == 0)
    if len(same):
        twice = classes[order[same[0] : same[0] + 2]]
        raise DataError(
            f"The classes {describe_ids(twice)} are the same number; write each class in one way."
        )
    place = np.full(len(classes) + 1, -1, dtype=np.int32)
    place[order] = np.arange(len(classes), dtype=np.int32)
    return place[label], classes[order]


def complete_order(classes: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
    """Return ordered classes with others among them: in their places if all are numbers.

    Examples
    --------
    >>> complete_order(np.array([1, 3]), np.array([2, 3])).tolist()
    [1, 2, 3]
    """
    known = set(classes.tolist())
    new = [value for value in dict.fromkeys(others.tolist()) if value not in known]
    if not new:
        return classes
    all_classes = np.empty(len(classes) + len(new), dtype=object)
    all_classes[:] = [*classes.tolist(), *new]
    return in_numeric_order(np.empty(0, dtype=np.int32), all_classes)[1]


def grades_like(labels: NDArray[Any], classes: Any) -> Any:
    """Return declared grades as whole numbers if they are their texts and labels are numbers.

    A scale that the shell declares is text, and labels of typed files are numbers.

    Examples
    --------
    >>> grades_like(np.array([2, 5]), ["1", "2", "3"])
    [1, 2, 3]
    >>> grades_like(np.array(["2"], dtype=object), ["1", "2"])
    ['1', '2']
    """
    if labels.dtype.kind not in "iu" or not isinstance(classes, list | tuple):
        return classes
    texts = [text for text in classes if isinstance(text, str) and _is_whole(text)]
    return [int(text) for text in texts] if len(texts) == len(classes) else classes


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and text == str(int(text))
