"""Replacing a file or a directory by a complete new one, in one step where possible."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_AT_CWD = -100  # AT_FDCWD of Linux: paths are relative to the working directory, as usual
_EXCHANGE = 2  # RENAME_EXCHANGE


def replace_file(temporary: Path, target: Path) -> None:
    """Rename a file over another; one of the two exists at any time."""
    os.replace(temporary, target)


def replace_directory(temporary: Path, target: Path, former: Path) -> None:
    """Put a directory where another one is, or nothing.

    Parameters
    ----------
    temporary, target : Path
        The complete directory, and its place.
    former : Path
        A free name for the old directory, needed where two names cannot be exchanged: there
        two renames follow each other, and a crash right between them leaves the old directory
        under this name.
    """
    if not target.exists():
        os.replace(temporary, target)
    elif exchange(temporary, target):
        shutil.rmtree(temporary, ignore_errors=True)
    else:
        _rename_twice(temporary, target, former)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False where the system or the file system cannot."""
    import ctypes

    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux, or a C library without it
        return False
    failed = rename(_AT_CWD, os.fsencode(one), _AT_CWD, os.fsencode(other), _EXCHANGE)
    return not failed


def _rename_twice(temporary: Path, target: Path, former: Path) -> None:
    try:
        os.replace(target, former)
        os.replace(temporary, target)
    except BaseException:
        if former.exists() and not target.exists():
            os.replace(former, target)
        raise
    shutil.rmtree(former, ignore_errors=True)
