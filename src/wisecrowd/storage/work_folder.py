"""Folders for unfinished work, which are made and marked here, and the lock of one writer.

A folder that a user names may hold anything. Work therefore goes into a folder of our own with a
mark inside; one without the mark, or with an entry that no run writes, is refused. Only what runs
write is removed from it. Temporary names of outputs are listed in such a folder, so that the next
run removes what a killed one left, and nothing else that looks like it. One process at a time may
write to a place, because it holds a lock beside it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.settings import current_settings, with_settings
from wisecrowd.storage.atomic import clear_write_errors, is_temporary

MARK = ".wisecrowd-work.json"
_FORMAT = "wisecrowd-work-1"
_HEAD = f'{{"format": "{_FORMAT}", "made": '
_LISTED = "# Unfinished outputs of wisecrowd, which the next run removes.\n"


class WorkFolder:
    """A marked folder for the work of one run, and for the next run that continues it.

    Parameters
    ----------
    path : Path
        The folder; made with its parents if it is not there.
    own : regular expression
        Matches the relative paths of all files that runs write into it.
    remedy : str
        How to choose another folder, for messages.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "labels.scratch"
    >>> folder = WorkFolder(place, re.compile(r"passes/.*"))
    >>> (place / "thesis.txt").write_text("Chapter 1") > 0
    True
    >>> folder.remove()
    >>> [entry.name for entry in place.iterdir()]
    ['thesis.txt']
    """

    def __init__(
        self, path: Path, own: re.Pattern[str], remedy: str = "choose another folder"
    ) -> None:
        self.path, self._own, self._remedy = path, own, remedy
        if not path.is_dir() or _is_empty(path):
            self._make()
        self._require_own()

    def _make(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise DataError(
                f"{self.path} is in the way, where the progress of this run goes; move it away, or "
                f"{self._remedy}."
            )
        made = [place for place in (self.path, *self.path.parents) if not place.exists()]
        facts = {"format": _FORMAT, "made": [os.path.abspath(place) for place in made]}
        with clear_write_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / MARK).write_text(json.dumps(facts) + "\n", encoding="utf-8")

    def _require_own(self) -> None:
        """Refuse a folder without the mark, or with files that no run writes."""
        if _facts_of(self.path) is None:
            raise DataError(
                f"{self.path} exists and was not made by wisecrowd, so its files are left alone; "
                f"move it away, or {self._remedy}."
            )
        foreign = foreign_file(self.path, re.compile(f"{re.escape(MARK)}|{self._own.pattern}"))
        if foreign is not None:
            raise DataError(
                f"{self.path} holds {foreign.relative_to(self.path)}, which wisecrowd did not "
                f"write; move it away, or {self._remedy}."
            )

    def clear(self, own: re.Pattern[str]) -> None:
        """Remove some of what runs wrote."""
        clear_files(self.path, own)

    def remove(self) -> None:
        """Remove what runs wrote, then the mark, then the folders that were made for it."""
        facts = _facts_of(self.path) or {}
        clear_files(self.path, self._own)
        (self.path / MARK).unlink(missing_ok=True)
        made = facts.get("made")
        for place in made if isinstance(made, list) else []:
            with suppress(OSError):  # not empty: somebody else uses it
                Path(str(place)).rmdir()


def _is_empty(path: Path) -> bool:
    """Return whether a folder is empty, but for a mark that a kill cut off."""
    if [entry.name for entry in path.iterdir()] != [MARK]:
        return not any(path.iterdir())
    try:
        text = (path / MARK).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return _HEAD.startswith(text) or (text.startswith(_HEAD) and _facts_of(path) is None)


def _facts_of(path: Path) -> dict[str, Any] | None:
    """Return the content of the mark of a folder; None if it has none of ours."""
    try:
        facts = json.loads((path / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) and facts.get("format") == _FORMAT else None


def _files_in(folder: Path) -> list[Path]:
    """Return everything below a folder that is not a folder; links are not followed."""
    return sorted(
        Path(place) / name
        for place, folders, files in os.walk(folder)
        for name in (*files, *(one for one in folders if (Path(place) / one).is_symlink()))
    )


def foreign_file(folder: Path, own: re.Pattern[str]) -> Path | None:
    """Return a file below a folder whose relative path is not one of ours, or None."""
    return next((file for file in _files_in(folder) if not _matches(file, folder, own)), None)


def clear_files(folder: Path, own: re.Pattern[str]) -> None:
    """Remove the files below a folder whose relative paths are ours, and what is empty then."""
    for file in _files_in(folder):
        if _matches(file, folder, own):
            file.unlink(missing_ok=True)
    for place, _, _ in os.walk(folder, topdown=False):
        if Path(place) != folder:
            with suppress(OSError):  # not empty
                os.rmdir(place)


def _matches(file: Path, folder: Path, own: re.Pattern[str]) -> bool:
    return own.fullmatch(file.relative_to(folder).as_posix()) is not None


# ------------------------------------------------------------------------- lists of temporary names


@contextmanager
def listed_temporaries(file: Path) -> Iterator[None]:
    """List the temporary names of all outputs written inside; remove those of a killed run first.

    The outermost list counts. A file that is not such a list is refused.

    Examples
    --------
    >>> import tempfile
    >>> from wisecrowd.storage.atomic import atomic_write
    >>> folder = Path(tempfile.mkdtemp())
    >>> with listed_temporaries(folder / "unfinished"), atomic_write(folder / "a.csv") as _:
    ...     len((folder / "unfinished").read_text().splitlines())
    2
    >>> [entry.name for entry in folder.iterdir()]
    ['a.csv']
    """
    if current_settings().temporaries is not None:
        yield
        return
    _remove_listed(file)

    def add(path: Path) -> None:
        with clear_write_errors(file), file.open("a", encoding="utf-8") as stream:
            stream.write(("" if stream.tell() else _LISTED) + f"{os.path.abspath(path)}\n")

    try:
        with with_settings(temporaries=add):
            yield
    finally:
        file.unlink(missing_ok=True)


def note_temporary(path: Path) -> None:
    """List a temporary name that is not one of an output, if there is a list."""
    note = current_settings().temporaries
    if note is not None:
        note(path)


def _remove_listed(file: Path) -> None:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError):
        text = "unreadable"
    if not (text.startswith(_LISTED) or _LISTED.startswith(text)):  # a kill may cut it off
        raise DataError(
            f"{file} is in the way: wisecrowd lists its unfinished outputs there; move it away."
        )
    for name in text.splitlines()[1:]:
        path = Path(name)
        ours = is_temporary(path.name.removesuffix(".attempts"))
        if ours and path.is_absolute() and not path.is_symlink():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    file.unlink(missing_ok=True)


@contextmanager
def only_writer(place: Path) -> Iterator[None]:
    """Hold the lock of a place; a second process is refused, and a crash releases the lock.

    The lock is that of an SQLite file beside the place, which the operating system ends with its
    process.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "crowd.pack"
    >>> with only_writer(place), only_writer(place):
    ...     pass
    Traceback (most recent call last):
    wisecrowd.core.exceptions.DataError: ...; wait for it, or give another place.
    """
    whole = Path(os.path.abspath(place))  # "." has no name of its own
    if not whole.name:
        raise DataError(f"{place} is the root of the file system; give the name of a folder in it.")
    whole.parent.mkdir(parents=True, exist_ok=True)
    lock = whole.with_name(f".{whole.name}.lock")
    with held(lock, f"Another run writes {place}; wait for it, or give another place."):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


@contextmanager
def held(lock: Path, refusal: str) -> Iterator[None]:
    """Hold the lock of an SQLite file; if another process has it, refuse with this sentence.

    Nothing is stored in the file: one with any content belongs to somebody else and is refused.
    """
    if lock.is_symlink() or (lock.exists() and (not lock.is_file() or lock.stat().st_size > 0)):
        raise DataError(
            f"{lock} is in the way: wisecrowd keeps a lock there; move it away, or give another "
            "place."
        )
    connection = sqlite3.connect(lock, timeout=0, isolation_level=None)
    try:
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            raise DataError(refusal) from error
        yield
    finally:
        connection.close()
