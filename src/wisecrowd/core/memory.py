"""Refuse, with figures, what cannot fit into memory, before anything is allocated."""

from __future__ import annotations

import os

from wisecrowd.core.exceptions import DataError


def available_memory() -> int:
    """Return the machine's physical memory in bytes (a very large number if it is not told)."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not every system tells
        return 1 << 62


def readable_bytes(size: float) -> str:
    """Return a size as people write it: 3.2 GB."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} TB"


def require_memory(size: int, what: str, instead: str) -> None:
    """Raise a DataError if ``size`` bytes exceed the machine's memory.

    Examples
    --------
    >>> require_memory(10**18, "The confusion matrices", "use a model with fewer parameters")
    Traceback (most recent call last):
    ...
    wisecrowd.core.exceptions.DataError: The confusion matrices need 1e+06 TB ...
    """
    limit = available_memory()
    if size > limit:
        raise DataError(
            f"{what} need {readable_bytes(size)} but the machine has {readable_bytes(limit)}; "
            f"{instead}."
        )
