from __future__ import annotations

import io
from pathlib import Path

import pytest

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.io.encodings import check_encoding, explain_encoding, is_utf8, recoded
from wisecrowd.io.sources import Source

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
    with pytest.raises(ParameterError, match="no encoding 'klingon'"):
        check_encoding("klingon")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\nb\xe9\n", "a.csv is not UTF-8: line 2 has the byte 0xe9; save it as UTF-8 or give"),
        ("a,b".encode("utf-16"), "a.csv looks like UTF-16, not UTF-8; save it as UTF-8 or give"),
        (b"", "a.csv is not UTF-8; save it as UTF-8"),
    ],
)
def test_the_place_and_the_remedy(content, message):
    assert str(explain_encoding(io.BytesIO(content), SOURCE, "utf-8")).startswith(message)
