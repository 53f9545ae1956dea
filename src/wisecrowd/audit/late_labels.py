"""Removal of a worker's labels after a moment, the remedy for drift."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import Places, describe_value, suggestion
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.validation import as_crowd_labels
from wisecrowd.core.value_columns import as_timestamps


def drop_after(labels: Any, moments: Mapping[Any, Any]) -> Any:
    """Remove the labels that workers gave after a moment, and tasks without remaining labels.

    Parameters
    ----------
    labels : annotations of any kind with timestamps, or data of any form accepted for classes
    moments : mapping of worker to time
        Labels of the worker with a later time are removed; labels without a time stay. A time is
        text such as "2026-05-31T14:00:00", a datetime, or a number if the timestamps are numbers.

    Returns
    -------
    annotations of the same kind

    Examples
    --------
    >>> from wisecrowd import CrowdLabels
    >>> labels = CrowdLabels.from_arrays(
    ...     list("aabb"), list("xyxy"), [0, 0, 1, 0], timestamp=[1, 2, 3, 4]
    ... )
    >>> drop_after(labels, {"y": 2})
    CrowdLabels(2 tasks, 2 workers, 2 classes, 3 annotations)
    """
    data = labels if isinstance(labels, Annotations) else as_crowd_labels(labels)
    rest = data.select_annotations(~late_labels(data, moments))
    if not rest.n_annotations:
        raise DataError("No label would remain; give later times to drop labels after.")
    lost = (rest.labels_per_task == 0) & (data.labels_per_task > 0)
    return rest[~lost] if lost.any() else rest


def late_labels(data: Annotations, moments: Mapping[Any, Any]) -> NDArray[np.bool_]:
    """Return which annotations (n_annotations,) are later than the moment of their worker."""
    spelled = for_reader("drop_after", "--drop-after")
    time = data.columns.get("timestamp")
    if time is None:
        raise DataError(
            f"The labels have no timestamps, which {spelled} needs; name their column with "
            + for_reader("timestamp=.", "--timestamp.")
        )
    late = np.zeros(data.n_annotations, dtype=bool)
    for worker, moment in moments.items():
        code = int(lookup([worker], data.workers)[0])
        if code < 0:
            raise ParameterError(
                f"There is no worker {describe_value(worker)}{suggestion(worker, data.workers)}, "
                f"whom {spelled} names."
            )
        late |= (data.worker == code) & (time > _moment(moment, time, spelled))
    return late


def _moment(moment: Any, time: NDArray[Any], spelled: str) -> Any:
    """Return a moment in the type of the timestamps."""
    try:
        found = as_timestamps([moment], Places({}))
    except DataError:
        found = np.array([np.nan])
    missing = np.isnat(found[0]) if found.dtype.kind == "M" else np.isnan(found[0])
    if missing or found.dtype.kind != time.dtype.kind:
        such = "2026-05-31T14:00:00" if time.dtype.kind == "M" else "1700000000"
        raise ParameterError(
            f"{spelled} has the time {describe_value(moment)}; write it like the timestamps of the "
            f"labels, such as {such}."
        )
    return found[0]
