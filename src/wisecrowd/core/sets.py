"""CrowdSets: sets of classes by workers, frozen, sorted and sparse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations, Codes, Floats, Payload, Vocabulary
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.set_text import joined_sets

OUT_AND_IN = ("out", "in")  # classes of one class of a set, as labels


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CrowdSets(Annotations):
    """Sets of classes: a worker gives a task any number of classes, or none of them.

    An empty set is an answer; a worker who has not seen a task has no row for it.
    :meth:`from_arrays` and :meth:`from_frame` check their arguments; the constructor does not.

    Attributes
    ----------
    members : (n_members,) int32
        Codes into ``classes``, ascending in each set, one set after the other.
    pointer : (n_annotations + 1,) int64
        Set ``e`` is ``members[pointer[e]:pointer[e + 1]]``.
    classes : (n_classes,) str
        All classes.
    task, worker, tasks, workers, weight, columns, notes
        As in :class:`~wisecrowd.core.annotations.Annotations`.

    Examples
    --------
    >>> sets = ["cat|dog", '["dog"]', ""]
    >>> data = CrowdSets.from_arrays(["t1", "t1", "t2"], ["ann", "bob", "ann"], sets)
    >>> data
    CrowdSets(2 tasks, 2 workers, 2 classes, 3 annotations)
    >>> data.sizes.tolist()
    [2, 1, 0]
    """

    payload: ClassVar[tuple[Payload, ...]] = (
        Payload("members", vocabulary="classes", pointer="pointer"),
    )
    axes: ClassVar[Mapping[str, str]] = {**Annotations.axes, "K": "classes_"}
    saves: ClassVar[Mapping[str, Saved]] = {
        **Annotations.saves,
        "classes_": SavedArray("K", "id"),
    }

    members: Codes
    pointer: NDArray[np.int64]
    classes: Vocabulary

    @classmethod
    def roles(cls) -> dict[str, tuple[str, ...]]:
        """Return the column of the sets, with its usual names."""
        return {"label": ("label", "labels", "members", "answer", "response", "class", "category")}

    @classmethod
    def reading_options(cls, **options: Any) -> dict[str, Any]:
        """Return the classes that the user declares; there are no abstentions."""
        classes = options.pop("classes", None)
        super().reading_options(**options)
        return {} if classes is None else {"classes": classes}

    @classmethod
    def from_arrays(cls, task: Any, worker: Any, *values: Any, **options: Any) -> Self:
        """Build from equally long columns: task, worker and set.

        Parameters
        ----------
        task, worker : (n_annotations,) ids
        *values
            ``label``: sets or lists of classes, or text: a JSON list, or classes with ``|`` between
            them. Nothing, ``[]`` and empty text are the empty set.
        **options
            ``classes``: all classes, including those in no set. ``tasks``, ``workers``, ``weight``,
            ``timestamp``, ``duration``, ``cost``, ``question``, ``worker_kind`` and ``duplicates``
            are described in :meth:`CrowdLabels.from_arrays`.
        """
        from wisecrowd.core.set_columns import sets_from_columns

        given = {"label": values[0]} if values else {}
        return sets_from_columns(cls, task, worker, **given, **options)

    @cached_property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """(n_annotations,) number of classes in each set."""
        return np.diff(self.pointer)

    @cached_property
    def annotation(self) -> NDArray[np.int64]:
        """(n_members,) the annotation of each member."""
        return np.repeat(np.arange(self.n_annotations), self.sizes)

    @property
    def weights(self) -> Floats:
        """(n_annotations,) weight of each set, 1 if none is given."""
        return np.ones(self.n_annotations) if self.weight is None else self.weight

    @cached_property
    def votes(self) -> Floats:
        """(n_tasks, n_classes) weight of the sets of each task with each class."""
        place = self.task[self.annotation].astype(np.int64) * self.n_classes + self.members
        weight = self.weights[self.annotation]
        cells = np.bincount(place, weight, self.n_tasks * self.n_classes)
        return cells.reshape(self.n_tasks, self.n_classes)

    @cached_property
    def total_weight(self) -> Floats:
        """(n_tasks,) weight of the sets of each task."""
        return np.bincount(self.task, self.weights, self.n_tasks)

    def to_labels(self, k: int) -> CrowdLabels:
        """Return whether class ``k`` is in each set, as labels with the classes out and in."""
        label = np.zeros(self.n_annotations, dtype=np.int32)
        label[self.annotation[self.members == k]] = 1
        return CrowdLabels(
            self.task, self.worker, label, self.tasks, self.workers,
            np.array(OUT_AND_IN, dtype=object), weight=self.weight,
            columns=dict(self.columns),
        )  # fmt: skip

    def _values(self, part: Payload) -> NDArray[Any]:
        """Return the sets as text."""
        return joined_sets(self.members, self.pointer, self.classes)

    def _table(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield the columns of the long table; the sets are in the column ``label``."""
        for name, values in super()._table():
            yield "label" if name == "members" else name, values
