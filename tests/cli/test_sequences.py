"""Spans on the command line: simulated, aggregated, compared, evaluated, refused."""

from __future__ import annotations

import json

import pytest

from wisecrowd.cli.main import run


@pytest.fixture
def news(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    options = ["--tasks", "60", "--n-workers", "6", "--assignment", "per-task:4"]
    assert run(["simulate", "news", "--type", "sequences", *options, "-q"]) == 0
    capfd.readouterr()


def test_from_tags_to_scores(news, capfd):
    answers = ["news/answers.csv", "--type", "sequences"]
    assert run(["aggregate", *answers, "-o", "spans.csv", "--workers", "workers.csv", "-q"]) == 0
    assert run(["evaluate", "spans.csv", "--truth", "news/truth.csv", "--json", "-q"]) == 0
    scores = json.loads(capfd.readouterr().out)
    assert 0.7 < scores["span_f1"] <= scores["relaxed_f1"] <= 1
    assert run(["evaluate", "spans.csv", "--truth", "spans.csv", "--json", "-q"]) == 0
    assert json.loads(capfd.readouterr().out)["span_f1"] == 1
    assert run(["compare", *answers, "--truth", "news/truth.csv", "--json", "-q"]) == 0
    rows = json.loads(capfd.readouterr().out)["methods"]
    assert {row["method"] for row in rows} == {"bsc", "hmm-crowd", "token-wise"}


def test_compare_without_a_truth(news, capfd):
    assert run(["compare", "news/answers.csv", "--type", "sequences", "-q"]) == 0
    assert "is recommended" in capfd.readouterr().out


def test_spans_in_rows_keep_their_characters(tmp_path, capfd):
    path = tmp_path / "spans.csv"
    path.write_text(
        "task,worker,start,end,label\n"
        "d,ann,10,14,LOC\nd,ann,0,4,PER\nd,bob,0,4,PER\nd,bob,10,14,LOC\nd,cem,0,8,PER\n"
    )
    assert run(["aggregate", str(path), "--type", "sequences", "-q"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.rsplit(",", 1)[0] for line in lines[1:]] == ["d,0,4,PER", "d,10,14,LOC"]
    path.write_text(path.read_text() + "d,ann,2,6,LOC\n")
    assert run(["aggregate", str(path), "--type", "sequences", "-q"]) == 3
    assert "Two spans of one worker overlap, in rows 2, 6" in capfd.readouterr().err


@pytest.mark.parametrize("command", ["audit", "report"])
def test_what_there_is_not_is_said(news, capfd, command):
    options = ["-o", "page.html"] if command == "report" else []
    assert run([command, "news/answers.csv", "--type", "sequences", *options, "-q"]) == 2
    assert "sequences" in capfd.readouterr().err
