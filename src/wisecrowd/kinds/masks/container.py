"""CrowdMasks: pixels that workers marked, as run lengths; how columns and single masks are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations, Payload
from wisecrowd.core.arrow import is_missing
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import Encoded, encode
from wisecrowd.core.intake import Intake
from wisecrowd.core.messages.descriptions import Places
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Codes, Longs
from wisecrowd.core.validation import (
    check_lengths,
    complete_ids,
)
from wisecrowd.kinds.masks.run_lengths import (
    Runs,
    canonical,
    counts_of,
    decompressed,
    dense_mask,
    inside_runs,
    rle_texts,
)

HEIGHT, WIDTH = "height", "width"  # the task columns of an image
MOST_PIXELS = np.iinfo(np.int32).max
EXAMPLE = '{"size": [height, width], "counts": ...}'
MISSING = f"is missing; give {EXAMPLE}, with one run of all pixels if nothing is marked."


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

    kind: ClassVar[str] = "masks"
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

    def annotation_text(self, e: int) -> str:
        """Return one annotation as text, for examples."""
        return f"{int(self.mask[self.pointer[e] : self.pointer[e + 1]][1::2].sum())} pixels"


Masks = TypeVar("Masks", bound=CrowdMasks)


class ParsedMask(NamedTuple):
    """Size and canonical run lengths of one mask."""

    height: int
    width: int
    counts: Longs


def masks_from_columns(
    container: type[Masks], task: Any, worker: Any, *, mask: Any = None, layer: Any = None,
    **shared: Any,
) -> Masks:  # fmt: skip
    """Build masks from columns; see :meth:`CrowdMasks.from_arrays`."""
    note = None
    if task is not None and layer is not None:
        check_lengths({"task": task, "layer": layer})
        task, note = _with_layers(task, layer, shared.get("places") or Places({}))
    rows = Intake.open(container, task, worker, {"mask": mask}, {"layer": layer}, **shared)
    code, distinct = _parsed(mask, rows.places)
    height, width = _sizes(rows.task, code, distinct, rows.tasks, rows.places)
    rows.note_lookalikes()
    rows.notes += (note,) if note else ()
    table = rows.arrange(code, len(distinct))
    chosen = [distinct[k].counts for k in table.label.tolist()]
    return rows.build(
        container, table, task_columns={HEIGHT: height, WIDTH: width},
        mask=np.concatenate(chosen).astype(np.int32),
        pointer=np.cumsum([0, *map(len, chosen)]).astype(np.int64),
    )  # fmt: skip


def _with_layers(task: Any, layer: Any, places: Places) -> tuple[Any, str | None]:
    """Return tasks, one per class if there are several, and a note about it."""
    named = encode(layer, places.column("layer"))
    if (named.codes < 0).any():
        raise DataError(
            f"The {places.column('layer')} column is empty in {places.where(named.codes < 0)}; "
            "fill in the class of the mask, or remove the column."
        )
    if len(named.vocabulary) < 2:
        return task, None
    ids = complete_ids(task, "task", places, declared=None)
    names = [str(one) for one in named.vocabulary.tolist()]
    tasks = [str(one) for one in ids.vocabulary.tolist()]
    pairs = zip(ids.codes.tolist(), named.codes.tolist(), strict=True)
    joined = np.array([f"{tasks[i]} [{names[k]}]" for i, k in pairs], dtype=object)
    note = f"every pair of task and class is a task of its own, such as {joined[0]!r}"
    return joined, note


# ---------------------------------------------------------------------------------- reading masks


def _parsed(mask: Any, places: Places) -> tuple[NDArray[np.int32], list[ParsedMask]]:
    """Return the number of each annotation's mask, and the distinct masks in a fixed order."""
    if isinstance(mask, Encoded):
        values, rows = mask.vocabulary.tolist(), mask.codes.astype(np.int64)
        if (rows < 0).any():
            raise DataError(f"The mask in {places.where(rows < 0)} {MISSING}")
    else:
        values = mask.to_pylist() if hasattr(mask, "to_pylist") else list(mask)
        rows = np.arange(len(values))
    found = []
    for number, value in enumerate(values):
        try:
            found.append(parse_mask(value))
        except ValueError as fault:
            raise DataError(f"The mask in {places.where(rows == number)} {fault}") from None
    keys = [(one.height, one.width, one.counts.tobytes()) for one in found]
    order = sorted(set(keys))
    place = {key: k for k, key in enumerate(order)}
    own = np.array([place[key] for key in keys], dtype=np.int32)
    first: dict[int, ParsedMask] = {}
    for k, one in zip(own.tolist(), found, strict=True):
        first.setdefault(k, one)
    return own[rows], [first[k] for k in range(len(order))]


def parse_mask(value: Any) -> ParsedMask:
    """Return a mask as size and canonical run lengths.

    Parameters
    ----------
    value : JSON text, mapping with "size" and "counts", or (height, width) array of 0 and 1

    Raises
    ------
    ValueError
        Says what is wrong, and what to do; the caller adds where.
    """
    if isinstance(value, np.ndarray | list):
        return _from_array(value)
    if is_missing(value) or value == "":
        raise ValueError(MISSING)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (json.JSONDecodeError, RecursionError):
            raise ValueError(f"is not JSON; write {EXAMPLE}.") from None
    if not isinstance(value, Mapping) or not {"size", "counts"} <= set(value):
        raise ValueError(f"has no size and counts; write {EXAMPLE}.")
    size = value["size"]
    if not _whole_numbers(size) or len(size) != 2 or min(size) < 1:
        raise ValueError(f"has the size {str(size)[:40]}; give its height and width in pixels.")
    height, width = int(size[0]), int(size[1])
    if height * width > MOST_PIXELS:
        raise ValueError(
            f"is of {height} × {width} pixels, and at most {MOST_PIXELS} are supported; give a "
            "smaller image."
        )
    lengths = _lengths(value["counts"])
    total = sum(lengths.tolist())
    if len(lengths) and int(lengths.min()) < 0:
        raise ValueError(f"has the run length {int(lengths.min())}; correct it.")
    if total != height * width:
        raise ValueError(
            f"has runs of {total} pixels in all, and its size is {height} × {width}; run lengths "
            f"must add up to {height * width}."
        )
    return ParsedMask(height, width, canonical(lengths))


def _lengths(counts: Any) -> Longs:
    """Return run lengths from COCO's text or a list."""
    if isinstance(counts, bytes):
        counts = counts.decode("utf-8", "replace")
    if isinstance(counts, str):
        try:
            return decompressed(counts)
        except ValueError as error:
            raise ValueError(f"has counts whose text {error}; write it again.") from None
    if not _whole_numbers(counts) or any(abs(one) > MOST_PIXELS for one in counts):
        raise ValueError(
            f"has counts that are neither COCO's text nor a list of whole numbers; write {EXAMPLE}."
        )
    return np.array(counts, dtype=np.int64)


def _whole_numbers(values: Any) -> bool:
    return isinstance(values, list | tuple | np.ndarray) and all(
        isinstance(one, int | np.integer) and not isinstance(one, bool) for one in values
    )


def _from_array(value: Any) -> ParsedMask:
    try:
        pixels = np.asarray(value)
        good = pixels.ndim == 2 and pixels.size > 0 and pixels.dtype.kind in "biuf"
    except ValueError:  # rows of different lengths
        good = False
    if not good:
        raise ValueError(f"is not a two-dimensional array of 0 and 1; give one, or {EXAMPLE}.")
    if not np.isin(pixels, (0, 1)).all():
        raise ValueError("has other values than 0 and 1; give 1 for the pixels inside.")
    height, width = pixels.shape
    return ParsedMask(height, width, counts_of(pixels != 0))


def _sizes(
    task: NDArray[np.int32], code: NDArray[np.int32], distinct: list[ParsedMask],
    ids: NDArray[Any], places: Places,
) -> tuple[Longs, Longs]:  # fmt: skip
    """Return height and width of each task; all its masks must agree."""
    own = np.array([(one.height, one.width) for one in distinct], dtype=np.int64)[code]
    size = np.zeros((len(ids), 2), dtype=np.int64)
    size[task[::-1]] = own[::-1]  # the first row of each task counts
    wrong = (own != size[task]).any(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        first = int(np.flatnonzero(task == task[row])[0])
        rows = np.arange(len(task))
        (tall, wide), (other_tall, other_wide) = size[task[row]].tolist(), own[row].tolist()
        raise DataError(
            f"Task {ids[task[row]]!r} has a mask of {tall} × {wide} pixels in "
            f"{places.where(rows == first)} and one of {other_tall} × {other_wide} in "
            f"{places.where(rows == row)}; all masks of an image have its height and width."
        )
    return size[:, 0].copy(), size[:, 1].copy()
