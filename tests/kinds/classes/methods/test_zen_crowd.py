"""ZenCrowd: the survey's iteration by hand, and its relation to the one-coin model."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregation import OneCoin, ZenCrowd
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels


def random_matrix(seed=0, n_tasks=60, n_workers=6, n_classes=3):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_tasks)
    wrong = rng.integers(0, n_classes, (n_tasks, n_workers))
    accuracy = np.linspace(0.4, 0.9, n_workers)
    return np.where(rng.random((n_tasks, n_workers)) < accuracy, truth[:, None], wrong)


def by_hand(matrix, n_classes, rounds):
    """Return the posterior under the reliabilities after ``rounds`` M-steps, and these."""
    p = np.full(matrix.shape[1], 0.8)
    one_hot = matrix[:, :, None] == np.arange(n_classes)
    for number in range(rounds + 1):
        factors = np.where(one_hot, p[:, None], (1 - p[:, None]) / (n_classes - 1))
        q = factors.prod(axis=1)
        q /= q.sum(axis=1, keepdims=True)
        if number < rounds:
            p = (one_hot * q[:, None, :]).sum(axis=2).mean(axis=0)
    return q, p


@pytest.mark.parametrize("rounds", [0, 1, 10])
def test_the_iteration_by_hand(rounds):
    matrix = random_matrix()
    model = ZenCrowd(max_iter=rounds + 1, tol=0.0).fit(CrowdLabels.from_matrix(matrix))
    q, p = by_hand(matrix, 3, rounds)
    np.testing.assert_allclose(model.accuracy_, p)
    np.testing.assert_allclose(model.probas_, q)


def test_it_is_one_coin_without_priors_from_another_start():
    labels = CrowdLabels.from_matrix(random_matrix(1))
    options = {"prior": None, "max_iter": 1000, "tol": 1e-13}
    zen = ZenCrowd(**options).fit(labels)
    coin = OneCoin(class_prior="uniform", **options).fit(labels, init=ZenCrowd(max_iter=1))
    np.testing.assert_allclose(zen.probas_, coin.probas_, atol=1e-5)
    np.testing.assert_allclose(zen.class_prior_, 1 / 3)


def test_the_objective_never_falls():
    history = np.array(ZenCrowd().fit(CrowdLabels.from_matrix(random_matrix(2))).history_)
    assert (np.diff(history) >= -1e-9 * np.abs(history[:-1])).all()


def test_the_start_is_checked():
    with pytest.raises(ParameterError, match="initial_accuracy"):
        ZenCrowd(initial_accuracy=1.2).fit(CrowdLabels.from_matrix([[0, 1]]))
