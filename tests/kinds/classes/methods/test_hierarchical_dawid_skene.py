"""HierarchicalDawidSkene against loops over annotations, posteriors by hand and limit cases."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from wisecrowd import CrowdLabels
from wisecrowd.aggregation import HierarchicalDawidSkene
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.inference.engine import in_memory
from wisecrowd.inference.loop import first_params
from wisecrowd.kernels import MODULES
from wisecrowd.kinds.classes.families.label_law import NEW_TASK
from wisecrowd.kinds.classes.families.posteriors import Start
from wisecrowd.kinds.classes.methods import hierarchical_dawid_skene as module
from wisecrowd.kinds.classes.prior import TaskPrior
from wisecrowd.testing.crowds import simulated

LEVELS = (0.0, 0.3, 0.6, 0.9)


def small_crowd(K=3, n=12, J=5, seed=0, weight=False):
    """Return tasks with one to four labels; task 3 and worker 4 have one label each."""
    rng = np.random.default_rng(seed)
    task, worker, label = [], [], []
    for i in range(n):
        size = 1 if i == 3 else int(rng.integers(1, 5))
        for j in rng.choice(4, size=size, replace=False):
            task.append(i), worker.append(int(j)), label.append(int(rng.integers(0, K)))
    task.append(0), worker.append(4), label.append(1)
    w = rng.uniform(0.3, 2.5, size=len(task)) if weight else None
    return CrowdLabels.from_arrays(
        task, worker, label, weight=w, classes=range(K), workers=range(J)
    )


class PlainFit:
    """The method as loops over annotations, from its description."""

    def __init__(self, labels, c=4.0, levels=LEVELS, prior=None):
        self.N, self.J, self.K = labels.n_tasks, labels.n_workers, labels.n_classes
        weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
        columns = (labels.task, labels.worker, labels.label, weight)
        self.rows = [
            (int(i), int(j), int(y), float(w)) for i, j, y, w in zip(*columns, strict=True)
        ]
        self.c, self.levels = c, levels
        self.prior = np.ones((self.N, self.K)) if prior is None else prior
        self.m = [sum(r[3] for r in self.rows if r[2] == y) for y in range(self.K)]
        self.m = [x / sum(self.m) for x in self.m]
        self.q = np.empty((self.N, self.K))
        for i in range(self.N):
            votes = [sum(r[3] for r in self.rows if r[0] == i and r[2] == k) for k in range(self.K)]
            start = [(v + 0.5 / self.K) / (sum(votes) + 0.5) for v in votes]
            self.q[i] = start * self.prior[i] / (start * self.prior[i]).sum()
        self.own = [[w * self.q[i, k] for k in range(self.K)] for i, j, y, w in self.rows]
        easy = [17 if level == min(levels) else 1 for level in levels]  # pseudo-tasks
        self.easy = np.array(easy, dtype=float)
        self.rho = self.easy / self.easy.sum()
        self.update_population()

    def update_population(self):
        J, K, c = self.J, self.K, self.c
        self.C = np.zeros((J, K, K))  # worker, class, label
        for (_, j, y, _), own in zip(self.rows, self.own, strict=True):
            for k in range(K):
                self.C[j, k, y] += own[k]
        self.w = np.minimum(1, (c + 1) / (c + self.C.sum(axis=2)))
        self.R = [sum(self.w[j, k] * self.C[j, k, k] for k in range(K)) for j in range(J)]
        self.T = [sum(self.w[j, k] * self.C[j, k].sum() for k in range(K)) for j in range(J)]
        mu = np.zeros((K, K))
        for k, y in itertools.product(range(K), repeat=2):
            base = 0.7 if k == y else 0.3 / (K - 1)
            mu[k, y] = sum(self.w[j, k] * self.C[j, k, y] for j in range(J)) + 50 * base
        mu /= mu.sum(axis=1, keepdims=True)
        self.mean = sum(self.m[k] * mu[k, k] for k in range(K))
        self.nu = mu * (1 - np.eye(K))
        self.nu /= self.nu.sum(axis=1, keepdims=True)
        self.p = (sum(self.R) + 7) / (sum(self.T) + 10)
        self.s = max((2.0**x for x in range(8)), key=self.evidence)
        labelled = sorted({r[0] for r in self.rows})
        mass = self.q[labelled].sum(axis=0) + 1
        self.pi = mass / mass.sum()

    def evidence(self, s):
        def log_beta(a, b):
            return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

        a, b = s * self.p, s * (1 - self.p)
        return sum(
            log_beta(R + a, T - R + b) - log_beta(a, b) for R, T in zip(self.R, self.T, strict=True)
        )

    def rates(self, j, y, own):
        """Return p(y | j, k) for every class k, without a contribution."""
        K = self.K
        right = self.R[j] - self.w[j, y] * own[y]
        total = self.T[j] - sum(self.w[j, k] * own[k] for k in range(K))
        p = (right + self.s * self.p) / (total + self.s)
        logit = sum(
            sign * math.log(x / (1 - x)) for sign, x in ((1, self.mean), (1, p), (-1, self.p))
        )
        accuracy = 1 / (1 + math.exp(-logit))
        prior = [accuracy if k == y else (1 - accuracy) * self.nu[k, y] for k in range(K)]
        return [
            (self.c * prior[k] + self.C[j, k, y] - own[k]) / (self.c + self.C[j, k].sum() - own[k])
            for k in range(K)
        ]

    def run_pass(self):
        K, D = self.K, len(self.levels)
        joint = self.prior[:, :, None] * self.pi[:, None] * np.array(self.rho)
        lik = np.empty((len(self.rows), K, D))
        theta = [
            self.rates(j, y, own) for (_, j, y, _), own in zip(self.rows, self.own, strict=True)
        ]
        for e, (i, _, y, w) in enumerate(self.rows):
            for k, (d, level) in itertools.product(range(K), enumerate(self.levels)):
                lik[e, k, d] = (1 - level) * theta[e][k] + level * self.m[y]
            joint[i] *= lik[e] ** w
        joint /= joint.sum(axis=(1, 2), keepdims=True)
        score = 0.0
        for e, (i, _, _, w) in enumerate(self.rows):
            cavity = joint[i] / lik[e] ** w
            score += math.log((cavity / cavity.sum() * lik[e] ** w).sum())
            kept = [(1 - level) * theta[e][k] for k in range(K) for level in self.levels]
            kept = np.array(kept).reshape(K, D)
            self.own[e] = (w * joint[i] * kept / lik[e]).sum(axis=1)
        self.score = score / sum(r[3] for r in self.rows)
        self.q, self.difficulty = joint.sum(axis=2), joint.sum(axis=1) @ self.levels
        labelled = sorted({r[0] for r in self.rows})
        mass = joint[labelled].sum(axis=(0, 1)) + self.easy
        rho = (mass / mass.sum()) ** 1.9 / np.array(self.rho) ** 0.9  # over-relaxed
        self.rho = rho / rho.sum()
        self.update_population()


@pytest.fixture(params=["reference", "fast"])
def kernels(request, monkeypatch):
    """Run both kernels, whatever the size of the problem."""
    if request.param == "fast":
        monkeypatch.setitem(MODULES, "hierarchical", f"{MODULES['hierarchical']}_fast")


@pytest.mark.parametrize("n_passes", [1, 2, 30])
@pytest.mark.parametrize("weight", [False, True])
def test_the_fit_is_that_of_loops_over_annotations(kernels, weight, n_passes):
    labels = small_crowd(weight=weight)
    plain = PlainFit(labels)
    for _ in range(n_passes):
        plain.run_pass()
    fitted = HierarchicalDawidSkene(max_iter=n_passes, tol=0.0).fit(labels)
    assert fitted.n_iter_ == n_passes
    # Contributions are stored in single precision.
    np.testing.assert_allclose(fitted.probas_, plain.q, atol=1e-6)
    np.testing.assert_allclose(fitted.difficulty_, plain.difficulty, atol=1e-6)
    np.testing.assert_allclose(fitted.class_prior_, plain.pi, atol=1e-6)
    np.testing.assert_allclose(fitted.difficulty_prior_, plain.rho, atol=1e-6)
    assert fitted.held_out_score_ == pytest.approx(plain.score, abs=1e-6)
    theta = np.array(
        [[plain.rates(j, y, [0.0] * 3) for y in range(3)] for j in range(labels.n_workers)]
    ).transpose(0, 2, 1)
    chance = plain.rho @ LEVELS
    expected = (1 - chance) * theta + chance * np.array(plain.m)
    np.testing.assert_allclose(fitted.confusion_, expected, atol=1e-6)


def test_gold_and_task_prior_enter_as_in_the_loops():
    labels = small_crowd()
    prior = np.random.default_rng(1).dirichlet(np.ones(3), size=labels.n_tasks)
    plain = PlainFit(labels, prior=prior * (np.arange(3) == 2) ** (np.arange(12) == 5)[:, None])
    plain.pi = np.ones(3)  # "auto": the task prior replaces the class prior
    for _ in range(3):
        plain.run_pass()
        plain.pi = np.ones(3)
    fitted = HierarchicalDawidSkene(max_iter=3, tol=0.0)
    fitted.fit(labels, gold={5: 2}, task_prior=prior)
    np.testing.assert_allclose(fitted.probas_, plain.q, atol=1e-6)
    assert fitted.labels_[5] == 2


def test_stops_once_no_posterior_moves():
    labels = simulated(190, 10, 2, 4).labels
    fitted = HierarchicalDawidSkene().fit(labels)
    before, after = (
        HierarchicalDawidSkene(max_iter=fitted.n_iter_ + more).fit(labels) for more in (-1, 0)
    )
    earlier = HierarchicalDawidSkene(max_iter=fitted.n_iter_ - 2).fit(labels)
    assert fitted.converged_
    assert not before.converged_
    assert np.abs(after.probas_ - before.probas_).max() < 1e-3
    assert np.abs(before.probas_ - earlier.probas_).max() >= 1e-3


# ------------------------------------------------------------------------------------ limit cases


def pooled_em(labels, n_passes):
    """Return the posterior of one confusion matrix for all workers, its diagonal tied."""
    N, K = labels.n_tasks, labels.n_classes
    votes = np.zeros((N, K))
    np.add.at(votes, (labels.task, labels.label), 1.0)
    q = (votes + 0.5 / K) / (votes.sum(axis=1, keepdims=True) + 0.5)
    shares = labels.class_totals / labels.class_totals.sum()
    for _ in range(n_passes):
        confusion = q.T @ votes + 50 * np.where(np.eye(K) > 0, 0.7, 0.3 / (K - 1))
        confusion /= confusion.sum(axis=1, keepdims=True)
        right = shares @ np.diagonal(confusion)
        off = confusion * (1 - np.eye(K))
        table = (1 - right) * off / off.sum(axis=1, keepdims=True) + right * np.eye(K)
        log_q = np.log(q.sum(axis=0) + 1) + votes @ np.log(table).T
        q = np.exp(log_q - log_q.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
    return q


def test_without_difficulty_and_coins_an_infinite_concentration_is_one_confusion_for_all():
    labels = simulated(60, 6, 3, 3).labels
    method = HierarchicalDawidSkene(concentration=1e12, difficulties=(0.0,))
    problem = in_memory(labels, TaskPrior(np.zeros((1, 3))))
    model = replace(method._model(problem), strengths=(1e12,))  # every coin is the mean
    shards = problem.cut(1)
    params, states = first_params(model, shards, Start())
    for n_passes in (1, 2, 3, 4):
        states, stats = shards.map_reduce(model, "local_step", states, params)
        np.testing.assert_allclose(states[0].probas, pooled_em(labels, n_passes), atol=1e-6)
        params = model.global_step(stats, params)


def test_one_worker_per_task_by_hand():
    """Two labels by one worker: each is judged by the other alone."""
    labels = CrowdLabels.from_arrays([0, 1], ["w", "w"], [0, 1], classes=[0, 1])
    fitted = HierarchicalDawidSkene(difficulties=(0.0,), max_iter=1).fit(labels)
    start = (1 + 0.25) / 1.5  # the vote, of the own label
    # All counts: C[k, l] = start if k == l else 1 - start; no class is saturated; each row has 1.
    mu = (start + 35) / (1 + 50)  # accuracy of the population
    coin = (2 * start + 7) / (2 + 10)
    s = 128.0
    # The other label: of class k with probability start or 1 - start, and right only if that is
    # its own class.
    p = (start + s * coin) / (1 + s)
    odds = mu / (1 - mu) * p / (1 - p) * (1 - coin) / coin
    accuracy = odds / (1 + odds)
    # Label 0 on class 0: the row has 1 - start of the other label, which is label 1.
    right = (4 * accuracy + 0) / (4 + 1 - start)
    wrong = (4 * (1 - accuracy) + 0) / (4 + start)
    assert fitted.probas_[0, 0] == pytest.approx(right / (right + wrong), abs=1e-6)
    assert fitted.probas_[1, 1] == pytest.approx(right / (right + wrong), abs=1e-6)


@pytest.mark.parametrize("level", [0.0, 0.3])
def test_a_worker_with_one_label_has_the_rates_of_the_population(kernels, level):
    """Worker 4 has one label, a 1 on task 0: the posterior without it, times those rates."""
    crowd, nothing = small_crowd(K=2, n=30), TaskPrior(np.zeros((1, 2)))
    problem = in_memory(crowd, nothing)
    model = HierarchicalDawidSkene(difficulties=(level,))._model(problem)
    kept = crowd.worker != 4
    found = []
    for some in (np.ones_like(kept), kept):
        params, states = first_params(model, problem.cut(1), Start())
        state = states[0]._replace(own=states[0].own[some])
        part = in_memory(crowd.select_annotations(some), nothing).cut(1)
        found.append(part.map_reduce(model, "local_step", [state], params)[0][0].probas[0])
    nobody = module.prior_rates(params.population, np.zeros(1), np.zeros(1))[0]
    expected = found[1] * ((1 - level) * nobody[:, 1] + level * model.shares[1])
    np.testing.assert_allclose(found[0], expected / expected.sum(), atol=1e-6)


def test_a_task_without_labels_changes_nothing():
    labels = small_crowd()
    more = CrowdLabels.from_arrays(
        labels.task, labels.worker, labels.label, classes=range(3), tasks=range(labels.n_tasks + 1)
    )
    fitted, larger = HierarchicalDawidSkene().fit(labels), HierarchicalDawidSkene().fit(more)
    np.testing.assert_allclose(larger.probas_[:-1], fitted.probas_, atol=1e-9)
    np.testing.assert_allclose(larger.confusion_, fitted.confusion_, atol=1e-9)
    np.testing.assert_allclose(larger.probas_[-1].sum(), 1)
    assert larger.n_iter_ == fitted.n_iter_


def test_permuted_classes_permute_the_result():
    labels, order = small_crowd(), np.array([2, 0, 1])
    other = CrowdLabels.from_arrays(
        labels.task, labels.worker, order[labels.label], classes=range(3)
    )
    fitted, permuted = HierarchicalDawidSkene().fit(labels), HierarchicalDawidSkene().fit(other)
    np.testing.assert_allclose(permuted.probas_[:, order], fitted.probas_, atol=1e-7)
    inner = permuted.confusion_[:, order][:, :, order]
    np.testing.assert_allclose(inner, fitted.confusion_, atol=1e-7)


# ------------------------------------------------------------------------- results and prediction


def test_small_crowds_are_neither_overruled_nor_certain():
    rng = np.random.default_rng(0)
    for _ in range(50):
        truth = rng.integers(0, 2, size=4)
        votes = np.where(rng.random((4, 3)) < 0.8, truth[:, None], 1 - truth[:, None])
        fitted = HierarchicalDawidSkene().fit(CrowdLabels.from_matrix(votes, classes=[0, 1]))
        unanimous = votes.min(axis=1) == votes.max(axis=1)
        assert (fitted.labels_ == votes[:, 0])[unanimous].all()
        assert fitted.probas_.max() < 0.999


def test_a_split_vote_of_two_workers_is_a_tie():
    fitted = HierarchicalDawidSkene().fit(CrowdLabels.from_matrix([[0, 1], [0, 0], [1, 1]]))
    assert fitted.probas_[0] == pytest.approx([0.5, 0.5], abs=0.02)


@pytest.mark.filterwarnings("ignore:1 of 3 workers")
def test_prediction_is_bayes_rule_over_classes_and_levels():
    fitted = HierarchicalDawidSkene().fit(small_crowd(weight=True))
    chance = fitted.difficulty_prior_ @ LEVELS
    confusion = np.concatenate([fitted.confusion_, fitted.unknown_worker_[None]])
    rates = (confusion - chance * fitted.label_shares_) / (1 - chance)
    joint = np.outer(fitted.class_prior_, fitted.difficulty_prior_)
    for j, y in ((0, 1), (5, 2), (2, 1)):  # worker 5 is unknown
        for d, level in enumerate(LEVELS):
            joint[:, d] *= (1 - level) * rates[j, :, y] + level * fitted.label_shares_[y]
    new = ([77] * 3, [0, 5, 2], [1, 2, 1])
    expected = joint.sum(axis=1) / joint.sum()
    np.testing.assert_allclose(fitted.predict_proba(new)[0], expected, atol=1e-9)
    assert fitted.score(new) == pytest.approx(np.log(joint.sum()) / 3, abs=1e-9)


def test_a_worker_without_labels_is_an_unknown_worker():
    labels = CrowdLabels.from_arrays([0, 0, 1], [0, 1, 1], [0, 0, 1], workers=range(3))
    fitted = HierarchicalDawidSkene().fit(labels)
    np.testing.assert_allclose(fitted.confusion_[2], fitted.unknown_worker_)


def test_the_law_mixes_rates_and_label_shares_by_the_difficulty_of_the_task():
    labels = small_crowd()
    fitted = HierarchicalDawidSkene().fit(labels)
    law = fitted.label_law()
    chance = fitted.difficulty_prior_ @ LEVELS
    rates = (fitted.confusion_ - chance * fitted.label_shares_) / (1 - chance)
    for task, level in ((NEW_TASK, chance), (3, fitted.difficulty_[3])):
        expected = (1 - level) * rates[1, 2] + level * fitted.label_shares_
        np.testing.assert_allclose(law.prob(np.arange(3), 2, 1, task), expected, atol=1e-12)
        n = 40_000
        one = np.ones(n, np.int32)
        drawn = law.draw(2 * one, one, task * one, np.random.default_rng(0))
        np.testing.assert_allclose(np.bincount(drawn, minlength=3) / n, expected, atol=0.01)


def test_accuracies_are_recovered_with_honest_errors():
    made = simulated(1500, 40, 3, 5)
    fitted = HierarchicalDawidSkene().fit(made.labels)
    right = made.labels.label == made.truth[made.labels.task]
    observed = np.bincount(made.labels.worker, right) / np.bincount(made.labels.worker)
    z = (fitted.worker_accuracy_ - observed) / fitted.worker_accuracy_error_
    assert np.abs(z).max() < 4
    assert np.abs(fitted.worker_accuracy_ - observed).mean() < 0.05
    assert fitted.held_out_score_ == fitted.history_[-1] < 0


@pytest.mark.parametrize("difficulties", [(), (1.0,), (-0.1, 0.5), "hard", [[0.1]], (math.nan,)])
def test_levels_that_are_not_probabilities_are_refused(difficulties):
    with pytest.raises(ParameterError, match="difficulties"):
        HierarchicalDawidSkene(difficulties=difficulties).fit(small_crowd())


def test_one_class():
    fitted = HierarchicalDawidSkene().fit(CrowdLabels.from_matrix([[0, 0], [0, 0]]))
    np.testing.assert_allclose(fitted.probas_, 1)
    np.testing.assert_allclose(fitted.confusion_, 1)
