"""Layout of tables that need to be described: without a header, or wide."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from wisecrowd.core.columns import ALIASES, SECOND_CHOICE, TRUTH_NAMES, id_of, plain_name
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.kinds.classes.wide_columns import check_worker_columns, label_texts, wide_hint

_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_SHOWN = 4  # fields of a first row that a message shows

_WORDS = {
    "id",
    *map(plain_name, TRUTH_NAMES),
    *(word for words in (*ALIASES.values(), *SECOND_CHOICE.values()) for word in words),
}  # that stand in headers

# The values of the first rows, column by column in the order of the header.
Sample = Callable[[], Sequence[Sequence[Any]]]


@dataclass(frozen=True)
class Layout:
    """Layout of a table, as the user describes it.

    Attributes
    ----------
    columns : tuple of str or None
        Names of the columns of a file without a header; None where it has one.
    wide : bool
        Whether there is a row per task and a column per worker.
    workers : tuple of str or None
        The columns of the workers in a wide table; None means: recognise them.
    """

    columns: tuple[str, ...] | None = None
    wide: bool = False
    workers: tuple[str, ...] | None = None

    @classmethod
    def of(cls, header: bool, columns: Any, wide: bool, worker_columns: Any) -> Layout:
        """Return the layout that options describe, or say which of them do not go together."""
        if not header and columns is None:
            raise ParameterError(
                "The columns of a file without a header need names: give "
                + for_reader("columns=['task', 'worker', 'label']", "--columns task,worker,label")
                + ", in the order of the file."
            )
        if header and columns is not None:
            raise ParameterError(
                for_reader("columns names", "--columns names")
                + " the columns of a file without a header; give "
                + for_reader("header=False too.", "--no-header too, or leave it out.")
            )
        workers = None if worker_columns is None else tuple(check_worker_columns(worker_columns))
        names = None if columns is None else _distinct(columns)
        return cls(names, wide or workers is not None, workers)


def _distinct(columns: Any) -> tuple[str, ...]:
    if isinstance(columns, str | bytes) or not hasattr(columns, "__iter__"):
        raise ParameterError(f"columns is {columns!r}; give a list of names.")
    names = tuple(str(name) for name in columns)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ParameterError(
            f"{for_reader('columns', '--columns')} names {twice[0]!r} twice; give each column a "
            "name of its own."
        )
    return names


def require_names(names: Sequence[str], first_row: Sequence[str], source: str) -> None:
    """Refuse names for more or fewer columns than a file without a header has."""
    if len(names) != len(first_row):
        given = for_reader("columns", "--columns")
        raise DataError(
            f"{source} has {len(first_row)} columns ({_fields(first_row)}) but {given} names "
            f"{len(names)} ({', '.join(names)}); name each column of the file."
        )


def explain_layout(header: Sequence[str], sample: Sample, source: str, *, text: bool) -> str | None:
    """Return why the columns were not found, if the table lacks a header or is wide.

    Parameters
    ----------
    header : sequence of str
    sample : callable
        Returns the first rows.
    source : str
        What messages call the file.
    text : bool
        Whether the header is a line of text, so that it may be missing.
    """
    columns = sample()
    if text and is_data(header, columns):
        return no_header(header, source)
    texts = {
        name: label_texts(values)
        for name, values in zip(header, columns, strict=True)
        if not any(isinstance(value, list | dict) for value in values)
    }
    hint = wide_hint(header, texts) if texts else None
    return None if hint is None else f"{source} is not read: {hint}"


def no_header(first_row: Sequence[str], source: str) -> str:
    """Return the sentence about a file whose first row is data."""
    names = ["task", "label"]
    if len(first_row) > 2:
        names = ["task", "worker", "label"]
        names += [f"column{number}" for number in range(4, min(len(first_row), 9) + 1)]
    told = for_reader(
        f"header=False, columns={names!r}", f"--no-header --columns {','.join(names)}"
    )
    wide = ""
    if len(first_row) > 1 and all(map(is_number, first_row)):
        wide = f"; if the numbers name workers, give {for_reader('wide=True', '--wide')}"
    return f"{first_row_is_data(first_row, source)}, or give {told}{wide}."


def first_row_is_data(first_row: Sequence[str], source: str) -> str:
    """Return the beginning of that sentence, which is all that other files need."""
    return (
        f"{source} has no header: its first row, {_fields(first_row)}, looks like data; add a "
        "header"
    )


def is_data(header: Sequence[str], columns: Sequence[Sequence[Any]]) -> bool:
    """Tell whether a header is a row of data: numbers, or values that its own columns repeat.

    Examples
    --------
    >>> is_data(["100", "12", "2"], [["101"], ["12"], ["1"]])
    True
    >>> is_data(["img1", "ann", "cat"], [["img1", "img2"], ["bob", "ann"], ["dog", "cat"]])
    True
    >>> is_data(["picture", "who", "what"], [["img1", "img2"], ["bob", "ann"], ["dog", "cat"]])
    False
    """
    if all(map(is_number, header)):
        return True
    if any(plain_name(name) in _WORDS or id_of(name) is not None for name in header):
        return False
    signs = sum(
        is_number(name) or (name != "" and name in values)
        for name, values in zip(header, columns, strict=True)
    )
    return 2 * signs >= len(header)


def is_number(name: str) -> bool:
    """Tell whether a name is a number, as data are and columns as a rule are not."""
    return _NUMBER.fullmatch(name) is not None


def is_counted(names: Sequence[str]) -> bool:
    """Tell whether names are the numbers 0, 1, 2 ... that a frame without names gets."""
    return list(names) in ([str(k) for k in range(n, n + len(names))] for n in (0, 1))


def _fields(row: Sequence[str]) -> str:
    shown = ", ".join(repr(field[:40]) for field in row[:_SHOWN])
    return shown + (" ..." if len(row) > _SHOWN else "")
