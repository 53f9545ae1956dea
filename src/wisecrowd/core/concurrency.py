"""One fit of a method at a time: a fit keeps its state on the method itself."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from wisecrowd.core.exceptions import ConcurrentFitError

# Which thread fits the object of which id. Kept here, not on the object: a lock cannot be pickled
# or copied. An object that is being fitted is alive, so its id is its own.
_FITTING: dict[int, int] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_FITTING.clear)  # other threads do not exist there


@contextmanager
def exclusive_fit(method: object) -> Iterator[None]:
    """Refuse a second thread that enters the ``with`` block with the same method.

    The same thread may enter again. However the block is left, the method is free afterwards.

    Raises
    ------
    ConcurrentFitError
        If another thread is inside.

    Examples
    --------
    >>> method = object()
    >>> with exclusive_fit(method):
    ...     with exclusive_fit(method):
    ...         print("twice in one thread")
    twice in one thread
    """
    key, thread = id(method), threading.get_ident()
    if _FITTING.get(key) == thread:
        yield
        return
    try:
        if _FITTING.setdefault(key, thread) != thread:
            name = type(method).__name__
            raise ConcurrentFitError(
                f"This {name} is being fitted in another thread; give every thread a copy of its "
                "own, by sklearn.base.clone or copy.deepcopy."
            )
        yield
    finally:
        if _FITTING.get(key) == thread:
            del _FITTING[key]
