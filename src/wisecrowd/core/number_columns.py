"""Validation of columns of numbers: they become checked annotations with a numeric payload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import WORKER_KIND, Annotations
from wisecrowd.core.duplicates import Arranged, arrange
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.lookalike_ids import warn_of_lookalikes
from wisecrowd.core.ids.packed_sort import sort_annotations
from wisecrowd.core.messages.descriptions import Places
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.validation import (
    check_columns,
    check_lengths,
    complete_ids,
    measured_columns,
    worker_kinds,
)
from wisecrowd.core.value_columns import as_numbers

Container = TypeVar("Container", bound=Annotations)
LARGEST = 1e100  # squares of larger numbers, and their sums, may overflow
SMALLEST_SPREAD = 1e-100  # squares of smaller differences vanish


def annotations_from_arrays(
    container: type[Container],
    task: Any,
    worker: Any,
    *,
    tasks: Any = None,
    workers: Any = None,
    weight: Any = None,
    worker_kind: Any = None,
    duplicates: str = "auto",
    places: Places | None = None,
    notes: tuple[str, ...] = (),
    frame_library: str | None = None,
    **columns: Any,
) -> Container:
    """Build annotations whose payload is one number per annotation and part.

    A container with another payload defines its own ``from_arrays``.
    """
    places = places or Places({})
    values = {role: columns.pop(role, None) for role in container.roles()}
    for role, column in values.items():
        if column is None:
            raise ParameterError(f"{container.__name__} need the column {role}; give it.")
    check_columns(duplicates, columns)
    check_lengths({"task": task, "worker": worker, **values, "weight": weight,
                    "worker_kind": worker_kind, **columns})  # fmt: skip
    task_codes, task_ids = complete_ids(task, "task", places, declared=tasks)
    worker_codes, worker_ids = complete_ids(worker, "worker", places, declared=workers)
    if len(task_codes) == 0:
        raise DataError("There are no annotations: the table has no data rows.")
    numbers = {role: _checked(column, role, places) for role, column in values.items()}
    notes = (*notes, *warn_of_lookalikes(task_ids, worker_ids, task_ids[:0]))
    kinds = worker_kinds(worker_kind, worker_codes, worker_ids, places)
    arranged = _arranged(
        (task_codes, worker_codes), (len(task_ids), len(worker_ids)), numbers,
        measured_columns({**columns, "weight": weight}, places), duplicates, places,
    )  # fmt: skip
    payload: dict[str, Any] = {role: arranged.extra.pop(role) for role in numbers}
    return container(
        task=arranged.task, worker=arranged.worker, tasks=task_ids, workers=worker_ids,
        weight=arranged.extra.pop("weight", None),
        worker_columns={} if kinds is None else {WORKER_KIND: kinds},
        notes=(*notes, arranged.note) if arranged.note else notes,
        frame_library=frame_library,
        columns=arranged.extra,
        **payload,
    )  # fmt: skip


def _arranged(
    codes: tuple[NDArray[np.int32], NDArray[np.int32]],
    sizes: tuple[int, int],
    numbers: dict[str, NDArray[np.float64]],
    extra: Mapping[str, NDArray[Any]],
    duplicates: str,
    places: Places,
) -> Arranged:
    """Sort annotations, with the numbers among the columns, and apply the policy for repeats.

    Only repeats need codes of the numbers, which cost a sort of them: the order of repeats must
    not depend on the order of the rows.
    """
    ordered = sort_annotations(*codes, np.zeros(len(codes[0]), np.int32), (*sizes, 1))
    task, worker = ordered.task, ordered.worker
    columns = {**numbers, **extra}
    if not ((task[1:] == task[:-1]) & (worker[1:] == worker[:-1])).any():
        if ordered.key is not None:
            rows = ordered.rows
            columns = {role: values[rows] for role, values in columns.items()}
        return Arranged(task, worker, ordered.label, columns, None)
    rows = ordered.rows
    back = np.empty_like(rows)
    back[rows] = np.arange(len(rows))
    if len(numbers) == 1:  # sorting a vector is much faster than sorting columns
        _, code = np.unique(next(iter(numbers.values())), return_inverse=True)
    else:
        _, code = np.unique(np.stack(list(numbers.values())), axis=1, return_inverse=True)
    return arrange(
        (task[back], worker[back], code.astype(np.int32)), (*sizes, int(code.max()) + 1), None,
        columns, duplicates, places,
    )  # fmt: skip


def _checked(values: Any, role: str, places: Places) -> NDArray[np.float64]:
    """Return a column of finite numbers whose differences have squares."""
    numbers = finite_numbers(values, role, places)
    if len(numbers):
        require_spread(float(numbers.min()), float(numbers.max()), places.column(role))
    return numbers


def finite_numbers(values: Any, role: str, places: Places) -> NDArray[np.float64]:
    """Return a column of finite numbers; missing and very large values are errors."""
    classes = option("type", "labels")
    numbers = as_numbers(
        values, role, places, f"correct it, or give {classes} if the labels are classes"
    )
    missing = np.isnan(numbers)
    if missing.any():
        raise DataError(
            f"The {places.column(role)} column is empty or NaN in {places.where(missing)}; fill it "
            "in or remove the row."
        )
    large = np.abs(numbers) > LARGEST
    if large.any():
        raise DataError(
            f"The {places.column(role)} column holds numbers beyond {LARGEST:g} in "
            f"{places.where(large)}; correct them, or change the unit."
        )
    return numbers


def require_spread(least: float, largest: float, column: str) -> None:
    """Refuse numbers so close to each other that squares of differences are lost."""
    if 0 < largest - least < SMALLEST_SPREAD:
        raise DataError(
            f"The numbers of the {column} column differ by less than {SMALLEST_SPREAD:g}; change "
            "the unit."
        )
