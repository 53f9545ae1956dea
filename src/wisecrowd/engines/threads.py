"""Number of threads that kernels may use."""

from __future__ import annotations

import os

from wisecrowd.core.parameter_checks import check_integer

_chosen: int | None = None  # for the process: a setting made in one thread applies to all threads


def set_threads(n_threads: int | None) -> None:
    """Set the number of threads; ``None`` means all cores. Results do not change."""
    if n_threads is not None:
        check_integer("n_threads", n_threads, 1)
    global _chosen
    _chosen = n_threads


def get_threads() -> int:
    """Return the number of threads in use: as set, else WISECROWD_THREADS, else all cores."""
    if _chosen is not None:
        return _chosen
    text = os.environ.get("WISECROWD_THREADS", "")
    if text.isdigit() and int(text) > 0:
        return int(text)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
