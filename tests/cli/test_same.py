"""Sameness on the command line: simulated, aggregated, compared, evaluated, refused."""

from __future__ import annotations

import csv
import json

import pytest

import wisecrowd as wc
from wisecrowd.cli.main import run


@pytest.fixture
def birds(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    options = ["--tasks", "500", "--n-workers", "6", "-p", "n_items=16", "-p", "n_clusters=3"]
    assert run(["simulate", "birds", "--type", "same", *options, "-q"]) == 0
    capfd.readouterr()


def test_from_votes_to_scores(birds, capfd):
    answers = ["birds/answers.csv", "--type", "same"]
    assert run(["aggregate", *answers, "-o", "clusters.csv", "--workers", "workers.csv", "-q"]) == 0
    with open("clusters.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["item", "cluster", "probability"]
    assert len(rows) == 16
    with open("workers.csv", encoding="utf-8") as file:
        assert {"same_rate", "different_rate", "n_labels"} <= set(next(csv.DictReader(file)))
    assert run(["evaluate", "clusters.csv", "--truth", "birds/truth.csv", "--json", "-q"]) == 0
    scores = json.loads(capfd.readouterr().out)
    assert scores["matched_accuracy"] == scores["adjusted_rand_index"] == 1.0
    assert scores["n_scored"] == 16


def test_compare(birds, capfd):
    answers = ["birds/answers.csv", "--type", "same"]
    assert run(["compare", *answers, "--truth", "birds/truth.csv", "--json", "-q"]) == 0
    rows = json.loads(capfd.readouterr().out)["methods"]
    assert {row["method"] for row in rows} == {"crowd-clustering", "signed-spectral"}


def test_an_item_with_itself_is_refused_with_its_row(tmp_path, capfd):
    path = tmp_path / "same.csv"
    path.write_text("worker,left,right,label\nann,x,y,same\nann,y,y,same\n")
    assert run(["aggregate", str(path), "--type", "same", "-q"]) == 3
    error = capfd.readouterr().err
    assert "Item 'y' is compared with itself in row 2" in error


def test_audit_and_report(birds, capfd):
    answers = ["birds/answers.csv", "--type", "same"]
    assert run(["audit", *answers, "--json", "-q"]) == 0
    part = json.loads(capfd.readouterr().out)["parts"]["transitivity"]
    assert part["n_contradictions"] <= part["n_testable"] <= part["n_triples"]
    options = ["--truth", "birds/truth.csv", "-o", "page.html", "-q"]
    assert run(["report", *answers, *options]) == 0
    with open("page.html", encoding="utf-8") as file:
        page = file.read()
    assert "triples of items contradict themselves" in page
    assert "adjusted_rand_index" in page


def test_python_and_inspect(birds, capfd):
    data = wc.read("birds/answers.csv", type="same")
    table = wc.aggregate(data, n_init=1)
    assert table.column_names == ["item", "cluster", "probability"]
    assert run(["inspect", "birds/answers.csv", "--type", "same"]) == 0
    said = capfd.readouterr().out
    assert "16 items" in said
    assert "wins" not in said
