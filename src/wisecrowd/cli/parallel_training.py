"""``wisecrowd train`` under torchrun: all processes train, and the first one writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def is_parallel() -> bool:
    """Return whether torchrun started this process as one of several."""
    return os.environ.get("WORLD_SIZE", "1") not in ("", "1")


def leads() -> bool:
    """Return whether this process writes the outputs: it is the only one, or the first."""
    return not is_parallel() or os.environ.get("RANK") == "0"


@contextmanager
def all_processes(model: Any) -> Iterator[None]:
    """Fit on all processes inside the ``with`` block, if the method can."""
    if not is_parallel():
        yield
        return
    from wisecrowd.learning.training.ranks import require_able, several_processes

    require_able(type(model))
    with several_processes():
        yield
