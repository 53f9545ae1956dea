"""True masks of tasks, for scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import is_missing
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.mask_columns import parse_mask
from wisecrowd.core.run_lengths import overlap_shares

Ints = NDArray[np.int64]
TrueMasks = dict[int, Ints]  # run lengths by the position of the task
COLUMNS = ("mask", "segmentation", "rle", "label", "truth")


def known_masks(truth: Any, data: Any) -> TrueMasks:
    """Return the run lengths of the known masks, by the position of the task.

    Parameters
    ----------
    truth : mapping from task to mask, (task, mask) frame, or (n_tasks,) list with None
        Masks as in :meth:`CrowdMasks.from_arrays`.
    data : CrowdMasks, or anything with tasks, height and width
    """
    ids, values = _pairs(truth, data)
    found: TrueMasks = {}
    for code, task, value in zip(lookup(ids, data.tasks).tolist(), ids, values, strict=True):
        if code < 0 or (not isinstance(value, np.ndarray) and is_missing(value)):
            continue
        try:
            mask = parse_mask(value)
        except ValueError as fault:
            raise DataError(f"The true mask of task {task!r} {fault}") from None
        size = int(data.height[code]), int(data.width[code])
        if size != (mask.height, mask.width) and size != (0, 0):
            raise DataError(
                f"The true mask of task {task!r} is of {mask.height} × {mask.width} pixels, and "
                f"workers marked {size[0]} × {size[1]}; all masks of an image have its size."
            )
        found[code] = mask.counts
    if not found:
        raise DataError("The truth names none of these tasks; compare the ids.")
    return found


def mean_iou(truth: TrueMasks, runs: Ints, pointer: Ints) -> float:
    """Return the mean intersection over union on the tasks with a truth."""
    found = [overlap_shares(own, runs[pointer[i] : pointer[i + 1]])[0] for i, own in truth.items()]
    return float(np.mean(found))


def _pairs(truth: Any, data: Any) -> tuple[list[Any], list[Any]]:
    if isinstance(truth, Mapping) and not hasattr(truth, "column_names"):
        return list(truth.keys()), list(truth.values())
    if hasattr(truth, "columns") or hasattr(truth, "column_names"):
        import narwhals as nw

        frame = nw.from_native(truth, eager_only=True)
        mask = next((name for name in COLUMNS if name in frame.columns), None)
        if "task" not in frame.columns or mask is None:
            listed = ", ".join(map(repr, frame.columns))
            raise DataError(f"The truth has the columns {listed}; call them task and mask.")
        return frame["task"].to_list(), frame[mask].to_list()
    values = list(truth)
    if len(values) != len(data.tasks):
        raise DataError(
            f"The truth has {len(values)} entries for {len(data.tasks)} tasks; give one per task, "
            "or a mapping from task to mask."
        )
    return data.tasks.tolist(), values
