from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
import pytest

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.task_prior import TaskPrior
from wisecrowd.engines import memory
from wisecrowd.engines.memory import MemoryShards
from wisecrowd.engines.threads import get_threads, set_threads
from wisecrowd.kernels.confusion import reference


class Sum(NamedTuple):
    weight: np.ndarray
    n_tasks: int


def ragged_labels(n_tasks=200, n_workers=6, n_classes=3, seed=0):
    """Tasks with none to many labels, so that blocks of equal labels are unequal in tasks."""
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
def small_blocks(monkeypatch):
    monkeypatch.setattr(memory, "SMALLEST_BLOCK", 10)


@pytest.fixture
def threads():
    former = get_threads()
    yield set_threads
    set_threads(former)


def no_prior(labels):
    return TaskPrior(np.zeros((1, labels.n_classes)))


def test_small_data_are_one_block():
    labels = ragged_labels()
    (block,) = MemoryShards(labels, no_prior(labels), 1).shards()
    assert block.tasks == slice(0, 200)
    assert block.n_tasks == 200
    assert block.kernels("confusion") is reference


def test_blocks_cover_all_tasks_once_and_in_order(small_blocks):
    labels = ragged_labels()
    index = np.arange(200, dtype=np.int32)
    prior = TaskPrior(np.zeros((200, 3)), index)
    blocks = MemoryShards(labels, prior, 1).shards()
    assert len(blocks) == memory.MOST_BLOCKS
    covered = np.concatenate([np.arange(200)[block.tasks] for block in blocks])
    np.testing.assert_array_equal(covered, np.arange(200))
    for block in blocks:
        np.testing.assert_array_equal(
            block.indptr, labels.indptr[block.tasks.start : block.tasks.stop + 1]
        )
        np.testing.assert_array_equal(block.prior_index, index[block.tasks])


def test_blocks_share_the_annotations_evenly(small_blocks):
    labels = ragged_labels(2000)
    sizes = [b.indptr[-1] - b.indptr[0] for b in MemoryShards(labels, no_prior(labels), 1).shards()]
    assert max(sizes) <= labels.n_annotations / memory.MOST_BLOCKS + labels.labels_per_task.max()


def test_large_tables_mean_fewer_blocks(small_blocks):
    labels = ragged_labels(2000)
    n = labels.n_annotations
    assert len(MemoryShards(labels, no_prior(labels), n // 16).shards()) == 4
    assert len(MemoryShards(labels, no_prior(labels), n).shards()) == 1


def test_cells(small_blocks):
    labels = ragged_labels()
    block = MemoryShards(labels, no_prior(labels), 1).shards()[0]
    np.testing.assert_array_equal(block.cell, labels.worker * 3 + labels.label)


def test_one_task_with_nearly_all_labels_leaves_empty_blocks(small_blocks):
    task = np.repeat([0, 1, 2], [1, 300, 1]).astype(np.int32)
    labels = CrowdLabels(task, np.arange(302, dtype=np.int32), np.zeros(302, np.int32),
                         np.arange(3), np.arange(302), np.arange(2))  # fmt: skip
    engine = MemoryShards(labels, no_prior(labels), 1)
    assert sum(block.n_tasks for block in engine.shards()) == 3
    _, total = engine.map_reduce(add_up, [None] * len(engine.shards()), None)
    assert total.n_tasks == 3
    np.testing.assert_array_equal(total.weight, np.ones(302))


def add_up(block, state, params):
    rows = slice(block.indptr[0], block.indptr[-1])
    weight = None if block.weight is None else block.weight[rows]
    size = int(block.worker.max()) + 1
    summed = np.bincount(block.worker[rows], weights=weight, minlength=size).astype(float)
    return block.tasks, Sum(summed, block.n_tasks)


@pytest.mark.parametrize("n_threads", [1, 2, 3, 16])
def test_statistics_are_added_in_block_order(small_blocks, threads, n_threads):
    labels = ragged_labels()
    threads(n_threads)
    engine = MemoryShards(labels, no_prior(labels), 1)
    states, total = engine.map_reduce(add_up, [None] * len(engine.shards()), None)
    assert states == [block.tasks for block in engine.shards()]
    expected = add_up(engine.shards()[0], None, None)[1].weight
    for block in engine.shards()[1:]:
        expected = expected + add_up(block, None, None)[1].weight  # left to right
    np.testing.assert_array_equal(total.weight, expected)
    assert isinstance(total, Sum)
    assert total.n_tasks == 200


def test_slow_first_block_does_not_change_the_order(small_blocks, threads):
    threads(2)
    labels = ragged_labels()
    engine = MemoryShards(labels, no_prior(labels), 1)
    others_done = threading.Event()

    def step(block, state, params):
        if block.tasks.start == 0:
            assert others_done.wait(10)
        elif block.tasks.stop == labels.n_tasks:
            others_done.set()
        return None, Sum((block.tasks.start,), 1)  # adding tuples shows the order

    _, total = engine.map_reduce(step, [None] * len(engine.shards()), None)
    assert total.weight == tuple(block.tasks.start for block in engine.shards())


def test_states_and_parameters_reach_their_block(small_blocks):
    labels = ragged_labels()
    engine = MemoryShards(labels, no_prior(labels), 1)

    def step(block, state, params):
        return state * params, Sum(np.zeros(1), 1)

    states, _ = engine.map_reduce(step, list(range(len(engine.shards()))), 10)
    assert states == [10 * number for number in range(len(engine.shards()))]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_map_tasks_fills_every_task(small_blocks, threads, n_threads):
    threads(n_threads)
    labels = ragged_labels()
    seen = np.zeros(labels.n_tasks)

    def fill(block, params):
        seen[block.tasks] += params

    MemoryShards(labels, no_prior(labels), 1).map_tasks(fill, 2.0)
    np.testing.assert_array_equal(seen, 2.0)


def test_an_error_in_a_thread_is_raised(small_blocks, threads):
    threads(3)
    labels = ragged_labels()
    engine = MemoryShards(labels, no_prior(labels), 1)

    def step(block, state, params):
        raise ZeroDivisionError("in a block")

    with pytest.raises(ZeroDivisionError, match="in a block"):
        engine.map_reduce(step, [None] * len(engine.shards()), None)
