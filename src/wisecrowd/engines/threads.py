"""How many threads the kernels may use: one setting for everything."""

from __future__ import annotations

import os
from contextvars import ContextVar

from wisecrowd.core.parameters import check_integer

_threads: ContextVar[int | None] = ContextVar("threads", default=None)


def set_threads(n_threads: int | None) -> None:
    """Set the number of threads; ``None`` means all cores. Results are the same bits either way."""
    if n_threads is not None:
        check_integer("n_threads", n_threads, 1)
    _threads.set(n_threads)


def get_threads() -> int:
    """Return the number of threads in use: as set, else WISECROWD_THREADS, else all cores."""
    chosen = _threads.get()
    if chosen is not None:
        return chosen
    text = os.environ.get("WISECROWD_THREADS", "")
    if text.isdigit() and int(text) > 0:
        return int(text)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
