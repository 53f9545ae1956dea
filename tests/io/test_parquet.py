from __future__ import annotations

import io
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.io.tables import read, read_truth

COLUMNS = {"task": ["t2", "t1"], "worker": ["a", "b"], "label": ["x", "y"], "extra": [[1], [2]]}


def table_of(labels):
    table = labels.to_dict()
    return list(zip(*(table[role].tolist() for role in ("task", "worker", "label")), strict=True))


@pytest.mark.parametrize("writer", ["pyarrow", "pandas", "polars", "dictionary"])
def test_files_of_every_library(tmp_path, writer):
    path = tmp_path / "a.parquet"
    if writer == "pandas":
        pd.DataFrame(COLUMNS).to_parquet(path)
    elif writer == "polars":
        pl.DataFrame(COLUMNS).with_columns(pl.col("label").cast(pl.Categorical)).write_parquet(path)
    elif writer == "dictionary":
        coded = {k: pa.array(v).dictionary_encode() for k, v in COLUMNS.items() if k != "extra"}
        pq.write_table(pa.table(coded), path)
    else:
        pq.write_table(pa.table(COLUMNS), path)
    assert table_of(read(path)) == [("t1", "b", "y"), ("t2", "a", "x")]


def test_integers_stay_integers_over_row_groups(tmp_path):
    table = pa.table({"task": range(100), "worker": [1, 2, 2, 1] * 25, "label": [0, 1] * 50})
    pq.write_table(table, tmp_path / "a.pq", row_group_size=7)
    labels = read(tmp_path / "a.pq")
    assert labels.tasks.tolist() == list(range(100))
    assert labels.classes.tolist() == [0, 1]


def test_standard_input(monkeypatch):
    buffer = io.BytesIO()
    pq.write_table(pa.table(COLUMNS), buffer)
    stream = io.BytesIO(buffer.getvalue())
    stream.seekable = lambda: False
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
    assert read("-", format="parquet").n_annotations == 2


@pytest.mark.parametrize("keep", [4, 20, -20, -300])
def test_a_cut_off_file(tmp_path, keep):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(COLUMNS), path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(
        DataError, match=r"a.parquet is a damaged or cut off parquet file .*write it"
    ):
        read(path)


def test_a_damaged_page(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({k: [str(i) for i in range(5000)] for k in ("task", "worker", "label")})
    pq.write_table(table, path, compression="gzip")
    content = bytearray(path.read_bytes())
    content[100:4000] = bytes(3900)
    path.write_bytes(content)
    with pytest.raises(DataError, match="damaged or cut off parquet file"):
        read(path)


def test_files_that_are_no_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_text("task,worker,label\n1,2,3\n")
    with pytest.raises(
        DataError, match=r"a.parquet is not a parquet file; give its format, .*'csv'"
    ):
        read(path)
    path.write_bytes(b"")
    with pytest.raises(DataError, match=r"a.parquet is empty"):
        read(path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"task": ["t"], "worker": ["a"], "lable": ["x"]},
            "a.parquet: No column looks like the label",
        ),
        ({"task": ["t"], "worker": ["a"], "label": [["x"]]}, "label column holds lists or records"),
        (
            {"task": ["t"], "worker": ["a"], "label": pa.array([None], pa.string())},
            "empty in row 1 of",
        ),
        ({k: pa.array([], pa.string()) for k in ("task", "worker", "label")}, "but no rows"),
    ],
)
def test_unusable_columns(tmp_path, columns, message):
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=message):
        read(tmp_path / "a.parquet")


def test_text_that_is_not_utf8(tmp_path):
    wrong = pa.StringArray.from_buffers(
        1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")
    )
    pq.write_table(
        pa.table({"task": ["t"], "worker": ["a"], "label": wrong}), tmp_path / "a.parquet"
    )
    with pytest.raises(DataError, match=r"damaged .*UTF8"):
        read(tmp_path / "a.parquet")


TYPES = {
    "null": ([None, None], pa.null(), "label column is empty in rows 1, 2"),
    "time32[ms]": ([1, 2], pa.time32("ms"), r"are of type time32\[ms\]; convert .*text"),
    "time64[ns]": ([1, 2], pa.time64("ns"), r"label values are of type time64\[ns\]; convert"),
    "timestamp[ns]": ([1, 2], pa.timestamp("ns"), "times of less than a microsecond"),
    "timestamp[s]": ([0, 10**15], pa.timestamp("s"), "too far away to count in microseconds"),
    "duration[s]": ([0, 10**15], pa.duration("s"), "too far away to count in microseconds"),
    "decimal": (["1.00", "2.00"], pa.decimal128(5, 2), r"label values are of type decimal128"),
    "binary": (["a", "b"], pa.binary(), "label values are bytes; decode them to text"),
    "list": ([["a"], ["b"]], pa.list_(pa.string()), "label column holds lists"),
    "struct": ([{"a": 1}, {"a": 2}], pa.struct({"a": pa.int64()}), "label column holds lists"),
}


def typed(values, kind):
    if pa.types.is_temporal(kind):
        stored = pa.int32() if pa.types.is_time32(kind) else pa.int64()
        return pa.array(values, stored).cast(kind)
    if pa.types.is_decimal(kind) or pa.types.is_binary(kind):
        return pa.array(values).cast(kind)
    return pa.array(values, kind)


@pytest.mark.parametrize("name", TYPES)
def test_a_type_that_is_no_label_is_refused(tmp_path, name):
    values, kind, message = TYPES[name]
    columns = {"task": ["t", "t"], "worker": ["a", "b"], "label": typed(values, kind)}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=message):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    "kind",
    [
        pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.int8(),
        pa.uint64(), pa.float16(), pa.bool_(), pa.date32(), pa.timestamp("us"), pa.duration("s"),
    ],
    ids=str,
)  # fmt: skip
def test_a_type_that_can_be_a_label_is_read(tmp_path, kind):
    values = ["1", "0"] if "string" in str(kind) else [1, 0]
    if pa.types.is_temporal(kind):
        label = pa.array(values, pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(kind)
    else:
        label = pa.array(np.array(values, np.float16) if kind == pa.float16() else values).cast(
            kind
        )
    columns = {"task": ["t", "t"], "worker": ["a", "b"], "label": label}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    labels = read(tmp_path / "a.parquet")
    assert labels.to_dict()["label"].tolist() == labels.classes[[1, 0]].tolist()


@pytest.mark.parametrize("twice", ["label", "task"])
def test_two_columns_of_one_name_are_refused(tmp_path, twice):
    path = tmp_path / "a.parquet"
    columns = {name: pa.array(COLUMNS[name]) for name in ("task", "worker", "label")}
    arrays = [*columns.values(), columns[twice]]
    pq.write_table(pa.Table.from_arrays(arrays, names=[*columns, twice]), path)
    with pytest.raises(DataError, match=f"2 columns named '{twice}'; rename one"):
        read(path)
    with pytest.raises(DataError, match=f"2 columns named '{twice}'; rename one"):
        read_truth(path)


def test_two_columns_of_one_name_that_are_not_needed(tmp_path):
    path = tmp_path / "a.parquet"
    arrays = [pa.array(COLUMNS[name]) for name in ("task", "worker", "label")]
    table = pa.Table.from_arrays([*arrays, arrays[0], arrays[0]], names=[*COLUMNS, "extra"])
    pq.write_table(table, path)
    assert read(path).n_annotations == 2
