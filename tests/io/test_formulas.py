from __future__ import annotations

import csv

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wisecrowd.io.formulas import neutralised, restored
from wisecrowd.io.tables import read, read_frame, write_table

HOSTILE = ["=cmd()", "+A1", "-A1", "@SUM(1)", "\t=1", "\r=1", "＝1", "'=a", "''+b", "--1"]
HARMLESS = ["-1", "+1", "-1.5e3", "+.5", "a=b", "'tis", "", "7", "x@y", "'"]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_spreadsheet_would_run_starts_with_an_apostrophe(text):
    assert neutralised(pa.array([text, None])).to_pylist() == ["'" + text, None]


@pytest.mark.parametrize("text", HARMLESS)
def test_the_rest_stays(text):
    assert neutralised(pa.array([text])).to_pylist() == [text]


@given(st.lists(st.text(st.sampled_from("'=+-@\t1.ea ＝"), max_size=6) | st.text(max_size=6)))
def test_reading_gives_back_what_was_written(texts):
    array = pa.array(texts, pa.string())
    assert restored(neutralised(array)).to_pylist() == texts


def test_numbers_and_dictionaries():
    assert neutralised(pa.array([-1, 2])).to_pylist() == [-1, 2]
    assert neutralised(pa.array(["=a", "b"]).dictionary_encode()).to_pylist() == ["'=a", "b"]
    assert restored(pa.array([-1])).to_pylist() == [-1]


@pytest.mark.filterwarnings("ignore:.* count as different tasks")
@pytest.mark.parametrize(("suffix", "separator"), [("csv", ","), ("tsv", "\t")])
def test_tables_are_defused_and_read_back(tmp_path, suffix, separator):
    path = tmp_path / f"labels.{suffix}"
    ids = [text for text in HOSTILE + HARMLESS if text]
    columns = {"task": ids, "worker": ["=w"] * len(ids), "label": ["a", "-1"] * (len(ids) // 2)}
    columns["label"] += ["a"] * (len(ids) - len(columns["label"]))
    write_table(path, columns)
    with path.open(newline="", encoding="utf-8") as file:
        cells = [row["task"] for row in csv.DictReader(file, delimiter=separator)]
    assert not any(cell.startswith(("=", "@", "\t", "\r", "＝", "--", "+A")) for cell in cells)
    assert read_frame(path)["task"].to_pylist() == ids
    labels = read(path, accept="one-worker")
    assert set(labels.tasks.tolist()) == set(ids)
    assert labels.workers.tolist() == ["=w"]
    assert labels.classes.tolist() == ["-1", "a"]


def test_can_be_turned_off_and_touches_no_other_format(tmp_path):
    write_table(tmp_path / "raw.csv", {"task": ["=a"], "n": [1]}, neutralise_formulas=False)
    assert (tmp_path / "raw.csv").read_text() == "task,n\n=a,1\n"
    for name in ("a.jsonl", "a.parquet"):
        write_table(tmp_path / name, {"task": ["=a"], "n": [1]})
        assert read_frame(tmp_path / name)["task"].to_pylist() == ["=a"]
