from __future__ import annotations

import numpy as np

from wisecrowd.learning import DoctorNet, TwoStage


def crowd(n=80, n_workers=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n)
    X = np.eye(2)[truth] + 0.3 * rng.normal(size=(n, 2))
    votes = np.where(rng.random((n, n_workers)) < 0.8, truth[:, None], 1 - truth[:, None])
    return X, votes, truth


def test_one_worker_is_supervised_training_on_their_labels():
    X, votes, _ = crowd()
    settings = {"module": "linear", "epochs": 200, "lr": 0.2, "batch_size": 80}
    alone = DoctorNet(**settings).fit(X, votes[:, 0])
    supervised = TwoStage(**settings).fit(X, votes[:, 0])
    # The same convex problem, from two starts and without noise.
    np.testing.assert_allclose(alone.predict_proba(X), supervised.predict_proba(X), atol=1e-3)


def test_a_constant_worker_pulls_the_mean():
    X, votes, _ = crowd(n=200)
    constant = np.zeros((200, 1), int)
    settings = {"module": "linear", "epochs": 40, "lr": 0.1}
    without = DoctorNet(**settings).fit(X, votes).predict_proba(X)[:, 0].mean()
    pulled = DoctorNet(**settings).fit(X, np.hstack([votes, constant])).predict_proba(X)
    assert pulled[:, 0].mean() > without + 0.08


def test_gold_teaches_the_mean_of_the_heads():
    X, votes, truth = crowd()
    flipped = 1 - votes
    settings = {"module": "linear", "epochs": 40, "lr": 0.1}
    taught = DoctorNet(**settings).fit(X, flipped, gold=dict(enumerate(truth.tolist())))
    untaught = DoctorNet(**settings).fit(X, flipped)
    assert taught.score(X, truth) > untaught.score(X, truth)
