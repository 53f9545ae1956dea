"""Ordered classes on the command line: a scale from the file to the scores."""

from __future__ import annotations

import json

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import Thresholds

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def made():
    return simulate.graded_responses(40, 6, n_classes=5)


@pytest.fixture
def frames(made, tmp_path):
    """Return paths of the same labels as csv, jsonl and parquet, and of the truth."""
    from pyarrow import csv, parquet

    columns = made.labels.to_dict()
    table = pa.table({
        "task": [f"t{i}" for i in columns["task"].tolist()],
        "worker": [f"w{j}" for j in columns["worker"].tolist()],
        "label": columns["label"] + 1,
    })  # fmt: skip
    csv.write_csv(table, tmp_path / "s.csv")
    parquet.write_table(table, tmp_path / "s.parquet")
    lines = [json.dumps(row) for row in table.to_pylist()]
    (tmp_path / "s.jsonl").write_text("\n".join(lines))
    truth = pa.table({"task": [f"t{i}" for i in range(40)], "label": made.truth + 1})
    csv.write_csv(truth, tmp_path / "truth.csv")
    parquet.write_table(truth, tmp_path / "truth.parquet")
    return tmp_path


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_scale_reads_every_file(cli, frames, made, ending):
    target = frames / f"out-{ending}.csv"
    result = cli(
        "aggregate", frames / f"s.{ending}", "-m", "thresholds", "--scale", "1..5", "-o", target,
        "--workers", frames / "workers.csv",
    )  # fmt: skip
    assert result.code == 0, result.err
    rows = [line.split(",")[:2] for line in target.read_text().splitlines()[1:]]
    found = np.array([int(dict(rows)[f"t{i}"]) for i in range(40)])
    assert np.array_equal(found, Thresholds().fit(made.labels).labels_ + 1)
    header = (frames / "workers.csv").read_text().splitlines()[0].split(",")
    assert {"sensitivity", "specificity_above_4"} <= set(header)


@pytest.mark.parametrize("options", [("--scale", "1..5"), ("--type", "ordered")])
@pytest.mark.parametrize("truth", ["truth.csv", "truth.parquet"])
def test_evaluate_scores_distances(cli, frames, made, options, truth):
    target = frames / "labels.csv"
    cli("aggregate", frames / "s.csv", "-m", "thresholds", "--scale", "1..5", "-o", target)
    result = cli("evaluate", target, "--truth", frames / truth, *options, "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    labels = Thresholds().fit(made.labels).labels_
    assert found["accuracy"] == pytest.approx(np.mean(labels == made.truth))
    assert found["mean_absolute_error"] == pytest.approx(np.abs(labels - made.truth).mean())
    assert 0 < found["quadratic_weighted_kappa"] < 1
    plain = json.loads(cli("evaluate", target, "--truth", frames / "truth.csv", "--json").out)
    assert "mean_absolute_error" not in plain
    table = cli("evaluate", target, "--truth", frames / truth, *options).out
    assert "MAE" in table
    assert "weighted kappa" in table


def test_grades_off_the_scale(cli, frames):
    target = frames / "labels.csv"
    cli("aggregate", frames / "s.csv", "-m", "thresholds", "--scale", "1..5", "-o", target)
    result = cli("evaluate", target, "--truth", frames / "truth.csv", "--scale", "1..3")
    assert result.code != 0
    assert "is not on the scale '1', '2', '3'" in result.err


def test_compare_adds_the_scores_of_ordered_classes(cli, frames):
    result = cli(
        "compare", frames / "s.csv", "--scale", "1..5", "--truth", frames / "truth.csv",
        "--methods", "thresholds,majority-vote", "--json",
    )  # fmt: skip
    assert result.code == 0, result.err
    for row in json.loads(result.out)["methods"]:
        assert 0 <= row["mean_absolute_error"] < 4
        assert row["quadratic_weighted_kappa"] < 1


@pytest.mark.parametrize("scale", ["..5", "1.5..5", "0x1..5", "x..5", "--1..5", "\u00b2..5"])
def test_a_scale_with_an_end_that_is_not_a_whole_number_is_refused(cli, frames, scale):
    code, _, err = cli("aggregate", frames / "s.csv", f"--scale={scale}")
    assert code == 2
    assert "--scale is" in err
    assert "such as 1..5" in err


def test_a_label_off_the_scale_names_the_option(cli, frames):
    code, _, err = cli("aggregate", frames / "s.csv", "--scale", "1..3")
    assert code == 3
    assert "add it to --scale" in err


def test_a_method_of_the_wrong_kind_is_spelled_for_the_shell(cli, frames):
    wrong = ("-m", "thresholds", "-p", "method=mean")
    code, _, err = cli("aggregate", frames / "s.csv", "--scale", "1..5", *wrong)
    assert code == 2
    assert "-p method=dawid-skene" in err


def test_a_pack_says_that_shards_do_not_use_the_order(cli, tmp_path):
    grades = tmp_path / "grades.csv"
    grades.write_text("task,worker,label\n" + "".join(
        f"t{i},w{j},{1 + (i + j // 2) % 3}\n" for i in range(12) for j in range(3)
    ))  # fmt: skip
    assert cli("pack", grades, "--type", "ordered", "-o", tmp_path / "p").code == 0
    done = cli("aggregate", tmp_path / "p", "--engine", "files", "-o", tmp_path / "o")
    assert done.code == 0
    assert "auto is fitted, which does not use the order of the classes" in done.err
