from __future__ import annotations

import json
from pathlib import Path

import pytest

import wisecrowd as wc

FIXTURES = Path(__file__).parents[1] / "io" / "fixtures"


def test_what_an_export_holds(cli):
    code, out, err = cli("inspect", FIXTURES / "appen.csv")
    assert (code, err) == (0, "")
    assert out.splitlines()[1:] == [
        "format    appen",
        "columns   task = _unit_id, worker = _worker_id, label = animal, timestamp, duration",
        "content   8 labels by 3 workers of 3 tasks, 2 classes; 2 to 3 labels per task",
        "classes   dog 5, cat 3",
        "gold      1 tasks",
        "left out  1 tainted (their workers failed test questions)",
        f"command   wisecrowd aggregate {FIXTURES / 'appen.csv'} -o labels.csv",
    ]


def test_as_json(cli):
    code, out, _ = cli("inspect", FIXTURES / "labelbox.ndjson", "--json")
    seen = json.loads(out)
    assert (code, seen["format"], seen["n_labels"]) == (0, "labelbox", 8)
    assert seen["dropped"] == {"skipped": 1}
    assert seen["questions"][0]["name"] == "p1/Which animal?"


def test_several_questions(cli, tmp_path):
    made = [{"user_id": "u", "value": "x"}]
    record = {"id": "1", "fields": {}, "responses": {"a": made, "b\x1b[2J": made}}
    path = tmp_path / "records.json"
    path.write_text(json.dumps([record]))
    code, out, _ = cli("inspect", path)
    assert code == 0
    assert "questions 2; choose one with --label NAME" in out
    assert "          'a': 1 labels by 1 workers of 1 tasks, 1 classes" in out
    assert "\x1b" not in out
    assert f"command   wisecrowd aggregate {path} --label a -o labels.csv" in out
    code, _, err = cli("aggregate", path)
    assert code == 3
    assert "choose one with --label a." in err
    assert cli("aggregate", path, "--label", "a").code == 0


def test_files_that_cannot_be_read(cli, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("HITId,AssignmentId,Answer.x\n1,2,3\n")
    code, out, err = cli("inspect", path)
    assert (code, out) == (3, "")
    assert err.count("\n") == 1
    assert cli("inspect", path, "--format", "mturc").code == 2


def test_convert_states_the_format_and_writes_labels_and_gold(cli, tmp_path):
    target, gold = tmp_path / "plain.csv", tmp_path / "gold.csv"
    code, _, err = cli("convert", FIXTURES / "toloka.tsv", target, "--gold", gold)
    assert code == 0
    assert "read as toloka, labels of 'animal'" in err
    assert "left out: 1 rejected, skipped or expired" in err
    assert gold.read_text() == "task,label\n2,dog\n"
    again = wc.read(target)
    assert again.n_annotations == 8
    assert again.columns["cost"].sum() == pytest.approx(3 * 0.06)  # of three pages, all of it
    assert cli("aggregate", target, "--gold", gold).code == 0


def test_the_export_is_its_own_gold(cli):
    path = FIXTURES / "toloka.tsv"
    assert cli("aggregate", path, "--gold", path, "-q").code == 0
    assert cli("convert", FIXTURES / "crowd_kit.csv", "-", "--gold", "-").code in (2, 3)


def test_the_format_can_be_overridden(cli, tmp_path):
    path = FIXTURES / "mturk.csv"
    code, out, err = cli("convert", path, "-", "--format", "csv", "--task", "Input.image_url",
                         "--worker", "WorkerId", "--label", "AssignmentStatus")  # fmt: skip
    assert code == 0, err
    assert "read as" not in err
    assert "1.jpg,ann,Approved" in out


def test_a_folder_is_an_export(cli, tmp_path):
    target = tmp_path / "plain.csv"
    assert cli("convert", FIXTURES / "ground_truth", target).code == 0
    inputs = json.loads((tmp_path / "plain.csv.manifest.json").read_text())["inputs"]
    assert sum(name.endswith(".json") for name in inputs) == 3


def test_what_is_doubtful_is_a_note(cli, table):
    rows = [("t1", "a", "'+1"), ("t1", "b", "+1"), ("t2", "a", "cat"), ("t2", "b", "cat ")]
    code, out, err = cli("inspect", table("a.csv", ["task", "worker", "label"], rows))
    assert (code, err) == (0, "")
    notes = [line for line in out.splitlines() if line.startswith("note ")]
    assert ["'+1 and +1" in notes[0], "'cat' and 'cat '" in notes[1]] == [True, True]
    assert len(notes) == 2
