"""Untrusted JSON, XML and zip files, read piece by piece with limits.

No archive is extracted, nothing is executed, and no piece is decoded before its size and its
nesting are known to be in bounds.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from wisecrowd.core.exceptions import DataError
from wisecrowd.io.limits import require_size
from wisecrowd.io.sources import ByteStream, Source, check_encoding, explain_encoding, recoded

if TYPE_CHECKING:
    from zipfile import ZipInfo

MAX_DEPTH = 100  # levels of JSON or XML; exports have about ten
MAX_RECORD = 32 << 20  # characters of one record: a task with all its annotations
MAX_MEMBERS = 100_000
_SMALL = 16 << 20  # below this many bytes no ratio is suspicious
_CHUNK = 1 << 18
_PIECES = 100  # of text inside one XML element
# Escapes go first: then a quote always ends a text, and no search has to go back.
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_TEXT = re.compile(rb'"[^"]*+"')
_FILLED = re.compile(r"[^ \t\r\n]")
_DECODER = json.JSONDecoder()


# ------------------------------------------------------------------------------------------- JSON


class _Shallow(ByteStream):
    """A stream of JSON whose nesting is checked before it is decoded."""

    def __init__(self, stream: Any, name: str) -> None:
        super().__init__()
        self._stream = stream
        self._name = name
        self._depth = 0
        self._inside_text = False
        self._escape = b""

    def next_bytes(self, size: int) -> bytes:
        part = self._stream.read(size) or b""
        self._measure(part)
        return bytes(part)

    def _measure(self, part: bytes) -> None:
        data = _ESCAPE.sub(b"", self._escape + part)
        self._escape = b"\\" if data.endswith(b"\\") else b""
        bare = _TEXT.sub(b"", b'"' + data if self._inside_text else data)
        quote = bare.find(b'"')
        self._inside_text = quote >= 0
        bare = bare[:quote] if self._inside_text else bare
        if not bare:
            return
        marks = np.frombuffer(bare, np.uint8)
        steps = ((marks == ord("[")) | (marks == ord("{"))).astype(np.int64)
        steps -= (marks == ord("]")) | (marks == ord("}"))
        depth = self._depth + np.cumsum(steps)
        if depth.max() > MAX_DEPTH:
            raise DataError(
                f"{self._name} is nested more than {MAX_DEPTH} levels deep, as no export is; "
                "export it again."
            )
        self._depth = int(depth[-1])


class _Window:
    """A window on a long JSON text: only the part around the current value is in memory."""

    def __init__(self, stream: io.TextIOBase, name: str) -> None:
        self._stream = stream
        self._name = name
        self._text = stream.read(_CHUNK).removeprefix("\ufeff")
        self._at = 0
        self._ended = False
        self.values = 0  # decoded so far

    def peek(self) -> str:
        """Return the next character that is not a space, or an empty text at the end."""
        while True:
            found = _FILLED.search(self._text, self._at)
            self._at = len(self._text) if found is None else found.start()
            if found is not None:
                return found.group()
            if not self._more():
                return ""

    def skip(self, expected: str) -> str:
        """Step over one of the expected characters and return it."""
        found = self.peek()
        if not found or found not in expected:
            raise self._invalid(f"expected {' or '.join(expected)}")
        self._at += 1
        return found

    def value(self) -> Any:
        """Decode the value that starts here."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                waiting = len(self._text) - error.pos
                if (waiting < 32 or error.msg.startswith("Unterminated")) and self._more():
                    continue
                raise self._invalid(error.msg, error.pos) from None
            except (ValueError, RecursionError) as error:
                raise self._invalid(reason_of(error)) from None
            if end < len(self._text) or not self._more():  # else a number may go on
                self._at = end
                self.values += 1
                return value

    def _more(self) -> bool:
        """Double the waiting text, so that long records take linear time."""
        waiting = self._text[self._at :]
        if len(waiting) > MAX_RECORD:
            raise DataError(
                f"{self._name}: record {self.values + 1} is longer than {MAX_RECORD} characters; "
                "export without the task's data, or split the file."
            )
        part = "" if self._ended else self._stream.read(max(_CHUNK, len(waiting)))
        self._ended = not part
        if part:
            self._text, self._at = waiting + part, 0
        return bool(part)

    def _invalid(self, reason: str, place: int | None = None) -> DataError:
        rest = self._text[self._at if place is None else place :].strip()
        if not rest or reason.startswith("Unterminated"):
            return DataError(
                f"{self._name} is cut off after record {self.values}: the JSON ends early; "
                "download it again."
            )
        return DataError(
            f"{self._name}: record {self.values + 1} is not valid JSON ({reason}); export it again."
        )


def json_records(stream: Any, source: Source, encoding: str = "utf-8") -> Iterator[tuple[str, Any]]:
    """Yield the values of a JSON list, of one object by key, or of lines of JSON, one at a time.

    Parameters
    ----------
    stream : binary file
    source : Source
        What messages call it.
    encoding : str

    Yields
    ------
    key : str
        Of an object's values; the number, counted from 1, of others.
    value : Any
    """
    with _window(stream, source, encoding) as window:
        first = window.peek()
        if not first:
            raise DataError(f"{source.name} is empty; export it again.")
        is_list = first == "["
        if is_list:
            window.skip("[")
        more = not is_list or window.peek() != "]"
        while more:
            value = window.value()
            yield str(window.values), value
            more = window.skip(",]") == "," if is_list else window.peek() != ""


def json_members(stream: Any, source: Source, encoding: str = "utf-8") -> Iterator[tuple[str, Any]]:
    """Yield (key, value) of one JSON object, one at a time."""
    with _window(stream, source, encoding) as window:
        if window.peek() != "{":
            raise DataError(f"{source.name} is not one JSON object by task; export it again.")
        window.skip("{")
        more = window.peek() != "}"
        while more:
            key = window.value()
            window.values -= 1  # a key is not a record
            window.skip(":")
            yield str(key), window.value()
            more = window.skip(",}") == ","


def json_lists(stream: Any, source: Source, encoding: str = "utf-8") -> Iterator[tuple[str, Any]]:
    """Yield (key, entry) of the lists in one JSON object, one entry at a time.

    Values that are not lists are yielded as they are.
    """
    with _window(stream, source, encoding) as window:
        if window.peek() != "{":
            raise DataError(f"{source.name} is not one JSON object with lists; export it again.")
        window.skip("{")
        more = window.peek() != "}"
        while more:
            key = str(window.value())
            window.skip(":")
            if window.peek() != "[":
                yield key, window.value()
            else:
                window.skip("[")
                inside = window.peek() != "]" or not window.skip("]")
                while inside:
                    yield key, window.value()
                    inside = window.skip(",]") == ","
            more = window.skip(",}") == ","


@contextmanager
def _window(stream: Any, source: Source, encoding: str) -> Iterator[_Window]:
    """Open a stream of JSON whose nesting and encoding are checked while it is read."""
    check_encoding(encoding)
    shallow = io.BufferedReader(_Shallow(recoded(stream, encoding), source.name), _CHUNK)
    try:
        yield _Window(io.TextIOWrapper(shallow, encoding="utf-8"), source.name)
    except UnicodeDecodeError as error:
        raise explain_encoding(io.BytesIO(), source, encoding) from error


def reason_of(error: ValueError | RecursionError) -> str:
    """Return why Python does not decode a JSON text."""
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return "an integer of thousands of digits, which must be written as text"


def json_text(text: Any) -> Any:
    """Decode JSON that an export holds as text, or return None if the text is not JSON.

    Examples
    --------
    >>> json_text('{"choices": ["cat"]}'), json_text("cat"), json_text("[" * 9999)
    ({'choices': ['cat']}, None, None)
    """
    if not isinstance(text, str) or text.lstrip()[:1] not in ("{", "[") or not is_shallow(text):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def is_shallow(text: str) -> bool:
    """Tell whether JSON is nested no deeper than exports are.

    Examples
    --------
    >>> is_shallow('[{"a": "[[["}]'), is_shallow("[" * 1000)
    (True, False)
    """
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return True
    try:
        _Shallow(io.BytesIO(), "")._measure(text.encode("utf-8", "replace"))
    except DataError:
        return False
    return True


# -------------------------------------------------------------------------------------------- zip


@contextmanager
def opened_zip(source: Source) -> Iterator[dict[str, Callable[[], IO[bytes]]]]:
    """Open an archive and check every entry; yield a function per file that opens it for reading.

    Refused before anything is unpacked: more bytes, more files or a higher ratio than exports have,
    names that point outside, links, passwords, and compression that needs much memory.
    """
    import zipfile
    import zlib

    if source.path is None:
        raise DataError("A zip file cannot be read from standard input; save it and name the file.")
    try:
        with source.path.open("rb") as file, zipfile.ZipFile(file) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            _check_sizes(entries, source)
            for entry in entries:
                _check_entry(entry, source)
            # zipfile hands out no more than the size that was checked: a lie ends in a CRC error.
            yield {entry.filename: partial(archive.open, entry) for entry in entries}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(
            f"{source.name} is a damaged or cut off zip file ({error}); download it again."
        ) from error


def _check_sizes(entries: list[ZipInfo], source: Source) -> None:
    if len(entries) > MAX_MEMBERS:
        raise DataError(
            f"{source.name} holds {len(entries)} files, more than {MAX_MEMBERS}; export less at "
            "once."
        )
    unpacked = sum(entry.file_size for entry in entries)
    packed = source.path.stat().st_size if source.path is not None else 0
    require_size(source.name, unpacked, packed, _SMALL)


def _check_entry(entry: ZipInfo, source: Source) -> None:
    import stat
    import zipfile

    name = entry.filename
    parts = name.replace("\\", "/").split("/")
    if ".." in parts or parts[0] == "" or ":" in parts[0] or "\0" in name:
        raise DataError(
            f"{source.name} holds the file name {name!r}, which points outside the archive; "
            "download it again from the platform."
        )
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise DataError(f"{source.name} holds the link {name!r}; pack the file itself.")
    if entry.flag_bits & 1:
        raise DataError(f"{source.name} is protected by a password; unpack it and zip it anew.")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(
            f"{source.name} packs {name!r} with a method other than deflate; zip it anew."
        )


# -------------------------------------------------------------------------------------------- XML


def xml_events(
    stream: Any, source: Source
) -> Iterator[tuple[str, tuple[str, ...], dict[str, str], str]]:
    """Yield ("start" or "end", path of names, attributes, text inside) of every element.

    A document type, with which entities and bombs come, is refused.
    """
    from xml.parsers import expat

    path: list[str] = []
    events: list[tuple[str, tuple[str, ...], dict[str, str], str]] = []
    text: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        path.append(name)
        text.clear()
        if len(path) > MAX_DEPTH:
            raise DataError(
                f"{source.name} is nested more than {MAX_DEPTH} levels deep, as no export is; "
                "export it again."
            )
        events.append(("start", tuple(path), attributes, ""))

    def end(name: str) -> None:
        events.append(("end", tuple(path), {}, "".join(text)))
        path.pop()
        text.clear()

    def keep(part: str) -> None:
        if len(text) < _PIECES:  # names are short; long text is of no use here
            text.append(part)

    def refuse(*declared: Any) -> None:
        raise DataError(
            f"{source.name} declares a document type, as no export does; download it again from "
            "the platform."
        )

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = keep, refuse
    waiting = 0
    try:
        while part := stream.read(_CHUNK):
            parser.Parse(part, False)
            waiting = 0 if events else waiting + len(part)
            if waiting > MAX_RECORD:
                raise DataError(
                    f"{source.name} has {waiting} bytes without an element; download it again."
                )
            yield from events
            events.clear()
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise DataError(
            f"{source.name} is damaged or cut off XML ({error}); download it again."
        ) from None
    yield from events
