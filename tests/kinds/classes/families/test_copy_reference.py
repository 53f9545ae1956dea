from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.copy_reference import (
    LEAST_RATE,
    Annotations,
    reference,
    shrunk_confusion,
    softmax,
)
from wisecrowd.kinds.classes.families.copy_test import COMPETENT

NOBODY = np.full(15, -1, dtype=np.int32)


def copied(seed=0):
    workers = 9 * simulate.OneCoinWorkers(8, 3) + 1 * simulate.Spammers()
    workers = workers + 5 * simulate.Copiers(sources=9)
    return simulate.crowd(300, workers, simulate.Dense(), random_state=seed)


def suspects(first, n_workers):
    groups = np.full(n_workers, -1, dtype=np.int32)
    groups[first:] = 0
    return groups


def test_a_suspected_group_is_one_unit_per_task():
    data = Annotations.of(copied().labels, suspects(9, 15))
    assert len(data.unit_task) == 300 * 10
    np.testing.assert_allclose(np.bincount(data.unit, data.share), 1.0)
    np.testing.assert_array_equal(data.unit_task[data.unit], data.task)


def test_repeated_labels_are_one_label_of_their_weight():
    labels = copied(2).labels
    times = np.random.default_rng(0).integers(1, 4, labels.n_annotations)
    columns = labels.task, labels.worker, labels.label
    weighted = CrowdLabels.from_arrays(*columns, weight=times.astype(float))
    repeated = (np.repeat(column, times) for column in columns)
    repeated = CrowdLabels.from_arrays(*repeated, duplicates="keep")
    groups = suspects(9, 15)
    for one, other in zip(
        Annotations.of(weighted, groups), Annotations.of(repeated, groups), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    one, other = reference(weighted, groups), reference(repeated, groups)
    np.testing.assert_array_equal(one.confusion, other.confusion)
    np.testing.assert_array_equal(one.log_posterior, other.log_posterior)


def test_a_worker_who_labels_a_task_twice_is_one_worker():
    """A unit counts as one worker, whose two labels for a task both count; a group's are shared."""
    labels = CrowdLabels.from_arrays(
        [0, 0, 0, 0], ["a", "a", "b", "c"], [0, 1, 1, 1], duplicates="keep"
    )
    alone = Annotations.of(labels, np.array([-1, 0, 0], dtype=np.int32))
    np.testing.assert_allclose(alone.share, [1, 1, 0.5, 0.5])
    together = Annotations.of(labels, np.zeros(3, dtype=np.int32))
    np.testing.assert_allclose(together.share, [1 / 3] * 4)


def test_copies_do_not_confirm_each_other():
    """Six copies of a random sheet look skilled, unless their skill is judged by the others."""
    labels = copied(1).labels
    plain = reference(labels, NOBODY).confusion[9:, [0, 1], [0, 1]].mean()
    judged = reference(labels, suspects(9, 15)).confusion[9:, [0, 1], [0, 1]].mean()
    assert plain > 0.9
    assert judged == pytest.approx(0.5, abs=0.1)


def test_skills_and_classes_of_independent_workers():
    made = simulate.crowd(800, 12 * simulate.OneCoinWorkers(8, 3), simulate.Dense(), n_classes=3)
    found = reference(made.labels, NOBODY[:12])
    posterior = softmax(found.log_posterior).reshape(800, 3, -1)
    assert np.mean(posterior.sum(axis=2).argmax(axis=1) == made.truth_codes) > 0.97
    difficulty = posterior.sum(axis=1).mean(axis=0)
    law = found.law.reshape(12, 3, -1, 3).transpose(0, 1, 3, 2) @ difficulty  # (J, K, L)
    np.testing.assert_allclose(law, made.confusion, atol=0.12)
    assert found.competence > 10


def test_random_labels_are_no_competence():
    made = simulate.crowd(300, 6 * simulate.Spammers(), simulate.PerTask(4), n_classes=3)
    assert reference(made.labels, NOBODY[:6]).competence < COMPETENT


def test_without_both_units_only_the_prior_is_left():
    made = simulate.crowd(50, 2 * simulate.OneCoinWorkers(), simulate.Dense(), n_classes=2)
    found = reference(made.labels, NOBODY[:2])
    first = np.arange(0, 100, 2)
    rest = found.without(first, first + 1)
    np.testing.assert_allclose(rest, rest[:1] * np.ones((50, 1)), atol=1e-9)


def test_confusion_rows_are_distributions_around_the_counts():
    rows = shrunk_confusion(np.array([[[90.0, 10.0], [20.0, 80.0]], [[0.0, 0.0], [0.0, 0.0]]]))
    np.testing.assert_allclose(rows.sum(axis=2), 1.0)
    assert (rows >= LEAST_RATE / 2).all()
    np.testing.assert_allclose(rows[0], [[0.9, 0.1], [0.2, 0.8]], atol=0.02)
    np.testing.assert_allclose(rows[1].diagonal(), 0.84, atol=0.02)  # the crowd's accuracy
