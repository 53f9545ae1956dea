"""Ctrl-C that a library swallows, for example while pyarrow imports pandas, is raised again."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def kept_interrupts() -> Iterator[Callable[[], None]]:
    """Give a function that raises ``KeyboardInterrupt`` if Ctrl-C was pressed since the beginning.

    Long loops call it at every round. Outside of the main thread, and where the program handles
    SIGINT itself, it does nothing.

    Examples
    --------
    >>> with kept_interrupts() as check:
    ...     for _ in range(3):
    ...         check()  # nobody pressed Ctrl-C
    """
    pressed: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    def check() -> None:
        if pressed:
            raise KeyboardInterrupt

    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield check
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
