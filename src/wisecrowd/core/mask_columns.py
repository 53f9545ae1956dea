"""Validation of columns of masks: they become checked CrowdMasks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import WORKER_KIND
from wisecrowd.core.arrow import is_missing
from wisecrowd.core.duplicates import arrange
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import Encoded, encode
from wisecrowd.core.ids.lookalike_ids import warn_of_lookalikes
from wisecrowd.core.masks import HEIGHT, WIDTH, CrowdMasks
from wisecrowd.core.messages.descriptions import Places
from wisecrowd.core.run_lengths import canonical, counts_of, decompressed
from wisecrowd.core.validation import (
    check_columns,
    check_lengths,
    complete_ids,
    measured_columns,
    worker_kinds,
)

Masks = TypeVar("Masks", bound=CrowdMasks)
Ints = NDArray[np.int64]
MOST_PIXELS = np.iinfo(np.int32).max
EXAMPLE = '{"size": [height, width], "counts": ...}'
MISSING = f"is missing; give {EXAMPLE}, with one run of all pixels if nothing is marked."


class ParsedMask(NamedTuple):
    """Size and canonical run lengths of one mask."""

    height: int
    width: int
    counts: Ints


def masks_from_columns(
    container: type[Masks],
    task: Any,
    worker: Any,
    *,
    mask: Any = None,
    layer: Any = None,
    tasks: Any = None,
    workers: Any = None,
    weight: Any = None,
    worker_kind: Any = None,
    duplicates: str = "auto",
    places: Places | None = None,
    notes: tuple[str, ...] = (),
    frame_library: str | None = None,
    **columns: Any,
) -> Masks:
    """Build masks from columns; see :meth:`CrowdMasks.from_arrays`."""
    places = places or Places({})
    check_columns(duplicates, columns)
    if task is None or worker is None or mask is None:
        raise ParameterError(f"{container.__name__} need the columns task, worker and mask.")
    check_lengths({"task": task, "worker": worker, "mask": mask, "layer": layer,
                   "weight": weight, "worker_kind": worker_kind, **columns})  # fmt: skip
    task, note = _with_layers(task, layer, places)
    task_codes, task_ids = complete_ids(task, "task", places, declared=tasks)
    worker_codes, worker_ids = complete_ids(worker, "worker", places, declared=workers)
    if len(task_codes) == 0:
        raise DataError("There are no annotations: the table has no data rows.")
    code, distinct = _parsed(mask, places)
    height, width = _sizes(task_codes, code, distinct, task_ids, places)
    notes = (*notes, *warn_of_lookalikes(task_ids, worker_ids, task_ids[:0]))
    kinds = worker_kinds(worker_kind, worker_codes, worker_ids, places)
    table = arrange(
        (task_codes, worker_codes, code), (len(task_ids), len(worker_ids), len(distinct)), None,
        measured_columns({**columns, "weight": weight}, places), duplicates, places,
    )  # fmt: skip
    chosen = [distinct[k].counts for k in table.label.tolist()]
    return container(
        task=table.task, worker=table.worker, tasks=task_ids, workers=worker_ids,
        weight=table.extra.pop("weight", None),
        columns=table.extra,
        task_columns={HEIGHT: height, WIDTH: width},
        worker_columns={} if kinds is None else {WORKER_KIND: kinds},
        notes=tuple(one for one in (*notes, note, table.note) if one),
        frame_library=frame_library,
        mask=np.concatenate(chosen).astype(np.int32),
        pointer=np.cumsum([0, *map(len, chosen)]).astype(np.int64),
    )  # fmt: skip


def _with_layers(task: Any, layer: Any, places: Places) -> tuple[Any, str | None]:
    """Return tasks, one per class if there are several, and a note about it."""
    if layer is None:
        return task, None
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


def _lengths(counts: Any) -> Ints:
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
) -> tuple[Ints, Ints]:  # fmt: skip
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
