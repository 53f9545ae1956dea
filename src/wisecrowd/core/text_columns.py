"""Validation of columns of texts, and of true texts: they become checked CrowdTexts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import WORKER_KIND
from wisecrowd.core.arrow import is_missing, refuse_halves, to_numpy
from wisecrowd.core.duplicates import arrange
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import Encoded, lookup
from wisecrowd.core.ids.lookalike_ids import warn_of_lookalikes
from wisecrowd.core.messages.descriptions import Places, describe_value
from wisecrowd.core.text_words import distinct_texts
from wisecrowd.core.texts import CrowdTexts
from wisecrowd.core.validation import (
    check_columns,
    check_lengths,
    complete_ids,
    measured_columns,
    worker_kinds,
)

Texts = TypeVar("Texts", bound=CrowdTexts)


def texts_from_columns(
    container: type[Texts],
    task: Any,
    worker: Any,
    *,
    text: Any = None,
    tasks: Any = None,
    workers: Any = None,
    weight: Any = None,
    worker_kind: Any = None,
    duplicates: str = "auto",
    places: Places | None = None,
    notes: tuple[str, ...] = (),
    frame_library: str | None = None,
    **columns: Any,
) -> Texts:
    """Build texts from columns; see :meth:`CrowdTexts.from_arrays`."""
    places = places or Places({})
    check_columns(duplicates, columns)
    if task is None or worker is None or text is None:
        raise ParameterError(f"{container.__name__} need the columns task, worker and text.")
    check_lengths({"task": task, "worker": worker, "text": text, "weight": weight,
                   "worker_kind": worker_kind, **columns})  # fmt: skip
    task_codes, task_ids = complete_ids(task, "task", places, declared=tasks)
    worker_codes, worker_ids = complete_ids(worker, "worker", places, declared=workers)
    if len(task_codes) == 0:
        raise DataError("There are no annotations: the table has no data rows.")
    names, code = distinct_texts(_as_texts(text, places))
    notes = (*notes, *warn_of_lookalikes(task_ids, worker_ids, task_ids[:0]))
    kinds = worker_kinds(worker_kind, worker_codes, worker_ids, places)
    table = arrange(
        (task_codes.copy(), worker_codes.copy(), code.astype(np.int32)),
        (len(task_ids), len(worker_ids), len(names)), None,
        measured_columns({**columns, "weight": weight}, places), duplicates, places,
    )  # fmt: skip
    listed = np.empty(len(names), dtype=object)
    listed[:] = names
    return container(
        task=table.task, worker=table.worker, tasks=task_ids, workers=worker_ids,
        weight=table.extra.pop("weight", None),
        columns=table.extra,
        worker_columns={} if kinds is None else {WORKER_KIND: kinds},
        notes=(*notes, table.note) if table.note else notes,
        frame_library=frame_library,
        text=listed[table.label],
    )  # fmt: skip


def _as_texts(column: Any, places: Places) -> NDArray[Any]:
    """Return a column of texts; numbers become text, missing values are an error."""
    if isinstance(column, Encoded):  # an export: its empty labels have the code -1
        values = np.append(column.vocabulary.astype(object), [None])[column.codes]
    else:
        values = np.asarray(to_numpy(column), dtype=object)
    missing = np.array([is_missing(one) for one in values.tolist()], dtype=bool)
    if missing.any():
        raise DataError(
            f"The text is missing in {places.where(missing)}; remove the row, or give an empty "
            "text if there was nothing to write."
        )
    found = np.empty(len(values), dtype=object)
    found[:] = [one if isinstance(one, str) else _number(one, places) for one in values.tolist()]
    refuse_halves(found, "text", places)
    return found


def _number(value: Any, places: Places) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:g}" if isinstance(value, float) else str(value)
    raise DataError(
        f"The {places.column('text')} column holds {describe_value(value)}; give one text per "
        "annotation."
    )


def known_texts(truth: Any, data: CrowdTexts) -> NDArray[np.object_]:
    """Return the true text of every task of the data, None where unknown.

    Parameters
    ----------
    truth : mapping from task to text, (task, text) frame, or (n_tasks,) array with None
    data : CrowdTexts
    """
    ids, values = _pairs(truth, data)
    known = np.full(data.n_tasks, None, dtype=object)
    place = lookup(ids, data.tasks)
    for code, value in zip(place.tolist(), values, strict=True):
        if code >= 0 and not is_missing(value):
            known[code] = str(value)
    if all(one is None for one in known.tolist()):
        raise DataError("The truth names none of these tasks; compare the ids.")
    return known


def _pairs(truth: Any, data: CrowdTexts) -> tuple[list[Any], list[Any]]:
    if isinstance(truth, Mapping) and not hasattr(truth, "column_names"):
        return list(truth.keys()), list(truth.values())
    if hasattr(truth, "columns") or hasattr(truth, "column_names"):
        import narwhals as nw

        frame = nw.from_native(truth, eager_only=True)
        names = {str(name).lower(): name for name in frame.columns}
        text = next((names[name] for name in ("text", "label", "truth") if name in names), None)
        if "task" not in names or text is None:
            listed = ", ".join(map(repr, frame.columns))
            raise DataError(f"The truth has the columns {listed}; call them task and text.")
        return frame[names["task"]].to_list(), frame[text].to_list()
    values = list(truth)
    if len(values) != data.n_tasks:
        raise DataError(
            f"The truth has {len(values)} entries for {data.n_tasks} tasks; give one per task, or "
            "a mapping from task to text."
        )
    return data.tasks.tolist(), values
