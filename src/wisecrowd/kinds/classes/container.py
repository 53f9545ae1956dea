"""CrowdLabels: class labels by worker and task, frozen, sorted and sparse; their votes.

Large data are looked at in a subsample, even by task.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wisecrowd.core.annotations import ANNOTATION_COLUMNS as ANNOTATION_COLUMNS
from wisecrowd.core.annotations import WORKER_KIND, Annotations, Payload, Vocabulary
from wisecrowd.core.annotations import WorkerView as WorkerView
from wisecrowd.core.columns import ALIASES
from wisecrowd.core.ids.packed_sort import count_codes
from wisecrowd.core.ids.packed_sort import stable_order as stable_order
from wisecrowd.core.messages.descriptions import describe_ids as describe_ids
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Codes, Floats
from wisecrowd.inference.engine import cut_tasks
from wisecrowd.kinds.classes.shards import Shard, cut_labels

ENOUGH = 30_000  # annotations; larger data sets are subsampled evenly by task
# Share of tasks with labels by two workers or more, or gold, from which workers and class
# frequencies can be learned. With fewer, simulated fits explain the rare labels of perfect workers
# as errors.
LEAST_SHARED = 0.1


@dataclass(frozen=True, eq=False, repr=False, init=False)
class CrowdLabels(Annotations):
    """Annotations as codes, sorted by (task, worker), with the user's own ids as vocabularies.

    :meth:`from_frame`, :meth:`from_arrays` and :meth:`from_matrix` check their arguments; the
    constructor does not. Rows are tasks: ``len(labels)`` is the number of tasks. ``labels[rows]``
    keeps the worker and class vocabularies, so folds and mini-batches share indices.

    Attributes
    ----------
    task, worker, label : (n_annotations,) int32
        Codes into the vocabularies.
    tasks, workers, classes : (n_tasks,), (n_workers,), (n_classes,)
        The user's ids. Tasks and workers are sorted; classes are sorted unless declared.
    ordered : bool
        Whether the classes are ordered, like grades.
    weight : (n_annotations,) float64, optional
        Weight of each annotation; ``None`` means 1.
    columns : mapping of str to (n_annotations,) arrays
        Optional ``timestamp``, ``duration``, ``cost`` and ``question``.
    task_columns, worker_columns : mappings of str to (n_tasks,) and (n_workers,) arrays
        Attributes of tasks and workers.
    worker_kind : (n_workers,), optional
        For instance "human" or "model"; the worker column ``kind``.
    notes : tuple of str
        Decisions made when the data were read: guessed columns, dropped duplicates, abstentions.
    rows : (n_tasks,), optional
        After ``labels[rows]``: position of each task in the original labels. It shows whether
        features were selected by the same rows.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays(["t1", "t1", "t2"], ["ann", "bob", "ann"], [1, 0, 1])
    >>> labels
    CrowdLabels(2 tasks, 2 workers, 2 classes, 3 annotations)
    >>> labels[[1]].workers.tolist()
    ['ann', 'bob']
    """

    kind: ClassVar[str] = "labels"
    of_classes: ClassVar[bool] = True
    payload: ClassVar[tuple[Payload, ...]] = (
        Payload("label", vocabulary="classes", usual=ALIASES["label"]),
    )
    axes: ClassVar[Mapping[str, str]] = {**Annotations.axes, "K": "classes_"}
    saves: ClassVar[Mapping[str, Saved]] = {
        **Annotations.saves,
        "classes_": SavedArray("K", "id"),
        "class_totals_": SavedArray("K", "amount"),
    }

    label: Codes
    classes: Vocabulary
    ordered: bool = False

    def __init__(
        self,
        task: Codes,
        worker: Codes,
        label: Codes,
        tasks: Vocabulary,
        workers: Vocabulary,
        classes: Vocabulary,
        weight: Floats | None = None,
        columns: Mapping[str, NDArray[Any]] | None = None,
        worker_kind: NDArray[Any] | None = None,
        notes: tuple[str, ...] = (),
        frame_library: str | None = None,
        rows: NDArray[np.int64] | None = None,
        *,
        ordered: bool = False,
        task_columns: Mapping[str, NDArray[Any]] | None = None,
        worker_columns: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        for name, value in (("label", label), ("classes", classes), ("ordered", ordered)):
            object.__setattr__(self, name, value)
        kind = {} if worker_kind is None else {WORKER_KIND: worker_kind}
        super().__init__(
            task=task, worker=worker, tasks=tasks, workers=workers, weight=weight,
            columns=columns or {}, task_columns=task_columns or {},
            worker_columns={**(worker_columns or {}), **kind},
            notes=notes, frame_library=frame_library, rows=rows,
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
            Ids; each array has one hashable type, such as str, int or bool.
        **options
            ``classes``: all classes, in this order; ``tasks``, ``workers``: all ids, including
            those without annotations; ``weight``, ``timestamp``, ``duration``, ``cost``,
            ``question``: one value per annotation; ``worker_kind``: one value per annotation or a
            mapping from worker; ``duplicates``: "last", "keep", "error" or "auto" (the default: the
            last label counts, but many repeats with different labels are an error); ``abstain``:
            labels to treat as abstentions; ``type="labels"``: every value is a class (implied by
            ``classes``; otherwise numbers and free text are refused); ``ordered``: whether the
            classes are ordered.

        Examples
        --------
        >>> CrowdLabels.from_arrays([0, 0], ["a", "b"], ["x", "y"], classes=["x", "y", "z"])
        CrowdLabels(1 tasks, 2 workers, 3 classes, 2 annotations)
        """
        from wisecrowd.kinds.classes.columns import labels_from_arrays

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
            ``question``, ``worker_kind`` name the columns; by default common names are detected.
            ``wide=True`` means one row per task and one column of labels per worker.
            ``worker_columns`` names these columns; ``task`` names the task column, which is
            otherwise detected. ``notes`` lists the columns that are left out. Other options are
            those of :meth:`from_arrays`.

        Examples
        --------
        >>> wide = {"id": [1, 2], "text": ["Hi!", "Oh."], "ann": ["a", "b"], "bob": ["a", "a"]}
        >>> CrowdLabels.from_frame(wide, wide=True)
        CrowdLabels(2 tasks, 2 workers, 2 classes, 4 annotations)
        """
        from wisecrowd.kinds.classes.columns import labels_from_frame

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
        from wisecrowd.kinds.classes.wide_matrix import labels_from_matrix

        return labels_from_matrix(matrix, **options)

    @classmethod
    def reading_options(cls, **options: Any) -> dict[str, Any]:
        """Return the options of ``wisecrowd.read`` unchanged; ``from_arrays`` takes them all."""
        return options

    @classmethod
    def coerce(cls, data: Any, *, type: str | None = None) -> CrowdLabels:
        """Return data of any accepted form, including a tasks × workers matrix."""
        from wisecrowd.kinds.classes.columns import as_crowd_labels

        return as_crowd_labels(data, type=type)

    # ------------------------------------------------------------------------ sizes and counts

    @cached_property
    def n_classes(self) -> int:
        """Number of classes, used or declared."""
        return len(self.classes)

    def _repr_html_(self) -> str:
        text: str = import_module("wisecrowd.reporting.notebook").labels_html(self)
        return text

    @cached_property
    def n_labelled(self) -> int:
        """Number of tasks with labels."""
        return int(np.count_nonzero(self.labels_per_task))

    @property
    def n_tasks_in_memory(self) -> int:
        """Number of tasks whose answers a fit keeps in memory; 0 for packs."""
        return self.n_tasks

    @cached_property
    def class_totals(self) -> Floats:
        """(n_classes,) total weight of the labels of each class."""
        if self.weight is None:
            return count_codes(self.label, self.n_classes).astype(np.float64)
        return np.bincount(self.label, self.weight, self.n_classes).astype(np.float64)

    @cached_property
    def worker_totals(self) -> Floats:
        """(n_workers,) total weight of each worker's labels."""
        if self.weight is None:
            return self.labels_per_worker.astype(np.float64)
        return np.bincount(self.worker, self.weight, self.n_workers).astype(np.float64)

    def attributes(self) -> dict[str, Any]:
        """Return the ids and counts that a fit publishes; see ``saves``."""
        return super().attributes() | {"class_totals_": self.class_totals}

    def kind_name(self) -> str:
        """Return the name of the kind: classes in an order are a kind of their own."""
        return "ordered" if self.ordered else self.kind

    def inspected(self) -> dict[str, Any]:
        """Return the number of labels of each class, and what looks like an abstention."""
        from wisecrowd.kinds.classes import evidence

        counts = np.bincount(self.label, minlength=self.n_classes).tolist()
        names = self.classes.tolist()
        hints = [name for name in names if evidence.is_abstention(name)]
        remarks = (
            f"{evidence.abstention_sentence(hints)}; if so, read it with "
            f"{evidence.abstention_hint(hints)}"
        )
        return {
            "classes": dict(zip(map(str, names), counts, strict=True)),
            "remarks": (remarks,) if hints else (),
        }

    def doubts(
        self, header: Collection[str], *, declared: bool
    ) -> tuple[tuple[str, ...], str | None]:
        """Return why commands refuse labels that do not look like classes, or that repeat."""
        from wisecrowd.kinds.classes.evidence import doubts_about

        return doubts_about(self, header, declared=declared)

    def annotation_text(self, e: int) -> str:
        """Return one annotation as text, for examples."""
        return str(self.classes[self.label[e]])


def vote_table(labels: CrowdLabels, *, weighted: bool = False) -> NDArray[np.float64]:
    """Sum the weights of the labels of each class: (n_tasks, n_classes)."""
    cell = labels.task.astype(np.int64) * labels.n_classes + labels.label
    weight = labels.weight if weighted else None
    votes = np.bincount(cell, weight, labels.n_tasks * labels.n_classes)
    return votes.reshape(labels.n_tasks, labels.n_classes).astype(np.float64)


def labelled_by_several(labels: CrowdLabels | Shard) -> NDArray[np.bool_]:
    """Return (n_tasks,): whether two workers or more labelled a task, with positive weight.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays([0, 0, 1], ["ann", "bob", "ann"], ["cat", "dog", "cat"])
    >>> labelled_by_several(labels)
    array([ True, False])
    """
    size, worker, weight = np.diff(labels.indptr), labels.worker, labels.weight
    if weight is not None and not weight.all():
        counted = weight > 0
        task = np.repeat(np.arange(len(size)), size)[counted]
        worker, size = worker[counted], np.bincount(task, minlength=len(size))
    end = np.cumsum(size)
    several = size > 1
    # Workers are sorted within a task, so the first and the last differ unless all are the same.
    several[several] = worker[end[several] - size[several]] != worker[end[several] - 1]
    return np.asarray(several)


def subsample_tasks(labels: CrowdLabels, most: int = ENOUGH) -> CrowdLabels:
    """Return every m-th task with its labels, so that about ``most`` annotations remain."""
    step = subsample_step(labels, most)
    if step == 1:
        return labels
    size = labels.labels_per_task[::step]
    end = np.cumsum(size)
    rows = np.repeat(labels.indptr[:-1][::step] - (end - size), size) + np.arange(end[-1])
    task = np.repeat(np.arange(len(size), dtype=np.int32), size)
    return replace(
        labels,
        task=task,
        worker=labels.worker[rows],
        label=labels.label[rows],
        tasks=labels.tasks[::step],
        weight=None if labels.weight is None else labels.weight[rows],
        columns={},
        rows=None,
    )


def subsample_step(labels: CrowdLabels, most: int = ENOUGH) -> int:
    """Return the step m of :func:`subsample_tasks`."""
    return max(-(-labels.n_annotations // most), 1)


cut_tasks.register(CrowdLabels, cut_labels)
