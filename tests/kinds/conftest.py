from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdLabels, CrowdNumbers, CrowdPairs


@pytest.fixture(scope="session")
def make_numbers():
    """Return a function that makes dense numbers, some of which ``change`` spoils."""

    def make(seed=0, n_tasks=150, n_workers=10, change=None):
        rng = np.random.default_rng(seed)
        task, worker = np.divmod(np.arange(n_tasks * n_workers), n_workers)
        truth = rng.normal(0, 2, n_tasks)
        value = truth[task] + 0.2 * rng.normal(size=n_workers)[worker] + rng.normal(size=len(task))
        if change is not None:
            value = change(value, task, worker, rng)
        return CrowdNumbers.from_arrays(task, worker, value)

    return make


@pytest.fixture(scope="session")
def make_votes():
    """Return a function that makes Bradley-Terry votes (1 left, -1 right, 0 tie)."""

    def make(seed=0, n_items=15, n_workers=10, per_worker=120, change=None, spread=1.2):
        rng = np.random.default_rng(seed)
        worker = np.repeat(np.arange(n_workers), per_worker)
        left = rng.integers(0, n_items, len(worker))
        right = (left + rng.integers(1, n_items, len(worker))) % n_items
        score = rng.normal(0, spread, n_items)
        vote = np.where(score[left] - score[right] + rng.logistic(size=len(worker)) > 0, 1, -1)
        if change is not None:
            vote = change(vote, left, right, worker, rng)
        outcome = np.where(vote == 0, 2, np.where(vote > 0, 0, 1))
        return CrowdPairs.from_arrays(None, worker, left, right, outcome)

    return make


@pytest.fixture(scope="session")
def make_grades():
    """Return a function that makes graded responses with five classes."""

    def make(seed=0, change=None):
        rng = np.random.default_rng(seed)
        task, worker = np.divmod(np.arange(1200), 8)
        seen = rng.normal(0, 1, 150)[task] + 0.5 * rng.normal(size=1200)
        label = np.searchsorted([-1.2, -0.4, 0.4, 1.2], seen)
        if change is not None:
            label = change(label, task, worker, rng)
        return CrowdLabels.from_arrays(task, worker, label, classes=range(5), ordered=True)

    return make
