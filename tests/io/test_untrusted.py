from __future__ import annotations

import io
import json
import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wisecrowd.core.exceptions import DataError
from wisecrowd.io import untrusted
from wisecrowd.io.sources import Source
from wisecrowd.io.untrusted import is_shallow, json_members, json_records, opened_zip, xml_events

SOURCE = Source(Path("a.json"))
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


def records(text: str | bytes, encoding: str = "utf-8") -> list:
    data = text.encode(encoding) if isinstance(text, str) else text
    return [value for _, value in json_records(io.BytesIO(data), SOURCE, encoding)]


@pytest.fixture
def small_chunks(monkeypatch):
    """Let every value cross the border between two pieces."""
    monkeypatch.setattr(untrusted, "_CHUNK", 7)


@settings(max_examples=40, deadline=None)
@given(st.lists(plain, max_size=5), st.sampled_from([None, 1]))
def test_lists_are_what_json_says(values, indent):
    assert records(json.dumps(values, indent=indent)) == values


@settings(max_examples=40, deadline=None)
@given(st.lists(st.dictionaries(st.text(max_size=4), plain, max_size=3), min_size=1, max_size=4))
def test_lines_are_what_json_says(values):
    assert records("\n".join(map(json.dumps, values))) == values


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.text(max_size=4), plain, max_size=4))
def test_members_are_what_json_says(value):
    stream = io.BytesIO(json.dumps(value).encode())
    assert list(json_members(stream, SOURCE)) == list(value.items())


def test_values_that_cross_pieces(small_chunks):
    values = [{"text": 'a "quoted" \\ back\\\\slash', "n": 12345678901}, 1234567, "x" * 50, [[[]]]]
    assert records(json.dumps(values)) == values
    assert records("\ufeff" + json.dumps(values[0])) == values[:1]
    assert records(json.dumps(values), "utf-16") == values


@pytest.mark.parametrize("depth", [99, 100, 101])
def test_depth_is_measured_exactly(small_chunks, depth):
    text = "[" * depth + "]" * depth
    assert is_shallow(text) == (depth <= 100)
    if depth <= 100:
        assert len(records(text)) == 1
    else:
        with pytest.raises(DataError, match="nested more than 100 levels deep"):
            records(text)


def test_brackets_in_text_do_not_nest(small_chunks):
    value = {"a": "[" * 300 + '\\"' * 5 + "{" * 300, "b\\": "]"}
    assert records(json.dumps(value)) == [value]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ('[{"a": 1}, {"a"', "cut off after record 1"),
        ('[{"a": 1}, {"a": "te', "cut off after record 1"),
        ('[{"a": 1}', "cut off after record 1"),
        ('[{"a": 1} {"a": 2}]', r"record 2 is not valid JSON \(expected , or \]\)"),
        ('[{"a": 1}, nonsense, 2]' + " " * 50, "record 2 is not valid JSON"),
        ('{"a": 1}\n{"a": }' + " " * 50, "record 2 is not valid JSON"),
        ('{"a": 1}\n{"a": }', "record 2 is not valid JSON"),
    ],
)
def test_where_json_is_wrong(text, message):
    with pytest.raises(DataError, match=message):
        records(text)


def test_members_want_an_object():
    with pytest.raises(DataError, match="not one JSON object"):
        list(json_members(io.BytesIO(b"[1]"), SOURCE))


def test_wrong_encoding():
    with pytest.raises(DataError, match="not UTF-8"):
        records('["ü"]'.encode("latin-1"))


def test_zip_members_can_be_read_twice(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/", "")
        archive.writestr("folder/a.txt", "hello")
    with opened_zip(Source(path)) as members:
        assert list(members) == ["folder/a.txt"]
        for _ in range(2):
            with members["folder/a.txt"]() as stream:
                assert stream.read() == b"hello"


def test_zip_wants_a_file():
    with pytest.raises(DataError, match="standard input"), opened_zip(Source(None)):
        pass


def test_xml_events_and_text(small_chunks):
    text = b"<a><b x='1'>hel&lt;lo</b><c/></a>"
    assert list(xml_events(io.BytesIO(text), SOURCE)) == [
        ("start", ("a",), {}, ""),
        ("start", ("a", "b"), {"x": "1"}, ""),
        ("end", ("a", "b"), {}, "hel<lo"),
        ("start", ("a", "c"), {}, ""),
        ("end", ("a", "c"), {}, ""),
        ("end", ("a",), {}, ""),
    ]


@pytest.mark.parametrize("text", ['"\\', '"\\"', '\\"', '"', "\\"])
def test_a_broken_text_is_refused_in_linear_time(text):
    broken = '[{"worker": "' + text * (200_000 // len(text))
    start = time.process_time()
    with pytest.raises(DataError):
        records(broken)
    is_shallow("[" * 101 + broken)
    assert time.process_time() - start < 1.0


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='"\\[]{}a', max_size=40), st.integers(1, 9))
def test_nesting_counts_only_outside_texts(text, size):
    """Measured piece by piece, against a walk over the characters."""
    shallow = untrusted._Shallow(io.BytesIO(), "a.json")
    for start in range(0, len(text), size):
        shallow._measure(text[start : start + size].encode())
    depth, inside, escaped = 0, False, False
    for mark in text:
        if escaped:
            escaped = False
        elif mark == "\\":
            escaped = True
        elif mark == '"':
            inside = not inside
        elif not inside:
            depth += (mark in "[{") - (mark in "]}")
    assert shallow._depth == depth
