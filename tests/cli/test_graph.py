"""Graphs of tasks on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from wisecrowd.cli.main import run


@pytest.fixture
def runs(tmp_path, monkeypatch, capfd):
    """Write labels of tasks in two runs of classes, their neighbours and features."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 40)
    rows = ["task,worker,label"]
    for task in range(80):
        for worker in range(5):
            label = truth[task] if rng.random() < 0.7 else 1 - truth[task]
            rows.append(f"t{task},w{worker},{'cat' if label else 'dog'}")
    (tmp_path / "answers.csv").write_text("\n".join(rows) + "\n")
    edges = [f"t{i},t{i + step}" for i in range(80) for step in (1, 2) if i + step < 80]
    (tmp_path / "neighbours.csv").write_text("\n".join(["task,neighbour", *edges, "t1,x"]) + "\n")
    angle = np.linspace(0, 1.5, 80)
    features = [f"t{i},{np.cos(angle[i]):.4f},{np.sin(angle[i]):.4f}" for i in range(80)]
    (tmp_path / "features.csv").write_text("\n".join(["task,f1,f2", *features]) + "\n")
    return truth


def accuracy(capfd, truth):
    rows = json.loads(capfd.readouterr().out)["labels"]
    found = {row["task"]: row["label"] == "cat" for row in rows}
    return np.mean([found[f"t{i}"] == truth[i] for i in range(80)])


def test_edges_and_features(runs, capfd):
    answers = ["aggregate", "answers.csv", "-q", "--json"]
    assert run([*answers, "-m", "dawid-skene"]) == 0
    plain = accuracy(capfd, runs)
    assert run([*answers, "--graph", "neighbours.csv"]) == 0
    assert accuracy(capfd, runs) > plain
    assert run([*answers, "--graph-features", "features.csv", "-m", "one-coin"]) == 0
    assert accuracy(capfd, runs) > plain
    options = ["-m", "graph-smoothed", "-p", "method=one-coin", "-p", "beta=0.3"]
    assert run([*answers, *options, "--graph", "neighbours.csv", "--save", "model"]) == 0


def test_what_was_read_is_reported(runs, capfd):
    assert run(["aggregate", "answers.csv", "--graph", "neighbours.csv", "-o", "labels.csv"]) == 0
    said = capfd.readouterr().err
    assert "1 edges name tasks without labels" in said
    assert "the graph has 157 edges between 80 tasks" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\nt1,t2\n", "call them task and neighbour"),
        ("task,neighbour\nt1,\n", "empty in row 1"),
        ("task,neighbour,weight\nt1,t2,-1\n", "weight in row 1 of bad.csv is '-1'"),
    ],
)
def test_bad_graphs_are_refused(runs, capfd, tmp_path, text, said):
    (tmp_path / "bad.csv").write_text(text)
    assert run(["aggregate", "answers.csv", "--graph", "bad.csv", "-q"]) == 3
    assert said in capfd.readouterr().err


def test_graphs_are_for_classes(runs, capfd, tmp_path):
    both = ["--graph", "neighbours.csv", "--graph-features", "features.csv"]
    assert run(["aggregate", "answers.csv", *both, "-q"]) == 2
    (tmp_path / "numbers.csv").write_text("task,worker,value\nt1,w,1.5\nt2,w,2.5\n")
    options = ["--type", "numbers", "--graph", "neighbours.csv", "-q"]
    assert run(["aggregate", "numbers.csv", *options]) == 2
    assert "--graph is for classes" in capfd.readouterr().err
