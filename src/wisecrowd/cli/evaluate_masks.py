"""Scores of files of masks, for ``wisecrowd evaluate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wisecrowd.cli.evaluate_answers import Evaluation
from wisecrowd.core.exceptions import DataError

if TYPE_CHECKING:
    from wisecrowd.cli.inputs import KnownFile
    from wisecrowd.cli.terminal import Notes


def evaluate_masks(path: str, truth: KnownFile, notes: Notes) -> Evaluation:
    """Score a file of masks against true masks.

    Parameters
    ----------
    path : str
        A file as ``wisecrowd aggregate`` writes it: task and mask.
    truth : KnownFile
        A task and its mask in each row.
    notes : Notes
    """
    from wisecrowd.core.mask_truth import known_masks
    from wisecrowd.core.masks import CrowdMasks
    from wisecrowd.io.tables import read_frame
    from wisecrowd.metrics.masks import run_length_scores

    frame = read_frame(path)
    if not set(frame.column_names) >= {"task", "mask"}:
        listed = ", ".join(repr(column) for column in frame.column_names)
        raise DataError(f"{path} has the columns {listed}, and masks need task and mask.")
    tasks = frame["task"].to_pylist()
    given = CrowdMasks.from_arrays(
        tasks, ["answers"] * len(tasks), frame["mask"].to_pylist(), duplicates="error"
    )
    wanted = known_masks(dict(zip(*truth.pairs(notes), strict=True)), given)
    scores = run_length_scores(wanted, given.mask, given.pointer, given.height, given.width)
    return Evaluation(scores, len(wanted), len(tasks), "tasks")
