"""CrowdLabels: who gave which label to which task, frozen, sorted and sparse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.packed_sort import stable_order as stable_order
from wisecrowd.core.wording import describe_ids as describe_ids

Codes = NDArray[np.int32]
Floats = NDArray[np.float64]
Vocabulary = NDArray[Any]

ANNOTATION_COLUMNS = ("timestamp", "duration", "cost", "question")


class WorkerView(NamedTuple):
    """Annotations by worker: those of worker ``j`` are ``order[indptr[j]:indptr[j + 1]]``."""

    indptr: NDArray[np.int64]
    order: NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class CrowdLabels:
    """Annotations as codes, sorted by (task, worker), with the user's own ids as vocabularies.

    Built by :meth:`from_frame`, :meth:`from_arrays` or :meth:`from_matrix`, which check everything;
    the constructor itself trusts its arguments. Rows are tasks: ``len(labels)`` is the number of
    tasks and ``labels[rows]`` keeps the worker and class vocabularies, so that folds and
    mini-batches share worker and class indices.

    Attributes
    ----------
    task, worker, label : (n_annotations,) int32
        Codes into the vocabularies.
    tasks, workers, classes : (n_tasks,), (n_workers,), (n_classes,)
        The user's ids; those of tasks and workers are sorted, classes too unless declared.
    weight : (n_annotations,) float64, optional
        How often each annotation counts; ``None`` means once.
    columns : mapping of str to (n_annotations,) arrays
        Optional ``timestamp``, ``duration``, ``cost`` and ``question``.
    worker_kind : (n_workers,), optional
        For instance "human" or "model".
    notes : tuple of str
        What reading the data decided: guessed columns, dropped duplicates, abstentions.
    rows : (n_tasks,), optional
        After ``labels[rows]``: where each task stood in the labels that it was selected from, so
        that features selected by the same rows can be known to belong.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays(["t1", "t1", "t2"], ["ann", "bob", "ann"], [1, 0, 1])
    >>> labels
    CrowdLabels(2 tasks, 2 workers, 2 classes, 3 annotations)
    >>> labels[[1]].workers.tolist()
    ['ann', 'bob']
    """

    task: Codes
    worker: Codes
    label: Codes
    tasks: Vocabulary
    workers: Vocabulary
    classes: Vocabulary
    weight: Floats | None = None
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    worker_kind: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()
    frame_library: str | None = None  # "pandas", "polars" ...: results go back the way data came
    rows: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        arrays = (self.task, self.worker, self.label, self.tasks, self.workers, self.classes,
                  self.weight, self.worker_kind, *self.columns.values())  # fmt: skip
        for array in arrays:
            if array is not None:
                array.flags.writeable = False
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))

    def __reduce__(self) -> tuple[Any, ...]:
        # A mapping proxy does not pickle; caches are not worth sending.
        return _rebuild, (
            self.task, self.worker, self.label, self.tasks, self.workers, self.classes,
            self.weight, dict(self.columns), self.worker_kind, self.notes, self.frame_library,
            self.rows,
        )  # fmt: skip

    # ---------------------------------------------------------------------------- construction

    @classmethod
    def from_arrays(
        cls, task: ArrayLike, worker: ArrayLike, label: ArrayLike, **options: Any
    ) -> CrowdLabels:
        """Build from three equally long arrays of ids.

        Parameters
        ----------
        task, worker, label : (n_annotations,) array-like
            Ids of any one hashable type each: str, int, bool ...
        **options
            ``classes`` declares all classes, in this order; ``tasks`` and ``workers`` declare ids
            that may have no annotation; ``weight``; ``timestamp``, ``duration``, ``cost``,
            ``question``: one value per annotation; ``worker_kind``: one per annotation or a mapping
            from worker; ``duplicates``: "last", "keep", "error" or "auto" (default: the
            last counts, but many repeats with different labels are an error); ``abstain``: labels
            that count as no label; ``type="labels"``: every value is a class, which declared
            ``classes`` say too; without it numbers and texts are refused.

        Examples
        --------
        >>> CrowdLabels.from_arrays([0, 0], ["a", "b"], ["x", "y"], classes=["x", "y", "z"])
        CrowdLabels(1 tasks, 2 workers, 3 classes, 2 annotations)
        """
        from wisecrowd.core.validation import labels_from_arrays

        return labels_from_arrays(task, worker, label, **options)

    @classmethod
    def from_frame(cls, frame: Any, **options: Any) -> CrowdLabels:
        """Build from a pandas, polars or pyarrow frame with one row per annotation.

        Parameters
        ----------
        frame : dataframe
            Anything narwhals understands.
        **options
            ``task``, ``worker``, ``label``, ``weight``, ``timestamp``, ``duration``, ``cost``,
            ``question``, ``worker_kind`` name the columns; the usual names are recognised when not
            given. ``wide=True`` means one row per task and one column of labels per worker, and
            ``worker_columns`` names these; the task is recognised or named with ``task``, and what
            is left out is said in ``notes``. The others are those of :meth:`from_arrays`.

        Examples
        --------
        >>> wide = {"id": [1, 2], "text": ["Hi!", "Oh."], "ann": ["a", "b"], "bob": ["a", "a"]}
        >>> CrowdLabels.from_frame(wide, wide=True)
        CrowdLabels(2 tasks, 2 workers, 2 classes, 4 annotations)
        """
        from wisecrowd.core.validation import labels_from_frame

        return labels_from_frame(frame, **options)

    @classmethod
    def from_matrix(cls, matrix: Any, **options: Any) -> CrowdLabels:
        """Build from a wide tasks × workers matrix or frame with missing entries.

        Parameters
        ----------
        matrix : (n_tasks, n_workers) array, masked array or dataframe
            NaN and None mean "no label"; a pandas frame's index and columns are task and worker
            ids; floats that are whole numbers mean integers.
        **options
            ``tasks``, ``workers``: ids (default 0, 1, 2 ...), for polars and pyarrow ``tasks`` may
            name a column; ``classes``; ``missing``: one more value that means "no label", such
            as -1; ``type``, as for :meth:`from_arrays`.

        Examples
        --------
        >>> CrowdLabels.from_matrix([[0, 1, -1], [1, 1, 0]], missing=-1)
        CrowdLabels(2 tasks, 3 workers, 2 classes, 5 annotations)
        """
        from wisecrowd.core.matrix import labels_from_matrix

        return labels_from_matrix(matrix, **options)

    # ------------------------------------------------------------------------------------ sizes

    @property
    def n_tasks(self) -> int:
        """Number of tasks, with or without annotations."""
        return len(self.tasks)

    @property
    def n_workers(self) -> int:
        """Number of workers in the vocabulary."""
        return len(self.workers)

    @property
    def n_classes(self) -> int:
        """Number of classes, used or declared."""
        return len(self.classes)

    @property
    def n_annotations(self) -> int:
        """Number of (task, worker, label) rows."""
        return len(self.task)

    @property
    def shape(self) -> tuple[int]:
        """``(n_tasks,)``: to scikit-learn's splitters the rows are tasks."""
        return (self.n_tasks,)

    def __len__(self) -> int:
        return self.n_tasks

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return (n_tasks,) arrays of each task's labels: scikit-learn sees no vector of classes.

        Its searches over classifiers look at the target to choose how to split.
        """
        array = np.empty(self.n_tasks, dtype=object)
        ids = self.classes[self.label]
        for i in range(self.n_tasks):
            array[i] = ids[self.indptr[i] : self.indptr[i + 1]]
        return array

    def __repr__(self) -> str:
        return (
            f"CrowdLabels({self.n_tasks} tasks, {self.n_workers} workers, "
            f"{self.n_classes} classes, {self.n_annotations} annotations)"
        )

    def _repr_html_(self) -> str:
        text: str = import_module("wisecrowd.reporting.notebook").labels_html(self)
        return text

    # ------------------------------------------------------------------------------------ views

    @cached_property
    def indptr(self) -> NDArray[np.int64]:
        """(n_tasks + 1,) annotations of task ``i`` are rows ``indptr[i]`` to ``indptr[i + 1]``."""
        return _row_pointers(self.task, self.n_tasks)

    @cached_property
    def by_worker(self) -> WorkerView:
        """The worker-major view: row pointers and the order of annotations by (worker, task)."""
        order = stable_order(self.worker, self.n_workers)
        return WorkerView(_row_pointers(self.worker, self.n_workers), order)

    @cached_property
    def labels_per_task(self) -> NDArray[np.int64]:
        """(n_tasks,) number of annotations of each task."""
        return np.diff(self.indptr)

    @cached_property
    def labels_per_worker(self) -> NDArray[np.int64]:
        """(n_workers,) number of annotations by each worker."""
        return np.bincount(self.worker, minlength=self.n_workers)

    @cached_property
    def class_totals(self) -> Floats:
        """(n_classes,) total weight of each label: how common it is overall."""
        return np.bincount(self.label, weights=self.weight, minlength=self.n_classes).astype(
            np.float64
        )

    def __getitem__(self, rows: Any) -> CrowdLabels:
        """Select tasks by position, slice or boolean mask; workers and classes stay."""
        if isinstance(rows, tuple):  # scikit-learn asks for labels[rows, ...]
            rows = rows[0]
        chosen = np.atleast_1d(np.arange(self.n_tasks)[rows])
        new_code = np.full(self.n_tasks, -1, dtype=np.int32)
        new_code[chosen] = np.arange(len(chosen), dtype=np.int32)
        if np.count_nonzero(new_code >= 0) != len(chosen):
            raise DataError("A task was selected twice; select each task at most once.")
        kept = np.flatnonzero(new_code[self.task] >= 0)
        task = new_code[self.task[kept]]
        kept = kept[stable_order(task, len(chosen))]
        return replace(
            self._rows(kept),
            task=new_code[self.task[kept]],
            tasks=self.tasks[chosen],
            notes=(),
            rows=chosen if self.rows is None else self.rows[chosen],
        )

    def select_annotations(self, keep: NDArray[np.bool_]) -> CrowdLabels:
        """Keep the annotations where the mask is true; all vocabularies stay."""
        return self._rows(np.flatnonzero(keep))

    def _rows(self, rows: NDArray[np.intp]) -> CrowdLabels:
        return replace(
            self,
            task=self.task[rows],
            worker=self.worker[rows],
            label=self.label[rows],
            weight=None if self.weight is None else self.weight[rows],
            columns={name: values[rows] for name, values in self.columns.items()},
        )

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return the long table as a mapping of column name to values, in sorted order."""
        table = {
            "task": self.tasks[self.task],
            "worker": self.workers[self.worker],
            "label": self.classes[self.label],
        }
        if self.weight is not None:
            table["weight"] = self.weight
        table.update(self.columns)
        if self.worker_kind is not None:
            table["worker_kind"] = self.worker_kind[self.worker]
        return table

    def to_frame(self, library: str | None = None) -> Any:
        """Return the long table as a frame, one row per annotation; ``from_frame`` reads it back.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            By default the library that the labels came in. For labels from files and arrays it is
            the first that is installed: pandas, polars or pyarrow.

        Examples
        --------
        >>> labels = CrowdLabels.from_arrays(["t1", "t1"], ["ann", "bob"], ["cat", "dog"])
        >>> labels.to_frame("pyarrow").to_pylist()[0]
        {'task': 't1', 'worker': 'ann', 'label': 'cat'}
        """
        from wisecrowd.core.frames import as_frame, frame_library

        return as_frame(self.to_dict(), frame_library(library, self.frame_library))


def _rebuild(*fields: Any) -> CrowdLabels:
    names = (
        "task", "worker", "label", "tasks", "workers", "classes",
        "weight", "columns", "worker_kind", "notes", "frame_library",
        "rows",
    )  # fmt: skip
    return CrowdLabels(**dict(zip(names, fields, strict=True)))


def _row_pointers(codes: NDArray[np.integer[Any]], size: int) -> NDArray[np.int64]:
    pointers = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(np.bincount(codes, minlength=size), out=pointers[1:])
    return pointers
