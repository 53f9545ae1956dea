"""Probabilities of clusters with votes that depend on each other, one item at a time."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregation import CrowdClustering, SignedSpectral
from wisecrowd.kinds.same.answers import most_probable
from wisecrowd.kinds.same.container import CrowdSame
from wisecrowd.kinds.same.methods.base import careful_posterior
from wisecrowd.simulate import same_votes


def test_votes_count_less_by_hand():
    share = np.array([0.5, 0.3, 0.2])
    likelihood = np.array([[1.0, 8, 2], [30, 1, 1], [1, 1, 1]])
    q = share * likelihood
    q /= q.sum(axis=1, keepdims=True)
    found = careful_posterior(q, share, np.array([11.0, 1.0, 0.0]))
    eleven = share * likelihood[0] ** (1 / 2)  # 11 votes count as 5.5
    assert found[0] == pytest.approx(eleven / eleven.sum())
    assert found[1:] == pytest.approx(q[1:])


def test_the_cluster_of_the_model_stays():
    share, q = np.array([0.9, 0.1]), np.array([[0.4, 0.6]])
    found = careful_posterior(q, share, np.array([50.0]))
    free = share * (q / share) ** (1 / 5.9)
    assert (free / free.sum())[0, 0] > 0.5
    assert found[0] == pytest.approx([0.5, 0.5], abs=1e-5)
    assert most_probable(found).tolist() == [1]


@pytest.mark.parametrize("make", [CrowdClustering, SignedSpectral])
def test_fits_publish_both_posteriors(make):
    made = same_votes(30, 10, 450, 3, random_state=0)
    data, fitted = made.data, make(n_clusters=3).fit(made.data)
    n = np.bincount(data.left, minlength=30) + np.bincount(data.right, minlength=30)
    expected = careful_posterior(fitted.model_probas_, fitted.cluster_share_, n)
    assert fitted.item_probas_ == pytest.approx(expected)
    assert np.array_equal(fitted.cluster_, most_probable(fitted.model_probas_))
    p = fitted.item_probas_
    pair = (p[data.left] * p[data.right]).sum(axis=1)
    for task in range(0, data.n_tasks, 50):
        assert fitted.p_same_[task] == pytest.approx(pair[data.task == task].mean())
    q = fitted.model_probas_
    together = (q[data.left] * q[data.right]).sum(axis=1)
    s, t = fitted.same_rate_[data.worker], fitted.different_rate_[data.worker]
    says_same = s * together + (1 - t) * (1 - together)
    assert fitted.predict_proba(data)[:, 1] == pytest.approx(says_same)


def test_a_vote_each_way_is_a_tie():
    votes = CrowdSame.from_arrays(None, ["x", "y"], ["a", "a"], ["b", "b"], ["same", "different"])
    assert CrowdClustering().fit(votes).p_same_ == pytest.approx(0.5, abs=0.15)
