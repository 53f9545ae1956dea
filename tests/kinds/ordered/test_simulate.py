"""Graded responses: the distribution of labels, and arguments that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError


def test_labels_follow_the_model():
    made = simulate.graded_responses(40000, 4, simulate.Dense(), cuts=[-1.0, 0.0, 0.5, 1.0])
    labels = made.labels
    assert labels.ordered
    for j in range(4):
        own = labels.label[labels.worker == j]
        sd = np.hypot(1.0, made.spread[j])
        edges = np.concatenate([[-np.inf], made.cuts, [np.inf]])
        expected = np.diff(ndtr((edges - made.bias[j]) / sd))
        np.testing.assert_allclose(np.bincount(own, minlength=5) / len(own), expected, atol=0.01)
    shares = np.bincount(made.truth, minlength=5) / 40000
    np.testing.assert_allclose(shares, np.diff(ndtr(edges)), atol=0.01)
    assert (np.searchsorted(made.cuts, made.level) == made.truth).all()


def test_population_of_workers():
    made = simulate.graded_responses(2, 20000, bias=0.4, spread=0.7, log_spread=0.3)
    assert made.bias.std() == pytest.approx(0.4, rel=0.03)
    assert np.median(made.spread) == pytest.approx(0.7, rel=0.03)
    assert np.log(made.spread).std() == pytest.approx(0.3, rel=0.03)


def test_classes_are_equally_frequent_by_default_and_seeds_repeat():
    made, again = (simulate.graded_responses(30000, 2, n_classes=3) for _ in range(2))
    np.testing.assert_allclose(np.bincount(made.truth) / 30000, 1 / 3, atol=0.01)
    assert np.array_equal(made.labels.label, again.labels.label)
    other = simulate.graded_responses(30000, 2, n_classes=3, random_state=1)
    assert not np.array_equal(made.truth, other.truth)


@pytest.mark.parametrize(
    "options", [{"cuts": [1.0, 0.0, 2.0]}, {"cuts": [0.0]}, {"n_classes": 1}, {"bias": -1.0}]
)
def test_bad_arguments(options):
    with pytest.raises(ParameterError):
        simulate.graded_responses(10, 3, **{"n_classes": 4, **options})
