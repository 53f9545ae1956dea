"""True boxes of images, for scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.box_overlap import BoxTable
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import Places, suggestion
from wisecrowd.core.regions import COORDINATES, CrowdRegions

Ints = NDArray[np.int64]
EXPERT = "truth"  # the only worker of a table of true boxes


class TrueBoxes(NamedTuple):
    """True boxes of some tasks.

    Attributes
    ----------
    table : BoxTable
        Sorted by task; classes are codes into those of the data, -1 for others.
    known : (n_tasks,) bool
        Tasks whose boxes are known; those without a box in the table have none.
    n_assumed : int
        Tasks of the data that the truth does not name, and that count as images without boxes.
    """

    table: BoxTable
    known: NDArray[np.bool_]
    n_assumed: int = 0

    def part(self, found: BoxTable) -> BoxTable:
        """Return the found boxes of known tasks."""
        kept = self.known[found.task]
        label = None if found.label is None else found.label[kept]
        return BoxTable(found.task[kept], found.boxes[kept], label)


def known_boxes(truth: Any, data: CrowdRegions) -> TrueBoxes:
    """Return the true boxes of the tasks of some data.

    Parameters
    ----------
    truth : CrowdRegions, mapping from task to boxes, or frame with one row per box
        Boxes of a mapping are (x, y, width, height) or (x, y, width, height, label); tasks that it
        does not name do not count. A frame has the columns task, x, y, width, height and perhaps
        label. An image without boxes has an empty row. If there is no empty row, tasks that the
        frame does not name count as images without boxes.
    data : CrowdRegions
    """
    if isinstance(truth, CrowdRegions):
        given, complete = truth, bool((np.diff(truth.pointer) == 0).any())
    elif isinstance(truth, Mapping) and not (set(map(str, truth)) >= {"task", *COORDINATES}):
        given, complete = _from_mapping(truth), True
    else:
        given = true_regions(truth)
        complete = bool((np.diff(given.pointer) == 0).any())
    place = lookup(given.tasks, data.tasks).astype(np.int64)
    known = np.zeros(data.n_tasks, dtype=bool)
    known[place[place >= 0]] = True
    if not known.any():
        raise DataError("The truth names none of these tasks; compare the ids.")
    assumed = 0 if complete else int((~known).sum())
    task = place[given.box_task]
    label = _labels(given, data)
    kept = np.flatnonzero(task >= 0)
    kept = kept[np.argsort(task[kept], kind="stable")]
    table = BoxTable(task[kept], given.boxes[kept], None if label is None else label[kept])
    return TrueBoxes(table, np.ones_like(known) if assumed else known, assumed)


def _labels(given: CrowdRegions, data: CrowdRegions) -> Ints | None:
    """Return true classes as codes of the data; None if one of the two has no classes."""
    if not (given.has_classes and data.has_classes):
        return None
    names = np.array([str(one) for one in data.classes.tolist()], dtype=object)
    codes = lookup([str(one) for one in given.classes.tolist()], names)
    if (codes < 0).all():
        value = given.classes.tolist()[0]
        raise DataError(
            f"No class of the truth, such as {value!r}{suggestion(value, names)}, is among those "
            "of the boxes; compare the names."
        )
    return codes[given.label].astype(np.int64)


def true_regions(frame: Any, places: Places | None = None) -> CrowdRegions:
    """Return the boxes of a frame of true boxes, drawn by one expert."""
    import narwhals as nw

    native = frame
    if not isinstance(frame, Mapping):
        native = nw.from_native(frame, eager_only=True)
    names = {str(name).strip().lower(): name for name in
             (native if isinstance(native, Mapping) else native.columns)}  # fmt: skip
    missing = [name for name in ("task", *COORDINATES) if name not in names]
    if missing:
        listed = ", ".join(map(repr, names.values()))
        raise DataError(
            f"The truth has the columns {listed} and no {missing[0]}; give task, x, y, width, "
            "height and perhaps label."
        )
    columns = {role: _values(native, names[role]) for role in ("task", *COORDINATES, "label")
               if role in names}  # fmt: skip
    task = columns.pop("task")
    return CrowdRegions.from_arrays(
        task, [EXPERT] * len(task), places=places or Places({}), **columns
    )


def _values(frame: Any, name: Any) -> Any:
    from wisecrowd.core.validation import values_of

    return frame[name] if isinstance(frame, Mapping) else values_of(frame.get_column(name))


def _from_mapping(truth: Mapping[Any, Any]) -> CrowdRegions:
    rows: list[tuple[Any, ...]] = []
    for task, boxes in truth.items():
        listed = [] if boxes is None else list(boxes)
        rows += [(task, None, None, None, None, None)] if not listed else []
        for box in listed:
            if len(box) not in (4, 5):
                raise DataError(
                    f"The truth gives task {task!r} the box {box!r}; give x, y, width, height and "
                    "perhaps a label."
                )
            rows.append((task, *box, *[None] * (5 - len(box))))
    if not rows:
        raise DataError("The truth names no task; give the boxes of some tasks.")
    task, x, y, width, height, label = (list(column) for column in zip(*rows, strict=True))
    labels = {} if all(one is None for one in label) else {"label": label}
    return CrowdRegions.from_arrays(task, [EXPERT] * len(rows), x, y, width, height, **labels)
