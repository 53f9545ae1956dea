"""Confusion matrices that depend on the task."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import InstanceConfusion, TraceRegularized
from wisecrowd.learning.instance_confusion import (
    AnchorModel,
    InstanceModel,
    neighbour_rows,
    posterior_of,
    rows_of,
)
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.nn.heads import InstanceNetwork

LINEAR = {"module": "linear", "lr": 0.1, "crowd_lr": 0.1, "batch_size": 128}


def crowd(n=60, depends=False, seed=0):
    """Return features, votes and truth; workers may flip the class where a feature is negative."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n)
    side = rng.choice([-1.0, 1.0], n)
    X = np.column_stack([4.0 * truth - 2 + 0.5 * rng.normal(size=n), side])
    accuracy = np.where(side > 0, 0.95, 0.75) if depends else np.full(n, 0.8)
    right = rng.random((n, 3)) < accuracy[:, None]
    return X, np.where(right, truth[:, None], 1 - truth[:, None]), truth


@pytest.mark.parametrize("variant", ["head", "anchor"])
def test_a_warm_up_that_never_ends_is_trace_regularisation(variant):
    X, votes, _ = crowd()
    shared = {**LINEAR, "epochs": 5}
    plain = TraceRegularized(**shared).fit(X, votes)
    frozen = InstanceConfusion(**shared, variant=variant, warm_up=5).fit(X, votes)
    np.testing.assert_allclose(frozen.confusion_, plain.confusion_, atol=1e-5)
    np.testing.assert_allclose(frozen.probas_, plain.probas_, atol=1e-4)
    np.testing.assert_allclose(frozen.predict_proba(X), plain.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(
        frozen.predict_proba(X, votes), plain.predict_proba(X, votes), atol=1e-4
    )


def make(n=12):
    X, votes, _ = crowd(n)
    labels = CrowdLabels.from_matrix(votes)
    data = CrowdData(X, labels, np.full(n, -1))
    torch.manual_seed(0)
    network = InstanceNetwork(nn.Sequential(nn.Tanh(), nn.Linear(2, 2)), (2,), 2, 3, rank=2)
    with torch.no_grad():
        network.head.basis.normal_()
    return InstanceModel(network, data, 0.3, 0), data, votes


def test_the_loss_and_the_posterior_are_the_formula():
    model, data, votes = make()
    batch = data.batch(torch.arange(12))
    f = torch.softmax(model.network(batch.x), 1)
    features = torch.tanh(batch.x)
    entropy, trace, joint = 0.0, torch.zeros(3), f.clone()
    for (i, j), y in np.ndenumerate(votes):
        table = model.network.head(features[[i]], torch.tensor([0]), torch.tensor([j]))[0].exp()
        entropy = entropy - torch.log(f[i] @ table[:, y])
        trace[j] += torch.trace(table) / 12
        joint[i] = joint[i] * table[:, y]
    expected = entropy / 36 + 0.3 * trace.mean() / 3
    torch.testing.assert_close(model.loss(batch), expected)
    posterior = posterior_of(*rows_of(model.network, data), data.labels)
    np.testing.assert_allclose(
        posterior, (joint / joint.sum(dim=1, keepdim=True)).detach(), rtol=1e-4, atol=1e-6
    )


def test_gradients_agree_with_differences():
    model, data, _ = make(4)
    model.double()
    batch = data.batch(torch.arange(4))
    object.__setattr__(batch, "x", batch.x.double())
    basis = model.network.head.basis
    (gradient,) = torch.autograd.grad(model.loss(batch), [basis])
    with torch.no_grad():
        for at in ((0, 0, 1), (2, 1, 3)):
            values = []
            for step in (1e-6, -2e-6):
                basis[at] += step
                values.append(float(model.loss(batch)))
            basis[at] += 1e-6
            assert float(gradient[at]) == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-5)


def test_the_network_learns_at_its_rate_and_the_head_at_the_crowds():
    model, _, _ = make()
    crowd_ids = {id(p) for p in model.crowd_parameters()}
    assert crowd_ids == {id(p) for p in model.network.head.parameters()}


def accuracies(model, x):
    """Return (J,) how often workers are right at x, as the model has it."""
    head, row = model._network.head, torch.tensor(x, dtype=torch.float32)
    layers = model._network.backbone
    features = layers[0](row[None])
    tables = head(features, torch.zeros(3, dtype=torch.long), torch.arange(3)).exp()
    return tables.diagonal(dim1=1, dim2=2).mean(dim=1).detach().numpy()


def test_the_head_finds_where_workers_are_bad():
    X, votes, truth = crowd(n=800, depends=True)
    model = InstanceConfusion(**LINEAR, epochs=20, warm_up=5).fit(X, votes)
    good = np.mean([accuracies(model, [x, 1.0]) for x in (-2.0, 2.0)])
    bad = np.mean([accuracies(model, [x, -1.0]) for x in (-2.0, 2.0)])
    assert good > bad + 0.1
    assert np.mean(model.predict(X) == truth) > 0.95
    scores = [
        m.score(X, CrowdLabels.from_matrix(votes))
        for m in (model, TraceRegularized(**LINEAR, epochs=20).fit(X, votes))
    ]
    assert scores[0] > scores[1] + 0.01


def test_without_dependence_tables_hardly_vary():
    X, votes, _ = crowd(n=800)
    model = InstanceConfusion(**LINEAR, epochs=20, warm_up=5, selection="last").fit(X, votes)
    values = np.array([accuracies(model, [x, s]) for x in (-2.0, 2.0) for s in (-1.0, 1.0)])
    assert values.std(axis=0).max() < 0.07


def test_the_anchor_variant_counts_where_labels_were_given():
    X, votes, truth = crowd(n=600, depends=True)
    method = InstanceConfusion(**LINEAR, epochs=12, variant="anchor", warm_up=6, threshold=0.8)
    assert np.mean(method.fit(X, votes).predict(X) == truth) > 0.95
    np.testing.assert_allclose(method.confusion_.sum(axis=2), 1, atol=1e-5)
    data = CrowdData(X, CrowdLabels.from_matrix(votes), np.full(600, -1))
    model = method._build(method._network, data)
    model.begin_epoch(6, data)
    task = data.labels.task
    right = np.exp(model.log_rows.numpy())[np.arange(1800), truth[task]]
    right = np.where(votes.ravel() == truth[task], right, 1 - right)  # how often workers are right
    assert right[X[task, 1] > 0].mean() > right[X[task, 1] < 0].mean() + 0.1
    rows = data.batch(torch.arange(20))
    log_f = model.log_probas(rows.x)
    each = -torch.logsumexp(log_f[rows.task] + model.log_rows[rows.edge], dim=1)
    torch.testing.assert_close(model.loss(rows), each.mean())


def test_rows_after_the_fit_belong_to_the_variant():
    X, votes, _ = crowd()
    model = InstanceConfusion(**LINEAR, epochs=1, variant="anchor").fit(X, votes)
    model.variant = "head"
    with pytest.raises(TypeError, match="variant was changed"):
        model.predict_proba(X, votes)


def test_the_mean_confusion_is_the_mean_over_the_tasks_a_worker_labelled():
    model, data, _ = make(4)
    batch = data.batch(torch.arange(4))
    tables = model.network.tables(batch)[1].exp().detach()
    for j in range(3):
        expected = tables[batch.worker == j].mean(dim=0)
        np.testing.assert_allclose(model.mean_confusion(data)[j], expected, atol=1e-6)


def test_before_counting_anchors_use_the_workers_tables():
    X, votes, _ = crowd(6)
    data = CrowdData(X, CrowdLabels.from_matrix(votes), np.full(6, -1))
    table = np.tile([[0.9, 0.1], [0.2, 0.8]], (3, 1, 1))
    network = nn.Linear(2, 2)
    nn.init.zeros_(network.weight)
    nn.init.zeros_(network.bias)  # f is uniform
    model = AnchorModel(network, data, InstanceConfusion(variant="anchor", start=table))
    results = model.results(data)
    np.testing.assert_allclose(results["confusion"], table, atol=1e-6)
    joint = np.prod(np.where(votes[:, :, None] == 0, [0.9, 0.2], [0.1, 0.8]), axis=1)
    expected = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(results["probas"], expected, atol=1e-6)
    np.testing.assert_allclose(results["task_output"], 0.5, atol=1e-6)


@pytest.mark.parametrize("at_once", [7, 1024])
def test_rows_are_shrunken_counts_over_the_nearest_anchors(monkeypatch, at_once):
    monkeypatch.setattr("wisecrowd.learning.instance_confusion._NEIGHBOURHOODS_AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    n, n_workers, k = 40, 5, 3
    votes = np.where(rng.random((n, n_workers)) < 0.5, rng.integers(k, size=(n, n_workers)), -1)
    votes[:, 0] = 0
    labels = CrowdLabels.from_matrix(votes, missing=-1, classes=range(k))
    features, probas = rng.normal(size=(n, 2)), rng.dirichlet(np.full(k, 0.3), n)
    table = rng.dirichlet(np.ones(k), (n_workers, k))
    found = neighbour_rows(
        features, probas, labels, table, threshold=0.7, n_neighbours=9, shrinkage=2.0
    )
    clear = np.flatnonzero(probas.max(axis=1) >= 0.7)
    kind = probas.argmax(axis=1)
    for e, (i, j, y) in enumerate(zip(labels.task, labels.worker, labels.label, strict=True)):
        distance = np.linalg.norm(features[clear] - features[i], axis=1)
        near = [a for a in clear[np.argsort(distance)][:9] if a != i and votes[a, j] >= 0]
        for c in range(k):
            total = sum(kind[a] == c for a in near)
            same = sum(kind[a] == c and votes[a, j] == y for a in near)
            assert found[e, c] == pytest.approx((same + 2 * table[j, c, y]) / (total + 2))


def test_without_anchors_rows_are_the_workers_own():
    labels = CrowdLabels.from_matrix(np.array([[0, 1], [1, 1]]))
    table = np.random.default_rng(0).dirichlet(np.ones(2), (2, 2))
    found = neighbour_rows(
        np.zeros((2, 1)), np.full((2, 2), 0.5), labels, table,
        threshold=0.9, n_neighbours=5, shrinkage=1.0,
    )  # fmt: skip
    np.testing.assert_array_equal(found, table[labels.worker, :, labels.label])
