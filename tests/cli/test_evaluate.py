from __future__ import annotations

import json

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import metrics
from wisecrowd.storage import read_manifest

TRUE = ["cat", "dog", "cat", "dog", "dog"]
CODES = np.searchsorted(["cat", "dog"], TRUE)


def test_round_trip_from_aggregate(cli, answers, truth, tmp_path):
    target = tmp_path / "labels.csv"
    cli("aggregate", answers, "-m", "dawid-skene", "-o", target, "--soft")
    code, out, err = cli("evaluate", target, "--truth", truth, "--json")
    model = wc.aggregation.DawidSkene().fit(wc.read(answers))
    assert code == 0, err
    found = json.loads(out)
    assert (found["n_scored"], found["n_labels"]) == (5, 5)
    assert found["notes"] == err.splitlines() == ["5 of 5 tasks have a truth"]
    assert found["accuracy"] == metrics.accuracy(TRUE, model.labels_)
    assert found["log_loss"] == pytest.approx(metrics.log_loss(CODES, model.probas_))
    assert found["brier_score"] == pytest.approx(metrics.brier_score(CODES, model.probas_))


def test_confidence_alone_is_enough_for_two_classes(cli, answers, truth, tmp_path):
    target = tmp_path / "labels.csv"
    cli("aggregate", answers, "-m", "dawid-skene", "-o", target)
    found = json.loads(cli("evaluate", target, "--truth", truth, "--json").out)
    model = wc.aggregation.DawidSkene().fit(wc.read(answers))
    assert found["log_loss"] == pytest.approx(metrics.log_loss(CODES, model.probas_))
    assert found["expected_calibration_error"] == pytest.approx(
        metrics.expected_calibration_error(CODES, model.probas_)
    )


def test_confidence_of_more_classes_gives_calibration_only(cli, table):
    labels = table(
        "l.csv",
        ["task", "label", "confidence"],
        [("1", "a", 0.9), ("2", "b", 0.5), ("3", "c", 0.7)],
    )
    truth = table("t.csv", ["task", "label"], [("1", "a"), ("2", "b"), ("3", "a")])
    found = json.loads(cli("evaluate", labels, "--truth", truth, "--json").out)
    assert "log_loss" not in found
    # Three bins of one task each: |1 - .9|, |1 - .5| and |0 - .7|, averaged.
    assert found["expected_calibration_error"] == pytest.approx((0.1 + 0.5 + 0.7) / 3)


def test_any_label_file_with_other_column_names(cli, table, truth):
    labels = table("l.csv", ["item", "answer"], [("t1", "cat"), ("t2", "cat")])
    code, out, err = cli("evaluate", labels, "--truth", truth)
    assert code == 0
    assert out.splitlines()[0].split() == ["score", "value"]
    assert out.splitlines()[1].split() == ["accuracy", "0.5000"]
    assert "ECE" not in out
    assert "columns recognised" in err
    assert "2 of 2 tasks have a truth" in err


def test_file_with_manifest(cli, table, truth, tmp_path, rows):
    labels = table("l.csv", ["task", "label"], [("t1", "cat")])
    target = tmp_path / "scores.csv"
    assert cli("evaluate", labels, "--truth", truth, "-o", target).out == ""
    assert rows(target)[0] == {"score": "accuracy", "value": "1"}
    assert set(read_manifest(target).inputs) == {str(labels), str(truth)}


@pytest.mark.parametrize(
    ("confidence", "message"), [("sure", "holds text"), ("1.5", "row 1"), ("-1", "row 1")]
)
def test_bad_confidence(cli, table, truth, confidence, message):
    labels = table("l.csv", ["task", "label", "confidence"], [("t1", "cat", confidence)])
    code, out, err = cli("evaluate", labels, "--truth", truth)
    assert (code, out) == (3, "")
    assert message in err


def test_task_with_two_labels(cli, table, truth):
    labels = table("l.csv", ["task", "label"], [("t1", "cat"), ("t1", "dog")])
    code, _, err = cli("evaluate", labels, "--truth", truth)
    assert code == 3
    assert "'t1'" in err
    assert "rows 1 and 2" in err


def test_task_without_label(cli, table, truth):
    labels = table("l.csv", ["task", "label"], [("t1", "cat"), ("t2", "")])
    code, _, err = cli("evaluate", labels, "--truth", truth)
    assert code == 3
    assert "Row 2" in err


@pytest.mark.parametrize(
    ("header", "row", "truth"),
    [
        (["task", "labels", "p_cat"], ["1", "cat", "1.5"], ["1", "cat"]),
        (["task", "text", "confidence"], ["1", "a cat", "-0.1"], ["1", "a cat"]),
    ],
)
def test_probabilities_outside_of_their_range_are_refused(cli, table, header, row, truth):
    answers = table("answers.csv", header, [row])
    known = table("truth.csv", ["task", header[1]], [truth])
    code, _, err = cli("evaluate", answers, "--truth", known)
    assert (code, f"gives '1' the probability '{row[2]}'" in err) == (3, True), err


def test_sets_without_probabilities(cli, table):
    answers = table("answers.csv", ["task", "labels"], [["1", "cat|dog"], ["2", "cat"]])
    code, out, err = cli("evaluate", answers, "--truth", answers, "--json")
    assert code == 0, err
    assert json.loads(out)["micro_f1"] == 1.0


def test_boxes_of_other_images_are_refused(cli, table):
    header = ["task", "x", "y", "width", "height"]
    answers = table("boxes.csv", header, [["1", "0", "0", "5", "5"]])
    truth = table("truth.csv", header, [["9", "0", "0", "5", "5"]])
    code, _, err = cli("evaluate", answers, "--truth", truth)
    assert (code, "names none of the 1 tasks" in err) == (3, True), err


def test_workers_against_the_truth_and_a_claim(cli, answers, truth, tmp_path, rows):
    claims = tmp_path / "workers.csv"
    cli("aggregate", answers, "-m", "dawid-skene", "-o", tmp_path / "l.csv", "--workers-to", claims)
    code, out, err = cli("evaluate", answers, "--truth", truth, "--workers", "--json")
    assert code == 0, err
    alone = json.loads(out)
    expected = wc.truth.score_workers(wc.read(answers), dict(zip(*known_of(truth), strict=True)))
    assert [row["right"] for row in alone["workers"]] == expected.columns["right"].tolist()
    assert "claimed" not in alone["workers"][0]
    run = ("evaluate", answers, "--truth", truth, "--workers", "--claimed", claims)
    found = json.loads(cli(*run, "--json").out)
    assert {"mean_claimed_minus_right", "coverage", "n_compared"} <= set(found)
    assert found["workers"][0]["claimed_low"] <= found["workers"][0]["claimed"]
    target = tmp_path / "scores.csv"
    assert cli(*run, "-o", target).out == ""
    assert list(rows(target)[0])[:6] == ["worker", "n_labels", "n_truth", "right", "low", "high"]
    text = cli(*run).out
    assert text.splitlines()[0].split()[:3] == ["worker", "labels", "with"]
    assert "mean claimed - right" in text


def test_workers_take_a_saved_model(cli, answers, truth, tmp_path):
    wc.aggregation.DawidSkene().fit(wc.read(answers)).save(tmp_path / "model")
    run = ("evaluate", answers, "--truth", truth, "--workers", "--claimed", tmp_path / "model")
    assert "coverage" in json.loads(cli(*run, "--json").out)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--claimed", "w.csv"), "add --workers"),
        (("--worker", "who"), "add --workers"),
    ],
)
def test_options_about_workers_need_them(cli, answers, truth, more, message):
    code, out, err = cli("evaluate", answers, "--truth", truth, *more)
    assert (code, out) == (2, "")
    assert message in err


def known_of(truth):
    from wisecrowd.io.tables import read_truth

    table = read_truth(truth)
    return table["task"].to_pylist(), table["label"].to_pylist()


def test_a_part_of_the_truth_gives_an_interval_for_all_labels(cli, tmp_path):
    cli("simulate", tmp_path / "crowd", "--tasks", 100)
    whole = (tmp_path / "crowd" / "truth.csv").read_text().splitlines()
    part = tmp_path / "part.csv"
    part.write_text("\n".join(whole[:41]) + "\n")
    labels = tmp_path / "labels.csv"
    cli("aggregate", tmp_path / "crowd" / "answers.csv", "-m", "majority-vote", "-o", labels)
    code, out, errors = cli("evaluate", labels, "--truth", part, "--json")
    assert code == 0, errors
    found = json.loads(out)
    assert "40 tasks checked" in " ".join(found["notes"])
    assert "drawn at random" in " ".join(found["notes"])


def test_labels_made_with_the_known_answers_are_not_judged_by_them(cli, tmp_path):
    cli("simulate", tmp_path / "crowd", "--tasks", 50)
    truth, labels = tmp_path / "crowd" / "truth.csv", tmp_path / "labels.csv"
    answers = tmp_path / "crowd" / "answers.csv"
    cli("aggregate", answers, "-m", "majority-vote", "--gold", truth, "-o", labels)
    code, _, errors = cli("evaluate", labels, "--truth", truth)
    assert code == 3
    assert "cannot judge it" in errors
    cli("aggregate", answers, "-m", "majority-vote", "-o", labels, "--overwrite")
    assert cli("evaluate", labels, "--truth", truth)[0] == 0
