from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

import wisecrowd as wc
from wisecrowd.storage import read_manifest


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet", "csv.gz"])
def test_every_format_and_back(cli, answers, tmp_path, suffix):
    target = tmp_path / f"plain.{suffix}"
    assert cli("convert", answers, target).code == 0
    first, second = wc.read(answers), wc.read(target)
    assert second.tasks.tolist() == first.tasks.tolist()
    assert second.workers.tolist() == first.workers.tolist()
    assert second.classes.tolist() == first.classes.tolist()
    assert second.label.tolist() == first.label.tolist()
    assert set(read_manifest(target).inputs) == {str(answers)}


def test_columns_get_the_plain_names_and_nothing_is_dropped(cli, table, tmp_path):
    source = table(
        "a.csv",
        ["unit", "rater", "value", "weight", "duration"],
        [("2", "a", "x", 1, 3.5), ("1", "a", "x", 2, 4.5), ("1", "a", "y", 1, 5.5)],
    )
    code, _, err = cli("convert", source, tmp_path / "b.parquet")
    assert code == 0
    assert "columns recognised" in err
    found = pq.read_table(tmp_path / "b.parquet")
    assert found.column_names == ["task", "worker", "label", "weight", "duration"]
    assert found["task"].to_pylist() == ["1", "1", "2"]
    assert found["label"].to_pylist() == ["x", "y", "x"]
    assert found["weight"].to_pylist() == [2.0, 1.0, 1.0]


def test_to_standard_output(cli, answers):
    code, out, err = cli("convert", answers, "-")
    assert (code, err) == (0, "")
    assert out.splitlines()[:2] == ["task,worker,label", "t1,ann,cat"]


def test_abstentions_can_be_dropped(cli, answers, tmp_path):
    target = tmp_path / "b.jsonl"
    cli("convert", answers, target, "--abstain", "dog")
    assert {json.loads(line)["label"] for line in target.read_text().splitlines()} == {"cat"}


def test_not_onto_itself(cli, answers):
    before = answers.read_bytes()
    assert cli("convert", answers, answers).code == 2
    assert answers.read_bytes() == before
