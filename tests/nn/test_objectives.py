"""Losses against sums over classes and labels, and of preferences and sameness: minima, limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from wisecrowd.aggregation import CrowdClustering
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.same.scorer import matched_accuracy
from wisecrowd.nn import (
    PairBatch,
    WorkerReliability,
    WorkerSameRates,
    cluster_volume,
    conservative_preference_loss,
    pair_collate,
    preference_loss,
    robust_preference_loss,
    same_loss,
    worker_preference_loss,
)
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.objectives import (
    coupled_cross_entropy,
    label_log_probas,
    log_joint,
    marginal_log_likelihood,
    posterior_cross_entropy,
)
from wisecrowd.simulate import same_votes

N_TASKS, N_WORKERS, N_CLASSES, N_LABELS = 5, 4, 3, 12


@pytest.fixture(params=[None, "weights"])
def world(request):
    rng = np.random.default_rng(1)
    f = rng.dirichlet(np.ones(N_CLASSES), N_TASKS)
    theta = rng.dirichlet(np.ones(N_CLASSES), (N_WORKERS, N_CLASSES))
    task = np.sort(rng.integers(0, N_TASKS - 1, N_LABELS))  # the last task has no labels
    worker = rng.integers(0, N_WORKERS, N_LABELS)
    label = rng.integers(0, N_CLASSES, N_LABELS)
    weight = rng.integers(1, 4, N_LABELS).astype(float) if request.param else None
    return f, theta, task, worker, label, weight


def as_tensors(world):
    f, theta, task, worker, label, weight = world
    batch = CrowdBatch(
        torch.zeros(N_TASKS, 1), torch.arange(N_TASKS),
        torch.from_numpy(task), torch.from_numpy(worker), torch.from_numpy(label),
        None if weight is None else torch.from_numpy(weight),
    )  # fmt: skip
    rows = torch.from_numpy(np.log(theta[worker, :, label]))
    return torch.from_numpy(np.log(f)), rows, batch


def weights_of(world):
    return np.ones(N_LABELS) if world[5] is None else world[5]


def test_coupled_cross_entropy_is_each_label_explained_alone(world):
    f, theta, task, worker, label, _ = world
    each = [
        math.log(sum(f[i, k] * theta[j, k, y] for k in range(N_CLASSES)))
        for i, j, y in zip(task, worker, label, strict=True)
    ]
    np.testing.assert_allclose(label_log_probas(*as_tensors(world)), each)
    expected = -np.average(each, weights=weights_of(world))
    assert float(coupled_cross_entropy(*as_tensors(world))) == pytest.approx(expected)


def test_marginal_likelihood_and_posterior_are_sums_over_classes(world):
    f, theta, task, worker, label, _ = world
    joint = f.copy()
    for i, j, y, w in zip(task, worker, label, weights_of(world), strict=True):
        joint[i] *= theta[j, :, y] ** w
    np.testing.assert_allclose(log_joint(*as_tensors(world)).exp(), joint)
    expected = np.log(joint.sum(axis=1)).mean()
    assert float(marginal_log_likelihood(*as_tensors(world))) == pytest.approx(expected)


def test_one_label_per_task_makes_both_likelihoods_one(world):
    f, theta, *_ = world
    batch = CrowdBatch(
        torch.zeros(3, 1), torch.arange(3), torch.arange(3),
        torch.tensor([0, 3, 1]), torch.tensor([1, 1, 2]),
    )  # fmt: skip
    log_f = torch.from_numpy(np.log(f[:3]))
    rows = torch.from_numpy(np.log(theta[batch.worker, :, batch.label]))
    coupled = coupled_cross_entropy(log_f, rows, batch)
    torch.testing.assert_close(-coupled, marginal_log_likelihood(log_f, rows, batch))


def test_the_expected_log_is_below_and_meets_at_one_hot_outputs(world):
    log_f, rows, batch = as_tensors(world)

    def bound(outputs):  # Σ_k f_k log θ[k, y], the tied-delta evidence bound
        losses = -(outputs[batch.task] * rows).sum(dim=1)
        return batch.mean(losses)

    assert bound(log_f.exp()) >= coupled_cross_entropy(log_f, rows, batch)
    sure = torch.eye(N_CLASSES, dtype=torch.float64)[torch.arange(N_TASKS) % N_CLASSES]
    torch.testing.assert_close(
        bound(sure), coupled_cross_entropy((sure + 1e-300).log(), rows, batch)
    )


def test_posterior_cross_entropy(world):
    f = world[0]
    targets = np.random.default_rng(2).dirichlet(np.ones(N_CLASSES), N_TASKS)
    losses = -(targets * np.log(f)).sum(axis=1)
    log_f, q = torch.from_numpy(np.log(f)), torch.from_numpy(targets)
    assert float(posterior_cross_entropy(log_f, q)) == pytest.approx(losses.mean())
    weight = np.array([1.0, 2, 0, 1, 3])
    found = posterior_cross_entropy(log_f, q, torch.from_numpy(weight))
    assert float(found) == pytest.approx(np.average(losses, weights=weight))


MARGINS = torch.linspace(-6, 6, 25, dtype=torch.float64)


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3, 0.44])
def test_the_robust_loss_is_unbiased(rate):
    """Its mean over flips is the loss without noise, exactly."""
    right, wrong = (robust_preference_loss(h, rate) for h in (MARGINS, -MARGINS))
    mean = (1 - rate) * right + rate * wrong
    torch.testing.assert_close(mean, preference_loss(MARGINS), rtol=1e-12, atol=1e-12)


def test_the_slope_of_the_robust_loss_does_not_vanish():
    margin = torch.tensor(40.0, dtype=torch.float64, requires_grad=True)
    robust_preference_loss(margin, 0.2).backward()
    assert margin.grad.item() == pytest.approx(-0.2 / 0.6)


def test_the_conservative_loss_is_least_at_the_logit_of_the_rate():
    margin = torch.tensor(math.log(0.8 / 0.2), dtype=torch.float64, requires_grad=True)
    conservative_preference_loss(margin, 0.2).backward()
    assert abs(margin.grad.item()) < 1e-15


def test_flip_rates_are_capped_and_refused():
    torch.testing.assert_close(
        robust_preference_loss(MARGINS, 0.49), robust_preference_loss(MARGINS, 0.45)
    )
    for rate in (0.5, 0.9, -0.1, math.nan):
        for loss in (robust_preference_loss, conservative_preference_loss):
            with pytest.raises(ParameterError, match="flip rate"):
                loss(MARGINS, rate)


def test_flip_rates_may_differ_by_vote():
    rates = torch.tensor([0.1, 0.3])
    margin = torch.tensor([1.0, -2.0])
    each = [robust_preference_loss(h, float(r)) for h, r in zip(margin, rates, strict=True)]
    torch.testing.assert_close(robust_preference_loss(margin, rates), torch.stack(each))


def test_the_loss_of_workers_has_its_limits():
    far = torch.full_like(MARGINS, 40.0)
    torch.testing.assert_close(worker_preference_loss(MARGINS, far), preference_loss(MARGINS))
    torch.testing.assert_close(worker_preference_loss(MARGINS, -far), preference_loss(-MARGINS))
    coin = worker_preference_loss(MARGINS, torch.zeros_like(MARGINS))
    torch.testing.assert_close(coin, torch.full_like(MARGINS, math.log(2)))


def test_the_loss_of_workers_is_minus_the_log_probability():
    eta = 0.83
    logit = torch.full_like(MARGINS, math.log(eta / (1 - eta)))
    p = eta * torch.sigmoid(MARGINS) + (1 - eta) * torch.sigmoid(-MARGINS)
    torch.testing.assert_close(worker_preference_loss(MARGINS, logit), -p.log())


def test_gradients_are_those_of_finite_differences():
    logit = torch.linspace(-3, 3, 25, dtype=torch.float64, requires_grad=True)
    margin = MARGINS.clone().requires_grad_()
    assert torch.autograd.gradcheck(worker_preference_loss, (margin, logit))
    assert torch.autograd.gradcheck(lambda h: robust_preference_loss(h, 0.3), (margin,))
    assert torch.autograd.gradcheck(lambda h: conservative_preference_loss(h, 0.3), (margin,))


def test_reliabilities_start_where_they_are_told_and_have_a_beta_prior():
    head = WorkerReliability(3, start=0.8)
    torch.testing.assert_close(head.table(), torch.full((3,), 0.8))
    expected = 3 * (2 * math.log(0.8) + math.log(0.2))
    assert head.log_prior(2, 1).item() == pytest.approx(expected, rel=1e-5)
    assert head(torch.tensor([2, 0])).shape == (2,)


def test_a_tie_is_half_of_each_side_and_weights_are_repetitions():
    left, right = torch.tensor([0, 0, 0]), torch.tensor([1, 1, 1])
    worker = torch.zeros(3, dtype=torch.long)
    ties = PairBatch(torch.zeros(2, 1), left[:1], right[:1], worker[:1], torch.tensor([0.5]))
    won, lost = torch.tensor([1.0]), torch.tensor([3.0])
    assert float(ties.split(won, lost)) == 2.0
    repeated = PairBatch(torch.zeros(2, 1), left, right, worker, torch.tensor([1.0, 1.0, 0.0]))
    weighted = PairBatch(
        torch.zeros(2, 1), left[:2], right[:2], worker[:2], torch.tensor([1.0, 0.0]),
        torch.tensor([2.0, 1.0]),
    )  # fmt: skip
    three = repeated.split(won.expand(3), lost.expand(3))
    assert float(three) == pytest.approx(float(weighted.split(won.expand(2), lost.expand(2))))


def test_collated_samples_train_in_a_loop_of_ones_own():
    torch.manual_seed(0)
    x = torch.randn(40, 2)
    truth = x @ torch.tensor([1.0, -1.0])
    samples = [
        (x[a], x[a + 20], 0, float(truth[a] > truth[a + 20])) for a in range(20)
    ]  # fmt: skip
    batch = pair_collate(samples)
    reward = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(reward.parameters(), lr=0.1)
    for _ in range(50):
        margin = batch.margins(reward(batch.x)[:, 0])
        loss = batch.split(preference_loss(margin), preference_loss(-margin))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    margin = batch.margins(reward(batch.x)[:, 0])
    assert ((margin > 0) == (batch.share > 0.5)).float().mean() > 0.9


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
