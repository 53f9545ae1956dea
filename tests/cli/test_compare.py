from __future__ import annotations

import json

import numpy as np

import wisecrowd as wc
from wisecrowd import metrics
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.registry import method_names
from wisecrowd.storage import read_manifest

TWO = "dawid-skene,confusion-vector"


def test_all_methods_with_truth(cli, answers, truth):
    code, out, err = cli("compare", answers, "--truth", truth, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["n_scored"] == 5
    assert sorted(row["method"] for row in found["methods"]) == sorted(method_names())
    accuracy = [row["accuracy"] for row in found["methods"] if "seconds" in row]
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
    assert row["seconds"] > 0


def test_table_for_people(cli, answers, truth):
    code, out, err = cli("compare", answers, "--truth", truth, "--methods", TWO)
    header, *lines = out.splitlines()
    assert (code, err) == (0, "")
    assert header.split("  ")[0] == "method"
    for name in ("accuracy", "balanced accuracy", "macro F1", "log loss", "ECE", "seconds"):
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


def test_without_truth(cli, answers):
    found = json.loads(cli("compare", answers, "--json", "--methods", TWO).out)
    labels = wc.read(answers)
    a = wc.aggregation.DawidSkene().fit(labels)
    b = wc.aggregation.ConfusionVector().fit(labels)
    agreement = float(np.mean(a.labels_ == b.labels_))
    assert found["n_scored"] is None
    for row in found["methods"]:
        assert row["agreement"] == agreement
        assert row["held_out_log_likelihood"] < 0


def test_held_out_likelihood_uses_unseen_tasks(cli, answers):
    found = json.loads(cli("compare", answers, "--json", "--methods", "dawid-skene").out)
    labels = wc.read(answers)
    order = np.random.default_rng(0).permutation(5)
    model = wc.aggregation.DawidSkene().fit(labels[np.sort(order[1:])])
    assert found["methods"][0]["held_out_log_likelihood"] == model.score(labels[order[:1]])
    assert found["methods"][0]["agreement"] is None  # there is no other


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
