from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError


def draw(graph: simulate.Assignment, n_tasks: int, n_workers: int, seed: int = 0):
    return graph.assign(n_tasks, n_workers, np.random.default_rng(seed))


def check_pairs(task: np.ndarray, worker: np.ndarray, n_tasks: int, n_workers: int) -> None:
    assert task.dtype == worker.dtype == np.int32
    keys = task.astype(np.int64) * n_workers + worker
    assert (np.diff(keys) > 0).all(), "pairs are sorted and distinct"
    assert task.min(initial=0) >= 0
    assert task.max(initial=0) < n_tasks
    assert worker.min(initial=0) >= 0
    assert worker.max(initial=0) < n_workers


@settings(max_examples=40, deadline=None)
@given(
    n_tasks=st.integers(1, 30),
    n_workers=st.integers(1, 30),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_pairs_are_distinct_sorted_and_as_many_as_asked(n_tasks, n_workers, seed, data):
    r = data.draw(st.integers(1, n_workers))
    exponent = data.draw(st.sampled_from([0.0, 1.0, 6.0]))
    for graph in (simulate.PerTask(r), simulate.LongTail(r, exponent)):
        task, worker = draw(graph, n_tasks, n_workers, seed)
        check_pairs(task, worker, n_tasks, n_workers)
        assert (np.bincount(task, minlength=n_tasks) == r).all()
    for graph in (simulate.Dense(), simulate.Bernoulli(1.0)):
        task, worker = draw(graph, n_tasks, n_workers, seed)
        check_pairs(task, worker, n_tasks, n_workers)
        assert task.size == n_tasks * n_workers
    check_pairs(*draw(simulate.Bernoulli(0.3), n_tasks, n_workers, seed), n_tasks, n_workers)


@pytest.mark.parametrize("n_workers", [6, 4])  # both ways to draw: 3^2 against 8 * workers
@pytest.mark.parametrize("r", [2, 3])
def test_all_sets_of_workers_are_equally_likely(n_workers, r):
    _, worker = draw(simulate.PerTask(r), 20_000, n_workers)
    sets, counts = np.unique(worker.reshape(-1, r), axis=0, return_counts=True)
    assert len(sets) == len(list(itertools.combinations(range(n_workers), r)))
    assert scipy.stats.chisquare(counts).pvalue > 0.001


def test_many_workers_per_task_are_equally_likely_too():
    _, worker = draw(simulate.PerTask(20), 3000, 30)  # 20^2 > 8 * 30: the race
    assert scipy.stats.chisquare(np.bincount(worker, minlength=30)).pvalue > 0.001


def successive_pair_probability(weights: np.ndarray) -> dict[tuple[int, int], float]:
    """Probability that {a, b} are the two drawn without replacement, by the definition."""
    p = weights / weights.sum()
    return {
        (a, b): p[a] * p[b] / (1 - p[a]) + p[b] * p[a] / (1 - p[b])
        for a, b in itertools.combinations(range(p.size), 2)
    }


@pytest.mark.parametrize("n_workers", [5, 17])  # a race; draws with repetition taken back
@pytest.mark.parametrize("exponent", [1.0, 2.5])
def test_long_tail_is_successive_sampling_from_the_power_law(n_workers, exponent):
    graph, n_tasks = simulate.LongTail(2, exponent), 30_000
    _, worker = draw(graph, n_tasks, n_workers, seed=4)
    rank = np.random.default_rng(4).permutation(n_workers) + 1.0
    expected = successive_pair_probability(rank**-exponent)
    pairs = worker.reshape(-1, 2)
    counts = np.zeros((n_workers, n_workers))
    np.add.at(counts, (pairs[:, 0], pairs[:, 1]), 1)
    observed = np.array([counts[pair] for pair in expected])
    wanted = np.array(list(expected.values())) * n_tasks
    # The chi-square law needs a few counts in every cell: rare pairs share one.
    order = np.argsort(wanted)
    rare = order[: max(np.searchsorted(np.cumsum(wanted[order]), 20) + 1, 1)]
    common = np.setdiff1d(order, rare)
    assert (
        scipy.stats.chisquare(
            np.append(observed[common], observed[rare].sum()),
            np.append(wanted[common], wanted[rare].sum()),
        ).pvalue
        > 0.001
    )


def test_long_tail_with_one_dominant_worker_ends_and_is_exact():
    # Rank 1 has all but 3e-8 of the weight: every second draw collides until the race decides,
    # between rank 2 and rank 3 by their weights alone.
    n_tasks = 300_000
    _, worker = draw(simulate.LongTail(2, 25.0), n_tasks, 40)
    first, second, third, fourth = np.sort(np.bincount(worker, minlength=40))[::-1][:4]
    expected = n_tasks / (1 + 1.5**25)  # 11.9, a Poisson count
    assert (first, second, fourth) == (n_tasks, n_tasks - third, 0)
    assert abs(third - expected) < 4 * np.sqrt(expected)


def test_activity_is_unequal_and_not_in_the_order_of_workers():
    _, worker = draw(simulate.LongTail(3, 1.0), 5000, 200)
    activity = np.bincount(worker, minlength=200)
    assert np.sort(activity)[-20:].sum() > 0.4 * activity.sum()
    assert abs(scipy.stats.spearmanr(activity, np.arange(200)).statistic) < 0.25


@pytest.mark.parametrize("p", [0.02, 0.4, 0.9])
def test_bernoulli_pairs_are_independent_with_probability_p(p):
    task, worker = draw(simulate.Bernoulli(p), 400, 300)
    check_pairs(task, worker, 400, 300)
    sd = np.sqrt(120_000 * p * (1 - p))
    assert abs(task.size - 120_000 * p) < 4 * sd
    for counts, size in ((np.bincount(task, minlength=400), 300), (np.bincount(worker), 400)):
        assert counts.var() == pytest.approx(size * p * (1 - p), rel=0.35)


def test_bernoulli_in_several_blocks_goes_on_where_it_stopped(monkeypatch):
    monkeypatch.setattr("wisecrowd.core.graphs._BLOCK_ENTRIES", 7)
    task, worker = draw(simulate.Bernoulli(0.5), 40, 50)
    check_pairs(task, worker, 40, 50)
    assert 850 < task.size < 1150


def test_bernoulli_does_not_walk_through_all_pairs():
    task, worker = draw(simulate.Bernoulli(1e-12), 2_000_000, 1_000_000)
    assert task.size < 20
    check_pairs(task, worker, 2_000_000, 1_000_000)


@pytest.mark.parametrize("graph", [simulate.PerTask(4), simulate.LongTail(4)])
def test_more_workers_per_task_than_there_are(graph):
    with pytest.raises(ParameterError, match="4 distinct workers per task, but there are 3"):
        draw(graph, 5, 3)


def test_bad_parameters():
    for bad in (0, -1, 2.5, True):
        with pytest.raises(ParameterError, match=r"^r is "):
            simulate.PerTask(bad)
    with pytest.raises(ParameterError, match="above 0"):
        simulate.Bernoulli(0)
    with pytest.raises(ParameterError, match=r"^p is "):
        simulate.Bernoulli(1.5)
    with pytest.raises(ParameterError, match=r"^exponent is "):
        simulate.LongTail(3, -1)


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
