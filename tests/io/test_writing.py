from __future__ import annotations

import csv
import gzip
import io
import json
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io import writing
from wisecrowd.io.tables import read_frame, write_table

COLUMNS = {
    "task": np.array(["a", "b,c", 'd"e', "f\ng", "", "é"], dtype=object),
    "n": np.arange(6),
    "p": [0.5, np.nan, 1.0, 1e-9, 1 / 3, 0.0],
    "tied": np.array([True, False] * 3),
}


@pytest.mark.parametrize("rows", [2, 1 << 16])
def test_csv_quotes_only_what_needs_it(tmp_path, monkeypatch, rows):
    monkeypatch.setattr(writing, "_ROWS", rows)
    path = tmp_path / "a.csv"
    write_table(path, COLUMNS)
    text = path.read_text()
    assert text.startswith(
        'task,n,p,tied\na,0,0.5,true\n"b,c",1,,false\n"d""e",2,1,true\n"f\ng",3,'
    )
    back = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["task"] for row in back] == COLUMNS["task"].tolist()
    assert [float(row["p"]) for row in back if row["p"]] == [0.5, 1.0, 1e-9, 1 / 3, 0.0]
    assert read_frame(path).column("task").to_pylist() == COLUMNS["task"].tolist()


def test_both_ways_of_writing_agree(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    p = np.concatenate(
        [rng.random(500), 10.0 ** rng.integers(-300, 300, 500), [0, 1, np.nan, 1e16]]
    )
    columns = {
        "task": [f"t{i}" for i in range(len(p))],
        "p": p,
        "flag": p > 0.5,
        "n": range(len(p)),
    }
    write_table(tmp_path / "fast.csv", columns)
    monkeypatch.setattr(writing, "_needs_no_quotes", lambda *arguments: False)
    write_table(tmp_path / "slow.csv", columns)
    fast = (tmp_path / "fast.csv").read_text()
    assert fast == (tmp_path / "slow.csv").read_text()
    written = [float(line.split(",")[1] or "nan") for line in fast.splitlines()[1:]]
    assert np.array_equal(written, p, equal_nan=True)


@given(
    st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.text('a,"\n\r\t;')), min_size=1)
)
def test_any_text_survives(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("text")
    first, second = (list(column) for column in zip(*rows, strict=True))
    for suffix in ("csv", "tsv", "jsonl"):
        columns = {"task": first, "na,me": second}
        write_table(folder / f"a.{suffix}", columns, neutralise_formulas=False)
    for suffix, separator in (("csv", ","), ("tsv", "\t")):
        with (folder / f"a.{suffix}").open(encoding="utf-8", newline="") as file:
            back = list(csv.reader(file, delimiter=separator))
        assert back[0] == ["task", "na,me"]
        if not any("\0" in text for text in first):
            assert [tuple(row) for row in back[1:]] == rows
    lines = (folder / "a.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    assert [tuple(json.loads(line).values()) for line in lines] == rows


@pytest.mark.parametrize("character", ["\r", "\n", '"', ","])
def test_each_special_character_alone(tmp_path, character):
    text = f"a{character}b"
    write_table(tmp_path / "a.csv", {"task": ["x", text], "n": [1, 2]})
    quoted = text.replace('"', '""')
    assert (tmp_path / "a.csv").read_bytes().decode() == f'task,n\nx,1\n"{quoted}",2\n'


def test_an_only_column_has_no_empty_lines(tmp_path):
    write_table(tmp_path / "a.csv", {"task": ["a", "", "b"]})
    assert (tmp_path / "a.csv").read_text() == 'task\na\n""\nb\n'


def test_jsonl_has_null_for_nan_and_lists_for_rows_of_a_matrix(tmp_path):
    write_table(
        tmp_path / "a.jsonl", {"p": [0.5, np.nan], "soft": np.eye(2), "flag": [True, False]}
    )
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert rows == [
        {"p": 0.5, "soft": [1, 0], "flag": True},
        {"p": None, "soft": [0, 1], "flag": False},
    ]


def test_parquet_keeps_types(tmp_path):
    write_table(tmp_path / "a.parquet", {**COLUMNS, "soft": np.full((6, 2), 0.5)})
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.column("task").to_pylist() == COLUMNS["task"].tolist()
    assert str(table.schema.field("soft").type) == "fixed_size_list<element: double>[2]"


def test_gzip_is_the_same_every_time(tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        write_table(tmp_path / name, COLUMNS)
    packed = (tmp_path / "a.csv.gz").read_bytes()
    assert packed == (tmp_path / "b.csv.gz").read_bytes()
    assert gzip.decompress(packed).startswith(b"task,n,p")


def test_standard_output(capfdbinary):
    write_table("-", {"task": ["é"], "n": [1]})
    write_table("-", {"task": ["é"], "n": [1]}, format="jsonl")
    sys.stdout.flush()
    assert capfdbinary.readouterr().out.decode() == 'task,n\né,1\n{"task": "é", "n": 1}\n'


def test_ids_of_several_types_are_text(tmp_path):
    write_table(tmp_path / "a.csv", {"x": np.array(["a", 1, None], dtype=object), "n": [1, 2, 3]})
    assert (tmp_path / "a.csv").read_text() == "x,n\na,1\n1,2\n,3\n"


def test_a_table_without_rows(tmp_path):
    write_table(tmp_path / "a.csv", {"task": np.empty(0, object), "n": np.empty(0)})
    assert (tmp_path / "a.csv").read_text() == "task,n\n"


@pytest.mark.parametrize(
    ("name", "columns", "options", "error", "message"),
    [
        ("a.xlsx", COLUMNS, {}, ParameterError, "cannot be told from its name; end it in .csv"),
        ("a.csv", COLUMNS, {"format": "excel"}, ParameterError, "no format 'excel'; choose csv"),
        ("a.csv", {"a": [1], "b": [1, 2]}, {}, ParameterError, "equally long"),
        ("a.csv", {}, {}, ParameterError, "at least one"),
        (
            "a.csv",
            {"soft": np.eye(2)},
            {},
            DataError,
            "'soft' holds several values per row; write .jsonl",
        ),
        ("no/a.csv", COLUMNS, {}, DataError, "does not exist; create it first"),
    ],
)
def test_what_cannot_be_written(tmp_path, name, columns, options, error, message):
    with pytest.raises(error, match=message):
        write_table(tmp_path / name, columns, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    with pytest.raises(DataError):
        write_table(path, {"task": ["a", "b"], "soft": np.eye(2)})
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.csv"]
