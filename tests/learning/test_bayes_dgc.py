"""BayesDGC: mean field without a network, deepMF without a class prior, and its bound."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import digamma
from torch import nn

import wisecrowd as wc
from wisecrowd.aggregation import MeanField
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import BayesDGC, DeepMF
from wisecrowd.learning.bayes_dgc import NaturalGradientModel
from wisecrowd.learning.training.crowd_data import CrowdData

PRIOR = 2.0 + 3.0 * np.eye(3)


def crowd(n=60, n_workers=6, seed=0, missing=0.3):
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    X = np.eye(3)[truth] + 0.6 * rng.normal(size=(n, 3))
    right = rng.random((n, n_workers)) < 0.6
    votes = np.where(right, truth[:, None], rng.integers(3, size=(n, n_workers))).astype(float)
    hidden = rng.random(votes.shape) < missing
    hidden[np.arange(n), rng.integers(n_workers, size=n)] = False
    votes[hidden] = np.nan
    return X, CrowdLabels.from_matrix(votes, classes=[0, 1, 2]), truth


class Fixed(nn.Module):
    """A network whose logits are the features, or nothing, whatever it is trained on."""

    def __init__(self, strength):
        super().__init__()
        self.idle, self.strength = nn.Parameter(torch.zeros(1)), strength

    def forward(self, x):
        return self.strength * x + 0 * self.idle


def silent_start():
    """Logistic regression that prefers no class before it is trained."""
    layer = nn.Linear(3, 3)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def full(n, **options):
    return BayesDGC(**{"forgetting": 0.0, "batch_size": n, **options})


def test_without_a_network_it_is_mean_field():
    X, labels, _ = crowd()
    deep = full(60, module=Fixed(0.0), epochs=80).fit(X, labels)
    plain = MeanField(prior=PRIOR, class_alpha=1.1, max_iter=500, tol=1e-14, accelerate=False)
    plain.fit(labels)
    np.testing.assert_allclose(deep.probas_, plain.probas_, atol=1e-5)
    np.testing.assert_allclose(deep.confusion_, plain.confusion_, atol=1e-5)
    assert deep.elbo_[-1] == pytest.approx(plain.history_[-1], abs=1e-6)


def test_with_a_fixed_network_it_is_mean_field_with_a_task_prior():
    X, labels, _ = crowd()
    options = {"module": Fixed(1.0), "epochs": 80, "estimate_class": False}
    deep = full(60, **options).fit(X, labels)
    f = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    plain = MeanField(
        prior=PRIOR, class_prior="uniform", max_iter=500, tol=1e-14, accelerate=False
    ).fit(labels, task_prior=f)
    np.testing.assert_allclose(deep.probas_, plain.probas_, atol=1e-5)
    # there the uniform class prior is one more factor
    assert deep.elbo_[-1] == pytest.approx(plain.history_[-1] + 60 * np.log(3), abs=1e-4)


def test_full_steps_without_a_class_prior_are_deep_mf_step_by_step():
    X, labels, _ = crowd()
    shared = {"optimizer": "sgd", "lr": 0.5, "weight_decay": 0.0, "batch_size": 60}
    for epochs in (1, 2, 5, 12):
        dgc = full(60, module=silent_start(), estimate_class=False, epochs=epochs, **shared)
        mf = DeepMF(module=silent_start(), prior=PRIOR, clip=1.0, rounds=1, epochs=epochs, **shared)
        one, other = dgc.fit(X, labels), mf.fit(X, labels)
        for name, weight in one._network.state_dict().items():
            torch.testing.assert_close(
                weight, other._network.state_dict()[name], atol=1e-5, rtol=1e-5
            )
    assert np.abs(one._network.weight.detach().numpy()).max() > 0.5  # and it did learn


@pytest.mark.parametrize("estimate", [True, False])
@pytest.mark.parametrize("known", [0, 20])
def test_the_bound_never_falls_while_the_network_is_fixed(estimate, known):
    X, labels, truth = crowd()
    gold = {labels.tasks[i]: int(truth[i]) for i in range(known)} or None
    method = full(60, module=Fixed(1.0), epochs=40, estimate_class=estimate)
    elbo = method.fit(X, labels, gold=gold).elbo_
    assert len(elbo) == 40
    assert (np.diff(elbo) > -1e-8).all()
    assert elbo[-1] > elbo[0] + 0.025


def test_the_bound_is_the_variational_one_written_out():
    X, labels, _ = crowd(n=20)
    data = CrowdData(X, labels, np.full(20, -1))
    model = NaturalGradientModel(Fixed(1.0), data, BayesDGC())
    model.begin_epoch(0, data)
    batch = data.batch(torch.arange(20))
    log_f = model.log_probas(batch.x)
    q = model._posterior(log_f, batch)
    theta, pi = (
        torch.distributions.Dirichlet(model.beta),
        torch.distributions.Dirichlet(model.alpha),
    )
    logs = torch.digamma(model.beta) - torch.digamma(model.beta.sum(2, keepdim=True))
    value = (q * (log_f.double() - q.log())).sum()
    value += (q @ (torch.digamma(model.alpha) - torch.digamma(model.alpha.sum()))).sum()
    value -= (q @ model.log_probas(batch.x).exp().double().mean(0).log()).sum()
    value += (q[batch.task] * logs[batch.worker, :, batch.label]).sum()
    prior = torch.distributions.Dirichlet(model.get_buffer("beta_prior"))
    value -= torch.distributions.kl_divergence(theta, prior).sum()
    prior = torch.distributions.Dirichlet(model.get_buffer("alpha_prior"))
    value -= torch.distributions.kl_divergence(pi, prior).sum()
    assert model.bound(data) == pytest.approx(float(value.detach()), abs=1e-4)


def test_a_batch_of_all_tasks_is_the_full_batch_and_small_ones_are_unbiased():
    X, labels, _ = crowd()
    data = CrowdData(X, labels, np.full(60, -1))
    model = NaturalGradientModel(Fixed(1.0), data, BayesDGC(forgetting=0.0))
    batch = data.batch(torch.arange(60))
    q = model._posterior(model.log_probas(batch.x), batch)
    target = torch.zeros_like(model.beta) + torch.from_numpy(PRIOR)
    for e in range(len(batch.label)):
        target[batch.worker[e], :, batch.label[e]] += q[batch.task[e]]
    start = model.beta.clone(), model.alpha.clone()
    model._natural_step(q, batch)
    torch.testing.assert_close(model.beta, target)
    torch.testing.assert_close(model.alpha, 1.1 + q.sum(0), rtol=1e-6, atol=1e-6)
    moved = []
    for rows in torch.arange(60).split(20):  # thirds: their mean is the full step
        model.beta.copy_(start[0])
        model.alpha.copy_(start[1])
        part = data.batch(rows)
        model._natural_step(model._posterior(model.log_probas(part.x), part), part)
        moved.append(model.beta.clone())
    torch.testing.assert_close(torch.stack(moved).mean(0), target)


def test_the_rate_of_robbins_and_monro():
    X, labels, _ = crowd()
    data = CrowdData(X, labels, np.full(60, -1))
    model = NaturalGradientModel(Fixed(1.0), data, BayesDGC(forgetting=0.7))
    model.step.fill_(4)
    before, batch = model.beta.clone(), data.batch(torch.arange(60))
    q = model._posterior(model.log_probas(batch.x), batch)
    model._natural_step(q, batch)
    moved = model.beta - before
    model.forgetting, model.beta = 0.0, before.clone()
    model._natural_step(q, batch)
    torch.testing.assert_close(moved, 5**-0.7 * (model.beta - before))


@pytest.mark.parametrize("estimate", [True, False])
def test_few_labels_gain_from_features_and_no_class_runs_away(estimate):
    X, labels, truth = crowd(n=300, missing=0.85)
    deep = BayesDGC(module="linear", lr=0.02, epochs=30, estimate_class=estimate).fit(X, labels)
    plain = MeanField(prior=PRIOR).fit(labels)
    assert np.mean(deep.labels_ == truth) > np.mean(plain.labels_ == truth) + 0.09
    assert np.bincount(deep.labels_).min() > 60  # of a hundred


# ------------------------------------------------------------------ equation (14) of the paper


def equation_14(log_f, labels, alpha, beta):
    """log q_i(k) = E log π_k + log f_k(x_i) + Σ_j E log ν_j[k, y_ij], of a task's own workers."""
    q = np.zeros_like(log_f)
    for i in range(len(log_f)):
        mine = labels.task == i
        for k in range(log_f.shape[1]):
            q[i, k] = digamma(alpha[k]) - digamma(alpha.sum()) + log_f[i, k]
            for j, label in zip(labels.worker[mine], labels.label[mine], strict=True):
                q[i, k] += digamma(beta[j, k, label]) - digamma(beta[j, k].sum())
    q = np.exp(q)
    return q / q.sum(axis=1, keepdims=True)


def test_an_option_gives_the_paper_s_equation_step_by_step():
    X, labels, _ = crowd()
    log_f = X - np.log(np.exp(X).sum(axis=1, keepdims=True))
    alpha, beta = np.full(3, 1.1), np.tile(PRIOR, (labels.n_workers, 1, 1))
    votes = np.zeros((60, 3))
    np.add.at(votes, (labels.task, labels.label), 1.0)
    q = votes / votes.sum(axis=1, keepdims=True)
    np.add.at(beta.transpose(0, 2, 1), (labels.worker, labels.label), q[labels.task])
    for epochs in range(1, 6):
        q = equation_14(log_f, labels, alpha, beta)
        alpha = 1.1 + q.sum(axis=0)
        beta = np.tile(PRIOR, (labels.n_workers, 1, 1))
        np.add.at(beta.transpose(0, 2, 1), (labels.worker, labels.label), q[labels.task])
        fit = full(60, module=Fixed(1.0), epochs=epochs, divide_by_mean=False).fit(X, labels)
        np.testing.assert_allclose(fit.class_posterior_, alpha, atol=1e-5)
        np.testing.assert_allclose(fit.confusion_posterior_, beta, atol=1e-5)
        expected = equation_14(log_f, labels, alpha, beta)
        np.testing.assert_allclose(fit.probas_, expected, atol=1e-6)
    relative = full(60, module=Fixed(1.0), epochs=epochs).fit(X, labels)
    assert np.abs(relative.probas_ - expected).max() > 0.01


def test_the_paper_s_equation_with_a_trained_network_and_small_batches():
    X, labels, _ = crowd()
    fit = BayesDGC(module="linear", epochs=5, lr=0.05, batch_size=20, divide_by_mean=False)
    fit.fit(X, labels)
    log_f = np.log(fit.predict_proba(X))
    expected = equation_14(log_f, labels, fit.class_posterior_, fit.confusion_posterior_)
    np.testing.assert_allclose(fit.probas_, expected, atol=1e-6)
    np.testing.assert_allclose(fit.predict_proba(X, labels), expected, atol=1e-6)


def test_the_paper_s_equation_with_a_fixed_network_is_mean_field_with_both_priors():
    X, labels, _ = crowd()
    deep = full(60, module=Fixed(1.0), epochs=80, divide_by_mean=False).fit(X, labels)
    f = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    plain = MeanField(
        prior=PRIOR, class_prior="estimate", class_alpha=1.1, max_iter=500, tol=1e-14,
        accelerate=False,
    ).fit(labels, task_prior=f)  # fmt: skip
    np.testing.assert_allclose(deep.probas_, plain.probas_, atol=1e-5)
    assert deep.elbo_[-1] == pytest.approx(plain.history_[-1], abs=1e-4)
    assert (np.diff(deep.elbo_) > -1e-8).all()


def test_a_saved_model_repeats_itself(tmp_path):
    X, labels, _ = crowd()
    model = BayesDGC(module="linear", epochs=3).fit(X, labels)
    model.save(tmp_path / "model")
    again = wc.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    "parameters",
    [
        {"class_alpha": 0.0},
        {"diagonal": -1},
        {"forgetting": 2.0},
        {"estimate_class": 1},
        {"divide_by_mean": "no"},
    ],
)
def test_refuses_wrong_parameters(parameters):
    X, labels, _ = crowd(n=20)
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        BayesDGC(**parameters).fit(X, labels)
