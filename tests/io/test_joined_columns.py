"""Ids of several columns: prompts and systems as tasks, judges and versions as workers."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError

ROWS = [
    {"prompt": prompt, "system": system, "judge": judge, "version": 1, "score": score}
    for prompt, system, judge, score in [
        ("p1", "base", "ann", "good"), ("p1", "tuned", "ann", "bad"), ("p1", "base", "bob", "good"),
        ("p2", "base", "ann", "bad"), ("p2", "tuned", "ann", "good"), ("p2", "base", "bob", "bad"),
    ]
]  # fmt: skip
TASKS = ["p1 | base", "p1 | tuned", "p2 | base", "p2 | tuned"]


@pytest.fixture(params=["csv", "jsonl", "parquet"])
def file(tmp_path, request):
    path = tmp_path / f"judgements.{request.param}"
    if request.param == "csv":
        lines = [",".join(ROWS[0]), *(",".join(map(str, row.values())) for row in ROWS)]
        path.write_text("\n".join(lines) + "\n")
    elif request.param == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    else:
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    return path


def test_several_columns_are_the_task_and_the_worker(file):
    data = wc.read(file, task="prompt,system", worker="judge, version")
    assert data.tasks.tolist() == TASKS
    assert data.workers.tolist() == ["ann | 1", "bob | 1"]
    assert data.n_annotations == len(ROWS)


def test_a_missing_part_is_a_missing_id(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("prompt,system,judge,label\np1,base,ann,x\np2,,ann,y\n")
    with pytest.raises(DataError, match=r"task \('prompt,system'\) column is empty in row 2"):
        wc.read(path, task="prompt,system", worker="judge")


def test_a_name_with_a_comma_is_a_column_of_its_own(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"a,b",a,b,worker,label\nt1,x,y,ann,u\nt2,x,y,ann,v\n')
    assert wc.read(path, task="a,b").tasks.tolist() == ["t1", "t2"]
    with pytest.raises(DataError, match="a,c"):
        wc.read(path, task="a,c")
