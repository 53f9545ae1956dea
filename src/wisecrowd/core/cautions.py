"""Reasons to doubt a fit or its data: records that warnings and findings are made of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

_WATCHED: ContextVar[bool] = ContextVar("wisecrowd_watched", default=True)


@dataclass(frozen=True)
class Caution:
    """One reason not to trust a result as it is.

    Attributes
    ----------
    id : str
        The kind, such as "clones".
    severity : "low", "medium" or "high"
    score : float
        On the scale that the explanation names.
    affected : tuple of ids
        Workers, tasks or classes, most affected first.
    explanation, remedy : str
        One sentence each: what was seen, and what to do.

    Examples
    --------
    >>> str(Caution("clones", "high", 1.0, ("a", "b"), "Two sheets are equal.", "Count one."))
    'Two sheets are equal. Count one.'
    """

    id: str
    severity: str
    score: float
    affected: tuple[Any, ...]
    explanation: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.explanation} {self.remedy}"


@contextmanager
def unwatched() -> Iterator[None]:
    """Fit inside the ``with`` block without looking for reasons to doubt.

    For fits that the user did not ask for, such as those of an audit, which has findings of its
    own, or to imagined data.
    """
    token = _WATCHED.set(False)
    try:
        yield
    finally:
        _WATCHED.reset(token)


def is_watched() -> bool:
    """Whether fits look for reasons to doubt them."""
    return _WATCHED.get()
