"""Files that are no text: the message says what they are and what to do."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.io.tables import read

TEXT = b"task,worker,label\n1,ann,x\n"


def zipped(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return file.getvalue()


def array():
    file = io.BytesIO()
    np.save(file, np.eye(3))
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.csv.bz2", bz2.compress(TEXT), "is packed with bzip2; unpack it first"),
        ("a.csv.xz", lzma.compress(TEXT), "is packed with xz; unpack it first"),
        ("a.csv.zst", b"\x28\xb5\x2f\xfd\x04\x00", "is packed with zstandard; unpack it first"),
        ("a.csv.gz", gzip.compress(gzip.compress(TEXT)), "is packed with gzip twice; unpack it"),
        ("a.xlsx", zipped("[Content_Types].xml", "xl/workbook.xml"), "is an Excel workbook; save"),
        ("a.csv", zipped("[Content_Types].xml"), "is an Excel workbook; save it as csv"),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is an Excel workbook; save it as csv"),
        ("a.csv", zipped("a.txt"), "is a zip archive that no known platform writes; unpack it"),
        ("a.csv", b"\x89PNG\r\n\x1a\n", "is an image; give the file with the labels"),
        ("a.npy", array(), "is a NumPy array; read it in Python"),
    ],
    ids=[
        "bzip2",
        "xz",
        "zstandard",
        "gzip twice",
        "xlsx",
        "xlsx as csv",
        "xls",
        "zip",
        "png",
        "npy",
    ],
)
def test_what_is_no_text_is_named(tmp_path, name, content, what):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=what):
        read(path)


@pytest.mark.parametrize("header", ["BZh,worker,label", "7z,worker,label", "PK,worker,label"])
def test_a_table_whose_header_begins_like_an_archive_is_read(tmp_path, header):
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n1,ann,x\n")
    assert read(path, task=header.split(",")[0]).n_annotations == 1
