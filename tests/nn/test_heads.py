"""Heads: rows on the simplex, starts that are met, tables that depend on the task, the gauge."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.nn import AffineOutput, WorkerNumbers, number_loss
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.heads import (
    NUMBER_LAYERS,
    InstanceConfusionHead,
    InstanceNetwork,
    SoftmaxConfusion,
    SoftplusConfusion,
    gather_rows,
    label_columns,
    log_softmax,
    log_softplus,
)

HEADS = (SoftmaxConfusion, SoftplusConfusion)
WORKER, LABEL = torch.tensor([0, 3, 3, 1]), torch.tensor([2, 0, 1, 1])


def random_tables(n_workers: int = 4, n_classes: int = 3) -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.ones(n_classes), (n_workers, n_classes))


@pytest.mark.parametrize("kind", HEADS)
def test_a_given_start_is_where_the_head_starts(kind):
    tables = random_tables()
    head = kind(4, 3, table=tables)
    np.testing.assert_allclose(head.table().detach(), tables, atol=2e-6)


@pytest.mark.parametrize("kind", HEADS)
def test_rows_stay_on_the_simplex_whatever_the_parameters(kind):
    head = kind(4, 3)
    with torch.no_grad():
        head.logits.copy_(20 * torch.randn(4, 3, 3))
    table = head.table()
    assert (table >= 0).all()
    torch.testing.assert_close(table.sum(dim=2), torch.ones(4, 3))


@pytest.mark.parametrize("kind", HEADS)
def test_the_identity_start_is_the_published_one(kind):
    table = kind(1, 10).table()[0].detach()
    e = np.e
    positive = np.log1p(e), np.log1p(e**-5)
    expected = {
        SoftmaxConfusion: e**4 / (e**4 + 9),
        SoftplusConfusion: positive[0] / (positive[0] + 9 * positive[1]),
    }[kind]
    np.testing.assert_allclose(table.diagonal(), expected, rtol=1e-5)


@pytest.mark.parametrize("kind", HEADS)
def test_rows_are_columns_of_the_tables(kind):
    head = kind(4, 3, table=random_tables())
    expected = head.log()[WORKER, :, LABEL]
    torch.testing.assert_close(head.rows(WORKER, LABEL), expected)
    torch.testing.assert_close(gather_rows(head.log(), WORKER, LABEL), expected)


@pytest.mark.parametrize("kind", HEADS)
def test_few_annotations_normalise_only_the_tables_of_their_workers(kind, monkeypatch):
    head = kind(4, 3, table=random_tables())
    worker, label = WORKER[:3], LABEL[:3]
    head.log()[worker, :, label].sum().backward()
    expected, head.by_label.grad = head.by_label.grad, None
    seen = []
    whole = kind.log_of
    monkeypatch.setattr(
        kind, "log_of", lambda self, x: (seen.append(x.shape[1]), whole(self, x))[1]
    )
    head.rows(worker, label).sum().backward()
    assert seen == [3]
    torch.testing.assert_close(head.by_label.grad, expected)


@pytest.mark.parametrize("kind", HEADS)
def test_rows_and_diagonals_have_the_gradient_of_the_whole_table(kind):
    head = kind(4, 3, table=random_tables())
    with torch.no_grad():
        head.by_label.sub_(torch.tensor([0.0, 30.0, 200.0])[:, None, None])  # some underflow
    weight, share = torch.randn(4, 3), torch.randn(4, 3)
    table = head.log()
    expected = table[WORKER, :, LABEL], table.diagonal(dim1=1, dim2=2)
    ((expected[0] * weight).sum() + (expected[1].exp() * share).sum()).backward()
    slope, head.by_label.grad = head.by_label.grad, None
    rows, diagonals = head.rows_and_diagonals(WORKER, LABEL)
    torch.testing.assert_close((rows, diagonals), expected)
    ((rows * weight).sum() + (diagonals.exp() * share).sum()).backward()
    torch.testing.assert_close(head.by_label.grad, slope)


def test_log_softmax_is_that_of_torch():
    scores = 30 * torch.randn(5, 3, dtype=torch.float64)
    torch.testing.assert_close(log_softmax(scores), torch.log_softmax(scores, dim=1))


def test_softplus_that_underflows_has_a_gradient():
    logits = torch.tensor([[0.0], [-200.0]], requires_grad=True)
    log_softplus(logits).sum().backward()
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("table", [np.ones((2, 3, 3)), np.eye(3), np.full((1, 2, 2), np.nan)])
def test_a_start_that_is_no_confusion_is_refused(kind, table):
    with pytest.raises(ValueError, match="rows that sum to one"):
        kind(2, 3, table=table)


def test_an_instance_head_depends_on_x_only_when_it_is_open_and_moved():
    head = InstanceConfusionHead(4, 3, width=5, rank=2)
    x, task = torch.randn(2, 5), torch.tensor([0, 1, 1, 0])
    plain = head.base.log()[WORKER]
    torch.testing.assert_close(head(x, task, WORKER), plain)
    with torch.no_grad():
        head.basis.normal_()
    assert (head(x, task, WORKER) - plain).abs().max() > 0.1
    head.is_open.fill_(False)
    torch.testing.assert_close(head(x, task, WORKER), plain)


def test_an_instance_head_is_its_formula():
    head = InstanceConfusionHead(4, 3, width=5, rank=2)
    with torch.no_grad():
        head.basis.normal_()
    x, task = torch.randn(2, 5), torch.tensor([0, 1, 1, 0])
    for e, found in enumerate(head(x, task, WORKER)):
        mixture = torch.tanh(head.mixture(x[task[e]]))
        shifted = head.base.logits[WORKER[e]] + torch.einsum(
            "r,rkl->kl", mixture, head.basis[WORKER[e]].reshape(2, 3, 3)
        )
        positive = torch.nn.functional.softplus(shifted)
        torch.testing.assert_close(found.exp(), positive / positive.sum(dim=1, keepdim=True))


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


WORKERS = torch.tensor([0, 1, 2, 2])
NUMBERS = torch.tensor([1.0, -2.0, 0.5, 4.0])


def head_with(kind: str) -> WorkerNumbers:
    head = WorkerNumbers(3, kind)
    with torch.no_grad():
        if head.scale is not None:
            head.scale.copy_(torch.tensor([0.5, 1.5, 3.0]))
        if head.bias is not None:
            head.bias.copy_(torch.tensor([2.0, -1.0, 0.25]))
    return head


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("S", [0.5, -3.0, 1.5, 12.0]),
        ("B", [3.0, -3.0, 0.75, 4.25]),
        ("S+B", [2.5, -4.0, 1.75, 12.25]),
        ("B+S", [1.5, -4.5, 2.25, 12.75]),
    ],
)
def test_forms(kind, expected):
    torch.testing.assert_close(head_with(kind)(NUMBERS, WORKERS), torch.tensor(expected))


@pytest.mark.parametrize("kind", NUMBER_LAYERS)
def test_the_gauge_moves_level_and_unit_to_the_network_and_changes_no_prediction(kind):
    head, network = head_with(kind), AffineOutput(nn.Identity())
    count = torch.tensor([5, 3, 2])
    before = head(network(NUMBERS[:, None]), WORKERS)
    scale, shift = head.gauge(count)
    network.move(scale=scale, shift=shift)
    torch.testing.assert_close(head(network(NUMBERS[:, None]), WORKERS), before)
    share = count / count.sum()
    if head.scale is not None:
        assert float((share * head.scale.detach()).sum()) == pytest.approx(1, abs=1e-6)
    if head.bias is not None:
        assert float((share * head.bias.detach()).sum()) == pytest.approx(0, abs=1e-6)
    assert (scale, shift) != (1.0, 0.0)


def test_a_second_gauge_changes_nothing():
    head, count = head_with("S+B"), torch.tensor([5, 3, 2])
    head.gauge(count)
    assert head.gauge(count) == (pytest.approx(1, abs=1e-6), pytest.approx(0, abs=1e-6))


def test_the_loss_is_a_weighted_mean_over_annotations():
    expected, value = torch.tensor([0.0, 0.0]), torch.tensor([1.0, 3.0])
    assert float(number_loss(expected, value)) == 5.0
    assert float(number_loss(expected, value, torch.tensor([3.0, 1.0]))) == 3.0
    assert float(number_loss(expected[:0], value[:0])) == 0.0


def test_an_unknown_form_is_refused():
    with pytest.raises(ParameterError, match="choose one of S, B"):
        WorkerNumbers(3, "X")
