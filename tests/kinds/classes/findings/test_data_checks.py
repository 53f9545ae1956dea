"""What is odd about labels: separate parts, copies, stuffed ballots, classes nobody chose."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.kinds.classes.container import CrowdLabels, subsample_tasks, vote_table
from wisecrowd.kinds.classes.findings.data_checks import (
    best_accuracy,
    data_findings,
    identical_sheets,
    log_chance,
)


def found(labels):
    return {finding.id: finding for finding in data_findings(labels, subsample_tasks(labels))}


def table(n_tasks=60, n_workers=6, seed=0, accuracy=0.8):
    """Labels (n_tasks, n_workers) of two classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, (n_tasks, 1))
    return np.where(rng.random((n_tasks, n_workers)) < accuracy, truth, 1 - truth)


def rows_of(matrix, first_worker=0, first_task=0):
    task, worker = np.indices(matrix.shape)
    return task.ravel() + first_task, worker.ravel() + first_worker, matrix.ravel()


def joined(*parts, **options):
    columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    return CrowdLabels.from_arrays(*columns, **options)


def test_nothing_is_odd_about_a_good_crowd():
    assert found(CrowdLabels.from_matrix(table())) == {}


def test_classes_nobody_chose_are_noted_without_a_warning():
    labels = CrowdLabels.from_matrix(table(), classes=[0, 1, 2])
    assert found(labels)["class-never-seen"].affected == (2,)
    assert "No label says 2 (1 of 3 classes)" in DawidSkene().fit(labels).warnings_[0]


def test_parts_that_share_no_tasks():
    labels = joined(rows_of(table()), rows_of(table(seed=1)[:40, :3], 6, 60))
    finding = found(labels)["separate-parts"]
    assert finding.affected == (6, 7, 8)
    assert finding.severity == "low"  # information: the parts are fitted well or not, each
    assert finding.score == pytest.approx(120 / 480)
    bridge = (np.array([0]), np.array([6]), np.array([0]))
    connected = joined(rows_of(table()), bridge, rows_of(table(seed=1)[:40, :3], 6, 60))
    assert "separate-parts" not in found(connected)


def test_a_long_chain_of_workers_is_one_part():
    task = np.repeat(np.arange(100), 2)
    worker = np.arange(200) // 2 + np.arange(200) % 2  # worker j meets j + 1 on one task only
    labels = CrowdLabels.from_arrays(task, worker, task % 2)
    assert "separate-parts" not in found(labels)


def test_the_largest_part_is_the_main_one_even_if_its_workers_are_less_busy():
    rows = np.arange(200)
    many = (
        np.repeat(rows, 2),
        (np.repeat(rows, 2) + np.tile([0, 1], 200)) % 40,
        np.zeros(400, int),
    )
    one = (300 + np.arange(30), np.full(30, 99), np.zeros(30, dtype=int))
    assert found(joined(one, many))["separate-parts"].affected == (99,)


def test_copies_of_a_sheet():
    matrix = table(300, 9, accuracy=0.7)
    copies = np.column_stack([matrix, matrix[:, 4], matrix[:, 4]])
    with pytest.warns(WisecrowdWarning, match="3 workers .4, 9, 10. gave exactly the labels"):
        MajorityVote().fit(CrowdLabels.from_matrix(copies))


def test_ballots_stuffed_by_repetition():
    usual = rows_of(table())
    again = (np.repeat(np.arange(10), 8), np.full(80, 3), np.ones(80, dtype=int))
    labels = joined(usual, again, duplicates="keep")
    assert found(labels)["ballot-stuffing"].affected == (3,)
    few = table(40, 1)
    thrice = (np.repeat(np.arange(10), 3), np.full(30, 3), np.ones(30, dtype=int))
    assert found(joined(rows_of(few), thrice, duplicates="keep"))["ballot-stuffing"].affected == (
        3,
    )
    twice = (np.repeat(np.arange(10), 2), np.full(20, 3), np.ones(20, dtype=int))
    assert "ballot-stuffing" not in found(joined(rows_of(few), twice, duplicates="keep"))
    three_each = joined(usual, usual, usual, duplicates="keep")  # everybody alike: no stuffing
    assert "ballot-stuffing" not in found(three_each)


def test_ballots_stuffed_by_strangers():
    strangers = (np.full(40, 7), 100 + np.arange(40), np.ones(40, dtype=int))
    finding = found(joined(rows_of(table()), strangers))["ballot-stuffing"]
    assert finding.affected == (7,)
    divided = (np.full(40, 7), 100 + np.arange(40), np.arange(40) % 2)  # a task of wide interest
    assert "ballot-stuffing" not in found(joined(rows_of(table()), divided))


def test_a_crowd_of_one_task_workers_is_usual_for_itself():
    made = simulate.crowd(200, 1000 * simulate.OneCoinWorkers(), simulate.PerTask(5))
    assert found(made.labels) == {}


def labels_of(accuracies, n_tasks, seed=0, copies=()):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, (n_tasks, 1))
    matrix = np.where(rng.random((n_tasks, len(accuracies))) < accuracies, truth, 1 - truth)
    return CrowdLabels.from_matrix(np.column_stack([matrix, *(matrix[:, j] for j in copies)]))


def test_copies_of_weak_workers_are_found():
    labels = labels_of([0.8] * 8 + [0.55], 150, copies=(8, 8))
    assert [group.tolist() for group in identical_sheets(labels)] == [[8, 9, 10]]


def test_experts_with_equal_sheets_are_left_alone():
    assert identical_sheets(labels_of([0.65] * 8 + [1.0, 1.0], 150)) == []
    assert identical_sheets(labels_of([1.0] * 6, 200)) == []


def test_few_equal_labels_are_chance():
    assert identical_sheets(labels_of([0.8] * 9, 12, copies=(3,))) == []


def test_sheets_with_other_tasks_or_one_other_label_are_not_equal():
    labels = labels_of([0.8] * 8 + [0.55], 150, copies=(8,))
    other = labels.label.copy()
    other[-1] = 1 - other[-1]
    assert identical_sheets(CrowdLabels(labels.task, labels.worker, other, labels.tasks,
                                        labels.workers, labels.classes)) == []  # fmt: skip


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("accuracy", [0.6, 0.9])
def test_the_best_accuracy_is_just_above_the_true_one(n_classes, accuracy):
    off = (1 - accuracy) / (n_classes - 1)
    matrix = np.full((n_classes, n_classes), off) + (accuracy - off) * np.eye(n_classes)
    workers = 8 * simulate.OneCoinWorkers(30, 10) + 1 * simulate.FixedConfusion(matrix)
    labels = simulate.crowd(4000, workers, simulate.Dense(), n_classes=n_classes).labels
    mine = labels.worker == 8
    rest = vote_table(labels.select_annotations(~mine))[labels.task[mine]]
    best = best_accuracy(rest, labels.label[mine], int(mine.sum()))
    assert accuracy - 0.01 < best < min(accuracy + 0.08, 1.0 + 1e-12)


def test_log_chance_bounds_the_binomial_tail():
    from scipy.stats import binom

    for agreement, n in ((1.0, 20), (0.9, 50), (0.95, 200)):
        exact = binom.logsf(round(agreement * n) - 1, n, 0.7**2 + 0.3**2)
        assert exact - 1e-9 <= log_chance(agreement, n, 0.7) <= exact + 4
    assert log_chance(1.0, 20, 0.7) == pytest.approx(20 * np.log(0.58))
    assert log_chance(0.5, 20, 0.7) == 0.0
