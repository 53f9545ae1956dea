from __future__ import annotations

import gzip
import io
import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io import sources
from wisecrowd.io.sources import Source, clear_errors, find_sources, is_plain, opened


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
