"""Atomic writes: files and directories that are complete or absent.

What is written goes to a temporary name beside the target and takes its place in one step, so a
full disk, a crash or Ctrl-C leaves whatever was there before. Several outputs of one command take
their places together, after the last of them is complete. Devices, pipes and open descriptors
cannot be replaced; they are written as they are.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal, TextIO, overload

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.settings import current_settings, with_settings

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


_STANDARD = {"stdin": 0, "stdout": 1, "stderr": 2}
_DESCRIPTOR = re.compile(r"/dev/(stdin|stdout|stderr)|(?:/dev|/proc/self)/fd/([0-9]+)")


def descriptor_of(path: str | os.PathLike[str]) -> int | None:
    """Return the number of the open descriptor that a path names, None of any other path.

    Examples
    --------
    >>> descriptor_of("/dev/stdout"), descriptor_of("/dev/fd/63"), descriptor_of("labels.csv")
    (1, 63, None)
    """
    found = _DESCRIPTOR.fullmatch(os.fspath(path))
    if found is None:
        return None
    return _STANDARD[found[1]] if found[1] else int(found[2])


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is a descriptor, a device or a pipe, which no file can replace."""
    if descriptor_of(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


MANIFEST = ".manifest.json"  # what the name of an output's manifest adds to that of the output
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


@dataclass(frozen=True)
class _Complete:
    """A file or a directory that is complete, under its temporary name."""

    temporary: Path
    target: Path
    shown: Path

    @property
    def is_manifest(self) -> bool:
        return self.target.name.endswith(MANIFEST)

    def take_place(self) -> None:
        with clear_write_errors(self.shown):
            if self.temporary.is_dir():
                replace_directory(self.temporary, self.target, _free_name(self.target))
            else:
                replace_file(self.temporary, self.target)

    def remove(self) -> None:
        if self.temporary.is_dir():
            shutil.rmtree(self.temporary, ignore_errors=True)
        else:
            self.temporary.unlink(missing_ok=True)


@dataclass
class _Set:
    """What is complete and waits for the rest, and what to do when all is in place."""

    members: list[_Complete] = field(default_factory=list)
    afterwards: list[Callable[[], None]] = field(default_factory=list)


def _open_set() -> _Set | None:
    """Return the set of outputs that is open, if there is one."""
    waiting: _Set | None = current_settings().outputs
    return waiting


@contextmanager
def together() -> Iterator[None]:
    r"""Let everything that is written inside appear at the end, or nothing of it.

    A full disk or Ctrl-C while the last output is written leaves all of the older ones. The renames
    at the end follow each other: only a crash right between two of them can leave a new file beside
    an old one, which :func:`wisecrowd.storage.read_manifest` then tells. Sets may be nested; the
    outermost counts.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> with together():
    ...     with atomic_write(folder / "labels.csv") as file:
    ...         _ = file.write("task,label\n")
    ...     (folder / "labels.csv").exists()
    False
    >>> (folder / "labels.csv").exists()
    True
    """
    if _open_set() is not None:
        yield
        return
    waiting = _Set()
    try:
        with with_settings(outputs=waiting):
            yield
        # Manifests first: without its output a manifest claims nothing, but an output without a
        # manifest would look like a file of the user.
        for member in sorted(waiting.members, key=lambda one: not one.is_manifest):
            member.take_place()
    except BaseException:
        for member in waiting.members:
            with suppress(OSError):
                member.remove()
        raise
    for action in waiting.afterwards:
        action()


def when_complete(action: Callable[[], None]) -> None:
    """Run ``action`` once all outputs of the set are in place: at once if there is no set."""
    waiting = _open_set()
    if waiting is None:
        action()
    else:
        waiting.afterwards.append(action)


def written_at(path: str | os.PathLike[str]) -> Path:
    """Return where the content of an output is now, which may wait for the rest of its set."""
    waiting = _open_set() or _Set()
    target = Path(os.path.realpath(path))
    places = (one.temporary for one in reversed(waiting.members) if one.target == target)
    return next(places, target)


def _finish(complete: _Complete) -> None:
    waiting = _open_set()
    if waiting is None:
        complete.take_place()
    else:
        waiting.members.append(complete)


@overload
def atomic_write(
    path: str | os.PathLike[str], mode: Literal["w"] = "w"
) -> AbstractContextManager[TextIO]: ...
@overload
def atomic_write(
    path: str | os.PathLike[str], mode: Literal["wb"]
) -> AbstractContextManager[BinaryIO]: ...
def atomic_write(path: str | os.PathLike[str], mode: str = "w") -> AbstractContextManager[IO[Any]]:
    r"""Open a file for writing that appears under its name only when it is complete.

    A symbolic link is followed. Devices and pipes cannot be replaced and are written directly.

    Parameters
    ----------
    path : str or path-like
        The file to write; its directory must exist.
    mode : {"w", "wb"}
        Text (UTF-8, line ends as given) or bytes.

    Returns
    -------
    context manager of a file object
        On leaving without an error the file takes the place of what was there; on any exception,
        an interrupt included, it is removed and the old file stays as it was.

    Raises
    ------
    DataError
        If the file cannot be written: no permission, no such directory, a directory of that name,
        a full disk.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> with atomic_write(folder / "labels.csv") as file:
    ...     _ = file.write("task,label\n1,cat\n")
    >>> [entry.name for entry in folder.iterdir()]
    ['labels.csv']
    """
    if mode not in ("w", "wb"):
        raise ParameterError(f"mode must be 'w' or 'wb', not {mode!r}.")
    return _write_file(Path(path), binary=mode == "wb")


@contextmanager
def _write_file(path: Path, *, binary: bool) -> Iterator[IO[Any]]:
    if is_stream(path):
        number = descriptor_of(path)
        with (
            clear_write_errors(path),
            # A copy of an open descriptor keeps its place in a file.
            _open(path if number is None else os.dup(number), "w", binary) as stream,
        ):
            yield stream
        return
    target = Path(os.path.realpath(path))
    temporary = _temporary_beside(target)
    try:
        with clear_write_errors(path):
            _refuse_loop(target)
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            file = _open(temporary, "x", binary)
        try:
            with clear_room_errors(path):
                yield file
            with clear_write_errors(path):
                file.close()
                _flush_to_disk(temporary)
            _finish(_Complete(temporary, target, path))
        finally:
            with suppress(OSError):  # closing a file on a full disk fails once more
                file.close()
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


@contextmanager
def atomic_directory(
    path: str | os.PathLike[str], *, is_own_entry: Callable[[Path], bool]
) -> Iterator[Path]:
    """Fill a directory that appears under its name only when it is complete.

    Parameters
    ----------
    path : str or path-like
        The directory to write; its parent must exist.
    is_own_entry : callable
        Tells for an entry of a directory that is there already whether the caller wrote it. One
        foreign entry and the directory is not replaced: a mistyped path must not delete files.

    Yields
    ------
    Path
        A new, empty directory to write into. On leaving without an error it takes the place of
        what was there; on any exception it is removed and the old directory stays as it was.

    Raises
    ------
    DataError
        If the directory cannot be written or must not be replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> target = Path(tempfile.mkdtemp()) / "model"
    >>> with atomic_directory(target, is_own_entry=lambda entry: False) as folder:
    ...     _ = (folder / "model.json").write_text("{}")
    >>> [entry.name for entry in target.iterdir()]
    ['model.json']
    """
    shown = Path(path)
    target = Path(os.path.realpath(shown))
    temporary = _temporary_beside(target)
    try:
        with clear_write_errors(shown):
            _refuse_loop(target)
            check_replaceable(shown, is_own_entry)
            temporary.mkdir()
        # What is written into the directory is complete at once; the directory itself may wait.
        with with_settings(outputs=None), clear_room_errors(shown):
            yield temporary
        with clear_write_errors(shown):
            for entry in temporary.rglob("*"):
                if entry.is_file():
                    _flush_to_disk(entry)
        _finish(_Complete(temporary, target, shown))
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


@contextmanager
def clear_write_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn every operating system error inside into a `DataError` about writing ``path``.

    Examples
    --------
    >>> with clear_write_errors("labels.csv"):
    ...     raise PermissionError(13, "Permission denied")
    Traceback (most recent call last):
    wisecrowd.core.exceptions.DataError: Cannot write labels.csv: there is no permission ...
    """
    try:
        yield
    except OSError as error:
        raise _write_error(Path(path), error) from error


@contextmanager
def clear_room_errors(path: Path) -> Iterator[None]:
    """Translate what can only come from writing; the caller's code may read other files as well."""
    try:
        yield
    except OSError as error:
        # NumPy gives no number: "180000 requested and 153584 written".
        if error.errno not in _NO_ROOM and " requested and " not in str(error):
            raise
        raise _write_error(path, error) from error


def _write_error(path: Path, error: OSError) -> DataError:
    there = f"the directory {path.parent}"
    if error.errno == errno.ENOENT and path.is_symlink():
        there = f"it is a link to {os.readlink(path)}, whose directory"
    denied = f"there is no permission to write in {path.parent}; change it or choose another place"
    full = "the disk is full; free some space or choose another place"
    reasons = {
        errno.ENOENT: f"{there} does not exist; create it first",
        errno.ELOOP: "its path has a link that leads back to itself; remove the link or choose "
        "another",
        errno.EBADF: "nothing is open there; choose another place",
        errno.ENOTDIR: f"{path.parent} is not a directory; choose another place",
        errno.EISDIR: "it is a directory; give the name of a file",
        errno.EACCES: denied,
        errno.EPERM: denied,
        errno.EROFS: "the file system is read-only; choose another place",
        errno.ENOSPC: full,
        errno.EDQUOT: full,
        errno.EFBIG: "it is larger than a file may be here; raise the limit or choose another "
        "place",
        # NumPy gives no number, only how many items it could write.
        None: f"only a part could be written ({error}), the disk is probably full; free some space",
    }
    why = reasons.get(error.errno, f"{error.strerror}; choose another place")
    return DataError(f"Cannot write {path}: {why}.")


def check_replaceable(shown: Path, is_own_entry: Callable[[Path], bool]) -> None:
    """Refuse a directory that cannot be replaced, because it holds an entry that is not ours."""
    target = Path(os.path.realpath(shown))
    if is_stream(shown):
        raise DataError(f"Cannot write {shown}: it is not a directory; give the name of one.")
    if not target.exists():
        return
    if not target.is_dir():
        raise DataError(f"Cannot write {shown}: there is a file of that name; remove it first.")
    for entry in sorted(target.iterdir()):
        if not is_own_entry(entry):
            raise DataError(
                f"Cannot write {shown}: the directory holds {entry.name}, which would be lost; "
                f"choose another name or move it away."
            )


def is_temporary(name: str) -> bool:
    """Return whether a name is one that is given to unfinished outputs.

    Examples
    --------
    >>> is_temporary(".wisecrowd-0123456789abcdef.tmp"), is_temporary("labels.tmp")
    (True, False)
    """
    return re.fullmatch(r"\.wisecrowd-[0-9a-f]{16}\.tmp", name) is not None


def _free_name(target: Path) -> Path:
    # Beside the target because a rename is atomic only within one file system. The name is short
    # and not made from the target's, which may be as long as a name can be.
    return target.parent / f".wisecrowd-{secrets.token_hex(8)}.tmp"


def _temporary_beside(target: Path) -> Path:
    temporary = _free_name(target)
    note = current_settings().temporaries
    if note is not None:
        note(temporary)
    return temporary


def _open(file: Path | int, how: Literal["w", "x"], binary: bool) -> IO[Any]:
    # A plain open, unlike a tempfile, gives the permissions that the user's umask asks for.
    if binary:
        return open(file, how + "b")
    return open(file, how, encoding="utf-8", newline="")


def _refuse_loop(target: Path) -> None:
    if target.is_symlink():  # of a link that can be followed realpath gives the end
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _flush_to_disk(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
