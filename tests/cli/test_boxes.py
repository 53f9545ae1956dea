"""Boxes on the command line: simulated, aggregated, compared, evaluated, audited, refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from wisecrowd.cli.main import run


@pytest.fixture
def street(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    options = ["--tasks", "40", "--n-workers", "6", "--assignment", "per-task:4"]
    assert run(["simulate", "street", "--type", "boxes", "--classes", "car,bus", *options]) == 0
    capfd.readouterr()


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_from_boxes_to_scores(street, capfd):
    outputs = ["-o", "boxes.csv", "--workers", "workers.csv", "--assignments", "who.csv", "--coco",
               "boxes.json"]  # fmt: skip
    assert run(["aggregate", "street/answers.csv", *outputs]) == 0
    assert "make these boxes" in capfd.readouterr().err
    found = rows_of("boxes.csv")
    assert list(found[0]) == ["task", "x", "y", "width", "height", "label", "confidence"]
    written = json.loads(Path("boxes.json").read_text(encoding="utf-8"))
    assert len(written["annotations"]) == len(found)
    who = rows_of("who.csv")
    drawn = [row for row in rows_of("street/answers.csv") if row["x"]]
    assert sum(row["status"] != "missed" for row in who) == len(drawn)
    assert {"detection_rate", "phantoms_per_image", "too_loose_left"} <= set(
        rows_of("workers.csv")[0]
    )
    scores = {}
    for name in ("boxes.csv", "boxes.json"):
        assert run(["evaluate", name, "--truth", "street/truth.csv", "--json", "-q"]) == 0
        scores[name] = json.loads(capfd.readouterr().out)
    assert scores["boxes.csv"]["box_f1"] == scores["boxes.json"]["box_f1"] > 0.8
    assert run(["evaluate", "boxes.csv", "--truth", "boxes.csv", "--json", "-q"]) == 0
    assert json.loads(capfd.readouterr().out)["box_f1"] == 1


def test_compare_audit_and_inspect(street, capfd):
    truth = ["--truth", "street/truth.csv", "--json", "-q"]
    assert run(["compare", "street/answers.csv", *truth]) == 0
    rows = json.loads(capfd.readouterr().out)["methods"]
    assert {row["method"] for row in rows} == {"box-consensus", "box-em"}
    assert run(["compare", "street/answers.csv", "-q"]) == 0
    assert "is recommended" in capfd.readouterr().out
    assert run(["audit", "street/answers.csv", "-o", "audit", "-q"]) == 0
    assert {"drawers", "sides"} <= {row.stem for row in _files("audit")}
    assert run(["inspect", "street/answers.csv"]) == 0
    assert "boxes" in capfd.readouterr().out


def _files(folder):
    return list(Path(folder).iterdir())


def test_who_saw_what_in_a_file_of_its_own(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "boxes.csv").write_text(
        "task,worker,x,y,width,height\na,ann,1,1,9,9\na,bob,1,1,9,9\n"
    )
    (tmp_path / "seen.csv").write_text("task,worker\n" + "".join(f"a,{w}\n" for w in "vwxyz"))
    assert run(["aggregate", "boxes.csv", "-q"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 2
    assert run(["aggregate", "boxes.csv", "--seen", "seen.csv", "-q"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 1  # two of seven workers


def test_what_does_not_go_together_is_refused(street, tmp_path, capfd):
    bad = tmp_path / "bad.csv"
    bad.write_text("task,worker,x,y,width,height\na,ann,1,1,9,9\na,bob,1,1,-9,9\n")
    labels = tmp_path / "labels.csv"
    labels.write_text("task,worker,label\na,ann,cat\na,bob,cat\n")
    for arguments, code, reason in (
        (["aggregate", bad], 3, "row 2 of"),
        (["aggregate", labels, "--coco", "x.json"], 2, "are for boxes"),
        (["aggregate", labels, "--seen", labels], 2, "--seen is for boxes"),
        (["aggregate", "street/answers.csv", "--coco", "x.csv"], 2, "end in .json"),
        (["evaluate", "street/truth.csv", "--truth", labels], 3, "no x"),
        (["aggregate", "street/answers.csv", "--gold", labels], 2, "take no --gold"),
        (["audit", "street/answers.csv", "--prune-to", "x.csv"], 2, "--exclude-workers"),
    ):
        assert run([str(one) for one in arguments]) == code
        assert reason in capfd.readouterr().err
