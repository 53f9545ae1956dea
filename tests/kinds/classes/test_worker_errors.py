"""Standard errors of worker accuracies: the rule, degenerate crowds, all methods and packs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.io.tables import write_table
from wisecrowd.kinds.classes import worker_errors
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.worker_errors import (
    WorkerEvidence,
    accuracy_and_error,
    worker_evidence,
)


def some_labels(n_tasks=40, n_workers=5, n_classes=3, seed=0, weight=False):
    rng = np.random.default_rng(seed)
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < 0.6)
    return CrowdLabels(
        task.astype(np.int32),
        worker.astype(np.int32),
        rng.integers(0, n_classes, len(task)).astype(np.int32),
        np.arange(n_tasks),
        np.arange(n_workers),
        np.arange(n_classes),
        weight=rng.uniform(0.5, 2, len(task)) if weight else None,
    )


def by_loops(labels, probas, accuracy):
    """Return the errors straight from the formulas, one worker at a time."""
    J = labels.n_workers
    n, lost = [0.0] * J, [0.0] * J
    for e in range(labels.n_annotations):
        r = float(probas[labels.task[e], labels.label[e]])
        w = 1.0 if labels.weight is None else float(labels.weight[e])
        n[labels.worker[e]] += w
        lost[labels.worker[e]] += w * r * (1 - r)
    mean = sum(n[j] * accuracy[j] for j in range(J)) / sum(n)
    info = []
    for j in range(J):
        a = min(max(accuracy[j], 0.02), 0.98)
        known = min(max(1 - lost[j] / (n[j] * a * (1 - a)), 0), 1)
        info.append(n[j] * known / (a * (1 - a)))

    def kept(value):
        return min(max(value, 0.05**2), 0.25**2)

    s2 = kept(sum(n[j] * (accuracy[j] - mean) ** 2 for j in range(J)) / sum(n))
    for _ in range(200):
        se2 = [1 / (info[j] + 1 / s2) for j in range(J)]
        s2 = kept(sum(n[j] * ((accuracy[j] - mean) ** 2 + se2[j]) for j in range(J)) / sum(n))
    return [math.sqrt(1 / (info[j] + 1 / s2)) for j in range(J)]


@pytest.mark.parametrize("chunk", [7, 1 << 16])
@pytest.mark.parametrize("weight", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_rule_is_that_of_a_loop_over_labels(monkeypatch, chunk, weight, sparse):
    from scipy.sparse import csr_array

    monkeypatch.setattr(worker_errors, "CHUNK", chunk)
    labels, rng = some_labels(200, weight=weight), np.random.default_rng(2)
    probas = rng.dirichlet(np.full(3, 0.1), labels.n_tasks)
    accuracy = np.array([1.0, 0.8, 0.7, 0.75, 0.65])  # their spread stays within its limits
    evidence = worker_evidence(labels, csr_array(probas) if sparse else probas)
    found, error = accuracy_and_error(accuracy, evidence)
    np.testing.assert_array_equal(found, accuracy)
    np.testing.assert_allclose(error, by_loops(labels, probas, accuracy), rtol=1e-12)
    share = [probas[labels.task, labels.label][labels.worker == j].mean() for j in range(5)]
    if not weight:
        np.testing.assert_allclose(evidence.mean_right, share)


def test_the_error_is_that_of_the_observed_information():
    # One worker of unknown accuracy among others who say of each label how probable it is.
    n, rng = 4000, np.random.default_rng(0)
    others = np.where(rng.random(n) < 0.7, rng.beta(3, 2, n), rng.beta(2, 3, n))

    def log_likelihood(a):
        return float(np.log(others * a + (1 - others) * (1 - a)).sum())

    a = 0.7
    for _ in range(5000):
        right = others * a / (others * a + (1 - others) * (1 - a))
        a = right.mean()
    step = 1e-3
    curvature = (2 * log_likelihood(a) - log_likelihood(a + step) - log_likelihood(a - step)) / (
        step**2
    )
    labels = CrowdLabels.from_arrays(
        np.arange(n), np.zeros(n, int), np.zeros(n, int), classes=[0, 1]
    )
    evidence = worker_evidence(labels, np.stack([right, 1 - right], axis=1))
    error = accuracy_and_error(np.array([a]), evidence)[1]
    assert error == pytest.approx((curvature + 1 / 0.25**2) ** -0.5, rel=1e-3)
    assert error > 1.5 * np.sqrt(a * (1 - a) / n)  # what known classes would say


def evidence(total, unsure=None):
    total = np.asarray(total, dtype=float)
    return WorkerEvidence(total, total, np.zeros(len(total)) if unsure is None else unsure)


def test_one_worker_has_the_largest_spread():
    accuracy, error = accuracy_and_error(np.array([0.8]), evidence([100]))
    assert accuracy.tolist() == [0.8]
    assert error[0] == pytest.approx((100 / 0.16 + 1 / 0.0625) ** -0.5)


def test_a_worker_without_labels_is_typical():
    accuracy, error = accuracy_and_error(np.array([0.7, 0.9, 0.2]), evidence([10, 30, 0]))
    assert accuracy[2] == pytest.approx((10 * 0.7 + 30 * 0.9) / 40)
    alone, others = accuracy_and_error(np.array([0.7, 0.9]), evidence([10, 30]))
    np.testing.assert_allclose(error[:2], others)
    np.testing.assert_array_equal(accuracy[:2], alone)
    assert 0.05 <= error[2] <= 0.25
    assert error[2] > error[:2].max()


def test_nobody_with_labels_is_total_ignorance():
    accuracy, error = accuracy_and_error(np.array([0.5, 0.5]), evidence([0, 0]))
    assert accuracy.tolist() == [0.5, 0.5]
    assert error.tolist() == [0.25, 0.25]


def test_labels_that_say_nothing_leave_the_spread():
    unsure = np.array([25.0, 25.0])  # 100 labels with r = 1/2
    _, error = accuracy_and_error(np.array([0.5, 0.5]), evidence([100, 100], unsure))
    assert error.tolist() == pytest.approx([0.05, 0.05])


def test_many_labels_with_known_classes_have_the_binomial_error():
    _, error = accuracy_and_error(np.array([0.8, 0.6]), evidence([1e6, 1e6]))
    np.testing.assert_allclose(error, [4e-4, 4.9e-4], rtol=1e-3)


@pytest.mark.parametrize("name", [n for n in method_names() if n != "auto"])
def test_all_methods_of_classes_share_the_rule(name):
    crowd = simulate.crowd(30, 6 * simulate.OneCoinWorkers(6, 2), simulate.PerTask(4)).labels
    method = get_method(name)()
    if "method" in method.get_params(deep=False) and method.method is None:
        pytest.skip("needs a method inside")
    fit = method._fit_without_checks(crowd)
    expected = accuracy_and_error(fit.worker_accuracy_, worker_evidence(crowd, fit.probas_))
    np.testing.assert_array_equal(fit.worker_accuracy_error_, expected[1])


def test_auto_publishes_the_pool_and_adds_its_distance_from_the_chosen_method():
    crowd = simulate.crowd(80, 10 * simulate.OneCoinWorkers(6, 2), simulate.PerTask(4)).labels
    fit = wc.aggregation.Auto()._fit_without_checks(crowd)
    own = fit.probas_[crowd.task, crowd.label]
    mean = np.array([own[crowd.worker == j].mean() for j in range(10)])
    np.testing.assert_allclose(fit.worker_accuracy_, mean)
    chosen = fit.members_[0]
    _, error = accuracy_and_error(fit.worker_accuracy_, worker_evidence(crowd, chosen.probas_))
    shift = fit.worker_accuracy_ - chosen.worker_accuracy_
    np.testing.assert_allclose(fit.worker_accuracy_error_, np.hypot(error, shift))


def made(method):
    """Return a method without a choice, which depends on the order of the tasks."""
    options = {"candidates": ["hierarchical-dawid-skene"]} if method == "auto" else {}
    return get_method(method)(**options)


@pytest.mark.parametrize("method", ["auto", "hierarchical-dawid-skene", "one-coin"])
def test_a_pack_has_the_errors_of_memory(tmp_path, method):
    crowd = simulate.crowd(200, 12 * simulate.OneCoinWorkers(6, 2), simulate.PerTask(4)).labels
    write_table(tmp_path / "crowd.csv", crowd.to_dict())
    wc.pack(tmp_path / "crowd.csv", tmp_path / "crowd.pack")
    here = made(method)._fit_without_checks(wc.read(tmp_path / "crowd.pack"))
    there = wc.fit_pack(made(method), tmp_path / "crowd.pack").worker_columns()
    assert there["worker"].tolist() == here.workers_.tolist()
    np.testing.assert_allclose(there["agreement_with_result"], here.worker_accuracy_, rtol=1e-6)
    np.testing.assert_allclose(there["standard_error"], here.worker_accuracy_error_, rtol=1e-6)


@pytest.mark.parametrize(
    ("n_tasks", "workers", "per_task", "n_classes"),
    [
        (500, 25 * simulate.OneCoinWorkers(6, 2), 5, 2),
        (300, 20 * simulate.OneCoinWorkers(6, 2), 3, 4),  # 45 labels per worker
        (300, 30 * simulate.DirichletWorkers(6, 1), 5, 3),
    ],
)
def test_errors_are_of_the_size_of_the_deviations(n_tasks, workers, per_task, n_classes):
    error, deviation = [], []
    for seed in range(10):
        made = simulate.crowd(
            n_tasks, workers, simulate.PerTask(per_task), n_classes=n_classes, random_state=seed
        )
        fit = wc.aggregation.HierarchicalDawidSkene()._fit_without_checks(made.labels)
        error += fit.worker_accuracy_error_.tolist()
        deviation += (fit.worker_accuracy_ - made.worker_accuracy).tolist()
    assert 0.8 <= np.mean(error) / np.sqrt(np.mean(np.square(deviation))) <= 1.2
