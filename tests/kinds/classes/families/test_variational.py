from __future__ import annotations

import numpy as np
import pytest
from scipy.special import psi

from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.methods.community_bcc import CommunityBCC
from wisecrowd.kinds.classes.methods.ebcc import EBCC

METHODS = (EBCC, CommunityBCC)


@pytest.fixture
def labels():
    return CrowdLabels.from_matrix(np.random.default_rng(0).integers(0, 3, (30, 4)))


@pytest.mark.parametrize("method", METHODS)
def test_class_frequencies_are_the_posterior_mean(method, labels):
    model = method(class_alpha=2.5, n_init=1, tol=1e-12, max_iter=2000).fit(labels)
    np.testing.assert_allclose(model.class_posterior_.sum(), 30 + 3 * 2.5)
    np.testing.assert_allclose(model.class_posterior_, 2.5 + model.probas_.sum(axis=0), atol=1e-3)
    np.testing.assert_allclose(model.class_prior_, model.class_posterior_ / 37.5)


@pytest.mark.parametrize("method", METHODS)
def test_a_fixed_class_prior_has_no_posterior_and_no_divergence(method, labels):
    model = method(class_prior=[0.2, 0.5, 0.3], n_init=1).fit(labels)
    np.testing.assert_allclose(model.class_prior_, [0.2, 0.5, 0.3])
    assert not hasattr(model, "class_posterior_")
    np.testing.assert_allclose(model.predict_proba(labels), model.probas_, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_unlabelled_tasks_get_the_expected_log_class_prior(method, labels):
    model = method(n_init=1, n_subtypes=1).fit(labels) if method is EBCC else method().fit(labels)
    alone = CrowdLabels.from_arrays([0], [0], [0], tasks=[0, 1], classes=np.arange(3))
    logs = psi(model.class_posterior_)
    expected = np.exp(logs) / np.exp(logs).sum()
    np.testing.assert_allclose(model.predict_proba(alone)[1], expected, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_auto_leaves_classes_to_a_task_prior(method, labels):
    prior = np.random.default_rng(1).dirichlet(np.ones(3), 30)
    auto = method(n_init=1).fit(labels, task_prior=prior)
    np.testing.assert_allclose(auto.class_prior_, 1 / 3)
    both = method(n_init=1, class_prior="estimate").fit(labels, task_prior=prior)
    assert hasattr(both, "class_posterior_")
    assert np.abs(both.probas_ - auto.probas_).max() > 1e-4
    for model in (auto, both):
        again = model.predict_proba(labels, task_prior=prior)
        np.testing.assert_allclose(again, model.probas_, atol=1e-9)
