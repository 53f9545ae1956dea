from __future__ import annotations

import json

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import metrics
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.registry import method_names
from wisecrowd.storage import read_manifest

TWO = "dawid-skene,confusion-vector"
LED = "majority-vote,one-coin"


def test_all_methods_with_truth(cli, answers, truth):
    code, out, err = cli("compare", answers, "--truth", truth, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["n_scored"] == 5
    assert sorted(row["method"] for row in found["methods"]) == sorted(method_names())
    accuracy = [row["accuracy"] for row in found["methods"] if "cpu_seconds" in row]
    assert accuracy == sorted(accuracy, reverse=True)


def test_scores_are_those_of_the_library(cli, answers, truth):
    found = json.loads(cli("compare", answers, "--truth", truth, "--json", "--methods", TWO).out)
    row = next(row for row in found["methods"] if row["method"] == "dawid-skene")
    model = wc.aggregation.DawidSkene().fit(wc.read(answers))
    true = ["cat", "dog", "cat", "dog", "dog"]
    assert row["accuracy"] == metrics.accuracy(true, model.labels_)
    assert row["balanced_accuracy"] == metrics.balanced_accuracy(true, model.labels_)
    assert row["macro_f1"] == metrics.macro_f1(true, model.labels_)
    codes = np.searchsorted(["cat", "dog"], true)
    assert row["log_loss"] == metrics.log_loss(codes, model.probas_)
    assert row["expected_calibration_error"] == metrics.expected_calibration_error(
        codes, model.probas_
    )
    assert row["cpu_seconds"] > 0


def assert_few_tasks(err):
    """Require the one finding there is: the confidence of a fit to five tasks."""
    (line,) = err.splitlines()
    assert line.startswith("confusion-vector: 5 tasks and 3 workers cannot show how good")


def test_table_for_people(cli, answers, truth):
    code, out, err = cli("compare", answers, "--truth", truth, "--methods", TWO)
    header, *lines = out.splitlines()
    assert code == 0
    assert_few_tasks(err)
    assert header.split("  ")[0] == "method"
    for name in ("accuracy", "balanced accuracy", "macro F1", "log loss", "ECE", "CPU seconds"):
        assert name in header
    assert {line.split()[0] for line in lines} == set(TWO.split(","))


def test_truth_of_some_tasks_and_of_a_class_nobody_chose(cli, answers, table):
    truth = table(
        "truth.csv", ["task", "label"], [("t1", "cat"), ("t2", "cow"), ("t3", ""), ("t77", "dog")]
    )
    code, out, err = cli("compare", answers, "--truth", truth, "--json", "--methods", TWO)
    assert code == 0
    assert "1 tasks of" in err
    found = json.loads(out)
    assert found["n_scored"] == 2
    assert found["notes"] == err.splitlines()
    assert {row["accuracy"] for row in found["methods"]} == {0.5}
    assert all(row["log_loss"] > 10 for row in found["methods"])  # the impossible happened


@pytest.fixture
def many(table):
    """Return a file of 60 labels, which is enough to recommend a method."""
    rng = np.random.default_rng(0)
    rows = [
        (f"t{i:02d}", worker, "cat" if rng.random() < (0.8 if i % 2 else 0.2) else "dog")
        for i in range(20)
        for worker in ("ann", "bob", "cyd")
    ]
    return table("many.csv", ["task", "worker", "label"], rows)


def test_a_few_hidden_labels_recommend_nothing(cli, answers):
    found = json.loads(cli("compare", answers, "--json", "--methods", TWO).out)
    assert found["recommended"] is None
    assert "fewer than 30 labels could be hidden" in found["reason"]
    assert not any(row["recommended"] for row in found["methods"])


def test_without_truth(cli, many):
    found = json.loads(cli("compare", many, "--json", "--methods", TWO).out)
    labels = wc.read(many)
    a = wc.aggregation.DawidSkene().fit(labels)
    b = wc.aggregation.ConfusionVector().fit(labels)
    agreement = float(np.mean(a.labels_ == b.labels_))
    assert found["n_scored"] is None
    scores = [row["held_out_score"] for row in found["methods"]]
    assert scores == sorted(scores, reverse=True)
    assert found["recommended"] is None  # neither is the default, and neither leads
    first = found["methods"][0]["method"]
    assert found["reason"].startswith(
        f"No method is recommended: {first} predicts held-out labels best"
    )
    assert found["reason"].endswith("compare the default, auto, too.")
    for row, model in zip(
        sorted(found["methods"], key=lambda row: row["method"]), (b, a), strict=True
    ):
        assert row["agreement"] == agreement
        assert row["standard_error"] > 0
        assert row["mean_confidence"] == np.mean(model.confidence_)
    assert found["methods"][0]["near_best"] is True


@pytest.fixture
def led(table):
    """Return a file in which workers differ, so that one method leads."""
    rng = np.random.default_rng(0)
    rows = [
        (
            f"t{i:02d}",
            f"w{j}",
            "cat" if (i % 2 == 0) == (rng.random() < (0.95, 0.5)[j > 2]) else "dog",
        )
        for i in range(60)
        for j in range(8)
    ]
    return table("led.csv", ["task", "worker", "label"], rows)


def test_table_without_truth_explains_its_columns(cli, led):
    code, out, _ = cli("compare", led, "--methods", LED)
    assert code == 0
    table, _, below = out.partition("\n\n")
    header, first, _ = table.splitlines()
    for name in ("held-out score", "± SE", "near best", "mean confidence", "CPU seconds"):
        assert name in header
    assert first.split()[3] == "recommended"
    reason, *explanations = below.splitlines()
    assert reason.startswith(f"{first.split()[0]} is recommended: it predicts held-out labels best")
    assert [text.partition(":")[0] for text in explanations] == [
        "held-out score", "near best", "mean confidence",
    ]  # fmt: skip


def test_recommendation_beside_a_file_goes_to_standard_error(cli, led, tmp_path, rows):
    target = tmp_path / "compare.csv"
    code, out, err = cli("compare", led, "-o", target, "--methods", LED)
    assert (code, out) == (0, "")
    best = rows(target)[0]
    assert best["recommended"] == "true"
    assert f"{best['method']} is recommended" in err


def test_one_label_per_task_has_no_recommendation(cli, table):
    answers = table("one.csv", ["task", "worker", "label"], [("t1", "a", "x"), ("t2", "b", "y")])
    found = json.loads(cli("compare", answers, "--json", "--methods", "majority-vote,wawa").out)
    assert found["recommended"] is None
    assert "tasks with two labels or more" in found["reason"]
    out = cli("compare", answers, "--methods", "majority-vote,wawa").out
    assert "No method is recommended" in out


def test_one_method_has_nothing_to_agree_with(cli, answers):
    found = json.loads(cli("compare", answers, "--json", "--methods", "dawid-skene").out)
    assert found["methods"][0]["agreement"] is None
    assert found["recommended"] is None


def test_method_that_cannot_run_gives_its_reason(cli, answers, truth, monkeypatch):
    def refuse(self, *args, **kwargs):
        raise DataError("ConfusionVector handles two classes and there are four; wrap it.")

    monkeypatch.setattr(wc.aggregation.ConfusionVector, "_fit", refuse)
    code, out, err = cli("compare", answers, "--truth", truth, "--methods", TWO)
    assert (code, err) == (0, "")
    assert out.splitlines()[-2].split() == ["not", "run", "why"]
    assert out.splitlines()[-1] == (
        "confusion-vector  ConfusionVector handles two classes and there are four; wrap it."
    )
    found = json.loads(cli("compare", answers, "--methods", TWO, "--json").out)
    assert found["methods"][-1]["reason"].startswith("ConfusionVector handles")


def test_file_with_manifest(cli, answers, truth, tmp_path, rows):
    target = tmp_path / "compare.csv"
    code, out, _ = cli("compare", answers, "--truth", truth, "-o", target, "--methods", TWO)
    assert (code, out) == (0, "")
    assert rows(target)[0]["method"] in TWO.split(",")
    assert list(rows(target)[0])[:3] == ["method", "accuracy", "balanced_accuracy"]
    assert set(read_manifest(target).inputs) == {str(answers), str(truth)}


def test_unknown_method_is_a_usage_error(cli, answers):
    code, _, err = cli("compare", answers, "--methods", "dawid-skene,gald")
    assert code == 2
    assert "'gald'" in err


def test_dog_reaches_the_published_accuracy(cli, data_directory):
    folder = data_directory / "dog"
    out = cli(
        "compare", folder / "answers.csv", "--truth", folder / "truth.csv", "--json",
        "--methods", "dawid-skene",
    ).out  # fmt: skip
    assert json.loads(out)["methods"][0]["accuracy"] >= 0.840
