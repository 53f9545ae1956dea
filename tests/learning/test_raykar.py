from __future__ import annotations

import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from wisecrowd.aggregation import DawidSkene
from wisecrowd.core import features
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdWarning
from wisecrowd.inference.monitor import reporting
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import Raykar
from wisecrowd.learning.training.label_model import solve_logistic


def crowd(n=120, n_workers=4, n_classes=3, seed=0, noise=0.8):
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n)
    X = 2 * np.eye(n_classes)[truth] + noise * rng.normal(size=(n, n_classes))
    right = rng.random((n, n_workers)) < np.linspace(0.5, 0.9, n_workers)
    votes = np.where(right, truth[:, None], rng.integers(n_classes, size=(n, n_workers)))
    return X, votes, truth


def test_it_needs_no_torch():
    code = (
        "import sys, numpy as np; sys.modules['torch'] = None\n"
        "from wisecrowd.learning import Raykar\n"
        "m = Raykar().fit(np.eye(4), [[0, 0], [1, 1], [0, 0], [1, 1]])\n"
        "assert m.predict(np.eye(4)).tolist() == [0, 1, 0, 1]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("prior", ["weak", None])
def test_the_objective_never_decreases(prior):
    X, votes, _ = crowd()
    model = Raykar(prior=prior, tol=0.0, max_iter=40).fit(X, votes, gold={0: 1, 5: 2})
    values = np.array([record["objective"] for record in model.history_])
    assert len(values) > 10
    assert (np.diff(values) >= -1e-9 * abs(values[-1])).all()
    assert values[-1] > values[0] + 1


def test_the_objective_is_the_penalised_likelihood():
    X, votes, _ = crowd(n=30)
    model = Raykar(prior=1.0, l2=0.7, max_iter=7).fit(X, votes)
    f = model.predict_proba(X)
    likelihood = 0.0
    for i in range(30):
        likelihood += np.log(
            sum(
                f[i, k] * np.prod([model.confusion_[j, k, votes[i, j]] for j in range(4)])
                for k in range(3)
            )
        )
    scaled = model.coef_ * X.std(axis=0)  # the penalty is on weights of standardised features
    expected = likelihood + np.log(model.confusion_).sum() - 0.35 * (scaled**2).sum()
    assert model.history_[-1]["objective"] == pytest.approx(expected, abs=1e-8)


def test_the_posterior_is_that_of_brute_force():
    X, votes, _ = crowd(n=20)
    model = Raykar(max_iter=5).fit(X, votes)
    f = model.predict_proba(X)
    joint = np.ones((20, 3))
    for i, k in product(range(20), range(3)):
        joint[i, k] = f[i, k] * np.prod([model.confusion_[j, k, votes[i, j]] for j in range(4)])
    joint /= joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.probas_, joint, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X, votes), joint, atol=1e-9)


def test_features_that_say_nothing_leave_dawid_and_skene():
    _, votes, _ = crowd(n=100)
    model = Raykar(tol=1e-12, max_iter=500).fit(np.ones((100, 1)), votes)
    plain = DawidSkene(tol=1e-12, max_iter=500).fit(votes)
    # A logistic regression without features is a free class prior.
    np.testing.assert_allclose(
        model.predict_proba(np.ones((1, 1)))[0], plain.class_prior_, atol=1e-4
    )
    np.testing.assert_allclose(model.confusion_, plain.confusion_, atol=1e-4)
    np.testing.assert_allclose(model.probas_, plain.probas_, atol=1e-4)


def test_the_regression_is_solved_exactly():
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(50, 2)), np.ones((50, 1))])
    q = rng.dirichlet(np.ones(3), size=50)
    found = solve_logistic(X, q, 0.5, np.zeros((3, 3)))
    scores = X @ found.T
    f = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    gradient = (f - q).T @ X + 0.5 * found * [1, 1, 0]
    assert np.abs(gradient).max() < 1e-5

    def loss(flat):
        s = X @ flat.reshape(3, 3).T
        log_f = s - np.log(np.exp(s).sum(axis=1, keepdims=True))
        return -(q * log_f).sum() + 0.25 * (flat.reshape(3, 3)[:, :2] ** 2).sum()

    other = minimize(loss, rng.normal(size=9), method="BFGS").fun  # another solver and start
    assert loss(found.ravel()) == pytest.approx(other, abs=1e-6)


def test_it_recovers_workers_and_beats_the_vote():
    X, votes, truth = crowd(n=1500, noise=0.6)
    model = Raykar().fit(X, votes)
    true = np.linspace(0.5, 0.9, 4)[:, None, None] * np.eye(3)
    true = true + (1 - np.linspace(0.5, 0.9, 4))[:, None, None] / 3
    assert np.abs(model.confusion_ - true).max() < 0.07
    assert model.score(X, truth) > 0.93
    assert np.mean(model.labels_ == truth) > model.score(X, truth)


def test_an_integer_weight_is_a_repetition_and_gold_is_kept():
    X, votes, _ = crowd(n=40)
    task, worker = np.repeat(np.arange(40), 4), np.tile(np.arange(4), 40)
    weight = 1 + (task % 3 == 0)
    weighted = CrowdLabels.from_arrays(task, worker, votes.ravel(), weight=weight)
    repeated = CrowdLabels.from_arrays(
        *(np.repeat(a, weight) for a in (task, worker, votes.ravel())), duplicates="keep"
    )
    one, two = (Raykar().fit(X, y, gold={3: 0, 4: 2}) for y in (weighted, repeated))
    np.testing.assert_allclose(one.probas_, two.probas_, atol=1e-6)
    assert one.labels_[[3, 4]].tolist() == [0, 2]
    plain = Raykar().fit(X, votes, gold={3: 0, 4: 2})
    assert np.abs(one.probas_ - plain.probas_).max() > 1e-3


def test_rows_without_labels_change_nothing_else():
    X, votes, _ = crowd(n=40)
    labels = CrowdLabels.from_matrix(votes)
    with pytest.warns(WisecrowdWarning, match="2 of 42 rows of X have no labels"):
        more = Raykar(l2=0.0, prior=1.0).fit(np.vstack([X, [[9, 9, 9], [-9, 9, 0]]]), labels)
    less = Raykar(l2=0.0, prior=1.0).fit(X, labels)
    np.testing.assert_allclose(more.confusion_, less.confusion_, atol=1e-3)
    np.testing.assert_allclose(more.probas_[40:], more.predict_proba([[9, 9, 9], [-9, 9, 0]]))


def test_images_are_flattened_and_other_shapes_refused():
    X, votes, _ = crowd(n=40)
    images = np.stack([X, X], axis=1)[:, :, :, None]  # (40, 2, 3, 1)
    model = Raykar().fit(images, votes)
    assert model.coef_.shape == (3, 6)
    np.testing.assert_allclose(
        model.predict_proba(images), Raykar().fit(images.reshape(40, 6), votes).predict_proba(
            images.reshape(40, 6)), atol=1e-9,
    )  # fmt: skip
    with pytest.raises(DataError, match="12 numbers and Raykar is expecting 6"):
        model.predict(np.zeros((1, 2, 6, 1)))


def test_what_it_cannot_do_is_said():
    X, votes, truth = crowd(n=20)
    with pytest.raises(ParameterError, match="no checkpoints"):
        Raykar().fit(X, votes, resume=True)
    with pytest.warns(WisecrowdWarning, match="validation set was not used"):
        Raykar().fit(X, votes, valid=(X, truth))
    with pytest.raises(ParameterError, match="l2 is -1"):
        Raykar(l2=-1).fit(X, votes)


def test_progress_is_reported():
    X, votes, _ = crowd(n=20)
    seen = []
    with reporting(seen.append):
        model = Raykar(max_iter=3, tol=0.0).fit(X, votes)
    assert [p.iteration for p in seen] == [1, 2, 3]
    assert seen[-1].objective == model.history_[-1]["objective"]
    assert not model.converged_


def test_sparse_features_give_the_same_fit_without_a_dense_array(monkeypatch):
    monkeypatch.setattr(features, "available_memory", lambda: 0)  # nothing dense fits
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 120)
    X = sparse.random_array((120, 12), density=0.2, rng=rng).toarray()
    X[np.arange(120), truth] += 1
    X[:, 11] = 0.0  # constant
    votes = np.where(rng.random((120, 3)) < 0.7, truth[:, None], rng.integers(0, 3, (120, 3)))
    dense = Raykar().fit(X, votes)
    for make in (sparse.csr_matrix, sparse.coo_array):
        lean = Raykar().fit(make(X), votes)
        np.testing.assert_allclose(lean.probas_, dense.probas_, atol=1e-9)
        np.testing.assert_allclose(lean.coef_, dense.coef_, atol=1e-9)
        np.testing.assert_allclose(
            lean.predict_proba(make(X[:9])), dense.predict_proba(X[:9]), atol=1e-9
        )
        assert lean.score(make(X), truth) == dense.score(X, truth)
        both = dense.predict_proba(X, votes)
        np.testing.assert_allclose(lean.predict_proba(make(X), votes), both, atol=1e-9)
