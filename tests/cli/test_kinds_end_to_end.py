"""Every kind from a simulated file to answers, scores and a comparison, through the commands."""

from __future__ import annotations

import json

import pytest

READING = {"numbers": ["--type", "numbers"], "ordered": ["--scale", "0..4"], "pairs": []}
COLUMNS = {
    "numbers": "task,value,low,high,n_labels",
    "ordered": "task,label,confidence,tie,n_labels",
    "pairs": "item,score,low,high,rank,rank_low,rank_high,n_comparisons,component",
}
FIRST_SCORE = {"numbers": "r2", "ordered": "accuracy", "pairs": "kendall_tau"}
METHODS = {
    "numbers": "gaussian-em,mean", "ordered": "thresholds,majority-vote",
    "pairs": "crowd-bt,bradley-terry",
}  # fmt: skip


@pytest.fixture(params=READING)
def kind(request):
    return request.param


@pytest.fixture
def folder(cli, kind, tmp_path):
    code, _, errors = cli(
        "simulate", tmp_path / kind, "--type", kind, "--tasks", 300, "--n-workers", 12
    )
    assert code == 0, errors
    return tmp_path / kind


def test_answers_have_the_fixed_columns_and_beat_chance(cli, kind, folder, tmp_path):
    output, workers = tmp_path / "answers.csv", tmp_path / "workers.csv"
    code, _, errors = cli(
        "aggregate", folder / "answers.csv", *READING[kind], "-o", output, "--workers", workers
    )
    assert code == 0, errors
    assert output.read_text().splitlines()[0] == COLUMNS[kind]
    assert workers.read_text().startswith("worker,n_labels,")
    code, out, errors = cli("evaluate", output, "--truth", folder / "truth.csv", "--json")
    assert code == 0, errors
    assert json.loads(out)[FIRST_SCORE[kind]] > 0.4


def test_methods_are_compared_with_and_without_truth(cli, kind, folder):
    command = ["compare", folder / "answers.csv", *READING[kind], "--methods", METHODS[kind]]
    code, out, errors = cli(*command, "--json")
    assert code == 0, errors
    found = json.loads(out)
    assert found["recommended"] in METHODS[kind].split(",")
    assert all(row["held_out_score"] is not None for row in found["methods"])
    code, out, errors = cli(*command, "--truth", folder / "truth.csv", "--json")
    assert code == 0, errors
    scores = [row[FIRST_SCORE[kind]] for row in json.loads(out)["methods"]]
    assert scores == sorted(scores, reverse=True)


def test_the_same_seed_writes_the_same_folder(cli, kind, folder, tmp_path):
    again = tmp_path / "again"
    cli("simulate", again, "--type", kind, "--tasks", 300, "--n-workers", 12)
    for name in ("answers.csv", "truth.csv", "workers.csv"):
        assert (again / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--type", "numbers", "-p", "biass=1"], "did you mean 'bias'"),
        (["--type", "sounds"], "type is 'sounds'"),
        (["-p", "bias=1"], "-p is for other types than labels"),
        (["--type", "pairs", "-p", "flips"], "not of the form NAME=VALUE"),
    ],
)
def test_what_a_simulator_does_not_know_is_refused(cli, tmp_path, arguments, reason):
    code, _, errors = cli("simulate", tmp_path / "x", *arguments)
    assert code != 0
    assert reason in errors
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("answers", "truth", "reason"),
    [
        ("task,value\nt1,x\nt2,1\n", "task,label\nt1,1\nt2,2\n", "gives 't1' the value 'x'"),
        ("task,value\nt1,1\nt1,2\n", "task,label\nt1,1\n", "'t1' is in"),
        ("item,score\na,1\nb,2\n", "item,score\nc,1\n", "names 0 of the 2 answers"),
        ("item,score\na,1\nb,2\n", "item,score\na,inf\nb,1\n", "give a finite number"),
    ],
)
def test_files_that_cannot_be_scored_are_refused(cli, tmp_path, answers, truth, reason):
    (tmp_path / "a.csv").write_text(answers)
    (tmp_path / "t.csv").write_text(truth)
    code, _, errors = cli("evaluate", tmp_path / "a.csv", "--truth", tmp_path / "t.csv")
    assert code == 3
    assert reason in errors


def test_intervals_of_numbers_are_calibrated_on_gold(cli, tmp_path):
    cli("simulate", tmp_path / "x", "--type", "numbers", "--tasks", 100, "--n-workers", 8)
    answers, truth = tmp_path / "x" / "answers.csv", tmp_path / "x" / "truth.csv"
    command = ["aggregate", answers, "--type", "numbers", "-o", tmp_path / "v.csv", "--calibrate"]
    rows = truth.read_text().splitlines()
    (tmp_path / "gold.csv").write_text("\n".join(rows[:41]))
    (tmp_path / "rest.csv").write_text("\n".join([rows[0], *rows[41:]]))
    code, _, errors = cli(*command, "--gold", tmp_path / "gold.csv")
    assert code == 0, errors
    assert "times those of the fit" in errors
    assert "40 known numbers stand as they were given" in errors
    assert "cannot be seen in labels" not in errors
    code, out, _ = cli("evaluate", tmp_path / "v.csv", "--truth", tmp_path / "gold.csv", "--json")
    assert json.loads(out)["rmse"] < 1e-4  # of six digits
    code, out, _ = cli("evaluate", tmp_path / "v.csv", "--truth", tmp_path / "rest.csv", "--json")
    assert 0.85 <= json.loads(out)["coverage"] <= 1.0
    code, _, errors = cli(*command)
    assert (code, "give --gold" in errors) == (2, True)


def test_votes_are_exported_for_preference_trainers(cli, tmp_path):
    cli("simulate", tmp_path / "x", "--type", "pairs", "--tasks", 200, "--n-workers", 8)
    answers, rows = tmp_path / "x" / "answers.csv", tmp_path / "rows.jsonl"
    code, _, errors = cli("aggregate", answers, "-o", tmp_path / "r.csv", "--preferences", rows)
    assert code == 0, errors
    first = json.loads(rows.read_text().splitlines()[0])
    assert list(first) == ["prompt", "chosen", "rejected", "worker", "flip_rate", "weight"]
    assert 0 <= first["flip_rate"] < 0.5
    numbers = tmp_path / "n.csv"
    numbers.write_text("task,worker,label\nt,a,1.5\nt,b,2\n")
    code, _, errors = cli("aggregate", numbers, "--type", "numbers", "--preferences", rows)
    assert (code, "--preferences-to is for pairs" in errors) == (2, True)
