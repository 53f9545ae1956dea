"""SpectralDawidSkene: exact crowds, bad starts of EM, parts, fall-backs, real crowds."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from wisecrowd.core.exceptions import ParameterError, WisecrowdWarning
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.moments.moment_method import SMOOTHING
from wisecrowd.kinds.classes.methods.dawid_skene import DawidSkene
from wisecrowd.kinds.classes.methods.majority_vote import MajorityVote
from wisecrowd.kinds.classes.methods.spectral_dawid_skene import SpectralDawidSkene
from wisecrowd.simulate import Bernoulli, FixedConfusion, PerTask, crowd
from wisecrowd.testing.crowds import asymmetric_confusions

# Tenths, so that a crowd of 10^4 tasks can show every pattern of labels exactly as often as it is
# expected.
TENTHS = np.array(
    [
        [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]],
        [[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]],
        [[0.7, 0.1, 0.2], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8]],
    ]
)
PRIOR = np.array([0.5, 0.3, 0.2])


def population_crowd(confusion, prior):
    """Return labels in which every pattern has its expected frequency."""
    n_workers, n_classes = confusion.shape[:2]
    patterns = np.array(list(product(range(n_classes), repeat=n_workers)))
    chance = np.ones((n_classes, len(patterns)))
    for j in range(n_workers):
        chance *= confusion[j][:, patterns[:, j]]
    times = np.rint(10 ** (n_workers + 1) * (prior @ chance)).astype(int)
    return CrowdLabels.from_matrix(np.repeat(patterns, times, axis=0))


def test_a_crowd_that_is_its_own_expectation_gives_its_confusion_matrices():
    labels = population_crowd(TENTHS, PRIOR)
    assert labels.n_tasks == 10**4
    model = SpectralDawidSkene(em=False).fit(labels)
    n = (10**4 * PRIOR)[:, None]
    raw = (model.confusion_ * (n + SMOOTHING) - SMOOTHING / 3) / n  # without the caution
    np.testing.assert_allclose(raw, TENTHS, atol=1e-6)
    np.testing.assert_allclose(model.class_prior_, PRIOR, atol=1e-6)
    assert model.identified_.all()
    assert model.warnings_ == ()


def test_em_follows_from_there():
    made = crowd(400, 8 * FixedConfusion(asymmetric_confusions(8, 3)), PerTask(5),
                 class_prior=[0.5, 0.3, 0.2], random_state=1)  # fmt: skip
    alone = SpectralDawidSkene(em=False).fit(made.labels)
    expected = DawidSkene(max_iter=7, tol=0.0).fit(made.labels, init=alone.probas_)
    refined = SpectralDawidSkene(max_iter=7, tol=0.0).fit(made.labels)
    np.testing.assert_allclose(refined.probas_, expected.probas_, atol=1e-9)
    np.testing.assert_allclose(refined.confusion_, expected.confusion_, atol=1e-9)
    np.testing.assert_allclose(refined.history_, expected.history_, rtol=1e-9)
    assert refined.n_iter_ == 7


def test_error_of_the_confusion_matrices_falls_with_the_number_of_tasks():
    confusion = asymmetric_confusions(9, 3)
    errors = []
    for n_tasks in (500, 8000):
        error = []
        for seed in range(4):
            made = crowd(n_tasks, 9 * FixedConfusion(confusion), Bernoulli(0.6),
                         class_prior=[0.5, 0.3, 0.2], random_state=seed)  # fmt: skip
            model = SpectralDawidSkene(em=False).fit(made.labels)
            error.append(np.abs(model.confusion_ - confusion).mean())
        errors.append(np.mean(error))
    assert 2.5 < errors[0] / errors[1] < 6.5  # 4 for 16 times as many tasks


def test_it_starts_em_better_than_votes_where_most_workers_say_one_label():
    rng = np.random.default_rng(0)
    confusion = np.full((15, 3, 3), 0.0)
    confusion[:5] = 0.65 * np.eye(3) + 0.35 / 2 * (1 - np.eye(3))
    confusion[5:] = np.append(np.full(2, 0.02), 0.96)  # whatever the class
    made = crowd(4000, 15 * FixedConfusion(confusion[rng.permutation(15)]), Bernoulli(0.5),
                 class_prior=[0.4, 0.35, 0.25], random_state=0)  # fmt: skip
    vote = np.mean(MajorityVote().fit(made.labels).labels_ == made.truth)
    short = np.mean(DawidSkene(max_iter=3, accelerate=False).fit(made.labels).labels_ == made.truth)
    ours = np.mean(SpectralDawidSkene(em=False).fit(made.labels).labels_ == made.truth)
    assert ours > vote + 0.1
    assert ours > short


def test_disconnected_parts_are_each_named_by_themselves():
    one = crowd(600, 6 * FixedConfusion(asymmetric_confusions(6, 3)), random_state=0,
                class_prior=[0.5, 0.3, 0.2])  # fmt: skip
    two = crowd(600, 6 * FixedConfusion(asymmetric_confusions(6, 3, 9)), random_state=1,
                class_prior=[0.5, 0.3, 0.2])  # fmt: skip
    both = CrowdLabels.from_arrays(
        np.concatenate([one.labels.task, 600 + two.labels.task]),
        np.concatenate([one.labels.worker, 6 + two.labels.worker]),
        np.concatenate([one.labels.label, two.labels.label]),
    )
    found = SpectralDawidSkene(em=False).fit(both)
    for made, own in ((one, slice(0, 6)), (two, slice(6, 12))):
        assert np.abs(found.confusion_[own] - made.confusion).mean() < 0.06
        alone = SpectralDawidSkene(em=False).fit(made.labels)
        assert np.abs(found.confusion_[own] - alone.confusion_).max() < 0.01


@pytest.mark.parametrize(
    "votes",
    [
        [[0, 0], [1, 1], [0, 1], [1, 1]],  # two workers
        [[0, 0, 0], [1, 1, 1]] * 2 + [[2, 2, 2]],  # perfect, but nothing is wrong with that
        [[0, 1, 2], [1, 2, 0], [2, 0, 1]],
        [[0, 0, 0, 1]] * 8,
    ],
)
def test_where_moments_fail_the_soft_vote_stands_in(votes):
    labels = CrowdLabels.from_matrix(votes)
    model = SpectralDawidSkene(em=False)
    if labels.n_workers < 3 or len(np.unique(votes, axis=0)) < 3:
        with pytest.warns(WisecrowdWarning, match="share too few tasks"):
            model.fit(labels)
        assert not model.identified_.any()
    else:
        model.fit(labels)
    assert np.isfinite(model.probas_).all()
    assert np.isfinite(model.confusion_).all()


def test_few_labels_give_a_warning_and_the_votes_labels():
    labels = CrowdLabels.from_arrays(
        np.repeat(np.arange(6), 2), [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 0], [0, 0, 1, 1, 2, 2] * 2
    )  # no task has three labels
    with pytest.warns(WisecrowdWarning, match="share too few tasks"):
        model = SpectralDawidSkene().fit(labels)
    np.testing.assert_array_equal(model.labels_, MajorityVote().fit(labels).labels_)


def test_it_is_a_start_for_other_methods():
    made = crowd(300, 7 * FixedConfusion(asymmetric_confusions(7, 2)), PerTask(5),
                 class_prior=[0.6, 0.4], random_state=3)  # fmt: skip
    given = DawidSkene().fit(made.labels, init=SpectralDawidSkene(em=False))
    assert given.score(made.labels, made.truth) > 0.8


def test_refuses_what_is_no_flag():
    with pytest.raises(ParameterError, match="em"):
        SpectralDawidSkene(em="yes").fit(CrowdLabels.from_matrix([[0, 1], [1, 1]]))


@pytest.mark.parametrize(("name", "error", "within"), [("bluebird", 0.1019, 2 / 108),
                                                       ("rte", 0.0713, 0.01)])  # fmt: skip
def test_published_error_rates(real_crowd, name, error, within):
    labels, truth = real_crowd(name)
    reached = 1 - SpectralDawidSkene().fit(labels).score(labels, truth)
    assert reached <= error + within + 1e-4
