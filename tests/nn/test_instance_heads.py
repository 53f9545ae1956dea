"""Tables that depend on the task, by their formula."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.instance_heads import InstanceConfusionHead, InstanceNetwork, label_columns


def batch_of():
    task, worker, label = torch.tensor([[0, 0, 1], [0, 1, 1], [1, 0, 1]])
    return CrowdBatch(torch.tensor([[1.0], [-2.0]]), torch.arange(2), task, worker, label)


def test_features_shift_the_logits_of_a_worker():
    torch.manual_seed(0)
    head = InstanceConfusionHead(2, 2, width=1, rank=1)
    with torch.no_grad():
        head.basis.normal_()
    batch = batch_of()
    tables = head(batch.x, batch.task, batch.worker).exp().detach()
    for e, (i, j) in enumerate(zip(batch.task, batch.worker, strict=True)):
        direction = torch.tanh(head.mixture(batch.x[i]))
        logits = head.base.logits[j] + (direction * head.basis[j, 0]).reshape(2, 2)
        positive = logits.detach().exp().log1p()
        np.testing.assert_allclose(tables[e], positive / positive.sum(1, keepdim=True), rtol=1e-5)
    head.is_open.fill_(False)  # then nothing depends on x
    closed = head(batch.x, batch.task, batch.worker)
    torch.testing.assert_close(closed, head.base.log()[batch.worker])


def test_the_column_of_a_label_is_taken_from_its_table():
    tables = torch.arange(12.0).reshape(3, 2, 2)
    assert label_columns(tables, batch_of()).tolist() == [[1.0, 3.0], [4.0, 6.0], [9.0, 11.0]]


def test_the_head_of_a_network_reads_its_features():
    torch.manual_seed(0)
    network = InstanceNetwork(nn.Sequential(nn.Tanh(), nn.Linear(1, 2)), (1,), 2, 2, rank=1)
    with torch.no_grad():
        network.head.basis.normal_()
    batch = batch_of()
    log_probas, log_tables = network.tables(batch)
    torch.testing.assert_close(log_probas, network(batch.x).log_softmax(dim=1))
    expected = network.head(torch.tanh(batch.x), batch.task, batch.worker)
    torch.testing.assert_close(log_tables, expected)
