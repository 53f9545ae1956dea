"""NamedTuples that kernels of several families take; numba compiles them like the arrays inside.

Compiled code unpacks them before its loops, which then run as fast as with single arrays. Numba
drops the branches of ``x is None`` only where ``x`` is itself an argument, so a field that may be
None goes to a function of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]


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
