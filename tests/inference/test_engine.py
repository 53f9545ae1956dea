from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
import pytest

from wisecrowd.engines.threads import get_threads, set_threads
from wisecrowd.inference import engine
from wisecrowd.inference.engine import MemoryEngine, rows_into
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.kernels import confusion
from wisecrowd.kinds.classes.prior import TaskPrior


class Sum(NamedTuple):
    weight: np.ndarray
    n_tasks: int


def ragged_labels(n_tasks=200, n_workers=6, n_classes=3, seed=0):
    """Tasks with none to many labels, so that shards of equal labels are unequal in tasks."""
    rng = np.random.default_rng(seed)
    per_task = rng.geometric(0.3, size=n_tasks) - 1
    task = np.repeat(np.arange(n_tasks), per_task).astype(np.int32)
    return CrowdLabels(
        task,
        rng.integers(0, n_workers, len(task)).astype(np.int32),
        rng.integers(0, n_classes, len(task)).astype(np.int32),
        np.arange(n_tasks),
        np.arange(n_workers),
        np.arange(n_classes),
        weight=rng.uniform(0.5, 2, len(task)),
    )


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(engine, "SMALLEST_SHARD", 10)


@pytest.fixture
def threads():
    former = get_threads()
    yield set_threads
    set_threads(former)


def no_prior(labels):
    return TaskPrior(np.zeros((1, labels.n_classes)))


def shards_of(labels, table_size=1, prior=None):
    """Return the shards that the engine cuts."""
    return MemoryEngine().cut(labels, prior or no_prior(labels), table_size)


class Model:
    """A model whose steps are functions given by the test."""

    def __init__(self, **steps):
        vars(self).update(steps)


def test_small_data_are_one_shard():
    labels = ragged_labels()
    (shard,) = shards_of(labels)._shards
    assert shard.tasks == slice(0, 200)
    assert shard.n_tasks == 200
    assert shard.kernels("confusion") is confusion


def test_shards_cover_all_tasks_once_and_in_order(small_shards):
    labels = ragged_labels()
    index = np.random.default_rng(0).permutation(200).astype(np.int32)
    prior = TaskPrior(np.arange(600.0).reshape(200, 3), index)
    shards = shards_of(labels, prior=prior)._shards
    assert len(shards) == engine.MOST_SHARDS
    covered = np.concatenate([np.arange(200)[shard.tasks] for shard in shards])
    np.testing.assert_array_equal(covered, np.arange(200))
    for shard in shards:
        pointers = labels.indptr[shard.tasks.start : shard.tasks.stop + 1]
        np.testing.assert_array_equal(shard.indptr, pointers - pointers[0])
        rows = slice(pointers[0], pointers[-1])
        for name in ("worker", "label", "weight"):
            np.testing.assert_array_equal(getattr(shard, name), getattr(labels, name)[rows])
        own = shard.prior_rows[shard.prior_index]
        np.testing.assert_array_equal(own, prior.rows[index[shard.tasks]])
        assert len(shard.prior_rows) == shard.n_tasks  # no other rows


def test_prior_rows_in_the_order_of_tasks_are_not_copied(small_shards):
    labels = ragged_labels()
    prior = TaskPrior(np.zeros((200, 3)), np.arange(200, dtype=np.int32))
    for shard in shards_of(labels, prior=prior)._shards:
        assert np.shares_memory(shard.prior_rows, prior.rows) or shard.n_tasks == 0


def test_an_empty_shard_has_a_prior_row(small_shards):
    task = np.repeat([0, 1, 2], [1, 300, 1]).astype(np.int32)
    labels = CrowdLabels(task, np.arange(302, dtype=np.int32), np.zeros(302, np.int32),
                         np.arange(3), np.arange(302), np.arange(2))  # fmt: skip
    prior = TaskPrior(np.zeros((2, 2)), np.array([1, 0, 1], dtype=np.int32))
    shards = shards_of(labels, prior=prior)._shards
    assert min(shard.n_tasks for shard in shards) == 0
    assert all(len(shard.prior_rows) >= 1 for shard in shards)


def test_shards_have_about_equally_many_annotations(small_shards):
    labels = ragged_labels(2000)
    sizes = [shard.indptr[-1] for shard in shards_of(labels)._shards]
    assert max(sizes) <= labels.n_annotations / engine.MOST_SHARDS + labels.labels_per_task.max()


def test_large_tables_mean_fewer_shards(small_shards):
    labels = ragged_labels(2000)
    n = labels.n_annotations
    assert len(shards_of(labels, n // 16)) == 4
    assert len(shards_of(labels, n)) == 1
    assert len(MemoryEngine(7).cut(labels, no_prior(labels), n)) == 7


def test_cells(small_shards):
    labels = ragged_labels()
    cells = np.concatenate([shard.cell for shard in shards_of(labels)._shards])
    np.testing.assert_array_equal(cells, labels.worker * 3 + labels.label)


def count(n_workers):
    def step(shard, state, params):
        summed = np.bincount(shard.worker, shard.weight, n_workers).astype(float)
        return shard.tasks, Sum(summed, shard.n_tasks)

    return step


def test_one_task_with_nearly_all_labels_leaves_empty_shards(small_shards):
    task = np.repeat([0, 1, 2], [1, 300, 1]).astype(np.int32)
    labels = CrowdLabels(task, np.arange(302, dtype=np.int32), np.zeros(302, np.int32),
                         np.arange(3), np.arange(302), np.arange(2))  # fmt: skip
    shards = shards_of(labels)
    assert sum(shard.n_tasks for shard in shards._shards) == 3
    model = Model(step=count(302))
    _, total = shards.map_reduce(model, "step", [None] * len(shards), None)
    assert total.n_tasks == 3
    np.testing.assert_array_equal(total.weight, np.ones(302))


@pytest.mark.parametrize("n_threads", [1, 2, 3, 16])
def test_statistics_are_added_in_shard_order(small_shards, threads, n_threads):
    labels = ragged_labels()
    threads(n_threads)
    shards, step = shards_of(labels), count(6)
    states, total = shards.map_reduce(Model(step=step), "step", [None] * len(shards), None)
    assert states == [shard.tasks for shard in shards._shards]
    expected = step(shards._shards[0], None, None)[1].weight
    for shard in shards._shards[1:]:
        expected = expected + step(shard, None, None)[1].weight  # left to right
    np.testing.assert_array_equal(total.weight, expected)
    assert isinstance(total, Sum)
    assert total.n_tasks == 200


def test_slow_first_shard_does_not_change_the_order(small_shards, threads):
    threads(2)
    labels = ragged_labels()
    shards = shards_of(labels)
    others_done = threading.Event()

    def step(shard, state, params):
        if shard.tasks.start == 0:
            assert others_done.wait(10)
        elif shard.tasks.stop == labels.n_tasks:
            others_done.set()
        return None, Sum((shard.tasks.start,), 1)  # adding tuples shows the order

    _, total = shards.map_reduce(Model(step=step), "step", [None] * len(shards), None)
    assert total.weight == tuple(shard.tasks.start for shard in shards._shards)


def test_states_and_parameters_reach_their_shard(small_shards):
    shards = shards_of(ragged_labels())
    model = Model(
        begin=lambda shard: shard.tasks.start,
        step=lambda shard, state, params: (state * params, Sum(np.zeros(1), 1)),
    )
    begun = shards.begin(model)
    assert begun == [shard.tasks.start for shard in shards._shards]
    states, _ = shards.map_reduce(model, "step", begun, 10)
    assert states == [10 * first for first in begun]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_collected_rows_cover_every_task(small_shards, threads, n_threads):
    threads(n_threads)
    labels = ragged_labels()
    numbers, table = np.zeros(labels.n_tasks), np.zeros((labels.n_tasks, 2))

    def answer(shard, state, params):
        here = np.arange(labels.n_tasks)[shard.tasks]
        return (params * here, np.stack([here, -here], axis=1)), Sum(np.ones(1), shard.n_tasks)

    shards = shards_of(labels)
    sink = rows_into(numbers, table)
    total = shards.collect(Model(answer=answer), "answer", [None] * len(shards), 2.0, sink)
    every = np.arange(labels.n_tasks)
    np.testing.assert_array_equal(numbers, 2.0 * every)
    np.testing.assert_array_equal(table, np.stack([every, -every], axis=1))
    assert total.n_tasks == labels.n_tasks


def test_an_error_in_a_thread_is_raised(small_shards, threads):
    threads(3)
    shards = shards_of(ragged_labels())

    def step(shard, state, params):
        raise ZeroDivisionError("in a shard")

    with pytest.raises(ZeroDivisionError, match="in a shard"):
        shards.map_reduce(Model(step=step), "step", [None] * len(shards), None)
