"""Masks on the command line: simulated, aggregated, compared, evaluated, refused."""

from __future__ import annotations

import json

import pytest

from wisecrowd.cli.main import run


@pytest.fixture
def images(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    options = ["--tasks", "10", "--n-workers", "5", "--assignment", "per-task:4"]
    sizes = ["-p", "height=30", "-p", "width=24"]
    assert run(["simulate", "images", "--type", "masks", *options, *sizes, "-q"]) == 0
    capfd.readouterr()


def test_from_masks_to_scores(images, tmp_path, capfd):
    answers = ["images/answers.csv", "--type", "masks"]
    assert run(["aggregate", *answers, "-o", "found.csv", "--workers", "workers.csv", "-q"]) == 0
    header = (tmp_path / "found.csv").read_text().splitlines()[0]
    assert header == "task,mask,height,width,area,confidence"
    assert "sensitivity,specificity,iou,area_ratio" in (tmp_path / "workers.csv").read_text()
    assert run(["evaluate", "found.csv", "--truth", "images/truth.csv", "--json", "-q"]) == 0
    scores = json.loads(capfd.readouterr().out)
    assert 0.5 < scores["iou"] < scores["dice"] <= 1
    assert run(["evaluate", "found.csv", "--truth", "found.csv", "--json", "-q"]) == 0
    assert json.loads(capfd.readouterr().out)["boundary_f"] == 1
    assert run(["compare", *answers, "--truth", "images/truth.csv", "--json", "-q"]) == 0
    rows = json.loads(capfd.readouterr().out)["methods"]
    assert {row["method"] for row in rows} == {"mask-em", "mask-rasa", "mask-vote"}


def test_compare_without_a_truth(images, capfd):
    assert run(["compare", "images/answers.csv", "--type", "masks", "-q"]) == 0
    assert "is recommended" in capfd.readouterr().out


def test_bad_files_are_refused_with_the_place(images, tmp_path, capfd):
    path = tmp_path / "bad.csv"
    path.write_text('task,worker,mask\ni,ann,"{""size"": [2, 2], ""counts"": [3]}"\n')
    assert run(["aggregate", str(path), "--type", "masks", "-q"]) == 3
    error = capfd.readouterr().err
    assert "The mask in row 1 of" in error
    assert "has runs of 3 pixels in all, and its size is 2 × 2" in error
    assert run(["aggregate", "images/answers.csv", "-q"]) == 3
    assert "'mask' look like masks: give --type masks" in capfd.readouterr().err
    path.write_text("task,label\n0,x\n")
    assert run(["evaluate", "images/truth.csv", "--truth", str(path), "-q"]) == 3
    assert "The true mask of task '0' is not JSON" in capfd.readouterr().err
