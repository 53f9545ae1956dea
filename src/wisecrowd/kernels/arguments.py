"""Arguments of kernels of several families, as NamedTuples that numba can compile.

Compiled code unpacks them before its loops, which are then as fast as with separate arrays. Numba
removes the branches of ``x is None`` only if ``x`` is itself an argument, so a field that may be
None is passed to a separate function.
"""

from __future__ import annotations

from typing import NamedTuple

from wisecrowd.core.types import Floats, Ints


class TaskLabels(NamedTuple):
    """The annotations of tasks: those of task ``i`` are ``indptr[i]`` to ``indptr[i + 1]``.

    A ``weight`` of None means that every annotation counts once.
    """

    indptr: Ints
    worker: Ints
    label: Ints
    weight: Floats | None


class TaskPriors(NamedTuple):
    """Log priors of tasks: ``log_class + rows[row_of[i]]``; None means row 0 for all tasks."""

    log_class: Floats
    rows: Floats
    row_of: Ints | None


class TaskNumbers(NamedTuple):
    """Numbers of tasks: those of task ``i`` are ``indptr[i]`` to ``indptr[i + 1]``.

    A ``weight`` of None means that every number counts once, a ``question`` of None that all tasks
    have question 0. Worker ``j`` has the cell ``j * n_questions + question`` in tables of workers.
    """

    indptr: Ints
    worker: Ints
    value: Floats
    weight: Floats | None
    question: Ints | None


class NumberPriors(NamedTuple):
    """Normal priors of tasks, by question (Q,) or, if ``per_task``, by task (n,).

    ``level`` (Q,) is the mean that sums over tasks are centred on. ``gold`` (n,) has the known
    numbers, NaN where unknown; None means that none is known.
    """

    mean: Floats
    precision: Floats
    per_task: bool
    level: Floats
    gold: Floats | None
