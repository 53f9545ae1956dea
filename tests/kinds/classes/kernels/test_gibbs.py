"""One sweep against a sampler that counts everything anew for every task."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wisecrowd.kernels.arguments import TaskLabels
from wisecrowd.kinds.classes.kernels import gibbs, gibbs_fast
from wisecrowd.kinds.classes.kernels.gibbs import ChainCounts, EarlierLabels, TaskWeights

MODULES = (gibbs, gibbs_fast)


class Crowd:
    """Random labels, a state of several chains, and what the kernels want to know of them."""

    def __init__(self, K, coin, *, weighted=False, repeated=False, learn=True, rows=1, seed=0):
        rng = np.random.default_rng(seed)
        self.K, self.coin, self.learn, self.J, self.C = K, coin, learn, 20, 3
        per_task = np.array([0, 1, 3, 20, 2, 4, 3])  # one task has a long product
        self.N, E = len(per_task), int(per_task.sum())
        self.indptr = np.concatenate([[0], np.cumsum(per_task)])
        task = np.repeat(np.arange(self.N), per_task)
        self.worker = np.concatenate([rng.permutation(self.J)[:n] for n in per_task])
        if repeated:
            self.worker = np.concatenate([np.sort(rng.integers(0, 3, n)) for n in per_task])
        self.worker = self.worker.astype(np.int32)
        self.label = rng.integers(0, K, E).astype(np.int32)
        self.weight = rng.uniform(0.3, 2.5, E) if weighted else None
        self.w = np.ones(E) if self.weight is None else self.weight
        self.task = task
        self.prior = rng.uniform(0.2, 1, (rows, K))
        self.prior_index = rng.integers(0, rows, self.N).astype(np.int32) if rows > 1 else None
        self.class_alpha = rng.uniform(0.5, 2, K)
        self.alpha = rng.uniform(0.5, 3, 2 if coin else (self.J, K, K))  # (J, class, label)
        self.state = rng.integers(0, K, (self.N, self.C)).astype(np.int32)
        self.uniform = rng.random((self.N, self.C))
        self.earlier = self._look_back() if weighted or repeated else None

    def _look_back(self):
        E, K = len(self.label), self.K
        earlier = EarlierLabels(np.zeros((E, K)), np.zeros(E))
        for e in range(E):
            for f in range(e):
                if self.task[e] == self.task[f] and self.worker[e] == self.worker[f]:
                    earlier.row[e] += self.w[f]
                    for k in range(K):
                        same = self._same_cell(self.label[e], self.label[f], k)
                        earlier.cell[e, k] += self.w[f] * same
        return earlier

    def _same_cell(self, one, other, k):
        return (one == k) == (other == k) if self.coin else one == other

    def counts_without(self, i, c):
        """Return cells (J, K, K) or (J, 2) and classes (K,) of a chain, without task i if any."""
        cell = np.zeros((self.J, 2)) + self.alpha if self.coin else self.alpha.copy()
        for e in range(len(self.label)):
            if self.task[e] == i:
                continue
            k, given, j = self.state[self.task[e], c], self.label[e], self.worker[e]
            cell[(j, int(given != k)) if self.coin else (j, k, given)] += self.w[e]
        classes = self.class_alpha.copy()
        if self.learn:
            for other in range(self.N):
                if other != i and self.indptr[other] < self.indptr[other + 1]:
                    classes[self.state[other, c]] += 1
        return cell, classes

    def log_score(self, i, k, c):
        cell, classes = self.counts_without(i, c)
        row = self.prior[0 if self.prior_index is None else self.prior_index[i]]
        score = math.log(row[k] * classes[k])
        for e in range(self.indptr[i], self.indptr[i + 1]):
            j, given, w = self.worker[e], self.label[e], self.w[e]
            at = (j, int(given != k)) if self.coin else (j, k, given)
            total = cell[j].sum() if self.coin else cell[j, k].sum()
            score += math.lgamma(cell[at] + w) - math.lgamma(cell[at])
            score -= math.lgamma(total + w) - math.lgamma(total)
            if self.coin and given != k:
                score -= w * math.log(self.K - 1)
            cell[at] += w
        return score

    def sweep(self):
        """Draw all classes in the plainest way; return the mean conditional probabilities."""
        probas = np.zeros((self.N, self.K))
        for i in range(self.N):
            if self.indptr[i] == self.indptr[i + 1]:
                continue
            for c in range(self.C):
                scores = np.array([self.log_score(i, k, c) for k in range(self.K)])
                share = np.exp(scores - scores.max())
                share /= share.sum()
                probas[i] += share / self.C
                self.state[i, c] = np.searchsorted(np.cumsum(share), self.uniform[i, c], "right")
        return probas

    def run(self, module, probas):
        """Run a kernel on copies; return its state, counts, totals and class counts."""
        K, J = self.K, self.J
        at = gibbs.cells(self.worker, self.label, K, self.coin)
        row = gibbs.rows(self.worker, K, self.coin)
        own = np.tile(self.alpha, J) if self.coin else self.alpha.transpose(0, 2, 1).ravel()
        whole = np.full(J, self.alpha.sum()) if self.coin else self.alpha.sum(axis=2).ravel()
        counts, totals = np.repeat(own[:, None], self.C, 1), np.repeat(whole[:, None], self.C, 1)
        classes = np.repeat(self.class_alpha[:, None], self.C, 1)
        labelled = np.diff(self.indptr) > 0
        for c in range(self.C):
            k = self.state[self.task, c]
            np.add.at(counts[:, c], at[np.arange(len(k)), k], self.w)
            np.add.at(totals[:, c], row[np.arange(len(k)), k], self.w)
            if self.learn:
                np.add.at(classes[:, c], self.state[labelled, c], 1)
        state = self.state.copy()
        labels = TaskLabels(self.indptr, self.worker, self.label, self.weight)
        prior = TaskWeights(self.prior, self.prior_index)
        chains = ChainCounts(classes, counts, totals, state)
        module.gibbs_sweep(
            labels, self.earlier, prior, chains, self.uniform, probas, self.coin, self.learn
        )
        return state, counts, totals, classes


CASES = [
    {"K": 2, "coin": True},
    {"K": 3, "coin": True, "learn": False},
    {"K": 4, "coin": False, "rows": 3},
    {"K": 3, "coin": False, "weighted": True},
    {"K": 3, "coin": True, "repeated": True, "rows": 2},
    {"K": 3, "coin": False, "repeated": True, "weighted": True},
    {"K": 3, "coin": True, "repeated": True, "weighted": True, "learn": False},
]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.split(".")[-1])
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_sweep_draws_from_the_conditional_probabilities(module, case, seed):
    crowd = Crowd(**case, seed=seed)
    probas = np.full((crowd.N, crowd.K), 0.25)  # added to
    state, counts, totals, classes = crowd.run(module, probas)
    expected = crowd.sweep() + 0.25
    assert np.allclose(probas, expected, rtol=1e-10)
    assert np.array_equal(state, crowd.state)
    # The counts are those of the new state.
    for c in range(crowd.C):
        cell, of_class = crowd.counts_without(None, c)
        cell = cell if crowd.coin else cell.transpose(0, 2, 1)
        assert np.allclose(counts[:, c], cell.ravel())
        assert np.allclose(totals[:, c], cell.sum(axis=1).ravel())
        assert np.allclose(classes[:, c], of_class)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.split(".")[-1])
def test_probabilities_need_not_be_added_up(module):
    crowd = Crowd(3, False)
    state, *_ = crowd.run(module, None)
    crowd.sweep()
    assert np.array_equal(state, crowd.state)


def draw(module, scores, uniform):
    """Draw one task's class from given scores: they are its prior, and its label says nothing."""
    K = len(scores)
    indptr, zero = np.array([0, 1]), np.zeros(1, dtype=np.int32)
    counts, totals = np.ones((K * K, 1)), np.full((K, 1), float(K))
    counts[0], totals[0] = 2, K + 1  # the task's own label, which is taken away first
    state, probas = np.zeros((1, 1), dtype=np.int32), np.zeros((1, K))
    labels, prior = TaskLabels(indptr, zero, zero, None), TaskWeights(np.array([scores]), None)
    chains = ChainCounts(np.ones((K, 1)), counts, totals, state)
    module.gibbs_sweep(labels, None, prior, chains, np.array([[uniform]]), probas, False, False)
    return state[0, 0], probas[0]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.split(".")[-1])
def test_impossible_classes_are_never_drawn(module):
    scores = [0.0, 0.25, 0.0, 0.75, 0.0]
    for uniform, expected in ((0.0, 1), (0.2499, 1), (0.2501, 3), (1 - 2**-53, 3)):
        chosen, probas = draw(module, scores, uniform)
        assert chosen == expected
        assert np.allclose(probas, scores)
