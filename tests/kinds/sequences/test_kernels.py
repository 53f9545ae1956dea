"""Hidden tag chains: exact by enumeration, and the same in both kernels."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise, product

import numpy as np
import pytest

from wisecrowd.kinds.sequences import kernels as reference
from wisecrowd.kinds.sequences import kernels_fast


def chain(K=3, lengths=(1, 4, 0, 5), seed=0):
    """Return evidence, pointers and weights of steps, some of them forbidden."""
    rng = np.random.default_rng(seed)
    pointer = np.append(0, np.cumsum(lengths))
    start, step = rng.uniform(0.1, 1, K), rng.uniform(0.1, 1, (K, K))
    start[2] = step[0, 2] = 0.0
    return 2 * rng.normal(size=(pointer[-1], K)), pointer, start, step


def enumerated(log_evidence, start, step):
    """Return marginals, expected steps, log-evidence and the best path of one sequence."""
    n, K = log_evidence.shape
    marginals, steps, total, best = np.zeros((n, K)), np.zeros((K, K)), 0.0, (-1.0, ())
    for path in product(range(K), repeat=n):
        weight = start[path[0]] * np.exp(log_evidence[range(n), path].sum())
        weight *= np.prod([step[a, b] for a, b in pairwise(path)])
        total += weight
        best = max(best, (weight, path))
        marginals[range(n), path] += weight
        for a, b in pairwise(path):
            steps[a, b] += weight
    return marginals / total, steps / total, np.log(total), best[1]


@pytest.mark.parametrize("kernels", [reference, kernels_fast])
@pytest.mark.parametrize("seed", range(3))
def test_enumeration_of_paths(kernels, seed):
    log_evidence, pointer, start, step = chain(seed=seed)
    found = kernels.smooth(log_evidence, pointer, start, step)
    with np.errstate(divide="ignore"):
        path = kernels.best_path(log_evidence, pointer, np.log(start), np.log(step))
    steps, first, total = np.zeros_like(step), np.zeros_like(start), 0.0
    for begin, end in pairwise(pointer):
        if begin == end:
            continue
        wanted, own, log_total, best = enumerated(log_evidence[begin:end], start, step)
        np.testing.assert_allclose(found.marginals[begin:end], wanted, atol=1e-12)
        assert path[begin:end].tolist() == list(best)
        steps, first, total = steps + own, first + wanted[0], total + log_total
    np.testing.assert_allclose(found.steps, steps, atol=1e-12)
    np.testing.assert_allclose(found.first, first, atol=1e-12)
    assert found.log_evidence == pytest.approx(total)


def test_steps_sum_to_marginals():
    log_evidence, pointer, start, step = chain(4, (6,))
    found = reference.smooth(log_evidence, pointer, start, step)
    np.testing.assert_allclose(found.steps.sum(axis=1), found.marginals[:-1].sum(axis=0))
    np.testing.assert_allclose(found.steps.sum(axis=0), found.marginals[1:].sum(axis=0))


@pytest.mark.parametrize("weighted", [False, True])
def test_evidence_and_counts_agree(weighted):
    rng = np.random.default_rng(0)
    n, J, S, K, T = 60, 4, 2, 3, 15
    weight = rng.uniform(0, 2, n) if weighted else None
    token = np.sort(rng.integers(0, T, n))
    worker, tag = rng.integers(0, J, n).astype(np.int32), rng.integers(0, K, n).astype(np.int32)
    labels = reference.TokenLabels(token, worker, tag, rng.integers(0, K + 1, n), weight)
    context = rng.integers(0, S, (K + 1, K))
    log_theta, q = np.log(rng.dirichlet(np.ones(K), (J, S, K))), rng.dirichlet(np.ones(K), T)
    one, other = (k.evidence(labels, log_theta, context, T) for k in (reference, kernels_fast))
    np.testing.assert_allclose(one, other, atol=1e-12)
    one, other = (k.counts(labels, q, context, (J, S, K, K)) for k in (reference, kernels_fast))
    np.testing.assert_allclose(one, other, atol=1e-12)
    n_labels = n if weight is None else weight.sum()
    parts = [
        k.evidence_without_own(labels, 0.1 + one, context, q) for k in (reference, kernels_fast)
    ]
    np.testing.assert_allclose(*parts, atol=1e-9)
    assert one.sum() == pytest.approx(n_labels)


def test_a_very_long_sequence_is_finite():
    log_evidence, pointer, start, step = chain(3, (100_000,))
    found = kernels_fast.smooth(100 * log_evidence, pointer, start, step)
    assert np.isfinite(found.marginals).all()
    assert np.isfinite(found.log_evidence)


def test_the_only_tag_of_a_worker_is_judged_by_the_prior():
    labels = reference.TokenLabels(np.array([0]), np.array([0]), np.array([1]), np.array([2]), None)
    context, q = np.zeros((3, 2), dtype=np.int64), np.array([[0.3, 0.7]])
    prior = np.array([[[[2.0, 1.0], [1.0, 3.0]]]])
    counts = prior + reference.counts(labels, q, context, (1, 1, 2, 2))
    found = reference.evidence_without_own(labels, counts, context, q)
    np.testing.assert_allclose(found, np.log([[1 / 3, 3 / 4]]))


def test_memory_grows_with_tokens_and_with_squared_tags_but_not_with_their_product():
    rng = np.random.default_rng(0)
    step = rng.random((150, 150))
    evidence = rng.normal(size=(600, 150))
    tracemalloc.start()
    found = reference.smooth(evidence, np.array([0, 300, 600]), step[0], step)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.steps.sum() == pytest.approx(598)
    assert used < 8 * 600 * 150 * 150 / 4
