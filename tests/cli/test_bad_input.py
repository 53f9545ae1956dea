"""Every kind of bad input ends in one sentence, exit code 3, and no file."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

HEADER = "task,worker,label\n"

BAD_FILES = {
    "empty": ("a.csv", b"", "a.csv is empty"),
    "header only": ("a.csv", HEADER.encode(), "has a header but no rows"),
    "missing column": ("a.csv", b"task,worker\n1,a\n", "label"),
    "misspelt column": ("a.csv", b"task,worker,lable\n1,a,x\n", "'lable'"),
    "two candidates": ("a.csv", b"task,item,worker,label\n1,1,a,x\n", "could each be the task"),
    "empty task": ("a.csv", b"task,worker,label\n1,a,x\n,a,x\n", "row 2"),
    "empty worker": ("a.csv", b"task,worker,label\n1,,x\n", "row 1"),
    "empty label": ("a.csv", b"task,worker,label\n1,a,x\n2,a,\n3,a,\n", "rows 2, 3"),
    "missing in jsonl": (
        "a.jsonl",
        b'{"task": 1, "worker": "a", "label": "x"}\n{"task": null, "worker": "a", "label": "x"}\n',
        "row 2",
    ),
    "mixed types": (
        "a.jsonl",
        b'{"task": 1, "worker": "a", "label": "x"}\n{"task": "t", "worker": "a", "label": "x"}\n',
        "a.jsonl",
    ),
    "wrong encoding": ("a.csv", HEADER.encode() + "1,a,Grün\n".encode("latin-1"), "a.csv"),
    "not a parquet file": ("a.parquet", b"PAR1 and then nothing", "a.parquet"),
    "no gzip inside": ("a.csv.gz", b"\x1f\x8bnothing", "a.csv.gz"),
    "infinite weight": ("a.csv", b"task,worker,label,weight\n1,a,x,inf\n", "weight"),
}


@pytest.mark.parametrize("name", BAD_FILES)
@pytest.mark.parametrize("command", ["aggregate", "compare", "convert"])
def test_bad_file(cli, tmp_path, written, name, command):
    file_name, content, place = BAD_FILES[name]
    path = tmp_path / file_name
    path.write_bytes(content)
    target = tmp_path / "out.csv"
    output = [target] if command == "convert" else ["-o", target]
    code, out, err = cli(command, path, *output)
    assert code == 3, err
    assert out == ""
    assert err.startswith("wisecrowd: ")
    assert err.count("\n") == 1
    assert place in err
    assert written(path) == set()


def one_line(outcome, *parts: str) -> None:
    assert outcome.code == 3, outcome.err
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    for part in parts:
        assert part in outcome.err


def test_truncated_parquet(cli, tmp_path):
    whole, cut = tmp_path / "whole.parquet", tmp_path / "cut.parquet"
    pq.write_table(pa.table({"task": [1], "worker": [1], "label": [1]}), whole)
    cut.write_bytes(whole.read_bytes()[:-20])
    one_line(cli("aggregate", cut), "cut.parquet")


def test_no_such_file_suggests_the_near_one(cli, answers, tmp_path):
    one_line(cli("aggregate", tmp_path / "answer.csv"), "does not exist", "answers.csv")


def test_directory(cli, tmp_path):
    one_line(cli("aggregate", tmp_path), "is a directory")


def test_glob_without_match(cli, tmp_path):
    one_line(cli("aggregate", tmp_path / "*.csv"), "No file matches")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_no_permission(cli, answers):
    answers.chmod(0)
    one_line(cli("aggregate", answers), "permission")


def test_no_permission_as_anybody(cli, answers, monkeypatch):
    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.open", refuse)
    one_line(cli("aggregate", answers), "permission", "answers.csv")


def test_label_outside_the_declared_classes(cli, answers):
    outcome = cli("aggregate", answers, "--classes", "cat,dig")
    one_line(outcome, "'dog'", "row", "did you mean 'dig'")


def test_misspelt_column_option(cli, answers):
    one_line(cli("aggregate", answers, "--task", "tsak"), "did you mean 'task'")


def test_gold_for_an_unknown_task_or_class(cli, answers, table):
    gold = table("gold.csv", ["task", "label"], [("t9", "cat")])
    one_line(cli("aggregate", answers, "--gold", gold), "'t9'")
    gold = table("gold.csv", ["task", "label"], [("t1", "cow")])
    one_line(cli("aggregate", answers, "--gold", gold), "'t1'", "'cow'")


def test_truth_of_other_tasks(cli, answers, table):
    truth = table("truth.csv", ["task", "label"], [("a", "cat")])
    one_line(cli("compare", answers, "--truth", truth), "none of the 5 labelled tasks")


def test_contradicting_truth(cli, answers, table):
    truth = table("truth.csv", ["task", "label"], [("t1", "cat"), ("t1", "dog")])
    one_line(cli("compare", answers, "--truth", truth), "'t1' two classes")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_full_disk(cli, answers):
    one_line(cli("aggregate", answers, "-q", "-o", "/dev/full"), "/dev/full", "disk is full")


def test_output_directory_is_a_file(cli, answers):
    one_line(cli("aggregate", answers, "-o", answers / "labels.csv"), "is not a directory")


def test_model_folder_with_other_files_is_left_alone(cli, answers, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "me.png").write_bytes(b"")
    one_line(cli("aggregate", answers, "-q", "--save", tmp_path / "photos"), "me.png")
    assert (tmp_path / "photos" / "me.png").exists()


# ------------------------------------------------------------------ odd data that are no mistake


@pytest.mark.parametrize(
    "lines",
    [
        ["1,a,x"],
        ["1,a,x", "2,b,y", "3,c,x"],
        ["1,a,x", "1,b,y", "1,c,z"],
        ["1,a,x", "1,a,y"],
        ["🐈,Zoë,Katze", "🐈,李,Katze"],
        ["e2c56db5-dffb-48d2-b060-d0f5a71096e0,a,true", "1,a,false"],
    ],
)
def test_odd_but_good_data(cli, tmp_path, rows, lines):
    path = tmp_path / "a.csv"
    path.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
    code, out, err = cli("aggregate", path, "--classes", "x,y,z" if "x" in lines[0] else
                         ",".join(sorted({line.split(",")[2] for line in lines})))  # fmt: skip
    assert code == 0, err
    for row in rows(out):
        assert 0 <= float(row["confidence"]) <= 1
