"""IWMV: weights by hand, adversaries, and spammers who label everything."""

from __future__ import annotations

import numpy as np

from wisecrowd.aggregation import IWMV, MajorityVote
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.simulate import Dense, HammerSpammers, crowd


def test_weights_are_the_fixed_point_of_the_papers_rule():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 200)
    wrong = rng.integers(0, 3, (200, 6))
    matrix = np.where(rng.random((200, 6)) < np.linspace(0.3, 0.95, 6), truth[:, None], wrong)
    model = IWMV().fit(CrowdLabels.from_matrix(matrix))
    assert model.converged_
    agreement = (matrix == model.labels_[:, None]).mean(axis=0)
    np.testing.assert_allclose(model.vote_weight_, 3 * agreement - 1)
    scores = ((matrix[:, :, None] == np.arange(3)) * model.vote_weight_[:, None]).sum(axis=1)
    np.testing.assert_array_equal(model.labels_, scores.argmax(axis=1))


def test_an_adversarys_label_counts_against_its_class():
    truth = np.resize([0, 1], 40)
    matrix = np.column_stack([truth, truth, truth, 1 - truth, np.full(40, -1)])
    matrix[0] = [-1, -1, -1, 0, -1]  # labelled by the adversary alone
    model = IWMV().fit(CrowdLabels.from_matrix(matrix, missing=-1))
    assert model.vote_weight_[3] < 0
    np.testing.assert_allclose(model.probas_[0], [0, 1])


def test_spammers_do_not_drown_the_few_who_know():
    made = crowd(400, 12 * HammerSpammers(0.3), Dense(), n_classes=2, random_state=3)
    vote = MajorityVote().fit(made.labels)
    model = IWMV().fit(made.labels)
    truth = dict(zip(made.labels.tasks.tolist(), made.truth.tolist(), strict=True))
    assert model.score(made.labels, truth) > vote.score(made.labels, truth) + 0.02
    assert model.score(made.labels, truth) > 0.97


def test_one_class_leaves_its_prior():
    model = IWMV().fit(CrowdLabels.from_arrays([0, 1], ["a", "b"], ["x", "x"]))
    assert model.probas_.tolist() == [[1.0], [1.0]]
    assert model.vote_weight_.tolist() == [0.0, 0.0]
