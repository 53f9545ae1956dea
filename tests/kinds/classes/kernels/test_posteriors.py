from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.kinds.classes.kernels.posteriors import log_normalise, soft_votes


@pytest.mark.parametrize("weight", [False, True])
def test_soft_votes(block, weight):
    b = block(4, weight=weight, offset=3)
    votes = soft_votes(b.indptr, b.label, b.weight, 4)
    for i in range(b.n):
        expected = np.zeros(4)
        for e in range(b.indptr[i], b.indptr[i + 1]):
            expected[b.label[e]] += 1 if b.weight is None else b.weight[e]
        expected = expected / expected.sum() if expected.sum() else np.full(4, 0.25)
        np.testing.assert_allclose(votes[i], expected, rtol=1e-12)


def test_soft_votes_of_weight_zero_are_uniform():
    votes = soft_votes(np.array([0, 2]), np.array([1, 1]), np.zeros(2), 2)
    np.testing.assert_array_equal(votes, [[0.5, 0.5]])


def test_log_normalise_agrees_with_scipy():
    from scipy.special import logsumexp, softmax

    scores = np.random.default_rng(0).normal(scale=300, size=(50, 4))
    probas, log_z = log_normalise(scores)
    np.testing.assert_allclose(probas, softmax(scores, axis=1), rtol=1e-12)
    np.testing.assert_allclose(log_z, logsumexp(scores, axis=1), rtol=1e-14)
