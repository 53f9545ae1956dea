"""Batches of tasks with their annotations."""

from __future__ import annotations

import numpy as np
import torch
from torch.utils.data import DataLoader

from wisecrowd.nn.batches import CrowdBatch, crowd_collate


def make_batch(weight=None) -> CrowdBatch:
    task, worker, label = torch.tensor([[0, 0, 2], [1, 3, 0], [1, 0, 1]])
    return CrowdBatch(torch.zeros(3, 2), torch.tensor([7, 1, 4]), task, worker, label, weight)


def test_sums_per_task_leave_tasks_without_labels_at_zero():
    values = torch.tensor([[1.0, 2], [3, 4], [5, 6]])
    assert make_batch().per_task(values).tolist() == [[4, 6], [0, 0], [5, 6]]
    assert len(make_batch()) == 3


def test_means_count_weights():
    losses = torch.tensor([1.0, 2.0, 6.0])
    assert float(make_batch().mean(losses)) == 3
    weight = torch.tensor([2.0, 0.0, 1.0])
    assert float(make_batch(weight).mean(losses)) == np.average(losses, weights=weight)


def test_a_batch_without_annotations_has_mean_zero():
    empty = torch.zeros(0, dtype=torch.long)
    batch = CrowdBatch(torch.zeros(1, 2), torch.tensor([0]), empty, empty, empty)
    assert float(batch.mean(torch.zeros(0))) == 0


def test_moving_keeps_everything():
    batch = make_batch(torch.ones(3)).to("cpu")
    assert batch.rows.tolist() == [7, 1, 4]
    assert batch.weight is not None
    assert batch.gold is None


def test_collate_works_in_a_data_loader():
    samples = [(torch.full((2,), float(i)), [(j, i % 2) for j in range(i)]) for i in range(5)]
    batches = list(DataLoader(samples, batch_size=3, collate_fn=crowd_collate))
    assert batches[0].task.tolist() == [1, 2, 2]
    assert batches[0].worker.tolist() == [0, 0, 1]
    assert batches[1].x.tolist() == [[3, 3], [4, 4]]
    assert batches[1].label.tolist() == [1, 1, 1, 0, 0, 0, 0]


def test_collate_of_tasks_without_labels():
    batch = crowd_collate([(np.zeros(2, np.float32), [])])
    assert batch.task.shape == (0,)
