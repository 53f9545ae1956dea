"""Text that is not UTF-8: error messages that name the line, and conversion to UTF-8."""

from __future__ import annotations

import codecs
from typing import Any, BinaryIO

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.io.sources import ByteStream, Source

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
