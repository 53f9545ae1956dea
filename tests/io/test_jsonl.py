from __future__ import annotations

import gzip
import io
import json
import sys

import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.io import jsonl
from wisecrowd.io.tables import read


def write(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def table_of(labels):
    table = labels.to_dict()
    return list(zip(*(table[role].tolist() for role in ("task", "worker", "label")), strict=True))


def row(task, worker, label, **more):
    return {"task": task, "worker": worker, "label": label, **more}


@pytest.fixture(params=["fast", "slow"])
def way(request, monkeypatch):
    """Read as Arrow does, and as Python does: both must agree."""
    if request.param == "slow":
        monkeypatch.setattr(jsonl, "_read_fast", lambda *arguments: None)


@pytest.mark.parametrize(
    "rows",
    [
        [row("t1", "ann", "cat"), row("t1", "bob", "dog")],
        [row(1, 2, 0), row(1, 3, 1)],
        [row("007", "ann", True), row("7", "ann", False)],
        [row("2020-01-01", "10:00", "2020-01-01T10:00:00Z")],
        [row("日本", "a\u2028b", "a\nb"), row("é", "😀", 'q"')],
        [
            row("t1", "ann", "cat", extra=[1, {"x": 2}]),
            {"label": "dog", "task": "t2", "worker": "b"},
        ],
        [row("t", "a", 1.5), row("t", "b", 2.5)],
        [row(2**53 + 1, "a", "x"), row(2**53, "a", "x")],
        [row("nan", "NA", "null")],
    ],
)
def test_values_keep_their_types(tmp_path, way, rows):
    labels = read(write(tmp_path / "a.jsonl", rows), type="labels")
    expected = sorted((r["task"], r["worker"], r["label"]) for r in rows)
    assert sorted(table_of(labels)) == expected


@pytest.mark.parametrize("name", ["a.ndjson", "a.jsonl.gz", "-"])
def test_other_places(tmp_path, monkeypatch, way, name):
    content = b'\xef\xbb\xbf{"task": 1, "worker": 2, "label": "x"}\n\n'
    if name == "-":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        labels = read("-", format="jsonl")
    else:
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        labels = read(path)
    assert table_of(labels) == [(1, 2, "x")]


def test_integers_and_floats_in_one_column(tmp_path):
    labels = read(write(tmp_path / "a.jsonl", [row("t", "a", 1.0), row("t", "b", 2)]))
    assert labels.classes.tolist() == [1, 2]


def test_a_number_among_text_is_refused_with_rows(tmp_path):
    rows = [row("t", "a", "x")] * 1500 + [row("t", "b", 5)]
    with pytest.raises(DataError, match=r"a.jsonl: .*mix types \(int in row 1501, str in row 1\)"):
        read(write(tmp_path / "a.jsonl", rows))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "a.jsonl is empty"),
        ("\n\n", "a.jsonl is empty"),
        ('{"task": 1,\n', r"line 1 is not valid JSON: .*; correct it"),
        ('{"task": 1, "worker": 1, "label": 1}\n\n{"task": 1, "wor', "line 3 is not valid JSON"),
        ('[{"task": 1},\n{"task": 2}]\n', "line 1 is not valid JSON.*one object per line"),
        (
            '{"task": 1, "worker": 1, "label": 1}\n[1, 2]\n',
            "line 2 holds a list, not an object; write",
        ),
        ('{"task": 1, "worker": 1, "label": 1}\n3\n', "line 2 holds a number, not an object"),
        ('"x"\n', "line 1 holds a text"),
        ('{"task": 1, "worker": 1}\n', "No column looks like the label"),
        ('{"task": 1, "worker": 1, "lable": 1}\n', "is it 'lable'"),
        (
            '{"task": 1, "worker": 1, "label": 1}\n{"task": 1, "worker": 2}\n',
            "label .* empty in row 2",
        ),
        (
            '{"task": 1, "worker": 1, "label": ["x"]}\n',
            r"line 1 has a list as 'label'; give one plain",
        ),
        ('{"task": 1, "worker": {"id": 1}, "label": 1}\n', r"line 1 has a record as 'worker'"),
    ],
)
def test_unusable_lines_are_refused(tmp_path, content, message):
    path = tmp_path / "a.jsonl"
    path.write_text(content)
    with pytest.raises(DataError, match=message) as error:
        read(path)
    assert "a.jsonl" in str(error.value)


def test_a_nested_label_far_down_has_its_line(tmp_path):
    rows = [row("t", i, "x") for i in range(2000)] + [row("t", "w", ["x"])]
    with pytest.raises(DataError, match="line 2001 has a list as 'label'"):
        read(write(tmp_path / "a.jsonl", rows))


def test_latin_1(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"task": 1, "worker": 2, "label": "chaîne"}\n'.encode("latin-1"))
    with pytest.raises(DataError, match=r"not UTF-8: line 1 has the byte 0xee; .*'latin-1'"):
        read(path)
    assert table_of(read(path, encoding="latin-1")) == [(1, 2, "chaîne")]


def test_a_late_wrong_byte_has_its_line(tmp_path):
    path = tmp_path / "a.jsonl"
    lines = b'{"task": 1, "worker": 2, "label": "a"}\n' * 5000
    path.write_bytes(lines + b'{"task": 1, "worker": 2, "label": "\xff"}\n')
    with pytest.raises(DataError, match="line 5001 has the byte 0xff"):
        read(path)


def test_truncated_gzip(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"task": 1, "worker": 2, "label": "a"}\n' * 5000)[:-40])
    with pytest.raises(DataError, match="cut off"):
        read(path)


def test_an_integer_of_thousands_of_digits_is_refused_with_its_line(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"task": 1, "worker": 2, "label": 3}\n{"task": 1, "worker": 3, "label": %s}' % ("9" * 5000)
    )
    with pytest.raises(DataError, match=r"a\.jsonl: line 2 .*thousands of digits.*as text"):
        read(path)


def test_a_column_of_nulls_is_empty(tmp_path):
    path = write(tmp_path / "a.jsonl", [row("t", worker, None) for worker in "abc"])
    with pytest.raises(DataError, match=r"label column is empty in rows 1, 2, 3 of .*a\.jsonl"):
        read(path)
