"""Scores of files of boxes, for ``wisecrowd evaluate`` and ``wisecrowd compare --truth``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wisecrowd.cli.evaluate_answers import COCO, Evaluation
from wisecrowd.core.exceptions import DataError

if TYPE_CHECKING:
    from wisecrowd.cli.inputs import KnownFile
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.region_truth import TrueBoxes
    from wisecrowd.core.regions import CrowdRegions


def boxes_in(path: str) -> CrowdRegions:
    """Read a file of boxes without workers: a table, or COCO-style JSON."""
    from wisecrowd.core.messages.descriptions import Places, describe_rows
    from wisecrowd.core.region_truth import true_regions
    from wisecrowd.io.formats import format_of
    from wisecrowd.io.platforms import coco
    from wisecrowd.io.sources import find_sources
    from wisecrowd.io.tables import read_frame

    source = find_sources(path)[0]
    if format_of(source) == COCO:
        return coco.true_boxes(source)
    frame = read_frame(path)
    if len(frame) == 0:
        raise DataError(f"{path} has a header but no rows; give one row per box.")
    try:
        return true_regions(frame, Places({}, lambda rows: f"{describe_rows(rows)} of {path}"))
    except DataError as error:
        raise DataError(str(error).replace("The truth", path, 1)) from None


def true_boxes_of(path: str, data: CrowdRegions, notes: Notes) -> TrueBoxes:
    """Read true boxes of the tasks of some data, and note what is assumed."""
    from wisecrowd.core.region_truth import known_boxes

    found = known_boxes(boxes_in(path), data)
    if found.n_assumed:
        notes(
            f"{found.n_assumed} tasks are not in {path} and count as images without boxes; give an "
            "empty row for each such image if others are unknown"
        )
    return found


def evaluate_boxes(path: str, truth: KnownFile, notes: Notes) -> Evaluation:
    """Score a file of boxes against true boxes.

    Parameters
    ----------
    path : str
        A file as ``wisecrowd aggregate`` writes it: task, x, y, width, height and label.
    truth : KnownFile
        A file with the same columns; a row without a box is an image without boxes.
    notes : Notes
    """
    import numpy as np

    from wisecrowd.core.box_overlap import BoxTable, box_scores
    from wisecrowd.core.region_truth import EXPERT

    found = boxes_in(path)
    wanted = boxes_in(truth.path)
    if not set(found.tasks.tolist()) & set(wanted.tasks.tolist()):
        raise DataError(
            f"The truth names none of the {found.n_tasks} tasks in {path}; it needs the same ids."
        )
    # A file of results does not name the images in which nothing was found.
    found = found.with_seen(wanted.tasks, [EXPERT] * wanted.n_tasks)
    known = true_boxes_of(truth.path, found, notes)
    label = found.label.astype(np.int64) if known.table.label is not None else None
    table = known.part(BoxTable(found.box_task.astype(np.int64), found.boxes, label))
    n_scored = int(known.known.sum()) - known.n_assumed
    return Evaluation(box_scores(known.table, table), n_scored, found.n_tasks, "tasks")
