"""Equal sheets against exact agreement probabilities, and the skill estimate against the truth."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.checks.identical_workers import best_accuracy, identical_sheets, log_chance
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.votes import vote_table


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
