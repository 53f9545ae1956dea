"""A lock that allows one fit of a method at a time, because a fit changes the method."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from wisecrowd.core.exceptions import ConcurrentFitError


class _FitLock:
    """The lock of one method; copies of the method, including pickled ones, get a new lock."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.process = os.getpid()

    def __reduce__(self) -> tuple[type[_FitLock], tuple[()]]:
        return _FitLock, ()


@contextmanager
def exclusive_fit(method: object) -> Iterator[None]:
    """Refuse a second thread that enters the ``with`` block with the same method.

    The same thread may enter again. The lock is released when the block ends, also by an error.

    Raises
    ------
    ConcurrentFitError
        If another thread is inside.

    Examples
    --------
    >>> from wisecrowd.aggregation import DawidSkene
    >>> method = DawidSkene()
    >>> with exclusive_fit(method):
    ...     with exclusive_fit(method):
    ...         print("twice in one thread")
    twice in one thread
    """
    held: _FitLock = vars(method).setdefault("_fit_lock", _FitLock())
    if held.process != os.getpid():  # the thread that held it does not exist in a forked process
        held = vars(method)["_fit_lock"] = _FitLock()
    if not held.lock.acquire(blocking=False):
        raise ConcurrentFitError(
            f"This {type(method).__name__} is being fitted in another thread; give every thread a "
            "copy of its own, by sklearn.base.clone or copy.deepcopy."
        )
    try:
        yield
    finally:
        held.lock.release()
