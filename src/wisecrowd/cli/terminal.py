"""What people read: notes on standard error, tables, and nothing that could steer a terminal."""

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

# Control characters, and the invisible ones that reorder, hide or smuggle text. Joiners (200c and
# 200d) stay: scripts and emoji are made of them.
_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def harmless(text: str) -> str:
    r"""Return text in which control characters are shown as their codes.

    Ids come from strangers: one with an escape sequence must not clear the screen.

    Examples
    --------
    >>> print(harmless("worker\x1b[2J"))
    worker\x1b[2J
    """
    return _STEERING.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def escape_steering(document: str) -> str:
    r"""Return the text of a JSON document with such characters as its own escapes.

    Examples
    --------
    >>> print(escape_steering('"a\u202eb"'))
    "a\u202eb"
    """
    return _STEERING.sub(lambda found: json.dumps(found.group())[1:-1], document)


def harmless_lines(text: str) -> str:
    """Return text of several lines in which only the line ends steer the terminal."""
    return "\n".join(harmless(line) for line in text.split("\n"))


class Notes:
    """What the user should know besides the result, on standard error; nothing when quiet.

    As a context manager it records warnings. Those of the library become notes at the next note,
    at :meth:`flush`, or at the end of the block, also when the block ends with an error. Warnings
    of other libraries are shown at the end of the block. Nothing is said twice.

    Parameters
    ----------
    quiet : bool

    Attributes
    ----------
    quiet : bool
        Whether nothing is shown.
    said : list of str
        Everything so far, also when quiet.
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
        """Show the recorded warnings of the library, with what they are about in front."""
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
            with suppress(OSError):  # notes are a courtesy: no reason to fail
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
    """Return rows as aligned text: numbers to the right, long last cells folded to ``width``.

    Without ``width`` every row stays on one line, which is what a pipe wants.

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
    """Return the width of the terminal, or None when the output goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def indented(text: str, indent: int) -> list[str]:
    """Return text as indented lines: folded to the width of the terminal, else one line."""
    width = terminal_width()
    return textwrap.wrap(
        text,
        width=max(40, min(width, 100)) if width is not None else 100_000,
        initial_indent=" " * indent,
        subsequent_indent=" " * indent,
    )


def replace_closed_streams() -> None:
    """Take the places of standard streams that the caller closed (``>&-``).

    Else the next file that is opened would take them, and what is printed would go there. Writing
    to a closed standard output stays an error; what goes to a closed standard error is lost.
    """
    if sys.stdin is None:
        os.open(os.devnull, os.O_RDONLY)
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def forget_output() -> None:
    """Send what is still buffered nowhere, or Python would complain about it once more at exit."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
