from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import MBEM, AggNet
from wisecrowd.learning.mbem import BootstrappedModel, judge, training_plan
from wisecrowd.learning.training.crowd_data import CrowdData

SMALL = {"module": "linear", "epochs": 6, "lr": 0.1}


def flippers(truth, n_classes, n_workers=5, skill=0.5):
    """One label per task by workers who mistake each class for one other."""
    rng = np.random.default_rng(0)
    shift = 1 + rng.integers(n_classes - 1, size=(n_workers, n_classes))
    worker = rng.integers(n_workers, size=len(truth))
    wrong = (truth + shift[worker, truth]) % n_classes
    label = np.where(rng.random(len(truth)) < skill, truth, wrong)
    flipped = np.eye(n_classes)[(np.arange(n_classes) + shift) % n_classes]
    confusion = skill * np.eye(n_classes) + (1 - skill) * flipped
    return CrowdLabels.from_arrays(np.arange(len(truth)), worker, label), confusion


def small():
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=60)
    return np.eye(4)[truth] + 0.3 * rng.normal(size=(60, 4)), flippers(truth, 4)[0]


def test_a_perfect_classifier_gives_the_empirical_confusion_and_its_posterior():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=40)
    votes = np.where(rng.random((40, 3)) < 0.6, truth[:, None], rng.integers(3, size=(40, 3)))
    labels = CrowdLabels.from_matrix(votes)
    confusion, posterior = judge(np.eye(3)[truth], labels, np.ones(40, bool), 1e-9)
    expected = np.array(
        [[[np.mean(votes[truth == k, j] == label) for label in range(3)] for k in range(3)]
         for j in range(3)]
    )  # fmt: skip
    np.testing.assert_allclose(confusion, expected, atol=1e-7)
    prior = np.bincount(truth, minlength=3) / 40
    joint = prior * np.prod([expected[j][:, votes[:, j]].T for j in range(3)], axis=0)
    np.testing.assert_allclose(posterior, joint / joint.sum(1, keepdims=True), atol=1e-6)


def test_a_class_that_is_never_predicted_has_a_uniform_row():
    labels = CrowdLabels.from_matrix([[0, 1], [1, 1], [2, 0]])
    predicted = np.eye(3)[[0, 0, 1]]
    confusion, _ = judge(predicted, labels, np.ones(3, bool), 0.01)
    np.testing.assert_allclose(confusion[:, 2], 1 / 3)


def test_trainings_share_the_epochs():
    assert training_plan(9, 2, self_train=False) == {3: "judge", 6: "judge"}
    assert training_plan(8, 1, self_train=True) == {2: "imitate", 4: "judge", 6: "imitate"}


def test_single_labels_by_flippers_are_beyond_the_generalised_em():
    X, truth = load_digits(return_X_y=True)
    X, X_test, truth, truth_test = X[:1000], X[1000:], truth[:1000], truth[1000:]
    labels, true = flippers(truth, 10)
    settings = {"epochs": 20, "lr": 5e-3}
    mbem = MBEM(**settings, rounds=1).fit(X, labels)
    em = AggNet(**settings, steps=10).fit(X, labels)

    def error(model):
        return ((model.confusion_ - true) ** 2).sum() / (5 * 10)

    assert error(em) > 0.4  # it stays where the votes, which are the labels, have put it
    assert error(mbem) < 0.15
    assert mbem.score(X_test, truth_test) > em.score(X_test, truth_test) + 0.1


def test_the_network_starts_anew_only_when_asked():
    X, labels = small()
    untrained = torch.nn.Linear(4, 4)
    start = untrained.weight.detach().clone()
    data = CrowdData(X, labels, np.full(60, -1))
    for reinit in (True, False):
        network = torch.nn.Linear(4, 4)
        network.load_state_dict(untrained.state_dict())
        model = BootstrappedModel(network, data, {2: "judge"}, reinit, 0.01)
        with torch.no_grad():
            network.weight += 1.0
        model.begin_epoch(2, data)
        assert torch.equal(network.weight, start) == reinit
    settings = {"module": untrained, "epochs": 4, "rounds": 1, "lr": 0.1}
    different = [MBEM(**settings, reinit=r).fit(X, labels)._network.weight for r in (True, False)]
    assert not torch.equal(*different)


def test_self_training_imitates_the_network():
    X, labels = small()
    plain = MBEM(**SMALL).fit(X, labels)._network[1].weight
    twice = MBEM(**SMALL, self_train=True).fit(X, labels)._network[1].weight
    assert not torch.equal(plain, twice)


@pytest.mark.parametrize("settings", [{"rounds": 0}, {"reinit": 1}, {"smoothing": 0.0}])
def test_bad_parameters(settings):
    X, labels = small()
    with pytest.raises(ParameterError, match=next(iter(settings))):
        MBEM(**settings).fit(X, labels)
