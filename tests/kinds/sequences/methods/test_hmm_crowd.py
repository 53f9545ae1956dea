"""HMMCrowd: the special case without chains."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregation import HMMCrowd
from wisecrowd.kinds.sequences.container import CrowdSequences
from wisecrowd.kinds.sequences.methods.tag_chains import TagChains, no_context


def test_sequences_of_one_token_are_dawid_skene():
    """Its EM on single tokens is that of Dawid and Skene with the same pseudo-counts."""
    rng = np.random.default_rng(0)
    n, J, K = 60, 5, 3
    truth = rng.integers(0, K, n)
    wrong = rng.random((n, J)) < 0.3
    tags = np.where(wrong, rng.integers(0, K, (n, J)), truth[:, None])
    task, worker = np.repeat(np.arange(n), J), np.tile(np.arange(J), n)
    names = np.array(["a", "b", "c"], dtype=object)
    data = CrowdSequences.from_arrays(task, worker, names[tags.ravel()])
    model = TagChains(data, np.full(n, -1), no_context(data.tag_scheme), variational=False)
    found = model.run(5, 0.0).posterior.marginals
    q = np.eye(K)[tags].mean(axis=1)
    for _ in range(5):
        theta = 0.1 + np.eye(K) + np.einsum("ik,ijl->jkl", q, np.eye(K)[tags])
        theta /= theta.sum(axis=-1, keepdims=True)
        prior = 0.1 + q.sum(axis=0)
        log = np.log(prior / prior.sum()) + sum(np.log(theta[j][:, tags[:, j]]).T for j in range(J))
        q = np.exp(log - log.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, q, atol=1e-9)


def test_neighbours_help():
    """Where B-PER is always followed by I-PER, an unreadable second token is inside."""
    tags = ["B-PER I-PER O"] * 12 + ["B-PER O O", "B-PER I-PER O"]
    task = [f"s{n // 2}" for n in range(14)]
    fitted = HMMCrowd().fit((task, ["ann", "bob"] * 7, tags))
    assert fitted.tags_[-1] == "B-PER I-PER O"
    assert fitted.span_recall_[0] == pytest.approx(6 / 7)
