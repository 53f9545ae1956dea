"""Tables whose labels are not classes, on the command line."""

from __future__ import annotations

import time

import numpy as np
import pytest

HEADER = ["task", "worker", "label"]


@pytest.fixture
def numbers(table):
    """Write 600 measurements of 150 tasks by 20 workers."""
    rng = np.random.default_rng(0)
    truth = rng.normal(10, 3, 150)
    rows = [
        (task, f"w{worker}", round(truth[task] + rng.normal(), 2))
        for task in range(150)
        for worker in rng.choice(20, 4, replace=False)
    ]
    return table("numbers.csv", HEADER, rows)


@pytest.mark.parametrize("command", ["aggregate", "audit", "compare", "report"])
def test_numbers_are_refused_at_once_by_every_command(cli, numbers, tmp_path, command):
    start = time.process_time()
    extra = ["-o", tmp_path / "r.html"] if command == "report" else []
    code, _, err = cli(command, numbers, *extra)
    assert code == 3
    assert "fractional numbers" in err
    assert "in row 1 of" in err
    assert "--type labels" in err
    assert time.process_time() - start < 10


def test_declared_numbers_are_what_is_declared(cli, numbers):
    code, out, _ = cli("aggregate", numbers, "--method", "majority-vote", "--type", "labels", "-q")
    assert code == 0
    assert out.count("\n") == 151
    found = cli("aggregate", numbers, "--type", "numbers")
    assert found.code == 0
    assert found.out.startswith("task,value,low,high,n_labels\n")
    assert cli("aggregate", numbers, "--type", "numbers", "-m", "auto").out == found.out


def test_inspect_and_convert_do_not_refuse(cli, numbers, tmp_path):
    code, out, _ = cli("inspect", numbers)
    assert code == 0
    assert "the labels look like numbers (fractional numbers" in out
    assert "--type labels" in out
    assert cli("convert", numbers, tmp_path / "plain.csv").code == 0


def test_columns_of_boxes_declare_boxes(cli, table):
    path = table("boxes.csv", ["task", "worker", "x", "y", "width", "height"], [(1, 2, 3, 4, 5, 6)])
    code, out, err = cli("aggregate", path)
    assert code == 0
    assert out.splitlines()[1].startswith("1,3,4,5,6,,")
    assert "make these boxes" in err
    assert cli("aggregate", path, "-m", "dawid-skene").code == 3


def test_several_labels_per_task_are_refused(cli, table):
    rows = [(t, w, c) for t in range(8) for w in "abc" for c in ("red", "big")]
    path = table("several.csv", HEADER, rows)
    code, _, err = cli("aggregate", path)
    assert code == 3
    assert "24 of 24 (task, worker) pairs have different labels" in err
    for policy in ("last", "keep"):
        assert f"--duplicates {policy}" in err
        assert cli("aggregate", path, "--duplicates", policy).code == 0
