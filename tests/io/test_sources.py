from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io import sources
from wisecrowd.io.sources import (
    Source,
    check_encoding,
    clear_errors,
    explain_encoding,
    find_sources,
    is_plain,
    is_utf8,
    opened,
    recoded,
)
from wisecrowd.io.tables import read


def test_a_path_a_pattern_and_a_list(tmp_path):
    for name in ("b.csv", "a.csv", "c.tsv"):
        (tmp_path / name).write_text("x")
    assert [s.path.name for s in find_sources(tmp_path / "b.csv")] == ["b.csv"]
    assert [s.path.name for s in find_sources(f"{tmp_path}/*.csv")] == ["a.csv", "b.csv"]
    listed = find_sources([tmp_path / "c.tsv", f"{tmp_path}/a*", "-"])
    assert [s.name for s in listed] == [
        str(tmp_path / "c.tsv"), str(tmp_path / "a.csv"), "standard input"
    ]  # fmt: skip


def test_a_name_with_brackets_is_a_file_if_it_exists(tmp_path):
    (tmp_path / "answers [1].csv").write_text("x")
    assert len(find_sources(tmp_path / "answers [1].csv")) == 1


@pytest.mark.parametrize(
    ("name", "suffix"),
    [("a.csv", ".csv"), ("a.CSV.GZ", ".csv"), ("a.b.jsonl.gz", ".jsonl"), ("a", ""), ("a.gz", "")],
)
def test_the_suffix_tells_the_format(tmp_path, name, suffix):
    assert Source(tmp_path / name).suffix == suffix


def test_a_missing_file_gets_the_near_name(tmp_path):
    (tmp_path / "answers.csv").write_text("x")
    with pytest.raises(
        DataError, match=r"anwsers.csv does not exist; did you mean .*answers.csv\?"
    ):
        find_sources(tmp_path / "anwsers.csv")
    with pytest.raises(DataError, match=r"zebra.parquet does not exist; check the path"):
        find_sources(tmp_path / "zebra.parquet")
    with pytest.raises(DataError, match="nor can its directory"):
        find_sources(tmp_path / "nowhere" / "a.csv")


def test_a_directory_gets_a_pattern(tmp_path):
    with pytest.raises(
        DataError, match=r"is a directory; name a file in it, or a pattern .*\*\.csv"
    ):
        find_sources(tmp_path)


def test_a_pattern_without_match(tmp_path):
    with pytest.raises(DataError, match=r"No file matches .*\*\.csv; check the pattern"):
        find_sources(f"{tmp_path}/*.csv")


def test_an_empty_list_and_two_standard_inputs():
    with pytest.raises(DataError, match="No file was given"):
        find_sources([])
    with pytest.raises(DataError, match="given twice"):
        find_sources(["-", "-"])


def test_a_path_through_a_file(tmp_path):
    (tmp_path / "a.csv").write_text("x")
    with pytest.raises(DataError, match=r"does not exist|cannot be read"):
        find_sources(tmp_path / "a.csv" / "b.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission_by_the_file_system(tmp_path):
    file = tmp_path / "secret.csv"
    file.write_text("x")
    file.chmod(0)
    with pytest.raises(DataError, match="no permission to read"), opened(Source(file)):
        pass


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            PermissionError(13, "Permission denied"),
            r"no permission to read a\.csv; change it or copy",
        ),
        (IsADirectoryError(21, "Is a directory"), r"a\.csv is a directory"),
        (FileNotFoundError(2, "No such file"), r"a\.csv does not exist"),
        (OSError(5, "Input/output error"), r"a\.csv cannot be read \(Input/output error\)"),
        (EOFError(), r"a\.csv is cut off: its gzip data ends early; copy or download it again"),
        (gzip.BadGzipFile("CRC check failed"), r"a\.csv is damaged: .*CRC check failed"),
    ],
)
def test_errors_of_the_system_become_sentences(error, message):
    with pytest.raises(DataError, match=message), clear_errors(Source(Path("a.csv"))):
        raise error


def test_gzip_is_known_by_its_content(tmp_path):
    packed = tmp_path / "a.csv"
    packed.write_bytes(gzip.compress(b"one") + gzip.compress(b" two"))
    with opened(Source(packed)) as stream:
        assert stream.read() == b"one two"
        assert not is_plain(stream)
    plain = tmp_path / "b.csv"
    plain.write_bytes(b"one")
    with opened(Source(plain)) as stream:
        assert is_plain(stream)
        assert stream.read() == b"one"


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"abc")))
    with opened(Source(None)) as stream:
        assert stream.read() == b"abc"
        assert not is_plain(stream)


def test_a_gzip_bomb_is_known_by_its_beginning(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "SMALL_TEXT", 1 << 20)
    packed = tmp_path / "a.csv.gz"
    # A thousand times a million zeros, then noise that makes the file as large as a table would.
    noise = np.random.default_rng(0).bytes(20_000_000)
    packed.write_bytes(1000 * gzip.compress(bytes(1_000_000)) + gzip.compress(noise))
    seen: list[bytes] = []
    with (
        pytest.raises(DataError, match=r"a\.csv\.gz would unpack from .* raise the limit"),
        opened(Source(packed)) as stream,
    ):
        seen.extend(iter(partial(stream.read, 1 << 18), b""))
    # Python 3.12 and later read 128 kB ahead, which the ratio counts as used.
    most = (64 if sys.version_info >= (3, 12) else 3) << 20
    assert 0 < sum(map(len, seen)) <= most


@pytest.mark.parametrize(
    "path", [5, None, b"a.csv", io.StringIO("task,worker,label\n"), io.BytesIO(), [5], [None]]
)
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ParameterError, match="is not a path; give the name of a file"):
        find_sources(path)


def test_a_path_with_a_nul_character():
    with pytest.raises(DataError, match=r"The path 'a\\x00b' holds a NUL character"):
        find_sources("a\0b")


SOURCE = Source(Path("a.csv"))


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8", "cp1252"])
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_any_encoding_becomes_utf8(encoding, size):
    text = "é,ü\n" * 100
    stream = recoded(io.BytesIO(text.encode(encoding)), encoding)
    parts = iter(lambda: stream.read(size), b"")
    assert b"".join(parts).decode() == text


def test_only_a_known_encoding_passes():
    check_encoding("UTF8")
    assert is_utf8("UTF8")
    assert not is_utf8("latin-1")
    with pytest.raises(ParameterError, match="no text encoding 'klingon'"):
        check_encoding("klingon")


@pytest.mark.parametrize(
    "encoding",
    [
        "rot13",
        "base64",
        "hex",
        "zlib",
        "undefined",
        "idna",
        "punycode",
        "",
        "x" * 300,
        "a\0b",
        None,
    ],
    ids=repr,
)
def test_a_codec_of_other_data_is_no_encoding(tmp_path, encoding):
    path = tmp_path / "a.csv"
    path.write_text("task,worker,label\n1,a,x\n1,b,x\n")
    with pytest.raises(ParameterError, match="no text encoding"):
        read(path, encoding=encoding)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".json"])
def test_half_a_character_is_refused(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    half = "\ud83d".encode("utf-7", "surrogatepass").decode()
    if suffix == ".csv":
        path.write_text(f"task,worker,label\n1,a,{half}\n")
    else:
        path.write_text(f'{{"task": "1", "worker": "a", "label": "{half}"}}\n')
    with pytest.raises(DataError, match=r"is not UTF-7|half a character"):
        read(path, "auto" if suffix != ".json" else "prodigy", encoding="utf-7")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\nb\xe9\n", "a.csv is not UTF-8: line 2 has the byte 0xe9; save it as UTF-8 or give"),
        ("a,b".encode("utf-16"), "a.csv looks like UTF-16, not UTF-8; save it as UTF-8 or give"),
        ("a,b".encode("utf-32"), "a.csv looks like UTF-32, not UTF-8; save it as UTF-8 or give"),
        (b"", "a.csv is not UTF-8; save it as UTF-8"),
    ],
)
def test_the_place_and_the_remedy(content, message):
    assert str(explain_encoding(io.BytesIO(content), SOURCE, "utf-8")).startswith(message)


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
