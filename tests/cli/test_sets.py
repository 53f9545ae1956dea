"""Sets on the command line: simulated, aggregated, compared, evaluated, refused."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wisecrowd.cli.main import run


@pytest.fixture
def topics(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    options = ["--tasks", "60", "--n-workers", "6", "--assignment", "per-task:4"]
    assert run(["simulate", "topics", "--type", "sets", *options, "-q"]) == 0
    capfd.readouterr()


def test_from_sets_to_scores(topics, capfd):
    answers = ["topics/answers.csv", "--type", "sets"]
    assert run(["aggregate", *answers, "-o", "sets.csv", "--workers", "workers.csv", "-q"]) == 0
    with open("sets.csv", encoding="utf-8") as file:
        header, first, *_ = csv.reader(file)
    assert header == ["task", "labels", *(f"p_{name}" for name in "abcdefgh")]
    assert all(float(p) >= 0.5 for n, p in zip(header[2:], first[2:], strict=True)
               if n[2:] in first[1].split("|"))  # fmt: skip
    assert run(["evaluate", "sets.csv", "--truth", "topics/truth.csv", "--json", "-q"]) == 0
    scores = json.loads(capfd.readouterr().out)
    assert 0.7 < scores["micro_f1"] <= 1
    assert scores["n_scored"] == 60
    assert run(["evaluate", "sets.csv", "--truth", "sets.csv", "--json", "-q"]) == 0
    assert json.loads(capfd.readouterr().out)["exact_sets"] == 1
    assert run(["compare", *answers, "--truth", "topics/truth.csv", "--json", "-q"]) == 0
    rows = json.loads(capfd.readouterr().out)["methods"]
    names = {"binary-relevance", "label-set-mixture", "set-vote", "shared-two-coin"}
    assert {row["method"] for row in rows} == names


def test_compare_without_a_truth(topics, capfd):
    assert run(["compare", "topics/answers.csv", "--type", "sets", "-q"]) == 0
    assert "is recommended" in capfd.readouterr().out


def test_empty_cells_are_empty_sets_in_answers_gold_and_truth(tmp_path, capfd):
    (tmp_path / "a.csv").write_text("task,worker,labels\ns,a,\ns,b,[]\nt,a,x|y\nt,b,x\n")
    (tmp_path / "t.csv").write_text("task,label\ns,\nt,x\n")
    answers = [str(tmp_path / "a.csv"), "--type", "sets"]
    assert run(["aggregate", *answers, "-m", "set-vote", "-q"]) == 0
    assert capfd.readouterr().out.splitlines()[1].startswith("s,,")
    gold = ["--gold", str(tmp_path / "t.csv")]
    assert run(["aggregate", *answers, *gold, "--json", "-q"]) == 0
    found = json.loads(capfd.readouterr().out)["labels"]
    assert [row["labels"] for row in found] == ["", "x"]
    out = str(tmp_path / "out.csv")
    assert run(["aggregate", *answers, "-o", out, "-q"]) == 0
    assert run(["evaluate", out, "--truth", str(tmp_path / "t.csv"), "--json", "-q"]) == 0
    assert json.loads(capfd.readouterr().out)["n_scored"] == 2


def test_rules_on_the_command_line(topics, capfd):
    command = ["aggregate", "topics/answers.csv", "--type", "sets", "-m", "label-set-mixture", "-q"]
    assert run([*command, "-p", 'exclusive=[["a", "b"]]', "-p", "n_prototypes=2"]) == 0
    rows = list(csv.DictReader(capfd.readouterr().out.splitlines()))
    assert not any({"a", "b"} <= set(row["labels"].split("|")) for row in rows)
    assert run([*command, "-p", 'implies={"a": "zz"}']) == 2
    assert "implies names 'zz'" in capfd.readouterr().err


def test_a_bad_set_names_file_and_row(tmp_path, capfd):
    path = tmp_path / "bad.csv"
    path.write_text("task,worker,label\ns,a,x\ns,b,x|x\n")
    assert run(["aggregate", str(path), "--type", "sets", "-q"]) == 3
    assert "bad.csv has the class 'x' twice" in capfd.readouterr().err


def test_train_and_predict(topics, capfd):
    rng = np.random.default_rng(0)
    np.save("X.npy", rng.normal(size=(60, 3)))
    command = ["train", "X.npy", "topics/answers.csv", "--type", "sets", "-p", "max_iter=2"]
    assert run([*command, "-o", "model", "--json", "-q"]) == 0
    assert json.loads(capfd.readouterr().out)["method"] == "raykar-sets"
    assert run(["predict", "model", "X.npy", "-o", "predicted.csv", "-q"]) == 0
    with open("predicted.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 60
    assert list(rows[0])[:3] == ["task", "labels", "p_a"]


def test_lists_in_typed_files_are_sets(tmp_path, capfd):
    path = tmp_path / "a.jsonl"
    rows = [{"task": "s", "worker": w, "label": s} for w, s in zip("abc", (["x", "y"], [], ["x"]),
                                                                  strict=True)]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, rows)))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.parquet"):
        answers = str(tmp_path / name)
        assert run(["aggregate", answers, "--type", "sets", "-m", "set-vote", "-q"]) == 0
        assert capfd.readouterr().out.splitlines()[1] == "s,x,0.625,0.375"
        assert run(["aggregate", answers, "--type", "labels", "-q"]) == 3
        capfd.readouterr()
