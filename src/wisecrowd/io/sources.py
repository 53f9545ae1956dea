"""Files behind a path, and opening them with errors that say what to do.

Text that is not UTF-8 is converted, or the error names the line. Binary files are recognised by
their first bytes: archives, workbooks, images.
"""

from __future__ import annotations

import codecs
import difflib
import errno
import glob
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.io.limits import require_size
from wisecrowd.storage.atomic import descriptor_of

PathLike = str | os.PathLike[str]
STANDARD_INPUT = "-"
_STDIN = 0
_GZIP_MAGIC = b"\x1f\x8b"
SMALL_TEXT = 64 << 20  # below this many unpacked bytes no ratio is suspicious
# A folder is an export of its own where it holds one of these.
EXPORT_FOLDERS = ("annotations/worker-response", "dataset_info.json", "pack.json", "progress.json")


@dataclass(frozen=True)
class Source:
    """A file, or standard input."""

    path: Path | None

    @property
    def name(self) -> str:
        """What messages call it."""
        return "standard input" if self.path is None else str(self.path)

    @property
    def suffix(self) -> str:
        """The suffix that tells the format, in lower case; ``.gz`` does not."""
        if self.path is None:
            return ""
        suffixes = [suffix.lower() for suffix in self.path.suffixes]
        if suffixes[-1:] == [".gz"]:
            suffixes.pop()
        return suffixes[-1] if suffixes else ""


def find_sources(path: PathLike | Iterable[PathLike]) -> list[Source]:
    """Return the files behind a path, a glob pattern, ``-`` or several of them."""
    if isinstance(path, str | os.PathLike):
        return _find(os.fspath(path))
    given: Any = path  # anything may come from a user
    several = isinstance(given, Iterable) and not isinstance(given, bytes | io.IOBase)
    sources = [
        source for one in (given if several else [given]) for source in _find(_required(one))
    ]
    if not sources:
        raise DataError("No file was given; name at least one.")
    if sum(source.path is None for source in sources) > 1:
        raise DataError("Standard input was given twice; it can be read once.")
    return sources


def _required(path: Any) -> str:
    if not isinstance(path, str | os.PathLike):
        raise ParameterError(
            f"A {type(path).__name__} is not a path; give the name of a file, a pattern, or a list "
            "of them."
        )
    return os.fspath(path)


def _find(path: str) -> list[Source]:
    if path == STANDARD_INPUT or descriptor_of(path) == _STDIN:
        return [Source(None)]
    if glob.has_magic(path) and not os.path.lexists(path):
        matches = sorted(glob.glob(path, recursive=True))
        if not matches:
            raise DataError(f"No file matches {path}; check the pattern and the directory.")
        return [Source(Path(match)) for match in matches]
    if "\0" in path:
        raise DataError(f"The path {path!r} holds a NUL character; correct it.")
    file = Path(path)
    try:
        is_directory = file.is_dir()
        exists = file.exists()
    except OSError as error:
        raise _clear(error, Source(file)) from error
    if is_directory and not any((file / mark).exists() for mark in EXPORT_FOLDERS):
        raise DataError(
            f"{path} is a directory; name a file in it, or a pattern such as "
            f"{os.path.join(path, '*.csv')}."
        )
    if not exists:
        raise _missing(file)
    return [Source(file)]


def _missing(file: Path) -> DataError:
    """Return the error for a path behind which there is nothing."""
    try:
        file.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            return _clear(error, Source(file))
    if file.is_symlink():
        return DataError(
            f"{file} is a link to {os.readlink(file)}, which does not exist; correct the link."
        )
    try:
        close = difflib.get_close_matches(file.name, os.listdir(file.parent), n=1)
    except OSError:
        return DataError(
            f"{file} does not exist, nor can its directory {file.parent} be read; check the path."
        )
    hint = f"did you mean {file.parent / close[0]}?" if close else "check the path."
    return DataError(f"{file} does not exist; {hint}")


@contextmanager
def opened(source: Source) -> Iterator[BinaryIO]:
    """Open for reading bytes, and unpack gzip; errors of reading become a DataError."""
    with clear_errors(source):
        if source.path is None:
            if sys.stdin is None:
                raise DataError("Standard input is closed; pipe the data in, or name a file.")
            stream: BinaryIO = sys.stdin.buffer
            yield stream
            return
        with source.path.open("rb") as file:
            if file.peek(2)[:2] == _GZIP_MAGIC:
                with gzip.open(file, "rb") as unpacked:
                    yield io.BufferedReader(_Unpacked(unpacked, file, source), 1 << 20)
            else:
                yield file


class ByteStream(io.RawIOBase):
    """A stream that is made from another one: a subclass says what the next bytes are."""

    def next_bytes(self, size: int) -> bytes:
        """Return at most ``size`` bytes; no bytes at the end."""
        raise NotImplementedError

    def readable(self) -> bool:
        """Tell that the stream can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, as far as there are bytes."""
        part = self.next_bytes(len(buffer))
        buffer[: len(part)] = part
        return len(part)


class _Unpacked(ByteStream):
    """Gzip data whose ratio of compression is checked while they are unpacked.

    The bytes unpacked so far are compared with the packed bytes read so far, not with the size of
    the file. A zip bomb is therefore refused at its beginning, before it fills the memory.
    """

    def __init__(self, stream: gzip.GzipFile, packed: BinaryIO, source: Source) -> None:
        super().__init__()
        self._stream = stream
        self._packed = packed
        self._source = source
        self._context = copy_context()  # Arrow reads in a thread that does not know the limits

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def next_bytes(self, size: int) -> bytes:
        part = self._stream.read(size)
        sizes = self._stream.tell(), self._packed.tell()
        self._context.run(require_size, self._source.name, *sizes, SMALL_TEXT)
        return part


def is_plain(stream: BinaryIO) -> bool:
    """Tell whether a stream is an unpacked file on disk, which can be read again by its path."""
    return isinstance(getattr(stream, "raw", None), io.FileIO) and stream.seekable()


@contextmanager
def clear_errors(source: Source) -> Iterator[None]:
    """Turn errors of the file system and of unpacking into sentences about ``source``."""
    try:
        yield
    except EOFError as error:
        raise DataError(
            f"{source.name} is cut off: its gzip data ends early; copy or download it again."
        ) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{source.name} is damaged: its gzip data cannot be unpacked ({error}); copy or "
            "download it again."
        ) from error
    except OSError as error:
        raise _clear(error, source) from error


def _clear(error: OSError, source: Source) -> DataError:
    name = source.name
    if isinstance(error, PermissionError):
        return DataError(f"There is no permission to read {name}; change it or copy the file.")
    if isinstance(error, IsADirectoryError):
        return DataError(f"{name} is a directory; name a file in it.")
    if isinstance(error, FileNotFoundError):
        return DataError(f"{name} does not exist; check the path.")
    if error.errno == errno.ELOOP:
        return DataError(f"The path {name} has a link that leads back to itself; correct the link.")
    reason = error.strerror or str(error)
    return DataError(f"{name} cannot be read ({reason}); check the file and the disk.")


def require_content(source: Source, start: bytes) -> None:
    """Refuse a file without any content."""
    if not start.strip():
        raise DataError(
            f"{source.name} is empty; give a file with a header and a row per annotation."
        )


_OF_HOST_NAMES = ("idna", "punycode")
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF32_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)


def check_encoding(encoding: str) -> None:
    """Refuse a name that is not an encoding of text files: unknown, or a codec of other data."""
    try:
        usable = codecs.lookup(encoding).name not in _OF_HOST_NAMES
        "a".encode(encoding)  # not with rot13 or base64, whose codecs do not encode text
    except (LookupError, TypeError, ValueError):
        usable = False
    if not usable:
        raise ParameterError(
            f"There is no text encoding {encoding!r}; give utf-8, latin-1, cp1252, utf-16 or "
            "another one that Python knows."
        )


def is_utf8(encoding: str) -> bool:
    """Tell whether bytes can be read as they are."""
    return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii")


def recoded(file: BinaryIO, encoding: str) -> Any:
    """Return a file of UTF-8 bytes, whatever the encoding of ``file``."""
    return file if is_utf8(encoding) else _Recoded(file, encoding)


class _Recoded(ByteStream):
    def __init__(self, file: BinaryIO, encoding: str) -> None:
        super().__init__()
        self._file = file
        self._decode = codecs.getincrementaldecoder(encoding)().decode
        self._rest = b""

    def next_bytes(self, size: int) -> bytes:
        while not self._rest:
            raw = self._file.read(1 << 20)
            # UTF-7 can hold half a character; the reader of the bytes reports it.
            self._rest = self._decode(raw, not raw).encode("utf-8", "surrogatepass")
            if not raw:
                break
        part, self._rest = self._rest[:size], self._rest[size:]
        return part


def explain_encoding(file: BinaryIO, source: Source, encoding: str) -> DataError:
    """Return the error for a file, open at its start, that is not in the encoding expected."""
    start = file.read(4)
    if start[:2] in _UTF16_MARKS or b"\0" in start:
        found = "utf-32" if start in _UTF32_MARKS else "utf-16"
        return DataError(
            f"{source.name} looks like {found.upper()}, not {encoding.upper()}; save it as UTF-8 "
            f"or give {option('encoding', found)}."
        )
    file.seek(0)
    for number, line in enumerate(file, start=1):
        try:
            line.decode(encoding)
        except UnicodeDecodeError as error:
            where = f": line {number} has the byte 0x{line[error.start]:02x}"
            break
    else:
        where = ""
    return DataError(
        f"{source.name} is not {encoding.upper()}{where}; save it as UTF-8 or give its encoding, "
        f"for instance {option('encoding', 'latin-1')}."
    )


_UNPACK = "unpack it first"
_SAVE = "save it as csv first"
_OTHER = "give the file with the labels"

# A pattern of the first bytes, what such a file is, and what to do.
_SIGNATURES = (
    (rb"BZh[1-9]1AY&SY", "packed with bzip2", _UNPACK),
    (rb"\xfd7zXZ\x00", "packed with xz", _UNPACK),
    (rb"\(\xb5/\xfd", "packed with zstandard", _UNPACK),
    (rb"\x1f\x8b", "packed with gzip twice", "unpack it once"),
    (rb"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACK),
    (rb"\xd0\xcf\x11\xe0", "an Excel workbook", _SAVE),
    (rb"SQLite format 3\x00", "an SQLite database", _SAVE),
    (rb"ARROW1\x00\x00", "an Arrow file", "save it as parquet first"),
    (rb"\x93NUMPY", "a NumPy array", "read it in Python, as a matrix of tasks and workers"),
    (rb"%PDF-\d", "a PDF document", _OTHER),
    (rb"\x89PNG", "an image", _OTHER),
    (rb"\xff\xd8\xff", "an image", _OTHER),
)
_ZIP = b"PK\x03\x04"
_WORKBOOK = b"[Content_Types].xml"  # the first member of Excel's archives
_WINDOW = 512


def refuse_binary(source: Source) -> None:
    """Refuse a file that is not text, and name its type.

    Parameters
    ----------
    source : Source
        A file on disk that is not a known platform's export.
    """
    with opened(source) as stream:
        start = stream.read(_WINDOW)
    if start.startswith(_ZIP):
        if _WORKBOOK in start or source.suffix in (".xlsx", ".xlsm"):
            raise DataError(f"{source.name} is an Excel workbook; {_SAVE}.")
        raise DataError(f"{source.name} is a zip archive that no known platform writes; {_UNPACK}.")
    for mark, what, remedy in _SIGNATURES:
        if re.match(mark, start):
            raise DataError(f"{source.name} is {what}; {remedy}.")
