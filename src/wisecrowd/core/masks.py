"""CrowdMasks: binary masks of images by workers, as run lengths, frozen, sorted and sparse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations, Codes, Payload
from wisecrowd.core.run_lengths import Runs, dense_mask, inside_runs, rle_texts
from wisecrowd.core.saved_attributes import Saved, SavedArray

HEIGHT, WIDTH = "height", "width"  # the task columns of an image


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CrowdMasks(Annotations):
    """Binary masks: a worker marks the pixels of an image that belong to an object.

    :meth:`from_arrays` and :meth:`from_frame` check their arguments; the constructor does not.

    Attributes
    ----------
    mask : (n_runs,) int32
        Run lengths, one mask after the other: pixels outside, inside, outside, ..., column by
        column as in COCO. An empty mask is an answer; it has one run.
    pointer : (n_annotations + 1,) int64
        Mask ``e`` is ``mask[pointer[e]:pointer[e + 1]]``.
    task_columns : mapping
        ``height`` and ``width``: size of the image of each task, 0 if nobody has marked it.
    task, worker, tasks, workers, weight, columns, notes
        As in :class:`~wisecrowd.core.annotations.Annotations`.

    Examples
    --------
    >>> masks = ['{"size": [2, 3], "counts": [1, 3, 2]}', '{"size": [2, 3], "counts": "6"}']
    >>> data = CrowdMasks.from_arrays(["image", "image"], ["ann", "bob"], masks)
    >>> data
    CrowdMasks(1 tasks, 2 workers, 2 annotations)
    >>> data.dense(0).astype(int).tolist()
    [[0, 1, 0], [1, 1, 0]]
    """

    payload: ClassVar[tuple[Payload, ...]] = (
        Payload("mask", pointer="pointer",
                usual=("mask", "segmentation", "rle", "masks", "encodedpixels")),
    )  # fmt: skip
    optional_roles: ClassVar[tuple[str, ...]] = ("layer",)
    saves: ClassVar[Mapping[str, Saved]] = {
        **Annotations.saves,
        "height_": SavedArray("N", "count"),
        "width_": SavedArray("N", "count"),
    }

    mask: Codes
    pointer: NDArray[np.int64]

    @classmethod
    def roles(cls) -> dict[str, tuple[str, ...]]:
        """Return the columns of masks, each with its usual names."""
        return super().roles() | {"layer": ("layer", "label", "class", "category")}

    @classmethod
    def from_arrays(cls, task: Any, worker: Any, *values: Any, **options: Any) -> Self:
        """Build from equally long columns: task, worker and mask.

        Parameters
        ----------
        task, worker : (n_annotations,) ids
        *values
            ``mask``: COCO run lengths, as JSON text or mappings with ``size`` (height, width) and
            ``counts`` (a list or COCO's text), or (height, width) arrays of 0 and 1.
            ``layer``, optional: the class of each mask. With several classes every pair of task
            and class is a task of its own, named "task [class]".
        **options
            ``tasks``, ``workers``, ``weight``, ``timestamp``, ``duration``, ``cost``, ``question``,
            ``worker_kind`` and ``duplicates`` are described in :meth:`CrowdLabels.from_arrays`.
        """
        from wisecrowd.core.mask_columns import masks_from_columns

        given = dict(zip(("mask", "layer"), values, strict=False))
        return masks_from_columns(cls, task, worker, **given, **options)

    @property
    def height(self) -> NDArray[np.int64]:
        """(n_tasks,) number of rows of each image."""
        return self.task_columns[HEIGHT]

    @property
    def width(self) -> NDArray[np.int64]:
        """(n_tasks,) number of columns of each image."""
        return self.task_columns[WIDTH]

    @cached_property
    def runs(self) -> Runs:
        """The intervals inside the masks; ``image`` is the number of the annotation."""
        return inside_runs(self.mask, self.pointer)

    @cached_property
    def area(self) -> NDArray[np.int64]:
        """(n_annotations,) number of pixels inside each mask."""
        size = np.bincount(self.runs.image, self.runs.end - self.runs.start, self.n_annotations)
        return size.astype(np.int64)

    def dense(self, annotation: int) -> NDArray[np.bool_]:
        """Return one mask as a (height, width) array."""
        begin, end = self.pointer[annotation : annotation + 2]
        i = self.task[annotation]
        return dense_mask(self.mask[begin:end], int(self.height[i]), int(self.width[i]))

    def attributes(self) -> dict[str, Any]:
        """Return the ids and counts that a fit publishes; see ``saves``."""
        return super().attributes() | {"height_": self.height, "width_": self.width}

    def _values(self, part: Payload) -> NDArray[Any]:
        """Return each mask as COCO's run-length JSON."""
        sizes = self.height[self.task], self.width[self.task]
        return rle_texts(self.mask.astype(np.int64), self.pointer, *sizes)
