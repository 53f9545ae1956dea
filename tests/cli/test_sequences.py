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
    given = ["compare", "news/answers.csv", "--type", "sequences", "-q"]
    assert run(given) == 0
    out = capfd.readouterr().out
    for name in ("is recommended", "held-out score", "± SE", "not an estimate of accuracy"):
        assert name in " ".join(out.split())
    assert run([*given, "--json"]) == 0
    for row in json.loads(capfd.readouterr().out)["methods"]:
        assert row["held_out_score"] < 0 < row["standard_error"] < 1


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


def test_audit_prune_and_report(news, capfd, tmp_path):
    answers = ["news/answers.csv", "--type", "sequences"]
    assert run(["audit", *answers, "-o", "audit", "-q"]) == 0
    names = {path.name for path in (tmp_path / "audit").iterdir()}
    assert {"findings.csv", "span_habits.csv", "type_confusions.csv"} <= names
    assert run(["audit", *answers, "--prune-to", "clean.csv", "-q"]) == 0
    assert run(["report", *answers, "-o", "report.html", "-q"]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "Boundaries and types" in page
    assert "wisecrowd report news/answers.csv --type sequences -o report.html" in page


TEXT = "Alice went to Rome."
SPANS = (
    "task,worker,start,end,label,text\n"
    f"d,ann,0,5,PER,{TEXT}\nd,ann,14,18,LOC,{TEXT}\nd,bob,0,5,PER,{TEXT}\n"
    f"d,bob,14,19,LOC,{TEXT}\nd,cem,14,18,LOC,{TEXT}\ne,cem,,,,Nothing here.\n"
)


@pytest.mark.parametrize("pieces", [False, True])
def test_spans_have_a_text_if_the_table_has_one(tmp_path, capfd, pieces):
    path, table = tmp_path / "spans.csv", SPANS
    if pieces:
        for limits, text in (("0,5,PER", "Alice"), ("14,18,LOC", "Rome"), ("14,19,LOC", "Rome.")):
            table = table.replace(f"{limits},{TEXT}", f"{limits},{text}")
    path.write_text(table)
    assert run(["aggregate", str(path), "--type", "sequences", "-q"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "task,start,end,label,text,confidence"
    assert [line.rsplit(",", 1)[0] for line in lines[1:]] == [
        "d,0,5,PER,Alice", "d,14,18,LOC,Rome",
    ]  # fmt: skip


def test_words_of_tagged_texts(tmp_path, capfd):
    path = tmp_path / "tags.csv"
    path.write_text(
        "task,worker,tags,text\ns,ann,B-PER I-PER O,Ada Lovelace laughs\ns,bob,B-PER I-PER O,\n"
    )
    assert run(["aggregate", str(path), "--type", "sequences", "-q"]) == 0
    assert "s,0,2,PER,Ada Lovelace," in capfd.readouterr().out
    path.write_text(path.read_text().replace(" laughs", ""))
    assert run(["aggregate", str(path), "--type", "sequences"]) == 0
    seen = capfd.readouterr()
    assert "text" not in seen.out
    assert "has other words than tags" in seen.err


BAD = {
    "outside of the text": (
        SPANS.replace("14,19", "14,29"),
        "The span in row 4 of bad.csv runs from 14 to 29, outside of the text of task 'd', which "
        "has 19 characters",
    ),
    "two texts": (
        SPANS.replace("went", "walked", 1),
        "Task 'd' has one text in row 1 of bad.csv and another in row 2 of bad.csv",
    ),
    "overlap": (
        SPANS.replace("d,ann,14,18", "d,ann,3,18"),
        "Two spans of one worker overlap, in rows 1, 2 of bad.csv; keep one of them, or aggregate "
        "each layer of spans by itself",
    ),
    "backwards": (SPANS.replace("0,5", "5,0", 1), "The span in row 1 of bad.csv runs from 5 to 0"),
    "negative": (SPANS.replace("0,5", "-2,5", 1), "runs from -2 to 5"),
    "no type": (SPANS.replace("PER", "", 1), "The span in row 1 of bad.csv has no type"),
    "no number": (SPANS.replace("0,5", "x,5", 1), "give numbers of characters"),
    "other lengths": (
        "task,worker,tags\ns,ann,O O\ns,bob,O O O\n",
        "Task 's' has 2 tags in row 1 of bad.csv and 3 in row 2 of bad.csv",
    ),
    "no tags": ("task,worker,tags\ns,ann,O O\ns,bob,\n", "column is empty in row 2 of bad.csv"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_spans_are_refused_with_their_place(tmp_path, monkeypatch, capfd, name):
    monkeypatch.chdir(tmp_path)
    table, message = BAD[name]
    (tmp_path / "bad.csv").write_text(table)
    assert run(["aggregate", "bad.csv", "--type", "sequences", "-q"]) == 3
    seen = capfd.readouterr()
    assert message in seen.err
    assert len(seen.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ("B-PER B-ORG", "in row 1 of tags.csv is not among the tags"),
        ("B-PER PER", "The tag 'PER' (did you mean 'I-PER'?) in row 1 of tags.csv"),
    ],
)
def test_unknown_tags_are_refused_with_their_place(tmp_path, monkeypatch, capfd, tags, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tags.csv").write_text(f"task,worker,tags\ns,ann,{tags}\n")
    options = ["--type", "sequences", "--classes", "O,B-PER,I-PER", "-q"]
    assert run(["aggregate", "tags.csv", *options]) == 3
    assert message in capfd.readouterr().err


def test_unknown_types_of_spans_and_a_truth_about_other_tasks(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spans.csv").write_text("task,worker,start,end,label\nd,ann,0,5,LOK\n")
    options = ["--type", "sequences", "--classes", "LOC,PER", "-q"]
    assert run(["aggregate", "spans.csv", *options]) == 3
    assert "The type 'LOK' (did you mean 'LOC'?) in row 1 of spans.csv" in capfd.readouterr().err
    assert run(["aggregate", "spans.csv", "--type", "sequences", "-o", "found.csv", "-q"]) == 0
    (tmp_path / "truth.csv").write_text("task,tags\nother,O O\n")
    assert run(["evaluate", "found.csv", "--truth", "truth.csv", "-q"]) == 3
    assert "truth.csv names none of the tasks of found.csv" in capfd.readouterr().err
    (tmp_path / "truth.csv").write_text("task,tags\nd,B-LOK\n")
    assert run(["aggregate", "spans.csv", "--type", "sequences", "--gold", "truth.csv", "-q"]) == 0
    assert capfd.readouterr().out.splitlines()[1] == "d,0,5,LOK,1"
