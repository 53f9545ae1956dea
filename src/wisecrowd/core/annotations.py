"""Annotations: which worker gave which label to which task, for every kind of label."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdWarning
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.ids.packed_sort import count_codes, ragged_places, row_pointers, stable_order
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Codes, Floats

NOBODY = "unknown"  # the worker of answers without a worker column
Vocabulary = NDArray[Any]

ANNOTATION_COLUMNS = ("timestamp", "duration", "cost", "question")
WORKER_KIND = "kind"  # the worker column that ``worker_kind`` stands for


class WorkerView(NamedTuple):
    """Annotations by worker: those of worker ``j`` are ``order[indptr[j]:indptr[j + 1]]``."""

    indptr: NDArray[np.int64]
    order: NDArray[np.int64]


@dataclass(frozen=True)
class Payload:
    """One part of the content of an annotation, declared by its container.

    Attributes
    ----------
    name : str
        The field with the values, flat: one value per annotation.
    vocabulary : str, optional
        The field with the ids that the values are codes of.
    pointer : str, optional
        The field with the (n_annotations + 1,) row pointers of a ragged part: the values of
        annotation ``e`` are ``values[pointer[e]:pointer[e + 1]]``.
    usual : tuple of str
        Names by which its column is recognised in a table: lower case, without spaces,
        underscores and hyphens. By default the name itself.
    """

    name: str
    vocabulary: str | None = None
    pointer: str | None = None
    usual: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Annotations:
    """Annotations sorted by (task, worker), with the user's own ids as vocabularies.

    Each kind of label has a subclass. Its fields are the arrays of its labels, which ``payload``
    declares. Selection, pickling and tables loop over that declaration.
    The constructor trusts its arguments; :meth:`from_arrays` and :meth:`from_frame` check them.

    Attributes
    ----------
    task, worker : (n_annotations,) int32
        Codes into the vocabularies.
    tasks, workers : (n_tasks,), (n_workers,)
        The user's ids.
    weight : (n_annotations,) float64, optional
        Weight of each annotation; ``None`` means 1.
    columns : mapping of str to (n_annotations,) arrays
        Optional ``timestamp``, ``duration``, ``cost`` and ``question``.
    task_columns, worker_columns : mappings of str to (n_tasks,) and (n_workers,) arrays
        Attributes of tasks and workers, such as the kind of worker.
    notes : tuple of str
        Decisions made when the data were read.
    frame_library : str, optional
        The dataframe library of the input.
    rows : (n_tasks,), optional
        After ``data[rows]``: the position of each task in the data that it was selected from.
    """

    kind: ClassVar[str] = ""  # its name in wisecrowd.kinds
    payload: ClassVar[tuple[Payload, ...]] = ()
    # Columns that a table may lack, and the part that ``label`` names (default: the first).
    optional_roles: ClassVar[tuple[str, ...]] = ()
    label_role: ClassVar[str | None] = None
    # Whether every label is one class, and whether the answers are about items instead of tasks.
    of_classes: ClassVar[bool] = False
    about_items: ClassVar[bool] = False
    numeric: ClassVar[bool] = False  # whether answers are numbers in a table
    lists: ClassVar[bool] = False  # whether an answer in a table may be a list
    # Axes of learned arrays, and the published ids that give their lengths.
    axes: ClassVar[Mapping[str, str]] = {"N": "tasks_", "J": "workers_"}
    saves: ClassVar[Mapping[str, Saved]] = {
        "tasks_": SavedArray("N", "id"),
        "workers_": SavedArray("J", "id"),
        "labels_per_task_": SavedArray("N", "amount"),
        "labels_per_worker_": SavedArray("J", "amount"),
    }

    task: Codes
    worker: Codes
    tasks: Vocabulary
    workers: Vocabulary
    weight: Floats | None = None
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    task_columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    worker_columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    frame_library: str | None = None
    rows: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, Mapping):
                object.__setattr__(self, one.name, MappingProxyType(dict(value)))
                for array in value.values():
                    array.flags.writeable = False
            elif isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        # A mapping proxy does not pickle; caches are not worth sending.
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        mappings = {k: dict(v) for k, v in values.items() if isinstance(v, MappingProxyType)}
        return partial(type(self), **(values | mappings)), ()

    # ---------------------------------------------------------------------------- construction

    @classmethod
    def roles(cls) -> dict[str, tuple[str, ...]]:
        """Return the columns that hold the payload, each with the names that are recognised."""
        return {part.name: part.usual or (part.name,) for part in cls.payload}

    @classmethod
    def answer_role(cls) -> str:
        """Return the column of the answers, which ``label`` names."""
        return cls.label_role or next(iter(cls.roles()))

    @classmethod
    def asked_columns(cls, named: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return the columns to look for, by role; ``label`` names the part with the answers."""
        given = {role: name for role, name in named.items() if role != "label"}
        label = named.get("label")
        start: dict[str, str | None] = dict.fromkeys(("task", "worker", *cls.roles()))
        return start | given | ({} if label is None else {cls.answer_role(): label})

    @classmethod
    def reading_options(cls, **options: Any) -> dict[str, Any]:
        """Return the options of ``wisecrowd.read`` that ``from_arrays`` takes; refuse the others.

        Parameters
        ----------
        **options
            ``classes``, of kinds that have any; ``abstain``, which only labels that are single
            classes have; and ``type``, the name of the kind.
        """
        has_classes = "K" in cls.axes
        for name in ("abstain",) if has_classes else ("classes", "abstain"):
            if options.get(name) not in (None, ()):
                raise ParameterError(
                    f"{option(name, '...')} is for classes, and {cls.__name__} have none; leave it "
                    "out."
                )
        classes = options.get("classes") if has_classes else None
        return {} if classes is None else {"classes": classes}

    @classmethod
    def from_arrays(cls, task: Any, worker: Any, *values: Any, **options: Any) -> Self:
        """Build from equally long columns: task, worker, and one for each part of the payload.

        ``tasks``, ``workers``, ``weight``, ``timestamp``, ``duration``, ``cost``, ``question``,
        ``worker_kind`` and ``duplicates`` are described in :meth:`CrowdLabels.from_arrays`.
        """
        from wisecrowd.core.intake import annotations_of_numbers

        return annotations_of_numbers(cls, task, worker, *values, **options)

    @classmethod
    def from_frame(cls, frame: Any, **options: Any) -> Self:
        """Build from a frame with one row per annotation; options name the columns."""
        from wisecrowd.core.validation import annotations_from_frame

        return annotations_from_frame(cls, frame, **options)

    @classmethod
    def coerce(cls, data: Any, *, type: str | None = None) -> Self:
        """Return data of any accepted form: these annotations, a tuple of columns or a frame.

        ``type`` is the name of the kind, if the user declares it.
        """
        if isinstance(data, cls):
            return data
        if isinstance(data, Annotations):
            from wisecrowd.core.validation import other_kind

            raise other_kind(data, cls)
        if isinstance(data, tuple):
            return cls.from_arrays(*data)
        return cls.from_frame(data)

    # ------------------------------------------------------------------------------------ sizes

    @cached_property
    def n_tasks(self) -> int:
        """Number of tasks, with or without annotations."""
        return len(self.tasks)

    @cached_property
    def n_workers(self) -> int:
        """Number of workers in the vocabulary."""
        return len(self.workers)

    @cached_property
    def n_annotations(self) -> int:
        """Number of annotations."""
        return len(self.task)

    @property
    def shape(self) -> tuple[int]:
        """``(n_tasks,)``: to scikit-learn's splitters the rows are tasks."""
        return (self.n_tasks,)

    def __len__(self) -> int:
        return self.n_tasks

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return an (n_tasks,) array of objects, each the array of a task's labels.

        scikit-learn's searches choose their splitter by the target. This one does not look like a
        vector of classes.
        """
        array = np.empty(self.n_tasks, dtype=object)
        values = self._values(self.payload[0])
        for i in range(self.n_tasks):
            array[i] = values[self.indptr[i] : self.indptr[i + 1]]
        return array

    def __repr__(self) -> str:
        sizes = [f"{len(ids)} {name}" for name, ids in self.vocabularies().items()]
        return f"{type(self).__name__}({', '.join(sizes)}, {self.n_annotations} annotations)"

    def distance(self, row: int, others: Sequence[str]) -> float | None:
        """Return how far a label is from others, as texts; None if they are equal or differ."""
        return None

    def vocabularies(self) -> dict[str, Vocabulary]:
        """Return the ids of tasks, workers and the payload's vocabularies, by name."""
        own = [part.vocabulary for part in self.payload if part.vocabulary is not None]
        return {name: getattr(self, name) for name in ("tasks", "workers", *own)}

    # ------------------------------------------------------------------------------------ views

    @cached_property
    def indptr(self) -> NDArray[np.int64]:
        """(n_tasks + 1,) annotations of task ``i`` are rows ``indptr[i]`` to ``indptr[i + 1]``."""
        return row_pointers(self.task, self.n_tasks)

    @cached_property
    def by_worker(self) -> WorkerView:
        """The worker-major view: row pointers and the order of annotations by (worker, task)."""
        order = stable_order(self.worker, self.n_workers)
        return WorkerView(row_pointers(self.worker, self.n_workers), order)

    @cached_property
    def labels_per_task(self) -> NDArray[np.int64]:
        """(n_tasks,) number of annotations of each task."""
        return np.diff(self.indptr)

    @cached_property
    def labels_per_worker(self) -> NDArray[np.int64]:
        """(n_workers,) number of annotations by each worker."""
        return count_codes(self.worker, self.n_workers)

    @property
    def weights(self) -> Floats:
        """(n_annotations,) weight of each annotation, 1 if none is given."""
        return np.ones(self.n_annotations) if self.weight is None else self.weight

    @property
    def worker_kind(self) -> NDArray[Any] | None:
        """(n_workers,) the worker column ``kind``, for instance "human" or "model"."""
        return self.worker_columns.get(WORKER_KIND)

    def attributes(self) -> dict[str, Any]:
        """Return the ids and counts that a fit publishes, as ``saves`` declares them."""
        ids = {f"{name}_": ids for name, ids in self.vocabularies().items()}
        return ids | {
            "labels_per_task_": self.labels_per_task,
            "labels_per_worker_": self.labels_per_worker,
        }

    # -------------------------------------------------------------------------------- selection

    def __getitem__(self, rows: Any) -> Self:
        """Select tasks by position, slice or boolean mask; all other vocabularies stay."""
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
            task_columns=_taken(self.task_columns, chosen),
            notes=(),
            rows=chosen if self.rows is None else self.rows[chosen],
        )

    def select_annotations(self, keep: NDArray[np.bool_]) -> Self:
        """Keep the annotations where the mask is true; all vocabularies stay."""
        return self._rows(np.flatnonzero(keep))

    def _rows(self, rows: NDArray[np.integer[Any]]) -> Self:
        values: dict[str, Any] = {}
        for part in self.payload:
            array = getattr(self, part.name)
            if part.pointer is None:
                values[part.name] = array[rows]
            else:
                place, values[part.pointer] = ragged_places(getattr(self, part.pointer), rows)
                values[part.name] = array[place]
        return replace(
            self,
            task=self.task[rows],
            worker=self.worker[rows],
            weight=None if self.weight is None else self.weight[rows],
            columns=_taken(self.columns, rows),
            **values,
        )

    def select_workers(self, order: NDArray[np.integer[Any]]) -> Self:
        """Keep these workers, in this order, and their annotations; all tasks stay.

        Parameters
        ----------
        order : (n,) int
            Positions in ``workers``, each at most once.
        """
        code = np.full(self.n_workers, -1, dtype=np.int32)
        code[order] = np.arange(len(order), dtype=np.int32)
        kept = np.flatnonzero(code[self.worker] >= 0)
        worker = code[self.worker[kept]]
        kept = kept[np.lexsort((worker, self.task[kept]))]
        return replace(
            self._rows(kept),
            worker=code[self.worker[kept]],
            workers=self.workers[order],
            worker_columns=_taken(self.worker_columns, order),
        )

    def in_fitted_ids(self, fitted: Any, *, stacklevel: int = 3) -> Self:
        """Express annotations in the ids of a fit; workers it has not seen share one extra code.

        Parameters
        ----------
        fitted : object
            Has the ids that :meth:`attributes` publishes, such as ``workers_`` and ``classes_``.
        stacklevel : int
            Stack level of the warning about workers that the fit has not seen.

        Raises
        ------
        DataError
            If a label is not among the ids of the fit.
        """
        from wisecrowd.core.validation import codes_of_fit

        known = {name: ids for name, ids in self.vocabularies().items() if name != "tasks"}
        if all(ids is getattr(fitted, f"{name}_") for name, ids in known.items()):
            return self
        values: dict[str, Any] = {}
        for part in self.payload:
            if part.vocabulary is not None:
                own, ids = known[part.vocabulary], getattr(fitted, f"{part.vocabulary}_")
                codes = codes_of_fit(getattr(self, part.name), own, ids, part)
                values[part.name], values[part.vocabulary] = codes, ids
        worker = lookup(self.workers, fitted.workers_)
        strangers = (worker < 0) & (self.labels_per_worker > 0)
        if strangers.any():
            first = self.workers[strangers].tolist()[0]
            warnings.warn(
                f"{int(strangers.sum())} of {self.n_workers} workers, such as {first!r}, were not "
                f"in the fit{suggestion(first, fitted.workers_)}; they count as workers about whom "
                "nothing is known.",
                WisecrowdWarning,
                stacklevel=stacklevel,
            )
        worker[worker < 0] = len(fitted.workers_)
        return replace(
            self,
            worker=worker[self.worker].astype(np.int32),
            workers=np.append(fitted.workers_.astype(object), [None]),
            columns={},
            worker_columns={},
            notes=(),
            rows=None,
            **values,
        )

    # ------------------------------------------------------------------------------- inspection

    @property
    def has_workers(self) -> bool:
        """Whether the workers are known."""
        return True

    def inspected(self) -> dict[str, Any]:
        """Return what ``wisecrowd inspect`` shows of this kind alone, by the name of the field."""
        return {}

    def marks(self) -> tuple[int, int]:
        """Return the numbers of classes, and of spans or boxes."""
        return len(self.vocabularies().get("classes", ())), 0

    def doubts(
        self, header: Collection[str], *, declared: bool
    ) -> tuple[tuple[str, ...], str | None]:
        """Return why other commands refuse the labels, and the type that they need, or None."""
        return (), ""

    # ----------------------------------------------------------------------------------- tables

    def kind_name(self) -> str:
        """Return the name of the kind of these annotations."""
        return self.kind

    def annotation_text(self, e: int) -> str:
        """Return one annotation as text, for examples."""
        return str(self._values(self.payload[0])[e])

    def _values(self, part: Payload) -> NDArray[Any]:
        """Return the labels in the user's ids; a ragged part has one array per annotation."""
        values = getattr(self, part.name)
        if part.vocabulary is not None:
            values = getattr(self, part.vocabulary)[values]
        if part.pointer is None:
            return np.asarray(values)
        pointer = getattr(self, part.pointer)
        listed = np.empty(self.n_annotations, dtype=object)
        for e in range(self.n_annotations):
            listed[e] = values[pointer[e] : pointer[e + 1]]
        return listed

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return the long table as a mapping of column name to values, in sorted order."""
        return dict(self._table())

    def _table(self) -> Iterator[tuple[str, NDArray[Any]]]:
        yield "task", self.tasks[self.task]
        yield "worker", self.workers[self.worker]
        for part in self.payload:
            yield part.name, self._values(part)
        if self.weight is not None:
            yield "weight", self.weight
        yield from self.columns.items()
        if self.worker_kind is not None:
            yield "worker_kind", self.worker_kind[self.worker]

    def to_frame(self, library: str | None = None) -> Any:
        """Return the long table as a frame, one row per annotation; ``from_frame`` reads it back.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            The default is the library of the input. For labels from files and arrays it is the
            first that is installed: pandas, polars or pyarrow.

        Examples
        --------
        >>> from wisecrowd import CrowdLabels
        >>> labels = CrowdLabels.from_arrays(["t1", "t1"], ["ann", "bob"], ["cat", "dog"])
        >>> labels.to_frame("pyarrow").to_pylist()[0]
        {'task': 't1', 'worker': 'ann', 'label': 'cat'}
        """
        from wisecrowd.core.arrow import as_frame, frame_library

        return as_frame(self.to_dict(), frame_library(library, self.frame_library))


def _taken(
    columns: Mapping[str, NDArray[Any]], rows: NDArray[np.integer[Any]]
) -> dict[str, NDArray[Any]]:
    return {name: values[rows] for name, values in columns.items()}
