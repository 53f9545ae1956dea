from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.simulate.one_coin_workers import one_coin_confusion


def test_accuracies_follow_the_beta_law():
    confusion = simulate.OneCoinWorkers(2, 0.8).sample(2000, 4, np.random.default_rng(1))
    assert scipy.stats.kstest(confusion[:, 0, 0], scipy.stats.beta(2, 0.8).cdf).pvalue > 0.01


def test_errors_are_spread_evenly_and_classes_are_alike():
    confusion = simulate.OneCoinWorkers(3, 1).sample(5, 4, np.random.default_rng(2))
    for matrix in confusion:
        p = matrix[0, 0]
        expected = p * np.eye(4) + (1 - p) / 3 * (1 - np.eye(4))
        np.testing.assert_allclose(matrix, expected, atol=1e-15)


def test_one_class_leaves_no_room_for_errors():
    np.testing.assert_array_equal(one_coin_confusion(np.array([0.3]), 1), [[[1.0]]])


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "two", True])
def test_bad_parameters(bad):
    with pytest.raises(ParameterError, match=r"^b is "):
        simulate.OneCoinWorkers(1, bad)
