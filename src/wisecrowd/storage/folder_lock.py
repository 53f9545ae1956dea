"""A lock on a place that one process at a time may write to."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wisecrowd.core.exceptions import DataError


@contextmanager
def only_writer(place: Path) -> Iterator[None]:
    """Hold the lock of a place; a second process is refused, and a crash releases the lock.

    The lock is that of an SQLite file beside the place, which the operating system ends with its
    process.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "crowd.pack"
    >>> with only_writer(place), only_writer(place):
    ...     pass
    Traceback (most recent call last):
    wisecrowd.core.exceptions.DataError: ...; wait for it, or give another place.
    """
    whole = Path(os.path.abspath(place))  # "." has no name of its own
    whole.parent.mkdir(parents=True, exist_ok=True)
    lock = whole.with_name(f".{whole.name}.lock")
    with held(lock, f"Another run writes {place}; wait for it, or give another place."):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


@contextmanager
def held(lock: Path, refusal: str) -> Iterator[None]:
    """Hold the lock of an SQLite file; if another process has it, refuse with this sentence.

    Nothing is stored in the file: one with any content belongs to somebody else and is refused.
    """
    if lock.is_symlink() or (lock.exists() and (not lock.is_file() or lock.stat().st_size > 0)):
        raise DataError(
            f"{lock} is in the way: wisecrowd keeps a lock there; move it away, or give another "
            "place."
        )
    connection = sqlite3.connect(lock, timeout=0, isolation_level=None)
    try:
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            raise DataError(refusal) from error
        yield
    finally:
        connection.close()
