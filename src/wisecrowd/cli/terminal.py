"""Text for people: notes on standard error and tables, without terminal control characters."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from wisecrowd.core.exceptions import WisecrowdWarning

# Control characters, and invisible characters that reorder or hide text. Joiners (200c and 200d)
# stay, because some scripts and emoji need them.
_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def harmless(text: str) -> str:
    r"""Replace control characters in a text by their codes.

    Ids are untrusted: an escape sequence in an id must not clear the screen.

    Examples
    --------
    >>> print(harmless("worker\x1b[2J"))
    worker\x1b[2J
    """
    return _STEERING.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def escape_steering(document: str) -> str:
    r"""Replace terminal control characters in the text of a JSON document by JSON escapes.

    Examples
    --------
    >>> print(escape_steering('"a\u202eb"'))
    "a\u202eb"
    """
    return _STEERING.sub(lambda found: json.dumps(found.group())[1:-1], document)


def harmless_lines(text: str) -> str:
    """Replace control characters other than line ends in a text by their codes."""
    return "\n".join(harmless(line) for line in text.split("\n"))


class Notes:
    """Notes for the user on standard error; nothing is shown when quiet.

    As a context manager it records warnings. Those of the library become notes at the next note,
    at :meth:`flush`, or at the end of the block, even after an error. Warnings of other libraries
    are shown at the end of the block. No note is shown twice.

    Parameters
    ----------
    quiet : bool

    Attributes
    ----------
    quiet : bool
        Whether nothing is shown.
    said : list of str
        All notes so far, including those not shown.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.said: list[str] = []
        self._recorder = warnings.catch_warnings(record=True)
        self._recorded: list[warnings.WarningMessage] = []

    def __call__(self, text: str) -> None:
        """Show a note, unless it was shown before."""
        self.flush()
        self._say(text)

    def flush(self, about: str = "") -> None:
        """Show the recorded warnings of the library, with a prefix that names their subject."""
        recorded, self._recorded[:] = list(self._recorded), []
        for one in recorded:
            if issubclass(one.category, WisecrowdWarning):
                self._say(f"{about}: {one.message}" if about else str(one.message))
            else:
                self._recorded.append(one)

    def _say(self, text: str) -> None:
        if text in self.said:
            return
        self.said.append(text)
        if not self.quiet:
            with suppress(OSError):  # a note that cannot be written is not an error
                print(harmless(text), file=sys.stderr)

    def __enter__(self) -> Self:
        self._recorded = self._recorder.__enter__()
        warnings.filterwarnings("always", category=WisecrowdWarning)
        return self

    def __exit__(self, *error: object) -> None:
        self._recorder.__exit__(None, None, None)
        self.flush()
        for one in self._recorded:
            warnings.showwarning(one.message, one.category, one.filename, one.lineno)


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[object]], width: int | None = None
) -> str:
    """Return rows as aligned text: numbers to the right, long last cells wrapped to ``width``.

    Without ``width`` every row stays on one line, as suits a pipe.

    Examples
    --------
    >>> print(text_table(["method", "accuracy"], [["vote", 0.5], ["dawid-skene", 0.75]]))
    method       accuracy
    vote           0.5000
    dawid-skene    0.7500
    """
    header = [harmless(name) for name in header]
    cells = [[_cell(value) for value in row] for row in rows]
    right = [any(isinstance(row[c], float | int) for row in rows) for c in range(len(header))]
    widths = [
        max(len(name), *(len(row[c]) for row in cells)) if cells else len(name)
        for c, name in enumerate(header)
    ]
    before = sum(widths[:-1]) + 2 * (len(header) - 1)
    room = max(20, width - before) if width is not None else None
    lines = [_line(list(header), widths, right)]
    for row in cells:
        *fixed, last = row
        folded = textwrap.wrap(last, room) if room is not None and len(last) > room else [last]
        lines.append(_line([*fixed, folded[0]], widths, right))
        lines += [" " * before + more for more in folded[1:]]
    return "\n".join(lines)


def _line(cells: list[str], widths: list[int], right: list[bool]) -> str:
    padded = [
        cell.rjust(size) if to_right else cell.ljust(size)
        for cell, size, to_right in zip(cells, widths, right, strict=True)
    ]
    return "  ".join(padded).rstrip()


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4f}"
    return harmless(str(value))


def terminal_width() -> int | None:
    """Return the width of the terminal, or None if the output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def indented(text: str, indent: int) -> list[str]:
    """Return text as indented lines: wrapped to the width of the terminal, else one line."""
    width = terminal_width()
    return textwrap.wrap(
        text,
        width=max(40, min(width, 100)) if width is not None else 100_000,
        initial_indent=" " * indent,
        subsequent_indent=" " * indent,
    )


def replace_closed_streams() -> None:
    """Reopen the descriptors of standard streams that the caller closed (``>&-``).

    Otherwise the next file that is opened would get such a descriptor, and printed text would go to
    that file. Writing to a closed standard output is still an error; text for a closed standard
    error is lost.
    """
    if sys.stdin is None:
        os.open(os.devnull, os.O_RDONLY)
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def forget_output() -> None:
    """Discard buffered output, so that Python does not report the closed pipe again."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
