"""Detection of binary files by their first bytes: archives, workbooks, images."""

from __future__ import annotations

import re

from wisecrowd.core.exceptions import DataError
from wisecrowd.io.sources import Source, opened

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
