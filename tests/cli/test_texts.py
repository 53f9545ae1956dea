"""Texts on the command line: simulated, aggregated, compared, evaluated, audited, reported."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from wisecrowd.cli.main import run


@pytest.fixture
def speech(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    options = ["--tasks", "40", "--n-workers", "6", "--assignment", "per-task:4"]
    assert run(["simulate", "speech", "--type", "texts", *options, "-q"]) == 0
    capfd.readouterr()


def test_from_texts_to_scores(speech, capfd):
    answers = ["speech/answers.csv", "--type", "texts"]
    assert run(["aggregate", *answers, "-o", "texts.csv", "--workers", "workers.csv", "-q"]) == 0
    with open("texts.csv", newline="") as file:
        assert next(csv.reader(file)) == ["task", "text", "confidence"]
    with open("workers.csv", newline="") as file:
        assert next(csv.reader(file)) == ["worker", "n_labels", "error_rate", "weight", "words"]
    assert run(["evaluate", "texts.csv", "--truth", "speech/truth.csv", "--json", "-q"]) == 0
    scores = json.loads(capfd.readouterr().out)
    assert scores["word_accuracy"] == pytest.approx(1 - scores["word_error_rate"])
    assert 0.9 < scores["word_accuracy"] < 1
    assert 0.8 < scores["mean_confidence"] < 1
    assert run(["evaluate", "texts.csv", "--truth", "texts.csv", "--json", "-q"]) == 0
    assert json.loads(capfd.readouterr().out)["exact_texts"] == 1
    assert run(["compare", *answers, "--truth", "speech/truth.csv", "--json", "-q"]) == 0
    rows = json.loads(capfd.readouterr().out)["methods"]
    assert {row["method"] for row in rows} == {"rover", "text-medoid", "embedding-medoid"}


def test_compare_without_a_truth(speech, capfd):
    assert run(["compare", "speech/answers.csv", "-q"]) == 0
    out = capfd.readouterr().out
    for name in ("is recommended", "held-out score", "± SE", "mean agreement: agreement on the"):
        assert name in out
    assert "mean confidence" not in out
    assert run(["compare", "speech/answers.csv", "--json", "-q"]) == 0
    for row in json.loads(capfd.readouterr().out)["methods"]:
        assert "held_out_score" not in row or 0 < row["standard_error"] < 0.1


def test_agreement_is_not_called_confidence(speech, capfd):
    for kind in ("texts", None):
        answers = ["speech/answers.csv", *(("--type", kind) if kind else ())]
        assert run(["aggregate", *answers, "-o", f"{kind}.csv", "-q"]) == 0
        assert run(["evaluate", f"{kind}.csv", "--truth", "speech/truth.csv", "-q"]) == 0
        out = capfd.readouterr().out
        assert "mean agreement" in out
        assert "confidence" not in out


def test_parameters_and_a_missing_type(tmp_path, capfd):
    path = tmp_path / "texts.csv"
    path.write_text(
        "task,worker,text\nr,a,你好世界\nr,b,你好世間\nr,c,你们世界\n", encoding="utf-8"
    )
    assert run(["aggregate", str(path), "-p", "unit=character"]) == 0
    out, err = capfd.readouterr()
    assert out.splitlines()[1].startswith("r,你好世界,")
    assert "the column text makes these texts" in err
    assert run(["aggregate", str(path), "-p", "unit=line", "-q"]) == 2
    assert "choose one of word, character" in capfd.readouterr().err


def test_audit_and_report(speech, capfd):
    with open("speech/answers.csv", newline="") as file:
        rows = list(csv.reader(file))
    for row in rows[1:]:
        row[2] = "thank you" if row[1] == "5" else row[2]
    with open("answers.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    assert run(["audit", "answers.csv", "--type", "texts", "--json", "-q"]) == 0
    found = json.loads(capfd.readouterr().out)["findings"]
    assert [(one["id"], one["affected"]) for one in found] == [("constant-texts", ["5"])]
    options = ["--truth", "speech/truth.csv", "-o", "page.html", "-q"]
    assert run(["report", "answers.csv", "--type", "texts", *options]) == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "constant-texts" in page
    assert "thank you" in page
    assert "word_error_rate" in page


def test_files_that_do_not_fit(speech, capfd):
    assert run(["aggregate", "speech/answers.csv", "-o", "texts.csv", "-q"]) == 0
    with open("other.csv", "w") as file:
        file.write("task,text\nno such task,a\n")
    assert run(["evaluate", "texts.csv", "--truth", "other.csv", "-q"]) == 3
    assert "The truth names none of the 40 tasks" in capfd.readouterr().err
    with open("texts.csv", "a") as file:
        file.write("0,again,0.5\n")
    assert run(["evaluate", "texts.csv", "--truth", "speech/truth.csv", "-q"]) == 3
    assert "Task '0' is in texts.csv twice" in capfd.readouterr().err
