from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.task_prior import TaskPrior
from wisecrowd.families.collapsed import CollapsedChains, Collapsible, _earlier_labels
from wisecrowd.kernels.gibbs import reference


def repeated_labels(weighted):
    """Workers label a task up to four times, and others in between."""
    rng = np.random.default_rng(0)
    task, worker = rng.integers(0, 5, 60), rng.integers(0, 3, 60)
    return CrowdLabels.from_arrays(
        task, worker, rng.integers(0, 3, 60), weight=rng.uniform(0.2, 2, 60) if weighted else None,
        duplicates="keep",
    )  # fmt: skip


@pytest.mark.parametrize("coin", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_earlier_labels_by_looking_at_all_pairs(coin, weighted):
    labels = repeated_labels(weighted)
    E, K = labels.n_annotations, labels.n_classes
    weight = np.ones(E) if labels.weight is None else labels.weight
    expected, total = np.zeros((E, K)), np.zeros(E)
    for e in range(E):
        for f in range(e):
            if labels.task[e] == labels.task[f] and labels.worker[e] == labels.worker[f]:
                total[e] += weight[f]
                for k in range(K):
                    one, other = labels.label[e], labels.label[f]
                    same = (one == k) == (other == k) if coin else one == other
                    expected[e, k] += weight[f] * same
    assert total.max() > 2  # some worker labels some task more than twice
    found, found_total = _earlier_labels(labels, coin)
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(found_total, total)


def test_nothing_is_earlier_where_every_label_counts_once():
    labels = CrowdLabels.from_matrix([[0, 1, 1], [1, 1, 0]])
    assert _earlier_labels(labels, True) == (None, None)


@pytest.mark.parametrize("coin", [True, False])
def test_counts_do_not_drift(coin):
    """What sweeps add and take away is what counting anew gives, weights included."""
    labels = repeated_labels(weighted=True)
    K = labels.n_classes
    parameters = np.array([3.0, 1.0]) if coin else 1 + 3 * np.eye(K)[None]
    chains = CollapsedChains(
        labels, TaskPrior(np.zeros((1, K))), Collapsible(coin, parameters), None, 0.5, 2
    )
    rng = np.random.default_rng(1)
    chains.start(np.full((labels.n_tasks, K), 1 / K), rng)
    for _ in range(5):
        chains.sweep(reference, rng, keep=False)
    kept = chains.counts.copy(), chains.totals.copy(), chains.class_counts.copy()
    chains._count()
    for before, after in zip(
        kept, (chains.counts, chains.totals, chains.class_counts), strict=True
    ):
        np.testing.assert_allclose(before, after, atol=1e-12)
    assert chains.class_counts.sum() == pytest.approx(2 * (labels.n_tasks + K * 0.5))
