"""Validation of columns of boxes: they become checked CrowdRegions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.columns import plain_name
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import Encoded, encode, lookup
from wisecrowd.core.intake import Intake
from wisecrowd.core.messages.descriptions import Places, describe_ids, suggestion
from wisecrowd.core.types import Codes, Floats, Longs
from wisecrowd.core.validation import (
    check_lengths,
    complete_ids,
    distinct_ids,
)
from wisecrowd.core.value_columns import as_numbers
from wisecrowd.kinds.boxes.container import (
    COORDINATES,
    IMAGE_HEIGHT,
    IMAGE_WIDTH,
    NO_CLASS,
    CrowdRegions,
)

Regions = TypeVar("Regions", bound=CrowdRegions)
LIMITS = {"width": ("xmax", "x2"), "height": ("ymax", "y2")}  # columns of limits, not of sizes
BESIDE = 1e-3  # part of the image by which a box may stick out, because tools round
LARGEST, SMALLEST = 1e9, 1e-12  # of a side; of a size, in units of its place


class BoxRows(NamedTuple):
    """Rows of a table of boxes.

    Attributes
    ----------
    box : (n_rows, 4)
        NaN in rows without a box.
    drawn : (n_rows,) bool
    annotation : (n_rows,)
        Number of the annotation of each row.
    first : (n_annotations,)
        A row of each annotation.
    """

    box: Floats
    drawn: NDArray[np.bool_]
    annotation: Longs
    first: Longs


def regions_from_columns(
    container: type[Regions], task: Any, worker: Any, *, x: Any = None, y: Any = None,
    width: Any = None, height: Any = None, label: Any = None, image_width: Any = None,
    image_height: Any = None, classes: Any = None, **shared: Any,
) -> Regions:  # fmt: skip
    """Build regions from columns; see :meth:`CrowdRegions.from_arrays`."""
    sides = {"x": x, "y": y, "width": width, "height": height}
    optional = {"label": label, IMAGE_WIDTH: image_width, IMAGE_HEIGHT: image_height}
    given = Intake.open(container, task, worker, sides, optional, **shared)
    places = given.places
    box, drawn = _boxes(sides, places)
    annotation, first = _annotations(given.task, given.worker, given.extra.get("timestamp"))
    rows = BoxRows(box, drawn, annotation, first)
    _refuse_mixed(rows, places)
    codes, class_ids = _labels(label, rows.drawn, classes, places)
    given.note_lookalikes(class_ids)
    sizes = _image_sizes(image_width, image_height, given.task, given.tasks, places)
    _refuse_outside(rows, sizes, given.task, given.tasks, places)
    given.extra = {
        role: _of_annotations(role, values, rows, places) for role, values in given.extra.items()
    }
    given.task, given.worker = given.task[first], given.worker[first]
    table = given.arrange(np.arange(len(first)), len(first))
    chosen, pointer, repeated = _arranged(rows, codes, table.label)
    if repeated:
        given.notes += (f"{repeated} boxes repeat one of the same worker and are left out",)
    return given.build(
        container, table, task_columns=sizes, boxes=box[chosen], label=codes[chosen],
        pointer=pointer, classes=class_ids,
    )  # fmt: skip


def _boxes(sides: Mapping[str, Any], places: Places) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the boxes (n_rows, 4) and which rows have one; refuse incomplete and empty ones."""
    remedy = "give a finite number, or leave x, y, width and height empty if nothing was drawn"
    numbers = {role: as_numbers(values, role, places, remedy) for role, values in sides.items()}
    for role, corner in (("width", "x"), ("height", "y")):
        if plain_name(places.names.get(role, role)) in LIMITS[role]:
            numbers[role] = numbers[role] - numbers[corner]
    box = np.stack([numbers[role] for role in COORDINATES], axis=1)
    missing = np.isnan(box)
    partly = np.asarray(missing.any(axis=1) & ~missing.all(axis=1))
    if partly.any():
        role = COORDINATES[int(np.argmax(missing[int(np.argmax(partly))]))]
        raise DataError(
            f"The box in {places.where(partly)} has no {role}; give all of x, y, width and height, "
            "or none of them if the worker drew nothing."
        )
    drawn = ~missing[:, 0]
    flat = np.zeros(len(box), dtype=bool)
    flat[drawn] = (box[drawn, 2:] <= 0).any(axis=1)
    if flat.any():
        _, _, wide, high = box[int(np.argmax(flat))].tolist()
        raise DataError(
            f"The box in {places.where(flat)} is {wide:g} wide and {high:g} high; both must be "
            "above 0: correct the box, or remove it."
        )
    odd = np.zeros(len(box), dtype=bool)
    odd[drawn] = (np.abs(box[drawn]) > LARGEST).any(axis=1) | (
        box[drawn, 2:] < SMALLEST * np.maximum(1.0, np.abs(box[drawn, :2]))
    ).any(axis=1)
    if odd.any():
        shown = ", ".join(f"{one:g}" for one in box[int(np.argmax(odd))].tolist())
        raise DataError(
            f"The box in {places.where(odd)} has x, y, width and height {shown}, which are too "
            f"large or too small to compute with; give numbers up to {LARGEST:g}, and sizes that "
            "are not negligible beside x and y."
        )
    return box, drawn


def _annotations(task: Codes, worker: Codes, moment: NDArray[Any] | None) -> tuple[Longs, Longs]:
    """Return the annotation of each row, and a row of each annotation."""
    _, pair = np.unique(task.astype(np.int64) * (int(worker.max()) + 1) + worker,
                        return_inverse=True)  # fmt: skip
    if moment is not None:
        times, when = np.unique(moment, return_inverse=True)
        pair = pair * len(times) + when
    _, first, annotation = np.unique(pair, return_index=True, return_inverse=True)
    return annotation.astype(np.int64), first.astype(np.int64)


def _refuse_mixed(rows: BoxRows, places: Places) -> None:
    """Refuse an annotation with boxes and a row that says that nothing was drawn."""
    boxes = np.bincount(rows.annotation, rows.drawn, len(rows.first))
    wrong = ~rows.drawn & (boxes[rows.annotation] > 0)
    if wrong.any():
        same = rows.annotation == rows.annotation[int(np.argmax(wrong))]
        raise DataError(
            f"The worker of {places.where(wrong)} drew nothing there and a box of the same task in "
            f"{places.where(same & rows.drawn)}; remove the empty row."
        )


def _labels(
    label: Any, drawn: NDArray[np.bool_], classes: Any, places: Places
) -> tuple[Codes, NDArray[Any]]:
    """Return the class of each row, and all classes; boxes without labels have one class."""
    column = None if label is None else encode(label, places.column("label"))
    if column is not None:
        _refuse_nowhere(~drawn & (column.codes >= 0), column, places)
    if column is None or (column.codes[drawn] < 0).all():
        if classes is not None:
            ids = distinct_ids(classes, "classes")
            if drawn.any() and len(ids) > 1:
                raise DataError("Boxes have no labels, and classes are declared; leave them out.")
            return np.zeros(len(drawn), dtype=np.int32), ids
        return np.zeros(len(drawn), dtype=np.int32), np.array([NO_CLASS], dtype=object)
    missing = drawn & (column.codes < 0)
    if missing.any():
        raise DataError(
            f"The box in {places.where(missing)} has no label, and others have one; fill it in, or "
            "leave the column out."
        )
    ids = column.vocabulary if classes is None else distinct_ids(classes, "classes")
    place = np.append(lookup(column.vocabulary, ids), np.int32(-1))
    codes = place[column.codes].astype(np.int32)
    strange = drawn & (codes < 0)
    if strange.any():
        value = column.vocabulary[column.codes[int(np.argmax(strange))]]
        raise DataError(
            f"Label {value!r}{suggestion(value, ids)} in {places.where(strange)} is not among the "
            f"declared classes ({describe_ids(ids)}); correct it, or add it to classes."
        )
    return np.where(drawn, codes, 0).astype(np.int32), ids


def _refuse_nowhere(nowhere: NDArray[np.bool_], column: Encoded, places: Places) -> None:
    """Refuse a class without a box."""
    if nowhere.any():
        value = column.vocabulary[column.codes[int(np.argmax(nowhere))]]
        raise DataError(
            f"The box of class {value!r} in {places.where(nowhere)} has neither x, y, width nor "
            "height; give all of them, or leave out the class, too, if the worker drew nothing."
        )


def _image_sizes(
    width: Any, height: Any, task: Codes, ids: NDArray[Any], places: Places
) -> dict[str, Floats]:
    """Return width and height of each task's image, 0 where unknown; rows of a task must agree."""
    if (width is None) != (height is None):
        raise DataError(
            f"The sizes of images need the columns {IMAGE_WIDTH} and {IMAGE_HEIGHT}; give both, or "
            "neither."
        )
    found: dict[str, Floats] = {}
    for role, values in ((IMAGE_WIDTH, width), (IMAGE_HEIGHT, height)):
        if values is None:
            continue
        numbers = as_numbers(values, role, places, "give a number above 0, or leave it empty")
        known = ~np.isnan(numbers)
        if (numbers[known] <= 0).any():
            bad = known & ~(numbers > 0)
            raise DataError(
                f"The {places.column(role)} column is {numbers[int(np.argmax(bad))]:g} in "
                f"{places.where(bad)}; give a number above 0, or leave it empty."
            )
        size = np.zeros(len(ids))
        np.maximum.at(size, task[known], numbers[known])
        differs = known & (numbers < size[task])
        if differs.any():
            row = int(np.argmax(differs))
            raise DataError(
                f"The image of task {ids[task[row]]!r} has the {places.column(role)} "
                f"{numbers[row]:g} in {places.where(np.arange(len(task)) == row)} and "
                f"{size[task[row]]:g} elsewhere; give every image one size."
            )
        found[role] = size
    return found


def _refuse_outside(
    rows: BoxRows, sizes: Mapping[str, Floats], task: Codes, ids: NDArray[Any], places: Places
) -> None:
    """Refuse boxes outside their image; tools round, so a tiny part may stick out."""
    outside = np.zeros(len(task), dtype=bool)
    for k, role in enumerate((IMAGE_WIDTH, IMAGE_HEIGHT)):
        if role in sizes:
            limit = sizes[role][task]
            slack = BESIDE * limit
            with np.errstate(invalid="ignore"):
                beyond = rows.box[:, k] + rows.box[:, 2 + k] > limit + slack
                outside |= (limit > 0) & ((rows.box[:, k] < -slack) | beyond)
    if outside.any():
        row = int(np.argmax(outside))
        x, y, width, height = rows.box[row].tolist()
        at = task[row]
        raise DataError(
            f"The box in {places.where(outside)} reaches from ({x:g}, {y:g}) to "
            f"({x + width:g}, {y + height:g}), outside of its image {ids[at]!r} of "
            f"{sizes[IMAGE_WIDTH][at]:g} × {sizes[IMAGE_HEIGHT][at]:g}; correct the box or the "
            "size of the image."
        )


def _of_annotations(role: str, values: NDArray[Any], rows: BoxRows, places: Places) -> NDArray[Any]:
    """Return one value per annotation: the largest of its rows, and the weight if they agree."""
    order = np.argsort(rows.annotation, kind="stable")
    starts = np.searchsorted(rows.annotation[order], np.arange(len(rows.first)))
    if values.dtype.kind == "M":  # times, which are equal
        return values[rows.first]
    if values.dtype.kind != "f":  # names of questions
        found = np.empty(len(starts), dtype=object)
        found[:] = [min(map(str, names)) for names in np.split(values[order], starts[1:])]
        return found
    largest = np.fmax.reduceat(values[order], starts)
    if role == "weight":
        differs = values != largest[rows.annotation]
        if differs.any():
            raise DataError(
                f"The {places.column('weight')} in {places.where(differs)} differs from that of "
                "other boxes of the same worker and task; give all of them one weight."
            )
    return np.asarray(largest)


def _arranged(rows: BoxRows, codes: Codes, annotation: Codes) -> tuple[Longs, Longs, int]:
    """Return the rows of boxes in sorted order, their pointers, and how many are left out.

    Boxes of an annotation are sorted by place, so that the order of rows does not matter, and a
    box that is there twice counts once.
    """
    place = np.full(len(rows.first), -1, dtype=np.int64)
    place[annotation] = np.arange(len(annotation))
    kept = np.flatnonzero(rows.drawn & (place[rows.annotation] >= 0))
    owner = place[rows.annotation[kept]]
    keys = (codes[kept], *(rows.box[kept, k] for k in (3, 2, 1, 0)), owner)
    order = np.lexsort(keys)
    kept, owner = kept[order], owner[order]
    same = (
        (owner[1:] == owner[:-1]) & (codes[kept][1:] == codes[kept][:-1])
        & (rows.box[kept][1:] == rows.box[kept][:-1]).all(axis=1)
    )  # fmt: skip
    once = np.append(np.full(min(len(kept), 1), True), ~same)
    pointer = np.append(0, np.cumsum(np.bincount(owner[once], minlength=len(annotation))))
    return kept[once], pointer, int(same.sum())


def with_empty_annotations(data: Regions, task: Any, worker: Any) -> Regions:
    """Return the data with an annotation without boxes for every pair that has none.

    Tasks and workers that the data do not know join them.
    """
    places = Places({})
    check_lengths({"task": task, "worker": worker})
    if data.columns or data.weight is not None:
        raise DataError(
            "Assignments can be added to boxes without weights and other columns; give an empty "
            "row for every worker who drew nothing instead."
        )
    codes = [complete_ids(values, role, places, None) for role, values in
             (("task", task), ("worker", worker))]  # fmt: skip
    old = [data.tasks, data.workers]
    new = [one.vocabulary[lookup(one.vocabulary, ids) < 0] for one, ids in
           zip(codes, old, strict=True)]  # fmt: skip
    if any(len(more) and len(ids) and type(more.tolist()[0]) is not type(ids.tolist()[0])
           for more, ids in zip(new, old, strict=True)):  # fmt: skip
        raise DataError("Ids of the assignments are of another type than those of the boxes.")
    ids = [np.concatenate([a, b]) if len(b) else a for a, b in zip(old, new, strict=True)]
    found = [lookup(one.vocabulary, all_ids)[one.codes].astype(np.int64)
             for one, all_ids in zip(codes, ids, strict=True)]  # fmt: skip
    n_workers = len(ids[1])
    pair = np.unique(found[0] * n_workers + found[1])
    have = data.task.astype(np.int64) * n_workers + data.worker
    added = pair[~np.isin(pair, have)]
    both = np.concatenate([have, added])
    order = np.argsort(both, kind="stable")
    size = np.append(np.diff(data.pointer), np.zeros(len(added), dtype=np.int64))[order]
    columns = {name: np.append(values, np.zeros(len(ids[0]) - len(values)))
               for name, values in data.task_columns.items()}  # fmt: skip
    kinds = {name: np.append(values, np.full(n_workers - len(values), None))
             for name, values in data.worker_columns.items()}  # fmt: skip
    return replace(
        data, task=(both[order] // n_workers).astype(np.int32),
        worker=(both[order] % n_workers).astype(np.int32), tasks=ids[0], workers=ids[1],
        pointer=np.append(0, np.cumsum(size)), task_columns=columns, worker_columns=kinds,
    )  # fmt: skip
