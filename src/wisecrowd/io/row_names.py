"""Names of rows in messages, with the file that they are in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.messages.descriptions import describe_rows
from wisecrowd.io.sources import Source


def row_names_of(sources: list[Source], ends: NDArray[np.int64], noun: str) -> Any:
    """Return how messages name rows: with the file they are in."""

    def name(rows: NDArray[np.integer[Any]], limit: int = 5) -> str:
        if len(sources) == 1:
            return f"{describe_rows(rows, limit)} of {sources[0].name}".replace("row", noun, 1)
        files = np.searchsorted(ends, rows[:limit], side="right")
        inside = rows[:limit] - np.append(0, ends)[files]
        shown = [
            f"{noun} {row + 1} of {sources[f].name}" for f, row in zip(files, inside, strict=True)
        ]
        more = f" and {len(rows) - limit} more" if len(rows) > limit else ""
        return ", ".join(shown) + more

    return name


def renumbered(name: Any, kept: NDArray[np.bool_]) -> Any:
    """Return how messages name rows after some were left out: by their original numbers."""
    original = np.flatnonzero(kept)
    return lambda rows, limit=5: name(original[rows], limit)
