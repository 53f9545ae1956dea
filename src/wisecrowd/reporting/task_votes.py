"""Votes of the tasks that a page shows: who said what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wisecrowd.reporting.text import shorten, shown

MOST_VOTERS = 20  # workers named in the votes of a task
LONGEST = 80  # characters of what a worker said


def votes_by_worker(data: Any, i: int, given: Iterable[Any]) -> dict[str, Any]:
    """Return the workers of a task, each with what they said, and the number of further ones.

    Parameters
    ----------
    data : Annotations
    i : int
        Code of the task.
    given : iterable
        What was said, in the order of the task's annotations.
    """
    first, last = int(data.indptr[i]), int(data.indptr[i + 1])
    named = data.workers[data.worker[first:last][:MOST_VOTERS]].tolist()
    return {
        "by": [
            [shown(worker), shorten(shown(said), LONGEST)]
            for worker, said in zip(named, given, strict=False)
        ],
        "n_unnamed": max(0, last - first - MOST_VOTERS),
    }
