from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdWarning
from wisecrowd.io.tables import read, read_frame, read_truth

ROWS = [("t2", "a", "x"), ("t1", "b", "y"), ("t1", "a", "x")]
HEADER = ("task", "worker", "label")


def table_of(labels):
    table = labels.to_dict()
    return list(zip(*(table[role].tolist() for role in HEADER), strict=True))


def write(path, rows=ROWS, header=HEADER):
    frame = pd.DataFrame(rows, columns=list(header))
    if path.name.endswith("csv.gz"):
        path.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    elif path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        lines = [json.dumps(dict(zip(header, row, strict=True))) for row in rows]
        path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv", "a.jsonl", "a.parquet"])
def test_every_format_gives_the_same(tmp_path, name):
    labels = wc.read(write(tmp_path / name))
    assert table_of(labels) == sorted(ROWS)
    assert labels.notes == ()


def test_several_files_and_patterns(tmp_path):
    write(tmp_path / "a.csv", ROWS[:1])
    write(tmp_path / "b.csv", ROWS[1:])
    write(tmp_path / "c.jsonl", [("t3", "a", "x")])
    assert table_of(read(f"{tmp_path}/*.csv")) == sorted(ROWS)
    assert table_of(read([tmp_path / "c.jsonl", f"{tmp_path}/*.csv"])) == [
        *sorted(ROWS),
        ("t3", "a", "x"),
    ]


def test_rows_are_named_with_their_file(tmp_path):
    write(tmp_path / "a.csv", ROWS)
    write(tmp_path / "b.csv", [("t9", "a", "x"), ("t9", "", "y")])
    with pytest.raises(DataError, match=r"worker column is empty in row 2 of .*b.csv; fill in"):
        read(f"{tmp_path}/*.csv")
    write(tmp_path / "c.csv", [("t1", "b", "z")])
    with pytest.raises(DataError, match=r"in row 2 of \S*a.csv, row 1 of \S*c.csv"):
        read([tmp_path / "a.csv", tmp_path / "c.csv"], duplicates="error")


def test_files_with_other_columns(tmp_path):
    write(tmp_path / "a.csv")
    write(tmp_path / "b.csv", header=("item", "worker", "label"))
    with pytest.raises(
        DataError, match=r"b.csv has the columns 'item', .* but \S*a.csv has 'task'"
    ):
        read(f"{tmp_path}/*.csv")


def test_one_of_several_files_may_be_without_rows(tmp_path):
    write(tmp_path / "a.csv", ROWS[:0])
    write(tmp_path / "b.csv", ROWS)
    assert read(f"{tmp_path}/*.csv").n_annotations == 3
    (tmp_path / "b.csv").unlink()
    write(tmp_path / "c.csv", ROWS[:0])
    with pytest.raises(DataError, match="None of the 2 files has any rows"):
        read(f"{tmp_path}/*.csv")


def test_files_that_disagree_about_a_type(tmp_path):
    write(tmp_path / "a.parquet", [(1, "a", "x")])
    write(tmp_path / "b.parquet", [("1", "a", "x")])
    with pytest.raises(DataError, match="task values mix types"):
        read(f"{tmp_path}/*.parquet")


def test_options_reach_the_gate(tmp_path):
    rows = [("t1", "a", "x", "1", "0.5", "$0.05"), ("t1", "a", "y", "0", "2", ""),
            ("t2", "a", "?", "0", "1", "1"), ("t2", "b", "x", "0", "1", "1")]  # fmt: skip
    path = write(tmp_path / "a.csv", rows, ("HITId", "who", "answer", "when", "w", "pay"))
    with pytest.warns(WisecrowdWarning, match="latest timestamp"):
        labels = read(
            path, worker="who", label="answer", timestamp="when", weight="w", cost="pay",
            abstain="?", classes=["y", "x"], workers=["b", "a", "c"], tasks=["t1", "t2", "t3"],
        )  # fmt: skip
    assert table_of(labels) == [("t1", "a", "x"), ("t2", "b", "x")]
    assert labels.weight.tolist() == [0.5, 1]
    assert labels.columns["cost"].tolist() == [0.05, 1]
    assert labels.classes.tolist() == ["y", "x"]
    assert labels.workers.tolist() == ["b", "a", "c"]
    assert labels.n_tasks == 3
    assert labels.notes[0] == "columns recognised: task = 'HITId'"


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (
            "weight",
            "heavy",
            r"weight column holds 'heavy', which is not a number, in row 2 of .*a.csv",
        ),
        ("weight", "-1", r"weight column is negative, .* in row 2 of"),
        ("cost", "free", r"cost column holds 'free'"),
        ("timestamp", "soon", r"timestamp column holds 'soon' in row 2 of .*a.csv; write times"),
    ],
)
def test_wrong_numbers_name_their_place(tmp_path, column, value, message):
    good = "2024-01-01" if column == "timestamp" else "1"
    path = write(
        tmp_path / "a.csv", [("t", "a", "x", good), ("u", "a", "x", value)], (*HEADER, column)
    )
    with pytest.raises(DataError, match=message):
        read(path)


def test_optional_columns_of_several_types(tmp_path):
    write(tmp_path / "a.csv", [("t1", "a", "x", "1.5")], (*HEADER, "duration"))
    write(tmp_path / "b.parquet", [("t2", "a", "x", 2)], (*HEADER, "duration"))
    labels = read([tmp_path / "a.csv", tmp_path / "b.parquet"])
    assert labels.columns["duration"].tolist() == [1.5, 2.0]


def test_unknown_options(tmp_path):
    path = write(tmp_path / "a.csv")
    with pytest.raises(ParameterError, match=r"Unknown option 'wieght' \(did you mean 'weight'"):
        read(path, wieght="w")
    with pytest.raises(ParameterError, match="no format 'excel'"):
        read(path, format="excel")


def test_csv_and_frame_agree_on_many_rows(tmp_path):
    rng = np.random.default_rng(0)
    n = 60_000
    frame = pd.DataFrame(
        {
            "task": [f"task-{i}" for i in rng.integers(0, 20_000, n)],
            "worker": [f"worker-{i:03d}" for i in rng.integers(0, 300, n)],
            "label": rng.choice(["cat", "dog", "a much longer label"], n),
        }
    ).drop_duplicates(["task", "worker"])
    frame.to_csv(tmp_path / "a.csv", index=False)
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "a.parquet")
    expected = wc.CrowdLabels.from_frame(frame)
    for name in ("a.csv", "a.parquet"):
        labels = read(tmp_path / name)
        for field in ("task", "worker", "label", "tasks", "workers", "classes"):
            assert np.array_equal(getattr(labels, field), getattr(expected, field))
    assert expected.tasks.tolist() == sorted(set(frame["task"]))


# ------------------------------------------------------------------------------------------- truth


@pytest.mark.parametrize("name", ["label", "truth", "gold", "true_label"])
def test_truth_by_its_usual_names(tmp_path, name):
    path = write(tmp_path / "t.csv", [("t1", "x"), ("t2", ""), ("t3", "y")], ("task", name))
    assert read_truth(path).to_pydict() == {"task": ["t1", "t3"], "label": ["x", "y"]}


def test_truth_serves_as_gold(tmp_path):
    path = write(tmp_path / "t.csv", [("t2", "y")], ("item", "truth"))
    labels = wc.CrowdLabels.from_arrays(*zip(*ROWS, strict=True))
    from wisecrowd.kinds.classes.truth import as_gold

    assert as_gold(read_truth(path), labels).tolist() == [-1, 1]


def test_truth_by_named_columns(tmp_path):
    path = write(tmp_path / "t.csv", [("a", "x", "q")], ("k", "v", "truth"))
    assert read_truth(path, task="k", label="v").to_pydict() == {"task": ["a"], "label": ["x"]}


@pytest.mark.parametrize(
    ("rows", "header", "message"),
    [
        (
            [("t1", "x"), ("t1", "y")],
            ("task", "label"),
            r"t.csv gives task 't1' two classes, 'x' and 'y'",
        ),
        ([], ("task", "label"), "t.csv has a header but no rows"),
        ([("t1", "x")], ("task", "lable"), r"t.csv: No column looks like the label"),
    ],
)
def test_unusable_truth(tmp_path, rows, header, message):
    with pytest.raises(DataError, match=message):
        read_truth(write(tmp_path / "t.csv", rows, header))


def test_a_frame_of_parquet_keeps_types(tmp_path):
    write(tmp_path / "a.parquet", [(1, 0.5)], ("task", "confidence"))
    assert read_frame(tmp_path / "a.parquet").to_pydict() == {"task": [1], "confidence": [0.5]}
    write(tmp_path / "a.csv", [], ("task", "label"))
    assert read_frame(tmp_path / "a.csv").column_names == ["task", "label"]
