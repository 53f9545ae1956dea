"""Limits on the decoded size of a file, checked before the memory is taken.

A parquet file of 0.4 MB can hold 3 GB, and a csv.gz or zip a thousand times its size. Data that are
really that large are read after raising the limit in question.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.memory_check import readable_bytes, require_memory
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.settings import current_settings, with_settings

BYTES_PER_ROW = 24  # three codes, the key that sorts them and a part of the ids
SMALL = 256 << 20  # below this many decoded bytes no ratio is suspicious


@dataclass(frozen=True)
class Limits:
    """Limits on the content of files.

    Attributes
    ----------
    rows : int
        Rows, of all files that are read together.
    columns : int
        Columns of a table, keys of a record.
    bytes : int
        Size after unpacking and decoding.
    ratio : int
        That size to the size on disk. Text compresses 5 to 50 times, a bomb 1000 times.
    """

    rows: int = 2_000_000_000
    columns: int = 100_000
    bytes: int = 16 << 30
    ratio: int = 200


def current_limits() -> Limits:
    """Return the limits that hold now."""
    return current_settings().limits or Limits()


@contextmanager
def limits(**changes: float) -> Iterator[Limits]:
    """Read files with other limits inside a ``with`` block.

    Parameters
    ----------
    **changes : number
        New values of ``rows``, ``columns``, ``bytes`` or ``ratio``; see :class:`Limits`.

    Examples
    --------
    >>> with limits(rows=5e9):
    ...     current_limits().rows
    5000000000
    >>> current_limits().rows
    2000000000
    """
    new = changed(current_limits(), changes)
    with with_settings(limits=new):
        yield new


def changed(base: Limits, changes: dict[str, float]) -> Limits:
    """Return limits of which some have other values, all of them checked."""
    known = [field.name for field in fields(Limits)]
    for name, value in changes.items():
        if name not in known:
            raise ParameterError(f"There is no limit {name!r}; choose one of {', '.join(known)}.")
        if not 1 <= value < 2**63:
            raise ParameterError(f"The limit {name} is {value}; give a number of 1 or more.")
    return replace(base, **{name: int(value) for name, value in changes.items()})


def parse_limits(texts: list[str]) -> dict[str, float]:
    """Return limits written as ``NAME=NUMBER``.

    Examples
    --------
    >>> parse_limits(["rows=5e9", "ratio=1000"])
    {'rows': 5000000000.0, 'ratio': 1000.0}
    """
    found = {}
    for text in texts:
        name, _, number = text.partition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            raise ParameterError(
                f"--limit is {text!r}; give NAME=NUMBER, such as rows=5e9; there are "
                f"{', '.join(asdict(Limits()))}."
            ) from None
    return found


def require_rows(name: str, rows: int) -> None:
    """Refuse more rows than the limit."""
    _require(name, "rows", rows, f"{rows} rows or more", f", or pack it: {packing(name)}")


def require_room(name: str, rows: int) -> None:
    """Refuse rows that do not fit into memory; files that are packed do not come here."""
    require_memory(
        BYTES_PER_ROW * rows,
        f"The {rows} rows or more of {name} would",
        f"pack it: {packing(name)}",
    )


def require_columns(name: str, columns: int) -> None:
    """Refuse more columns than the limit."""
    _require(name, "columns", columns, f"{columns} columns")


def _require(name: str, limit: str, number: int, shown: str, instead: str = "") -> None:
    allowed = getattr(current_limits(), limit)
    if number > allowed:
        raise DataError(
            f"{name} has {shown}, over the limit of {allowed}; {raising(limit, number)}{instead}."
        )


def require_size(name: str, decoded: int, stored: int, small: int | None = None) -> None:
    """Refuse what decodes to more bytes than the limit, or to too many for its size on disk.

    Parameters
    ----------
    name : str
        What messages call the file.
    decoded, stored : int
        Bytes in memory and on disk.
    small : int, optional
        Decoded bytes below which no ratio is suspicious; by default :data:`SMALL`.
    """
    allowed = current_limits()
    if decoded > allowed.bytes:
        raise DataError(
            f"{name} holds {readable_bytes(decoded)} or more when decoded, over the limit of "
            f"{readable_bytes(allowed.bytes)}; {raising('bytes', decoded)}, or pack it: "
            f"{packing(name)}."
        )
    if decoded > (SMALL if small is None else small) and decoded > allowed.ratio * stored:
        times = -(-decoded // max(stored, 1))
        raise DataError(
            f"{name} would unpack from {readable_bytes(stored)} to {readable_bytes(decoded)} or "
            f"more, {times} times its size, as no table does; {raising('ratio', times)}."
        )


def packing(name: str) -> str:
    """Return how to fit a file that is too large for memory, as the reader would type it."""
    return for_reader(
        f"wisecrowd.pack({name!r}, 'crowd.pack'), then wisecrowd.fit_pack",
        f"wisecrowd pack {shlex.quote(name)} -o crowd.pack, then wisecrowd aggregate crowd.pack",
    )


def raising(name: str, needed: int) -> str:
    """Return how to raise a limit, as the reader would type it."""
    enough = f"{name}={_rounded_up(needed)}"
    how = for_reader(f"with wisecrowd.limits({enough}):", f"wisecrowd --limit {enough} COMMAND …")
    return f"if you trust it, raise the limit: {how}"


def _rounded_up(number: int) -> int:
    """Return a round number with room to spare: what was counted so far may not be all.

    Examples
    --------
    >>> _rounded_up(3_200_000_001)
    8000000000
    """
    unit = int(10 ** (len(str(number)) - 1))
    return 2 * -(-number // unit) * unit
