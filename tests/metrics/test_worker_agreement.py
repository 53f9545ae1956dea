"""scikit-learn, plain loops and brute-force resampling as oracles."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from wisecrowd import metrics, simulate
from wisecrowd.metrics.resampling import Bootstrap
from wisecrowd.metrics.worker_agreement import pair_kappas, worker_agreement


@pytest.fixture(scope="module")
def labels():
    workers = 6 * simulate.OneCoinWorkers(8, 2) + 2 * simulate.Spammers()
    return simulate.crowd(150, workers, simulate.Bernoulli(0.5), n_classes=3).labels


def arrays(labels):
    return labels.indptr, labels.task, labels.worker, labels.label, labels.n_classes


@pytest.mark.parametrize("seed", range(5))
def test_cohen_agrees_with_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 4, 30)
    second = np.where(rng.random(30) < 0.6, first, rng.integers(2, 6, 30))
    expected = cohen_kappa_score(first, second)
    assert metrics.cohen_kappa(first, second) == pytest.approx(expected, abs=1e-12)
    assert metrics.cohen_kappa(second, first) == pytest.approx(expected, abs=1e-12)


def test_cohen_of_one_class_is_undefined():
    assert np.isnan(metrics.cohen_kappa(["a", "a"], ["a", "a"]))


def test_pairs_agree_with_scikit_learn_on_common_tasks(labels):
    found = pair_kappas(*arrays(labels), min_common=30)
    matrix = np.full((labels.n_tasks, labels.n_workers), -1)
    matrix[labels.task, labels.worker] = labels.label
    expected = {}
    for j in range(8):
        for k in range(j + 1, 8):
            both = (matrix[:, j] >= 0) & (matrix[:, k] >= 0)
            if both.sum() >= 30:
                expected[j, k] = cohen_kappa_score(matrix[both, j], matrix[both, k])
    assert 0 < len(expected) < 28  # the threshold cuts some pairs off, not all
    pairs = list(zip(found.first.tolist(), found.second.tolist(), strict=True))
    assert pairs == list(expected)
    np.testing.assert_allclose(found.kappa, list(expected.values()), atol=1e-12)
    assert found.mean.value == pytest.approx(np.mean(list(expected.values())))


def test_errors_of_pairs_are_those_of_resampled_tasks(labels):
    found = pair_kappas(*arrays(labels), min_common=5)
    rng = np.random.default_rng(1)
    means, first_pair = [], []
    for _ in range(400):
        chosen = np.sort(rng.integers(labels.n_tasks, size=labels.n_tasks))
        rows = np.concatenate([np.arange(*labels.indptr[i : i + 2]) for i in chosen])
        indptr = np.concatenate([[0], np.cumsum(labels.labels_per_task[chosen])])
        task = np.repeat(np.arange(len(chosen)), labels.labels_per_task[chosen])
        drawn = pair_kappas(indptr, task, labels.worker[rows], labels.label[rows], 3)
        means.append(drawn.mean.value)
        first_pair.append(drawn.kappa[0])
    width = found.mean.high - found.mean.low
    assert width == pytest.approx(2 * 1.96 * np.std(means), rel=0.15)
    assert found.kappa_error[0] == pytest.approx(np.std(first_pair), rel=0.15)


def test_error_of_one_pair_is_the_published_formula():
    """Fleiss, Cohen and Everitt (1969), formula 13, on a skewed table."""
    table = np.array([[44, 5, 1], [7, 20, 3], [9, 5, 6]])
    first, second = np.repeat(np.indices((3, 3)).reshape(2, -1), table.ravel(), axis=1)
    n = table.sum()
    found = pair_kappas(
        np.arange(0, 2 * n + 1, 2), np.repeat(np.arange(n), 2), np.tile([0, 1], n),
        np.stack([first, second], axis=1).ravel(), 3,
    )  # fmt: skip
    p = table / n
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    agree, chance = np.trace(p), rows @ columns
    diagonal = np.diag(p) @ ((1 - chance) - (rows + columns) * (1 - agree)) ** 2
    weights = (columns[:, None] + rows[None, :]) ** 2
    apart = (1 - agree) ** 2 * (p * weights * (1 - np.eye(3))).sum()
    last = (agree * chance - 2 * chance + agree) ** 2
    variance = (diagonal + apart - last) / (n * (1 - chance) ** 4)
    assert found.kappa_error[0] == pytest.approx(np.sqrt(variance))
    reach = found.mean.high - found.mean.value
    assert reach == pytest.approx(1.959964 * np.sqrt(variance), rel=1e-5)


def test_a_worker_does_not_agree_with_itself():
    # Two labels by worker 0 and one by worker 1 on a task: one pair only, seen twice.
    found = pair_kappas(
        np.array([0, 3]), np.zeros(3, int), np.array([0, 0, 1]), np.array([0, 1, 1]), 2,
        min_common=1,
    )  # fmt: skip
    assert found.common.tolist() == [2]
    assert found.agreement.tolist() == [0.5]


def test_agreement_of_workers_agrees_with_loops(labels):
    indptr, task, worker, label, n_classes = arrays(labels)
    compared, found = worker_agreement(indptr, worker, label, labels.n_workers, n_classes)
    shared = labels.labels_per_task[task] >= 2
    share = np.bincount(label[shared]) / shared.sum()
    for j in range(labels.n_workers):
        agreeing, chance = [], []
        for e in np.flatnonzero(shared & (worker == j)):
            others = (task == task[e]) & (np.arange(len(task)) != e)
            agreeing.append(np.mean(label[others] == label[e]))
            chance.append(share[label[e]])
        expected = np.mean(chance)
        assert compared[j] == len(agreeing)
        assert found.value[0, j] == pytest.approx(np.mean(agreeing))
        kappa = (np.mean(agreeing) - expected) / (1 - expected)
        assert found.value[1, j] == pytest.approx(kappa)


def test_intervals_of_workers_have_the_width_of_a_mean(labels):
    indptr, task, worker, label, n_classes = arrays(labels)
    _, found = worker_agreement(indptr, worker, label, 8, n_classes, Bootstrap(2000))
    shared = labels.labels_per_task[task] >= 2
    for j in range(8):
        rows = np.flatnonzero(shared & (worker == j))
        values = [
            np.mean(label[(task == task[e]) & (worker != j)] == label[e]) for e in rows.tolist()
        ]
        error = np.std(values) / np.sqrt(len(values))
        assert found.high[0, j] - found.low[0, j] == pytest.approx(2 * 1.96 * error, rel=0.12)


def test_workers_alone_on_their_tasks_have_no_agreement():
    compared, found = worker_agreement(
        np.array([0, 2, 3]), np.array([0, 1, 2]), np.array([0, 0, 1]), 3, 2, Bootstrap(10)
    )
    assert compared.tolist() == [1, 1, 0]
    assert np.isnan(found.value[:, 2]).all()
    assert np.isnan(found.low[:, 2]).all()
    assert found.value[0, :2].tolist() == [1.0, 1.0]
