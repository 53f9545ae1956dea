"""Columns that annotations of every kind have: checked, coded, sorted, and built into a container.

Every container goes through an :class:`Intake`; a kind reads the columns of its answers in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import NOBODY, WORKER_KIND, Annotations
from wisecrowd.core.duplicates import Arranged, arrange
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import Encoded
from wisecrowd.core.ids.lookalike_ids import warn_of_lookalikes
from wisecrowd.core.ids.packed_sort import sort_annotations
from wisecrowd.core.messages.descriptions import Places
from wisecrowd.core.types import Codes, Floats
from wisecrowd.core.validation import (
    check_columns,
    check_lengths,
    complete_ids,
    measured_columns,
    worker_kinds,
)
from wisecrowd.core.value_columns import finite_numbers, require_spread

Container = TypeVar("Container", bound=Annotations)


class Intake:
    """Rows of a table: tasks and workers as codes, and all columns but those of the kind.

    Most kinds call :meth:`open`, read their own columns, and call :meth:`arrange` with one code per
    row and :meth:`build`. A kind that can do without tasks or workers makes an ``Intake``, which
    checks the columns, and calls :meth:`code` and :meth:`measure` itself.

    Attributes
    ----------
    task, worker : (n_rows,) int32
        Codes.
    tasks, workers : (n_tasks,), (n_workers,)
        The user's ids.
    extra : dict of str to (n_rows,) array
        Weights and the optional columns that all kinds have.
    kinds : (n_workers,), optional
        Kinds of workers.
    notes : tuple of str
        What was decided so far.
    """

    task: Codes
    worker: Codes
    tasks: NDArray[Any]
    workers: NDArray[Any]
    extra: dict[str, NDArray[Any]]
    kinds: NDArray[Any] | None

    def __init__(
        self, given: Mapping[str, Any], *, measures: Mapping[str, Any] | None = None,
        tasks: Any = None, workers: Any = None, weight: Any = None, worker_kind: Any = None,
        duplicates: str = "auto", places: Places | None = None, notes: tuple[str, ...] = (),
        frame_library: str | None = None, **columns: Any,
    ) -> None:  # fmt: skip
        """Check names and lengths; ``measures`` are numbers that only the kind has."""
        check_columns(duplicates, columns)
        columns |= measures or {}
        check_lengths({**given, "weight": weight, "worker_kind": worker_kind, **columns})
        self.places = places or Places({})
        self.duplicates, self.notes, self.frame_library = duplicates, tuple(notes), frame_library
        self._declared = tasks, workers
        self._measures, self._worker_kind = {**columns, "weight": weight}, worker_kind

    @classmethod
    def open(
        cls, container: type[Annotations], task: Any, worker: Any, payload: Mapping[str, Any],
        optional: Mapping[str, Any] | None = None, **shared: Any,
    ) -> Self:  # fmt: skip
        """Check and code shared columns; those of the payload must be there, the optional may."""
        if any(column is None for column in (task, worker, *payload.values())):
            *names, last = "task", "worker", *payload
            raise ParameterError(
                f"{container.__name__} need the columns {', '.join(names)} and {last}."
            )
        rows = cls({"task": task, "worker": worker, **payload, **(optional or {})}, **shared)
        rows.code(task, worker)
        if len(rows.task) == 0:
            raise DataError("There are no annotations: the table has no data rows.")
        rows.measure()
        return rows

    def code(self, task: Any, worker: Any) -> None:
        """Read tasks and workers."""
        tasks, workers = self._declared
        self.task, self.tasks = complete_ids(task, "task", self.places, declared=tasks)
        self.worker, self.workers = complete_ids(worker, "worker", self.places, declared=workers)

    def measure(self) -> None:
        """Read weights, times and other measures, and the kinds of workers."""
        self.extra = measured_columns(self._measures, self.places)
        self.kinds = worker_kinds(self._worker_kind, self.worker, self.workers, self.places)

    def note_lookalikes(self, classes: NDArray[Any] | None = None) -> None:
        """Warn of ids and classes that differ too little to be different, and note it."""
        some = self.tasks[:0] if classes is None else classes
        self.notes += warn_of_lookalikes(self.tasks, self.workers, some)

    def arrange(
        self, code: NDArray[np.integer[Any]], size: int, kept: NDArray[np.int64] | None = None
    ) -> Arranged:
        """Sort the rows by task, worker and code, and apply the policy for duplicates.

        Codes are overwritten. ``kept`` are the rows to keep, ascending; by default all.
        """
        codes = self.task, self.worker, code.astype(np.int32, copy=False)
        if kept is not None:
            codes = codes[0][kept], codes[1][kept], codes[2][kept]
        sizes = len(self.tasks), len(self.workers), size
        return arrange(codes, sizes, kept, self.extra, self.duplicates, self.places)

    def arrange_numbers(self, numbers: Mapping[str, Floats]) -> Arranged:
        """Sort the rows as :meth:`arrange` does, with numbers among the columns instead of a code.

        Only repeats need codes of the numbers, which cost a sort of them: the order of repeats must
        not depend on the order of the rows.
        """
        self.extra = {**numbers, **self.extra}
        no_codes, sizes = np.zeros(len(self.task), np.int32), (len(self.tasks), len(self.workers))
        ordered = sort_annotations(self.task, self.worker, no_codes, (*sizes, 1))
        task, worker, rows = ordered.task, ordered.worker, ordered.rows
        if not ((task[1:] == task[:-1]) & (worker[1:] == worker[:-1])).any():
            if ordered.key is not None:
                self.extra = {role: values[rows] for role, values in self.extra.items()}
            return Arranged(task, worker, ordered.label, self.extra, None)
        back = np.empty_like(rows)
        back[rows] = np.arange(len(rows))
        self.task, self.worker = task[back], worker[back]
        if len(numbers) == 1:  # sorting a vector is much faster than sorting columns
            _, code = np.unique(next(iter(numbers.values())), return_inverse=True)
        else:
            _, code = np.unique(np.stack(list(numbers.values())), axis=1, return_inverse=True)
        return self.arrange(code, int(code.max()) + 1)

    def build(self, container: type[Container], table: Arranged, **payload: Any) -> Container:
        """Return the annotations of a kind from arranged rows and its payload."""
        return container(
            task=table.task, worker=table.worker, tasks=self.tasks, workers=self.workers,
            weight=table.extra.pop("weight", None), columns=table.extra,
            worker_columns={} if self.kinds is None else {WORKER_KIND: self.kinds},
            notes=(*self.notes, table.note) if table.note else self.notes,
            frame_library=self.frame_library, **payload,
        )  # fmt: skip


def nobody(n_rows: int) -> Encoded:
    """Return the column of workers of answers without one."""
    return Encoded(np.zeros(n_rows, np.int32), np.array([NOBODY], dtype=object))


def annotations_of_numbers(
    container: type[Container], task: Any, worker: Any, *values: Any, **given: Any
) -> Container:
    """Build annotations whose payload is one number per annotation and part.

    A container with another payload defines its own ``from_arrays``.
    """
    roles = tuple(container.roles())
    if len(values) > len(roles):
        raise DataError(
            f"{container.__name__} take the columns {', '.join(('task', 'worker', *roles))}, and "
            f"{2 + len(values)} columns are given; give others by name, such as weight=."
        )
    columns = dict(zip(roles, values, strict=False))
    columns |= {role: given.pop(role, None) for role in roles[len(values) :]}
    for role, column in columns.items():
        if column is None:
            raise ParameterError(f"{container.__name__} need the column {role}; give it.")
    rows = Intake.open(container, task, worker, columns, **given)
    numbers = {role: finite_numbers(one, role, rows.places) for role, one in columns.items()}
    for role, one in numbers.items():
        require_spread(float(one.min()), float(one.max()), rows.places.column(role))
    rows.note_lookalikes()
    table = rows.arrange_numbers(numbers)
    return rows.build(container, table, **{role: table.extra.pop(role) for role in numbers})
