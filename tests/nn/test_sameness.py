"""Loss of votes on sameness: gradients, values, and a small network that learns clusters."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from wisecrowd.aggregation import CrowdClustering  # noqa: E402
from wisecrowd.core.cluster_matching import matched_accuracy  # noqa: E402
from wisecrowd.nn import WorkerSameRates, cluster_volume, same_loss  # noqa: E402
from wisecrowd.simulate import same_votes  # noqa: E402


def test_gradients_are_finite_differences():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 5, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    rates = torch.randn(2, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    same = torch.tensor([True, False, True, True, False])

    def loss(logits, rates):
        left, right = torch.softmax(logits, dim=2)
        s, t = torch.sigmoid(rates)
        return same_loss(left, right, same, s, t).sum() + cluster_volume(left)

    assert torch.autograd.gradcheck(loss, (logits, rates))


def test_the_loss_is_the_mixture_of_both_cases():
    left, right = torch.tensor([[0.6, 0.4]]), torch.tensor([[0.5, 0.5]])
    s, t = torch.tensor([0.9]), torch.tensor([0.8])
    p = 0.5  # both items are in the same cluster
    for answer, wanted in ((True, 0.9 * p + 0.2 * p), (False, 0.1 * p + 0.8 * p)):
        found = same_loss(left, right, torch.tensor([answer]), s, t)
        assert float(found) == pytest.approx(-np.log(wanted), rel=1e-5)


def test_clusters_of_new_items_are_learned():
    made = same_votes(60, 10, 1500, 3, random_state=0)
    rng = np.random.default_rng(0)
    centres = 3 * np.eye(3)
    X = centres[made.cluster] + rng.normal(size=(60, 3))
    start = CrowdClustering(n_clusters=3, n_init=1).fit(made.data)
    torch.manual_seed(0)
    network, rates = torch.nn.Linear(3, 3), WorkerSameRates(10)
    x = torch.tensor(X, dtype=torch.float32)
    target = torch.tensor(start.cluster_)
    data = made.data
    left, right = torch.tensor(data.left), torch.tensor(data.right)
    worker, same = torch.tensor(data.worker), torch.tensor(data.is_same)
    optimiser = torch.optim.Adam([*network.parameters(), *rates.parameters()], lr=0.1)
    for step in range(60):
        optimiser.zero_grad()
        outputs = network(x)
        if step < 20:  # first the clusters of the votes alone
            loss = torch.nn.functional.cross_entropy(outputs, target)
        else:
            f = torch.softmax(outputs, dim=1)
            loss = same_loss(f[left], f[right], same, *rates(worker)).mean()
            loss = loss + 0.01 * cluster_volume(f)
        loss.backward()
        optimiser.step()
    new = rng.integers(0, 3, 200)
    found = network(torch.tensor(centres[new] + rng.normal(size=(200, 3)), dtype=torch.float32))
    assert matched_accuracy(new, found.argmax(dim=1).numpy()) > 0.85
    s, _ = rates(torch.arange(10))
    assert np.abs(s.detach().numpy() - made.same_rate).mean() < 0.1
