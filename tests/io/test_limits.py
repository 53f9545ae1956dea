"""Files that hold far more than they show are refused before the memory is taken."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.option_spelling import shell_spelling
from wisecrowd.io import limits as module
from wisecrowd.io.feature_files import read_features
from wisecrowd.io.limits import changed, limits, parse_limits, require_size
from wisecrowd.io.packing import pack
from wisecrowd.io.tables import read, read_frame

LIMITS = module.Limits()


def refused(job, *words):
    """Return the message; Arrow and Python together must not have taken 64 MB meanwhile."""
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()
    tracemalloc.start()
    try:
        with pytest.raises(DataError) as caught:
            job()
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    assert pool.bytes_allocated() - before < 64 << 20
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def rows_bomb(tmp_path):
    """Millions of equal rows: some kilobytes of parquet, hundreds of megabytes of numbers."""
    path = tmp_path / "rows.parquet"
    part = pa.table({name: np.zeros(1 << 20, np.int64) for name in ("task", "worker", "label")})
    with pq.ParquetWriter(path, part.schema, compression="zstd") as writer:
        for _ in range(13):
            writer.write_table(part)
    return path


def test_parquet_of_very_many_equal_rows(rows_bomb):
    assert rows_bomb.stat().st_size < 200_000
    assert pq.read_metadata(rows_bomb).num_rows * 24 > 3.2e8
    refused(lambda: read(rows_bomb), "327 MB", "times its size", "limits(ratio=")
    refused(lambda: read_frame(rows_bomb), "times its size")
    with limits(ratio=10**9, rows=10**7):
        refused(lambda: read(rows_bomb), "rows or more", "limits(rows=")
    with limits(ratio=10**9, bytes=10**8):
        refused(lambda: read(rows_bomb), "over the limit of 100 MB", "limits(bytes=")


@pytest.mark.parametrize("encoding", ["dictionary", "delta"])
def test_parquet_of_one_long_text_many_times(tmp_path, encoding):
    """The file's own figures say nothing of it: 3000 rows of the same megabyte."""
    path = tmp_path / "text.parquet"
    n = 3000
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), ["x" * (1 << 20)])
    plain = {"task": pa.array(range(n)), "worker": pa.array(range(n))}
    options = {"compression": "zstd"}
    if encoding == "delta":
        text = text[:100].dictionary_decode()
        plain = {name: column[:100] for name, column in plain.items()}
        options |= {"use_dictionary": False, "column_encoding": {"label": "DELTA_BYTE_ARRAY"}}
        table = pa.table({**plain, "label": text})
    else:
        schema = pa.schema([("task", pa.int64()), ("worker", pa.int64()), ("label", text.type)])
        table = pa.table({**plain, "label": text}, schema=schema)
    pq.write_table(table, path, store_schema=False, **options)
    del table, text
    assert path.stat().st_size < 1 << 20
    if encoding == "delta":  # it is seen when a batch has been decoded, not before
        with limits(bytes=64 << 20), pytest.raises(DataError, match=r"limits\(bytes="):
            read(path)
    else:
        refused(lambda: read(path), "3.1", "times its size", "limits(ratio=")
        refused(lambda: read_frame(path), "times its size")


def test_parquet_lists_of_one_long_text(tmp_path):
    path = tmp_path / "lists.parquet"
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3000, np.int32)), ["x" * (1 << 20)])
    lists = pa.ListArray.from_arrays(pa.array([0, 3000]), text)
    schema = pa.schema([("id", pa.int64()), ("workers", lists.type), ("labels", lists.type)])
    table = pa.table({"id": [1], "workers": lists, "labels": lists}, schema=schema)
    pq.write_table(table, path, store_schema=False, compression="zstd")
    assert path.stat().st_size < 1 << 20
    refused(lambda: read(path, format="hugging-face"), "times its size")


def test_what_is_within_the_limits_reads_as_before(tmp_path):
    """Text behind a dictionary, categories, numbers and times keep their types and values."""
    path = tmp_path / "plain.parquet"
    table = pa.table(
        {
            "task": pa.array(["b", "a", "a"], pa.large_string()),
            "worker": pa.array(["x", None, "z"]).dictionary_encode(),
            "label": pa.array([True, False, True]),
            "timestamp": pa.array([1, 2, 3], pa.timestamp("s")),
        }
    )
    pq.write_table(table, path)
    frame = read_frame(path)
    assert frame.to_pydict() == table.to_pydict()
    assert frame.schema.field("task").type == pa.large_string()
    assert pa.types.is_dictionary(frame.schema.field("worker").type)


@pytest.mark.parametrize("name", ["many.csv", "many.jsonl", "many.csv.gz"])
def test_rows(tmp_path, name):
    rows = range(1000)
    if "jsonl" in name:
        text = "".join(
            json.dumps({"task": i, "worker": i % 3, "label": i % 2}) + "\n" for i in rows
        )
    else:
        text = "task,worker,label\n" + "".join(f"{i},{i % 3},{i % 2}\n" for i in rows)
    data = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert read(tmp_path / name).n_annotations == 1000
    with limits(rows=999), pytest.raises(DataError, match=r"1000 rows .*limits\(rows=2000\)"):
        read(tmp_path / name)


def test_too_little_memory_names_the_command_to_pack(tmp_path, monkeypatch):
    path = tmp_path / "many rows.csv"
    path.write_text("task,worker,label\n" + "".join(f"{i},{i % 3},{i % 2}\n" for i in range(1000)))
    monkeypatch.setattr("wisecrowd.core.memory_check.available_memory", lambda: 20_000)
    with pytest.raises(DataError, match=r"1000 rows .* 24 kB .*wisecrowd.pack\(.*many rows.csv'"):
        read(path)
    packed = pack(path, tmp_path / "crowd.pack")  # needs no memory for all rows
    assert packed.summary.n_annotations == 1000
    with shell_spelling(), limits(rows=999), pytest.raises(DataError) as refusal:
        read(path)
    assert f"wisecrowd pack '{path}' -o crowd.pack, then wisecrowd aggregate" in str(refusal.value)


def test_columns(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(",".join(["task", "worker", "label", *map(str, range(100_001))]) + "\n")
    with pytest.raises(DataError, match=r"100004 columns.*limits\(columns=400000\)"):
        read(path, format="csv")
    table = pa.table({"task": [1], "worker": [1], "label": [1], "more": [1]})
    pq.write_table(table, tmp_path / "wide.parquet")
    with limits(columns=3), pytest.raises(DataError, match="4 columns"):
        read(tmp_path / "wide.parquet")


def test_a_line_without_end(tmp_path, monkeypatch):
    from wisecrowd.io import jsonl

    monkeypatch.setattr(jsonl, "MAX_RECORD", 1000)
    path = tmp_path / "long.jsonl"
    path.write_text('{"task": 1, "worker": 1, "label": "' + "x" * 2000 + '"}\n')
    with pytest.raises(DataError, match="line 1 is longer than 1000 characters"):
        read(path)


def test_array_whose_header_asks_for_more_than_there_is(tmp_path):
    path = tmp_path / "features.npy"
    np.save(path, np.zeros((4, 2)))
    data = path.read_bytes()
    path.write_bytes(data.replace(b"(4, 2)", b"(4000000000, 200)", 1)[: len(data) + 40])
    refused(lambda: read_features(path), "is not a plain .npy array")
    np.save(path, np.zeros((4, 2)))
    with limits(bytes=100), pytest.raises(DataError, match=r"limits\(bytes="):
        read_features(path)


def test_a_limit_that_was_raised_is_lowered_again():
    with wc.limits(rows=1):
        assert module.current_limits().rows == 1
    assert module.current_limits() == LIMITS
    with pytest.raises(ZeroDivisionError), wc.limits(rows=1):
        1 / 0  # noqa: B018
    assert module.current_limits() == LIMITS


def test_wrong_limits():
    with pytest.raises(ParameterError, match="no limit 'row'"):
        changed(LIMITS, {"row": 3})
    with pytest.raises(ParameterError, match="rows is 0"):
        changed(LIMITS, {"rows": 0})
    with pytest.raises(ParameterError, match="rows is nan"):
        changed(LIMITS, {"rows": float("nan")})
    with pytest.raises(ParameterError, match="give NAME=NUMBER"):
        parse_limits(["rows"])


def test_a_ratio_counts_only_where_it_matters():
    require_size("small", module.SMALL, 1)
    with pytest.raises(DataError):
        require_size("large", module.SMALL + 1, 1)
