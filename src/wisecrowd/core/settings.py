"""Settings for the duration of a ``with`` block: the only context variable of the package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Settings:
    """Settings inside a ``with`` block; each is read and changed by one module.

    Attributes
    ----------
    for_shell : bool
        Messages name options as the command line spells them
        (:mod:`wisecrowd.core.messages.option_spelling`).
    shown_files : str
        The files of labels and the options to read them, as the shell takes them
        (:mod:`wisecrowd.core.messages.option_spelling`).
    limits : Limits or None
        Maximum size of a decoded file (:mod:`wisecrowd.io.limits`).
    listener : callable or None
        Receives the progress of fits (:mod:`wisecrowd.inference.monitor`).
    outputs : set of outputs or None
        Files that are renamed to their final names together (:mod:`wisecrowd.storage.atomic`).
    temporaries : callable or None
        Receives the temporary name of every output (:mod:`wisecrowd.storage.work_folder`).
    kinds : tuple of Kind
        Kinds of labels that are defined outside of the package (:mod:`wisecrowd.core.kinds`).
    ranks : Ranks or None
        Processes that train together (``wisecrowd.learning.training.ranks``).
    """

    for_shell: bool = False
    shown_files: str = ""
    limits: Any = None
    listener: Callable[[Any], None] | None = None
    outputs: Any = None
    temporaries: Callable[[Any], None] | None = None
    kinds: tuple[Any, ...] = ()
    ranks: Any = None


_DEFAULT = Settings()
_CURRENT: ContextVar[Settings] = ContextVar("wisecrowd_settings", default=_DEFAULT)


def current_settings() -> Settings:
    """Return the current settings."""
    return _CURRENT.get()


@contextmanager
def with_settings(**changes: Any) -> Iterator[None]:
    """Change settings inside a ``with`` block.

    Examples
    --------
    >>> with with_settings(for_shell=True):
    ...     current_settings().for_shell
    True
    >>> current_settings().for_shell
    False
    """
    token = _CURRENT.set(replace(_CURRENT.get(), **changes))
    try:
        yield
    finally:
        _CURRENT.reset(token)
