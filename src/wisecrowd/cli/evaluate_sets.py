"""Scores of files of sets, for ``wisecrowd evaluate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wisecrowd.cli.evaluate_answers import Evaluation, share_in
from wisecrowd.core.exceptions import DataError

if TYPE_CHECKING:
    from wisecrowd.cli.inputs import KnownFile
    from wisecrowd.cli.terminal import Notes


def evaluate_sets(path: str, truth: KnownFile, notes: Notes) -> Evaluation:
    """Score a file of sets against true sets.

    Parameters
    ----------
    path : str
        A file as ``wisecrowd aggregate`` writes it: task, labels, and the probability of every
        class as ``p_CLASS``.
    truth : KnownFile
        A task and its set in each row.
    notes : Notes
    """
    from wisecrowd.cli.inputs import PROBABILITY
    from wisecrowd.core.kinds import SETS
    from wisecrowd.core.set_scores import set_scores
    from wisecrowd.core.set_truth import known_sets
    from wisecrowd.core.sets import CrowdSets
    from wisecrowd.io.tables import read_frame

    frame = read_frame(path)
    column = next((one for one in ("labels", "label") if one in frame.column_names), None)
    if column is None or "task" not in frame.column_names:
        listed = ", ".join(repr(name) for name in frame.column_names)
        raise DataError(f"{path} has the columns {listed}, and sets need task and labels.")
    prefix = len(PROBABILITY)
    named = [name[prefix:] for name in frame.column_names if name.startswith(PROBABILITY)]
    tasks = frame["task"].to_pylist()
    found = CrowdSets.from_arrays(
        tasks, ["answer"] * len(tasks), frame[column].to_pylist(), classes=named or None,
        duplicates="error",
    )  # fmt: skip
    known = known_sets(dict(zip(*truth.pairs(notes, SETS), strict=True)), found)
    probas = None
    if named:
        rows = np.array([share_in(x, task, path) for name in named
                         for x, task in zip(frame[PROBABILITY + name].to_pylist(), tasks,
                                            strict=True)])  # fmt: skip
        place = {task: row for row, task in enumerate(tasks)}
        order = np.array([place[task] for task in found.tasks.tolist()])
        probas = rows.reshape(len(named), -1).T[order]
    scores = set_scores(known, found.votes > 0, probas)
    return Evaluation(scores, len(known.rows), len(tasks), "tasks")
