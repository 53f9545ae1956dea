"""EigenRatio: exact recovery, dense eigenvectors as oracle, the published error rates."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.skill_vote import Pairs
from wisecrowd.kinds.classes.methods.eigen_ratio import EigenRatio, eigen_ratio
from wisecrowd.kinds.classes.methods.majority_vote import MajorityVote
from wisecrowd.simulate import ExtremeSpammers, HammerSpammers, OneCoinWorkers, PerTask, crowd


def all_pairs(skill: np.ndarray, meets: np.ndarray | None = None) -> Pairs:
    """Return the exact agreement of workers of these skills."""
    n = len(skill)
    meets = np.ones((n, n), dtype=bool) if meets is None else meets
    first, second = np.nonzero(meets & ~np.eye(n, dtype=bool))
    return Pairs(first, second, skill[first] * skill[second], np.full(len(first), 9.0), n)


def test_exact_agreement_gives_exact_skills():
    skill = np.array([0.9, 0.5, 0.1, -0.4, 0.7, 0.3])
    found, _, converged = eigen_ratio(all_pairs(skill), np.full(6, 0.5), 5000, 1e-13)
    assert converged
    np.testing.assert_allclose(found, skill, atol=1e-6)


def test_exact_agreement_in_two_crowds_that_never_meet():
    skill = np.array([0.9, 0.5, 0.2, 0.8, 0.6, 0.3, 0.4])
    meets = np.zeros((7, 7), dtype=bool)
    meets[:3, :3] = meets[3:, 3:] = True
    found, _, _ = eigen_ratio(all_pairs(skill, meets), np.full(7, 0.5), 5000, 1e-13)
    np.testing.assert_allclose(found, skill, atol=1e-6)


def test_the_mirror_image_of_the_skills_starts_the_mirror_image():
    skill = np.array([0.9, 0.5, 0.3, 0.4])
    found, _, _ = eigen_ratio(all_pairs(skill), np.full(4, -0.5), 5000, 1e-13)
    np.testing.assert_allclose(found, -skill, atol=1e-6)


def signed(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    truth = rng.choice([-1, 1], 50)
    right = rng.random((50, 8)) < rng.uniform(0.5, 0.95, 8)
    seen = rng.random((50, 8)) < 0.6
    return np.where(seen, np.where(right, truth[:, None], -truth[:, None]), 0)


def as_labels(matrix: np.ndarray) -> CrowdLabels:
    task, worker = np.nonzero(matrix)
    return CrowdLabels.from_arrays(
        task, worker, (matrix[task, worker] > 0).astype(int), classes=[0, 1]
    )


@pytest.mark.parametrize("seed", range(3))
def test_skills_are_the_ratio_of_dense_eigenvectors(seed):
    matrix = signed(seed)
    model = EigenRatio(max_iter=5000, tol=1e-13).fit(as_labels(matrix))
    meets = np.abs(matrix).T @ np.abs(matrix)
    agreement = np.where(meets > 0, matrix.T @ matrix / np.maximum(meets, 1), 0.0)
    skill = np.full(8, 0.5)
    for _ in range(500):  # the diagonal settles
        np.fill_diagonal(agreement, skill**2)
        values, vectors = np.linalg.eigh(agreement)
        sizes, shares = np.linalg.eigh((meets > 0).astype(float))
        skill = vectors[:, -1] / np.abs(shares[:, -1]) * np.sqrt(values[-1] / sizes[-1])
        skill = np.clip(skill * np.sign(skill.sum()), -1, 1)
    np.testing.assert_allclose(model.skill_, skill, atol=1e-6)
    np.testing.assert_allclose(model.worker_accuracy_, (1 + skill) / 2, atol=1e-6)
    votes = matrix @ model.skill_
    np.testing.assert_array_equal(model.labels_, (votes > 0).astype(int))


@pytest.mark.parametrize("seed", range(3))
def test_ghosh_svd_is_the_leading_singular_vector(seed):
    matrix = signed(seed).astype(float)
    model = EigenRatio(variant="ghosh-svd", max_iter=5000, tol=1e-13).fit(as_labels(matrix))
    left, _, right = np.linalg.svd(matrix)
    turn = np.sign(left[:, 0] @ matrix.sum(axis=1))
    np.testing.assert_allclose(model.skill_, turn * right[0], atol=1e-6)
    np.testing.assert_array_equal(model.labels_, (turn * left[:, 0] > 0).astype(int))


@pytest.mark.parametrize("variant", ["eigen-ratio", "ghosh-svd"])
def test_swapping_the_classes_swaps_the_result(variant):
    matrix = signed(4)
    first = EigenRatio(variant=variant).fit(as_labels(matrix))
    second = EigenRatio(variant=variant).fit(as_labels(-matrix))
    np.testing.assert_allclose(first.probas_, second.probas_[:, ::-1], atol=1e-6)


def test_recovers_accuracies_of_one_coin_workers():
    made = crowd(2000, 20 * OneCoinWorkers(6, 3), class_prior=[0.5, 0.5], random_state=0)
    model = EigenRatio().fit(made.labels)
    assert np.abs(model.worker_accuracy_ - made.worker_accuracy).mean() < 0.035
    assert abs(model.confidence_.mean() - np.mean(model.labels_ == made.truth)) < 0.03


def test_very_active_spammers_do_no_harm():
    workers = 60 * HammerSpammers(0.7) + 3 * ExtremeSpammers()
    made = crowd(500, workers, PerTask(5), class_prior=[0.5, 0.5], random_state=1)
    model, vote = EigenRatio().fit(made.labels), MajorityVote().fit(made.labels)
    assert np.mean(model.labels_ == made.truth) > np.mean(vote.labels_ == made.truth)


def test_a_worker_who_meets_nobody_has_the_mean_skill():
    truth = np.resize([0, 1], 20)
    matrix = np.column_stack([truth, truth, truth, np.full(20, -1)])
    matrix[18:] = -1
    matrix[18:, 3] = [0, 1]
    model = EigenRatio().fit(CrowdLabels.from_matrix(matrix, missing=-1))
    assert model.identified_.tolist() == [True, True, True, False]
    assert model.skill_[3] == pytest.approx(model.skill_[:3].mean())
    assert model.labels_[18:].tolist() == [0, 1]


def test_two_workers_who_always_differ_say_nothing():
    labels = CrowdLabels.from_matrix([[0, 1], [1, 0], [0, 1]])
    np.testing.assert_allclose(EigenRatio().fit(labels).probas_, 0.5)


def test_three_classes_and_other_refusals():
    labels = CrowdLabels.from_matrix([[0, 1], [1, 2]])
    with pytest.raises(DataError, match="OneVsRest"):
        EigenRatio().fit(labels)
    with pytest.raises(ParameterError, match="ghosh-svd"):
        EigenRatio(variant="svd").fit(CrowdLabels.from_matrix([[0, 1], [1, 1]]))


# ---------------------------------------------------------------------------------------- real data


@pytest.mark.parametrize(
    ("name", "variant", "error"),
    [
        ("bluebird", "eigen-ratio", 0.2778),
        ("rte", "eigen-ratio", 0.0900),
        ("bluebird", "ghosh-svd", 0.2778),
        ("rte", "ghosh-svd", 0.4913),
    ],
)
def test_published_error_rates(real_crowd, name, variant, error):
    labels, truth = real_crowd(name)
    model = EigenRatio(variant=variant).fit(labels)
    assert 1 - model.score(labels, truth) == pytest.approx(error, abs=1e-4)
