"""Check of the required memory before anything is allocated."""

from __future__ import annotations

import os
from pathlib import Path

from wisecrowd.core.exceptions import DataError, ParameterError

UNKNOWN = 1 << 62  # bytes, if the system does not report a limit
# Files with the memory limit of a Linux container, for both versions of control groups.
CONTAINER_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def available_memory() -> int:
    """Return the memory limit of the machine, container or process, whichever is lowest, in bytes.

    The value is very large if the system does not report a limit.
    """
    return min(_physical_memory(), _process_limit(), *map(_container_limit, CONTAINER_LIMITS))


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not available on every system
        return UNKNOWN


def _container_limit(file: Path) -> int:
    try:
        text = file.read_text().strip()
    except OSError:
        return UNKNOWN
    return int(text) if text.isdigit() else UNKNOWN  # "max" means no limit


def _process_limit() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return UNKNOWN
    limit = int(resource.getrlimit(resource.RLIMIT_AS)[0])
    return UNKNOWN if limit == resource.RLIM_INFINITY else limit


def readable_bytes(size: float) -> str:
    """Return a readable size, such as 3.2 GB."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} TB"


def require_memory(size: int, what: str, instead: str) -> None:
    """Raise a DataError if ``size`` bytes are more than :func:`available_memory`.

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


def check_room(size: float, what: str) -> None:
    """Refuse a simulation that needs more bytes than there are, before any of them is taken."""
    limit = available_memory()
    if size > limit:
        raise ParameterError(
            f"{what} would need {readable_bytes(size)}, but the machine has "
            f"{readable_bytes(limit)}; simulate fewer."
        )
