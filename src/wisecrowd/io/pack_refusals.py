"""Rows that cannot be packed: left out up to a limit, counted by reason, with examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import is_text, is_text_view
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.descriptions import Places
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.types import Mask
from wisecrowd.core.value_columns import as_numbers, as_timestamps

EXAMPLES = 5  # rows that are named for each reason

Refused = dict[str, Any]  # reason -> {"rows": how many, "examples": the first places}


def without_refused(
    piece: dict[str, Any],
    refused: Refused,
    limit: int,
    place: tuple[str, int],
    abstain: tuple[Any, ...],
) -> dict[str, Any]:
    """Return the rows of a piece of a file that can be packed; count the others.

    Parameters
    ----------
    piece : mapping of role to pyarrow array
    refused : mapping
        Counts and examples so far; changed.
    limit : int
        More rows than this in all files are an error.
    place : (str, int)
        The file and its rows before the piece.
    abstain : tuple
        Labels that are abstentions; the empty one may be among them.
    """
    import pyarrow as pa

    bad = np.zeros(len(next(iter(piece.values()))), dtype=bool)
    for reason, rows in _faults(piece, abstain):
        _count(refused, reason, np.flatnonzero(rows & ~bad), place)
        bad |= rows
    total = sum(one["rows"] for one in refused.values())
    if total > limit:
        allowed = for_reader(f"max_refused={limit}", f"--max-refused {limit}")
        raise DataError(
            f"{total} rows cannot be read, more than {allowed} allows: "
            f"{'; '.join(sentences(refused))}; correct them or allow more."
        )
    if not bad.any():
        return piece
    kept = pa.array(np.flatnonzero(~bad))
    return {role: column.take(kept) for role, column in piece.items()}


def sentences(refused: Refused) -> list[str]:
    """Return one sentence for every reason.

    Examples
    --------
    >>> sentences({"without a task": {"rows": 2, "examples": ["row 3 of a.csv", "row 9 of a.csv"]}})
    ['2 rows without a task are left out (row 3 of a.csv, row 9 of a.csv)']
    """
    found = []
    for reason, one in sorted(refused.items()):
        more = ", ..." if one["rows"] > len(one["examples"]) else ""
        rows = "1 row" if one["rows"] == 1 else f"{one['rows']} rows"
        verb = "is" if one["rows"] == 1 else "are"
        found.append(f"{rows} {reason} {verb} left out ({', '.join(one['examples'])}{more})")
    return found


def _count(refused: Refused, reason: str, rows: NDArray[Any], place: tuple[str, int]) -> None:
    if not len(rows):
        return
    source, first_row = place
    one = refused.setdefault(reason, {"rows": 0, "examples": []})
    one["rows"] += len(rows)
    named = rows[: EXAMPLES - len(one["examples"])] + first_row + 1
    one["examples"] += [f"row {row} of {source}" for row in named.tolist()]


def _faults(piece: dict[str, Any], abstain: tuple[Any, ...]) -> list[tuple[str, Mask]]:
    ids = (role for role in ("task", "worker", "left", "right") if role in piece)
    found = [(f"without a {role}", _blank(piece[role])) for role in ids]
    if "label" in piece and "" not in abstain:
        found.append(("without a label", _blank(piece["label"])))
    if "weight" in piece:
        found.append(("with an unusable weight", _bad_weights(piece["weight"])))
    if "timestamp" in piece:
        rows = _unreadable(piece["timestamp"], lambda part: as_timestamps(part, Places({})))
        found.append(("with an unreadable timestamp", rows))
    return found


def _blank(column: Any) -> Mask:
    """Return where a column is missing or consists of white space."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    blank = column.is_null()
    if is_text(column.type) or is_text_view(column.type):
        text = column.cast(pa.large_string())
        blank = pc.equal(pc.utf8_trim_whitespace(text), "").fill_null(True)
    return np.asarray(blank.to_numpy(zero_copy_only=False), dtype=bool)


def _bad_weights(column: Any) -> Mask:
    def numbers(part: Any) -> NDArray[np.float64]:
        return as_numbers(part, "weight", Places({}))

    bad = _unreadable(column, numbers)
    good = np.flatnonzero(~bad)
    weights = numbers(column.take(good))
    bad[good] = ~(weights >= 0)  # NaN, too
    return bad


def _unreadable(column: Any, read: Callable[[Any], Any]) -> Mask:
    """Return the rows that ``read`` refuses, found by halving what it refuses."""
    bad = np.zeros(len(column), dtype=bool)
    parts = [(0, len(column))]
    while parts:
        start, end = parts.pop()
        try:
            read(column.slice(start, end - start))
        except DataError:
            if end - start == 1:
                bad[start] = True
            else:
                middle = (start + end) // 2
                parts += [(middle, end), (start, middle)]
    return bad
