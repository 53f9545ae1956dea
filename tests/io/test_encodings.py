from __future__ import annotations

import io
from pathlib import Path

import pytest

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io.encodings import check_encoding, explain_encoding, is_utf8, recoded
from wisecrowd.io.sources import Source
from wisecrowd.io.tables import read

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
