"""Scores of files of texts, for ``wisecrowd evaluate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wisecrowd.cli.evaluate_answers import TEXT_COLUMNS, Evaluation, share_in
from wisecrowd.core.exceptions import DataError

if TYPE_CHECKING:
    from wisecrowd.cli.inputs import KnownFile
    from wisecrowd.cli.terminal import Notes


def evaluate_texts(path: str, truth: KnownFile, notes: Notes) -> Evaluation:
    """Score a file of texts against true texts; the mean confidence is that of the same tasks.

    Parameters
    ----------
    path : str
        A file as ``wisecrowd aggregate`` writes it: task, text and confidence.
    truth : KnownFile
        A file with a task and its text in each row; a row with an empty text counts.
    notes : Notes
    """
    from wisecrowd.io.tables import read_frame
    from wisecrowd.metrics.texts import text_scores

    found = _text_rows(path)
    if truth.columns is None and set(read_frame(truth.path).column_names) >= TEXT_COLUMNS:
        known = {task: text for task, (text, _) in _text_rows(truth.path).items()}
    else:
        known = dict(zip(*truth.pairs(notes), strict=True))
    tasks = [task for task in found if task in known]
    if not tasks:
        raise DataError(
            f"The truth names none of the {len(found)} tasks in {path}; it needs the same ids."
        )
    scores = text_scores([known[task] for task in tasks], [found[task][0] for task in tasks])
    sure = [found[task][1] for task in tasks]
    if all(one == one for one in sure):
        scores["mean_confidence"] = float(np.mean(sure))
    return Evaluation(scores, len(tasks), len(found), "tasks")


def _text_rows(path: str) -> dict[Any, tuple[str, float]]:
    """Return the text of every task, and its confidence, NaN without any."""
    from wisecrowd.io.tables import read_frame

    frame = read_frame(path)
    if not set(frame.column_names) >= TEXT_COLUMNS:
        listed = ", ".join(repr(column) for column in frame.column_names)
        raise DataError(f"{path} has the columns {listed}, and texts need task and text.")
    tasks, texts = (frame[name].to_pylist() for name in ("task", "text"))
    sure = (
        frame["confidence"].to_pylist()
        if "confidence" in frame.column_names
        else [None] * len(tasks)
    )
    found: dict[Any, tuple[str, float]] = {}
    for task, text, one in zip(tasks, texts, sure, strict=True):
        if task in found:
            raise DataError(f"Task {task!r} is in {path} twice; keep one row.")
        found[task] = ("" if text is None else str(text), share_in(one, task, path))
    return found
