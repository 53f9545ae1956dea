"""CrowdRegions: boxes that workers drew in images, frozen, sorted and sparse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations, Payload, Vocabulary
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Codes, Floats, Longs

COORDINATES = ("x", "y", "width", "height")
IMAGE_WIDTH, IMAGE_HEIGHT = "image_width", "image_height"  # task columns; 0 where unknown
NO_CLASS = ""  # the only class of boxes without labels


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CrowdRegions(Annotations):
    """Boxes in images: a worker who saw a task drew any number of boxes, or none.

    An annotation is one worker's look at one image. Annotations without boxes are data: without
    them a missed object cannot be told from an image that the worker never saw.
    :meth:`from_arrays` and :meth:`from_frame` check their arguments; the constructor does not.

    Attributes
    ----------
    boxes : (n_boxes, 4) float64
        x, y (upper left corner), width and height, one annotation after the other; sorted inside
        an annotation.
    label : (n_boxes,) int32
        Codes into ``classes``.
    pointer : (n_annotations + 1,) int64
        Boxes of annotation ``e`` are ``boxes[pointer[e]:pointer[e + 1]]``.
    classes : (n_classes,)
        Classes of boxes; one empty text if boxes have no labels.
    task_columns : mapping
        ``image_width`` and ``image_height`` of each task, if given; 0 where unknown.
    task, worker, tasks, workers, weight, columns, notes
        As in :class:`~wisecrowd.core.annotations.Annotations`.

    Examples
    --------
    >>> rows = ["a", "a", "a"], ["ann", "bob", "cem"], [1, 2, None], [1, 1, None]
    >>> data = CrowdRegions.from_arrays(*rows, [8, 9, None], [5, 5, None])
    >>> data, np.diff(data.pointer).tolist()
    (CrowdRegions(1 tasks, 3 workers, 1 classes, 3 annotations), [1, 1, 0])
    """

    kind: ClassVar[str] = "boxes"
    numeric: ClassVar[bool] = True
    payload: ClassVar[tuple[Payload, ...]] = (
        Payload("boxes", pointer="pointer"),
        Payload("label", vocabulary="classes", pointer="pointer"),
    )
    optional_roles: ClassVar[tuple[str, ...]] = ("label", IMAGE_WIDTH, IMAGE_HEIGHT)
    label_role: ClassVar[str | None] = "label"
    axes: ClassVar[Mapping[str, str]] = {**Annotations.axes, "K": "classes_"}
    saves: ClassVar[Mapping[str, Saved]] = {
        **Annotations.saves,
        "classes_": SavedArray("K", "id"),
        "image_width_": SavedArray("N", "amount"),
        "image_height_": SavedArray("N", "amount"),
    }

    boxes: Floats
    label: Codes
    pointer: Longs
    classes: Vocabulary

    @classmethod
    def roles(cls) -> dict[str, tuple[str, ...]]:
        """Return the columns of a table with one row per box, each with its usual names."""
        return {
            "x": ("x", "left", "xmin", "x1"),
            "y": ("y", "top", "ymin", "y1"),
            "width": ("width", "w", "boxwidth", "xmax", "x2"),
            "height": ("height", "h", "boxheight", "ymax", "y2"),
            "label": ("label", "class", "category", "labels", "classname"),
            IMAGE_WIDTH: ("imagewidth", "originalwidth"),
            IMAGE_HEIGHT: ("imageheight", "originalheight"),
        }

    @classmethod
    def from_arrays(cls, task: Any, worker: Any, *values: Any, **options: Any) -> Self:
        """Build from columns with one row per box, or per worker who saw a task and drew nothing.

        Parameters
        ----------
        task, worker : (n_rows,) ids
        *values
            ``x``, ``y``, ``width``, ``height`` and optionally ``label``, ``image_width`` and
            ``image_height``. All of the first four are empty in a row without a box.
        **options
            ``classes``: all classes. ``tasks``, ``workers``, ``weight``, ``timestamp``,
            ``duration``, ``cost``, ``question``, ``worker_kind`` and ``duplicates`` are described
            in :meth:`CrowdLabels.from_arrays`. Rows of a task and worker with different
            timestamps are several annotations.
        """
        from wisecrowd.kinds.boxes.columns import regions_from_columns

        given = dict(zip(cls.roles(), values, strict=False))
        return regions_from_columns(cls, task, worker, **given, **options)

    def with_seen(self, task: Any, worker: Any) -> Self:
        """Return the data with an annotation without boxes for every further pair that is given.

        Parameters
        ----------
        task, worker : (n,) ids
            Who saw what: a table of assignments.

        Examples
        --------
        >>> data = CrowdRegions.from_arrays(["a"], ["ann"], [1], [1], [8], [5])
        >>> data.with_seen(["a", "a"], ["ann", "bob"]).n_annotations
        2
        """
        from wisecrowd.kinds.boxes.columns import with_empty_annotations

        return with_empty_annotations(self, task, worker)

    def marks(self) -> tuple[int, int]:
        """Return the numbers of classes, 0 if boxes have no labels, and of boxes."""
        return self.n_classes if self.has_classes else 0, self.n_boxes

    @cached_property
    def n_boxes(self) -> int:
        """Number of boxes."""
        return len(self.boxes)

    @cached_property
    def n_classes(self) -> int:
        """Number of classes; 1 if boxes have no labels."""
        return len(self.classes)

    @property
    def has_classes(self) -> bool:
        """Whether boxes have labels."""
        return bool(self.classes.tolist() != [NO_CLASS])

    @cached_property
    def box_annotation(self) -> Longs:
        """(n_boxes,) the annotation of each box."""
        return np.repeat(np.arange(self.n_annotations), np.diff(self.pointer))

    @cached_property
    def box_task(self) -> Codes:
        """(n_boxes,) the task of each box."""
        return self.task[self.box_annotation]

    @cached_property
    def box_worker(self) -> Codes:
        """(n_boxes,) the worker of each box."""
        return self.worker[self.box_annotation]

    def image_size(self) -> Floats:
        """(n_tasks, 2) width and height of each image, 0 where unknown."""
        columns = [self.task_columns.get(name) for name in (IMAGE_WIDTH, IMAGE_HEIGHT)]
        return np.stack([np.zeros(self.n_tasks) if c is None else c for c in columns], axis=1)

    def attributes(self) -> dict[str, Any]:
        """Return the ids and counts that a fit publishes; see ``saves``."""
        size = self.image_size()
        return super().attributes() | {
            f"{IMAGE_WIDTH}_": size[:, 0].copy(), f"{IMAGE_HEIGHT}_": size[:, 1].copy(),
        }  # fmt: skip

    def _table(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield columns with one row per box, and one per annotation without boxes."""
        size = np.maximum(np.diff(self.pointer), 1)
        row = np.repeat(np.arange(self.n_annotations), size)
        drawn = np.diff(self.pointer)[row] > 0
        yield "task", self.tasks[self.task[row]]
        yield "worker", self.workers[self.worker[row]]
        for k, name in enumerate(COORDINATES):
            values = np.full(len(row), None, dtype=object)
            values[drawn] = self.boxes[:, k].tolist()
            yield name, values
        if self.has_classes:
            labels = np.full(len(row), None, dtype=object)
            labels[drawn] = self.classes[self.label].tolist()
            yield "label", labels
        for name in (IMAGE_WIDTH, IMAGE_HEIGHT):
            if name in self.task_columns:
                known = self.task_columns[name][self.task[row]]
                sizes = known.astype(object)
                sizes[known <= 0] = None
                yield name, sizes
        if self.weight is not None:
            yield "weight", self.weight[row]
        yield from ((name, values[row]) for name, values in self.columns.items())
        if self.worker_kind is not None:
            yield "worker_kind", self.worker_kind[self.worker][row]

    def annotation_text(self, e: int) -> str:
        """Return one annotation as text, for examples."""
        n = int(self.pointer[e + 1] - self.pointer[e])
        return f"{n} box{'' if n == 1 else 'es'}"
