"""Zero-based skill: the iteration by hand, and its steps."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregation import Wawa, ZeroBasedSkill
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels


def random_matrix(seed=0, n_tasks=80, n_workers=7, n_classes=3):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_tasks)
    accuracy = np.linspace(0.35, 0.9, n_workers)
    wrong = rng.integers(0, n_classes, (n_tasks, n_workers))
    return np.where(rng.random((n_tasks, n_workers)) < accuracy, truth[:, None], wrong)


def by_hand(matrix, n_classes, rounds, rate, every, factor):
    """Return the skills after so many rounds; ties share the agreement."""
    one_hot = matrix[:, :, None] == np.arange(n_classes)
    skill = np.full(matrix.shape[1], 1 / n_classes)
    for number in range(1, rounds + 1):
        if number % every == 0:
            rate *= factor
        votes = (one_hot * skill[:, None]).sum(axis=1)
        votes /= votes.sum(axis=1, keepdims=True)
        best = votes >= votes.max(axis=1, keepdims=True) - 1e-9
        best = best / best.sum(axis=1, keepdims=True)
        agreement = (one_hot * best[:, None, :]).sum(axis=2).mean(axis=0)
        skill = skill + rate * (agreement - skill)
    return skill


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_skills_by_hand(rate):
    matrix = random_matrix()
    model = ZeroBasedSkill(max_iter=11, learning_rate=rate, reduce_every=4, reduce_factor=0.5).fit(
        CrowdLabels.from_matrix(matrix)
    )
    np.testing.assert_allclose(model.vote_weight_, by_hand(matrix, 3, 11, rate, 4, 0.5))


def test_one_full_step_is_wawa():
    labels = CrowdLabels.from_matrix(random_matrix(1))
    ours, wawa = ZeroBasedSkill(max_iter=1).fit(labels), Wawa().fit(labels)
    np.testing.assert_allclose(ours.vote_weight_, wawa.vote_weight_)
    np.testing.assert_allclose(ours.probas_, wawa.probas_)


def test_it_stops_at_a_fixed_point_that_further_rounds_keep():
    matrix = random_matrix(2)
    model = ZeroBasedSkill().fit(CrowdLabels.from_matrix(matrix))
    assert model.converged_
    assert model.n_iter_ < 20
    np.testing.assert_allclose(model.vote_weight_, by_hand(matrix, 3, 100, 1.0, 20, 0.5))


@pytest.mark.parametrize(
    "bad", [{"learning_rate": 1.5}, {"reduce_every": 0}, {"reduce_factor": -0.1}]
)
def test_parameters_are_checked(bad):
    with pytest.raises(ParameterError, match=next(iter(bad))):
        ZeroBasedSkill(**bad).fit(CrowdLabels.from_matrix([[0, 1]]))


def test_the_step_after_a_given_start_is_the_first_one():
    matrix = random_matrix(3)
    start = np.random.default_rng(0).dirichlet(np.ones(3), len(matrix))
    model = ZeroBasedSkill(max_iter=1, learning_rate=0.4, reduce_every=1, reduce_factor=0.5)
    model.fit(CrowdLabels.from_matrix(matrix), init=start)
    given = matrix[:, :, None] == np.arange(3)
    skill = 1 / 3 + 0.2 * ((given * start[:, None]).sum(axis=2).mean(axis=0) - 1 / 3)
    best = (given * skill[:, None]).sum(axis=1)
    best = best >= best.max(axis=1, keepdims=True) - 1e-9
    won = (given * (best / best.sum(axis=1, keepdims=True))[:, None]).sum(axis=2).mean(axis=0)
    np.testing.assert_allclose(model.vote_weight_, skill + 0.2 * (won - skill))
