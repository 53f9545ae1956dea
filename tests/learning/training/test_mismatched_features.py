from __future__ import annotations

import numpy as np

from wisecrowd.learning.training.mismatched_features import find_mismatches, odd_rows


def mixture(rng, share, n=2000, n_classes=4, sure=4.0):
    """Return scores and evidence of tasks, a share of which has scores of another task."""
    truth = rng.integers(0, n_classes, n)
    scores = sure * np.eye(n_classes)[truth] + rng.gumbel(size=(n, n_classes))
    bad = rng.random(n) < share
    scores[bad] = scores[rng.permutation(n)[: bad.sum()]]
    votes = np.where(rng.random((n, 3)) < 0.8, truth[:, None], rng.integers(0, n_classes, (n, 3)))
    agreed = (votes[:, :, None] == np.arange(n_classes)).sum(axis=1)
    return scores, agreed * np.log(0.85 / 0.05), bad


def test_the_share_of_mismatches_is_recovered():
    rng = np.random.default_rng(0)
    for share in (0.05, 0.2):
        scores, evidence, bad = mixture(rng, share)
        found = find_mismatches(scores, evidence, 1.0, np.log(np.full(4, 0.25)))
        assert abs(found.share - bad.mean()) < 0.25 * bad.mean()
        assert found.clear
        named = found.probability > 0.5
        assert bad[named].mean() > 0.8
        assert named[bad].mean() > 0.4


def test_features_in_order_give_no_alarm():
    target = np.log(np.full(4, 0.25))
    for seed in range(5):
        scores, evidence, _ = mixture(np.random.default_rng(seed), 0.0)
        found = find_mismatches(scores, evidence, 1.0, target)
        assert not found.clear
        assert (found.probability > 0.5).mean() < 0.01


def test_a_low_temperature_does_not_hide_mismatches():
    rng = np.random.default_rng(1)
    scores, evidence, _ = mixture(rng, 0.2)
    low = find_mismatches(scores, evidence, 0.3, np.log(np.full(4, 0.25)))
    right = find_mismatches(scores, evidence, 1.0, np.log(np.full(4, 0.25)))
    assert abs(low.share - right.share) < 0.03


def test_odd_rows_are_constant_or_far():
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(300, 10))
    assert not odd_rows(X).any()
    X[4], X[9], X[20] = 0.0, 7.0, 1e4 * rng.normal(size=10)
    assert np.flatnonzero(odd_rows(X)).tolist() == [4, 9, 20]
    few = np.zeros((50, 3))
    few[:20] = rng.normal(size=(20, 3))
    assert not odd_rows(few).any()  # three features, most rows of zeros
    wide = np.zeros((50, 9))
    wide[:20] = rng.normal(size=(20, 9))
    assert not odd_rows(wide).any()  # most tasks have a row of zeros: not an exception
