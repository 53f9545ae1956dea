"""The kernels of voting and one-coin models: the reference against brute force, both together."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from wisecrowd.kernels.arguments import TaskLabels
from wisecrowd.kinds.classes.kernels import sparse_posterior
from wisecrowd.kinds.classes.kernels.sparse_posterior import (
    CoinOutput,
    NormalisedPriors,
    VoteOutput,
)


def random_block(n_tasks=40, n_workers=6, n_classes=4, seed=0, weighted=False, prior="none"):
    """Return the arrays of a shard with random labels."""
    rng = np.random.default_rng(seed)
    per_task = rng.integers(0, 6, n_tasks)
    indptr = np.concatenate([[0], np.cumsum(per_task)]).astype(np.int64)
    size = int(indptr[-1])
    worker = rng.integers(0, n_workers, size).astype(np.int32)
    label = rng.integers(0, n_classes, size).astype(np.int32)
    weight = rng.uniform(0, 2, size) if weighted else None
    rows, index = np.zeros((1, n_classes)), None
    if prior == "shared":
        rows = np.log(rng.dirichlet(np.ones(n_classes)))[None] + 3.0
    if prior == "tasks":
        rows = np.log(rng.dirichlet(np.full(n_classes, 0.3), n_tasks) + 1e-12)
        rows[0] = -np.inf
        rows[0, 1] = 0.0  # a gold label
        rows[1] = np.log([1 - 3e-14, 1e-14, 1e-14, 1e-14])[:n_classes]  # nearly all of the prior
        index = np.arange(n_tasks, dtype=np.int32)
    return indptr, worker, label, weight, rows, index


def totals_of(rows, log_class):
    return np.logaddexp.reduce(rows + log_class, axis=1)


def coin(module, block, log_odds, log_class):
    indptr, worker, label, weight, rows, index = block
    pairs = module.received_labels(indptr, label, len(log_class))
    correct, mass = np.zeros(len(log_odds)), np.zeros(len(log_class))
    probas, rest = np.empty(len(pairs[3])), np.empty(len(indptr) - 1)
    value = module.coin_step(
        TaskLabels(indptr, worker, label, weight),
        pairs,
        log_odds,
        NormalisedPriors(log_class, rows, index, totals_of(rows, log_class)),
        CoinOutput(correct, mass, probas, rest),
    )
    return pairs, correct, mass, probas, rest, value


def dense_scores(block, log_odds, log_class):
    """Return the (n, K) log scores by adding one annotation after the other."""
    indptr, worker, label, weight, rows, index = block
    scores = np.empty((len(indptr) - 1, len(log_class)))
    for i in range(len(scores)):
        scores[i] = log_class + rows[0 if index is None else index[i]]
        for e in range(indptr[i], indptr[i + 1]):
            scores[i, label[e]] += (1.0 if weight is None else weight[e]) * log_odds[worker[e]]
    return scores


def dense_priors(block, log_class):
    """Return the (n, K) normalised prior of every task."""
    indptr, rows, index = block[0], block[4], block[5]
    row = np.zeros(len(indptr) - 1, int) if index is None else index
    return np.exp(log_class + rows[row] - totals_of(rows, log_class)[row, None])


def dense_posterior(block, pairs, probas, rest, log_class):
    """Return the (n, K) posterior that pairs and rests stand for."""
    full = dense_priors(block, log_class) * rest[:, None]
    full[pairs[2], pairs[3]] = probas
    return full


PRIORS = ["none", "shared", "tasks"]
MODULES = ["reference", "fast"]


@pytest.fixture(params=MODULES)
def module(request):
    if request.param == "fast":
        pytest.importorskip("numba")
    return importlib.import_module(
        "wisecrowd.kinds.classes.kernels.sparse_posterior"
        + ("_fast" if request.param == "fast" else "")
    )


def test_received_labels_are_the_distinct_ones(module):
    indptr, _, label, *_ = random_block()
    n = len(indptr) - 1
    pair, pair_indptr, pair_task, pair_label = module.received_labels(indptr, label, 4)
    for i in range(n):
        given = label[indptr[i] : indptr[i + 1]].tolist()
        here = slice(pair_indptr[i], pair_indptr[i + 1])
        assert pair_label[here].tolist() == sorted(set(given))
        assert (pair_task[here] == i).all()
    rows = np.arange(indptr[0], indptr[-1])
    np.testing.assert_array_equal(pair_label[pair], label[rows])
    np.testing.assert_array_equal(pair_task[pair], np.repeat(np.arange(n), np.diff(indptr)))


def test_received_labels_of_a_task_with_many_classes(module):
    label = np.random.default_rng(0).permutation(500).astype(np.int32)
    _, _, _, pair_label = module.received_labels(np.array([0, 500]), label, 500)
    np.testing.assert_array_equal(pair_label, np.arange(500))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("prior", PRIORS)
def test_coin_step_is_bayes_rule(module, prior, weighted):
    block = random_block(weighted=weighted, prior=prior)
    indptr, worker, label, weight, *_ = block
    log_odds = np.array([2.0, 0.5, 0.0, -1.0, 4.0, -3.0])
    log_class = np.log([0.4, 0.3, 0.2, 0.1])
    pairs, correct, mass, probas, rest, value = coin(module, block, log_odds, log_class)
    scores = dense_scores(block, log_odds, log_class)
    log_z = np.logaddexp.reduce(scores, axis=1)
    expected = np.exp(scores - log_z[:, None])
    found = dense_posterior(block, pairs, probas, rest, log_class)
    np.testing.assert_allclose(found, expected, atol=1e-13)
    annotated = np.diff(indptr) > 0
    assert value == pytest.approx(log_z[annotated].sum(), rel=1e-12)
    task = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    rows = np.arange(indptr[0], indptr[-1])
    credit = expected[task, label[rows]] * (1.0 if weight is None else weight[rows])
    np.testing.assert_allclose(correct, np.bincount(worker[rows], credit, 6), atol=1e-12)
    outside = rest[annotated] @ dense_priors(block, log_class)[annotated]
    np.testing.assert_allclose(mass + outside, expected[annotated].sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("extreme", [1.0, 300.0])
def test_coin_step_kernels_agree(prior, extreme):
    fast = importlib.import_module("wisecrowd.kinds.classes.kernels.sparse_posterior_fast")
    block = random_block(n_tasks=600, prior=prior, weighted=True, seed=3)
    log_odds = extreme * np.array([2.0, 0.5, 0.0, -1.0, 4.0, -3.0])
    log_class = np.log([0.4, 0.3, 0.2, 0.1])
    expected = coin(sparse_posterior, block, log_odds, log_class)
    found = coin(fast, block, log_odds, log_class)
    for a, b in zip(expected[0], found[0], strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(expected[1:], found[1:], strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-12)


def test_small_remainders_do_not_lose_their_digits(module):
    """Two of three classes hold all but 1e-20 of the prior, and their workers are adversaries."""
    indptr = np.array([0, 2], dtype=np.int64)
    worker, label = np.array([0, 0], np.int32), np.array([0, 1], np.int32)
    rest_class = 1e-20
    log_class = np.log([0.5, 0.5, rest_class])
    block = indptr, worker, label, None, np.zeros((1, 3)), None
    _, _, _, probas, rest, value = coin(module, block, np.array([-40.0]), log_class)
    scores = np.array([0.5 * np.exp(-40.0), 0.5 * np.exp(-40.0), rest_class])
    expected = scores / scores.sum()
    np.testing.assert_allclose(probas, expected[:2], rtol=1e-10)
    np.testing.assert_allclose(rest[0] * rest_class, expected[2], rtol=1e-10)
    assert value == pytest.approx(np.log(scores.sum()), rel=1e-12)


def test_all_classes_received_by_adversaries(module):
    """Nothing is left for a remainder, and every score is far below zero."""
    indptr = np.array([0, 2], dtype=np.int64)
    worker, label = np.array([0, 1], np.int32), np.array([0, 1], np.int32)
    block = indptr, worker, label, None, np.zeros((1, 2)), None
    _, _, mass, probas, rest, value = coin(
        module, block, np.array([-2000.0, -2001.0]), np.log([0.5, 0.5])
    )
    np.testing.assert_allclose(probas, 1 / (1 + np.exp([-1.0, 1.0])), rtol=1e-12)
    np.testing.assert_allclose(mass, probas)
    assert rest[0] == 0.0
    assert value == pytest.approx(-2000 + np.log(0.5 * (1 + np.exp(-1))))


# -------------------------------------------------------------------------------------------- votes


def vote(module, block, vote_weight, smoothing, hard):
    indptr, worker, label, weight, rows, index = block
    n_classes = rows.shape[1]
    pairs = module.received_labels(indptr, label, n_classes)
    agreement, no_class = np.zeros(len(vote_weight)), np.zeros(n_classes)
    probas, rest = np.empty(len(pairs[3])), np.empty(len(indptr) - 1)
    module.vote_step(
        TaskLabels(indptr, worker, label, weight),
        pairs,
        vote_weight,
        NormalisedPriors(no_class, rows, index, totals_of(rows, no_class)),
        VoteOutput(agreement, probas, rest),
        smoothing,
        hard,
    )
    return dense_posterior(block, pairs, probas, rest, no_class), agreement


def dense_votes(block, vote_weight, smoothing):
    """Return the (n, K) shares of the votes by counting them one after the other."""
    indptr, worker, label, weight, rows, index = block
    shares = np.empty((len(indptr) - 1, rows.shape[1]))
    for i in range(len(shares)):
        row = rows[0 if index is None else index[i]]
        prior = np.exp(row - np.logaddexp.reduce(row))
        votes = np.zeros(rows.shape[1])
        for e in range(indptr[i], indptr[i + 1]):
            votes[label[e]] += (1.0 if weight is None else weight[e]) * vote_weight[worker[e]]
        raised = (votes - min(0.0, votes.min()) + smoothing) * prior
        shares[i] = raised / raised.sum() if raised.sum() > 0 else prior
    return shares


WEIGHTS = {
    "equal": np.ones(6),
    "mixed": np.array([1.0, 0.2, 0.0, -0.7, 2.0, -1.5]),
}


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("prior", PRIORS)
def test_vote_step_counts_votes(module, prior, weights, smoothing, hard):
    block = random_block(prior=prior, n_tasks=300)
    indptr, worker, label, *_ = block
    found, agreement = vote(module, block, WEIGHTS[weights], smoothing, hard)
    expected = dense_votes(block, WEIGHTS[weights], smoothing)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    share = expected
    if hard:
        best = expected >= expected.max(axis=1, keepdims=True) - 1e-9
        received = np.zeros_like(best)
        task = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        received[task, label[indptr[0] : indptr[-1]]] = True
        best &= received  # a class that nobody chose has nobody to agree with it
        share = best / np.maximum(best.sum(axis=1, keepdims=True), 1)
    task = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    rows = np.arange(indptr[0], indptr[-1])
    credit = np.bincount(worker[rows], share[task, label[rows]], 6)
    np.testing.assert_allclose(agreement, credit, atol=1e-11)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("prior", PRIORS)
def test_vote_step_kernels_agree(prior, hard):
    fast = importlib.import_module("wisecrowd.kinds.classes.kernels.sparse_posterior_fast")
    block = random_block(n_tasks=600, prior=prior, weighted=True, seed=5)
    expected = vote(sparse_posterior, block, WEIGHTS["mixed"], 0.0, hard)
    found = vote(fast, block, WEIGHTS["mixed"], 0.0, hard)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(b, a, atol=1e-11)
