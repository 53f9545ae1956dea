from __future__ import annotations

import numpy as np
import pytest
from tests.support.objective import (
    OBJECTIVES,
    fall_of,
    largest_fall,
    log_likelihood,
    monotone_methods,
    objective_gap,
    random_labels,
)

from wisecrowd import CrowdLabels
from wisecrowd.aggregation import DawidSkene
from wisecrowd.core.registry import get_method
from wisecrowd.testing import maker

pytestmark = pytest.mark.filterwarnings("ignore::wisecrowd.core.exceptions.WisecrowdWarning")


def test_the_likelihood_by_hand():
    labels = CrowdLabels.from_arrays(["t", "t", "u"], ["a", "b", "a"], [0, 1, 1], weight=[1, 2, 1])
    prior = np.array([0.3, 0.7])
    confusion = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]])
    first = 0.3 * 0.9 * 0.4**2 + 0.7 * 0.2 * 0.5**2
    second = 0.3 * 0.1 + 0.7 * 0.8
    expected = np.log(first) + np.log(second)
    assert log_likelihood(labels, prior, confusion) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_objective_is_what_it_should_be(name):
    assert max(objective_gap(name, random_labels(seed)) for seed in range(4)) <= 1e-8


def test_another_objective_is_noticed():
    labels = random_labels(0)
    fitted = DawidSkene(prior=None).fit(labels)
    expected = log_likelihood(labels, fitted.class_prior_, fitted.confusion_)
    shifted = log_likelihood(labels, fitted.class_prior_[::-1], fitted.confusion_)
    assert fitted.history_[-1] == pytest.approx(expected, rel=1e-8)
    assert abs(shifted - expected) > 1e-3


@pytest.mark.parametrize("name", monotone_methods())
def test_random_runs_never_fall(name):
    make = maker(get_method(name))
    assert max(largest_fall(make, seed) for seed in range(4)) <= 1e-9


def test_falls_are_seen():
    assert fall_of(np.array([-2.0, -1.0, -1.5])) == pytest.approx(0.25)
    assert fall_of(np.array([])) == np.inf
    assert fall_of(np.array([-1.0, np.nan])) == np.inf
