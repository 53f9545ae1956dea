from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError


def check_regular(n_tasks: int, n_workers: int, per_task: int, per_worker: int, seed: int) -> None:
    graph = simulate.Regular(per_task, per_worker)
    task, worker = graph.assign(n_tasks, n_workers, np.random.default_rng(seed))
    assert (np.bincount(task, minlength=n_tasks) == per_task).all()
    assert (np.bincount(worker, minlength=n_workers) == per_worker).all()
    assert (np.diff(task.astype(np.int64) * n_workers + worker) > 0).all(), "sorted, no pair twice"


@settings(max_examples=60, deadline=None)
@given(n_workers=st.integers(1, 12), seed=st.integers(0, 999), data=st.data())
def test_degrees_are_exact_and_no_pair_comes_twice(n_workers, seed, data):
    per_task = data.draw(st.integers(1, n_workers))
    # The smallest numbers of tasks that go out, and multiples of it.
    unit = n_workers // np.gcd(n_workers, per_task)
    n_tasks = int(unit) * data.draw(st.integers(1, 4))
    check_regular(n_tasks, n_workers, per_task, n_tasks * per_task // n_workers, seed)


@pytest.mark.parametrize(
    "sizes", [(1000, 750, 3, 4), (300, 20, 10, 150), (300, 20, 9, 135), (60, 30, 29, 58)]
)
def test_sizes_of_the_literature_and_dense_ones(sizes):
    check_regular(*sizes, seed=1)


@pytest.mark.parametrize("per_task", [1, 2, 3])
def test_every_pair_is_equally_likely(per_task):
    counts = np.zeros((4, 4))
    rng = np.random.default_rng(0)
    for _ in range(4000):
        counts[simulate.Regular(per_task, per_task).assign(4, 4, rng)] += 1
    # Each pair has probability l / 4; the rows are dependent, so each pair is tested alone.
    p = per_task / 4
    z = (counts / 4000 - p) / np.sqrt(p * (1 - p) / 4000)
    assert np.abs(z).max() < 4


def test_workers_of_a_task_are_mixed():
    task, worker = simulate.Regular(3, 300).assign(1000, 10, np.random.default_rng(0))
    together = np.zeros((10, 10))
    rows = worker.reshape(1000, 3)
    for a in range(3):
        for b in range(a + 1, 3):
            np.add.at(together, (rows[:, a], rows[:, b]), 1)
    assert scipy.stats.chisquare(together[np.triu_indices(10, 1)]).pvalue > 0.001
    assert (task == np.repeat(np.arange(1000), 3)).all()


def test_the_number_of_workers_is_implied():
    assert simulate.Regular(3, 4).implied_workers(1000) == 750
    assert simulate.Regular(3, 4).implied_workers(1001) is None
    made = simulate.crowd(1000, simulate.OneCoinWorkers(), simulate.Regular(3, 4))
    assert made.labels.n_workers == 750


def test_sizes_that_do_not_fit():
    rng = np.random.default_rng(0)
    with pytest.raises(ParameterError, match="10 tasks x 3 labels are 30, but 7 workers x 4"):
        simulate.Regular(3, 4).assign(10, 7, rng)
    with pytest.raises(ParameterError, match="cannot give 4 distinct labels"):
        simulate.Regular(4, 8).assign(4, 2, rng)
    with pytest.raises(ParameterError, match=r"^per_worker is "):
        simulate.Regular(3, 0)
