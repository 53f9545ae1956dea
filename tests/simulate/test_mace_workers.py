from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError


def test_matrices_are_the_mace_law_and_parameters_can_be_read_back():
    population = simulate.MACEWorkers(2, 1, 0.7)
    confusion = population.sample(2000, 3, np.random.default_rng(0))
    knowing, habit = simulate.MACEWorkers.parameters(confusion)
    law = knowing[:, None, None] * np.eye(3) + (1 - knowing)[:, None, None] * habit[:, None, :]
    np.testing.assert_allclose(confusion, law, atol=1e-12)
    np.testing.assert_allclose(habit.sum(axis=1), 1.0)
    assert scipy.stats.kstest(knowing, scipy.stats.beta(2, 1).cdf).pvalue > 0.01
    assert scipy.stats.kstest(habit[:, 0], scipy.stats.beta(0.7, 1.4).cdf).pvalue > 0.01


def test_a_worker_who_always_knows_has_a_uniform_habit():
    knowing, habit = simulate.MACEWorkers.parameters(np.eye(4)[None])
    assert knowing.tolist() == [1.0]
    np.testing.assert_allclose(habit, 0.25)


def test_errors():
    with pytest.raises(ParameterError, match="one class"):
        simulate.MACEWorkers.parameters(np.ones((1, 1, 1)))
    with pytest.raises(ParameterError, match=r"^concentration is "):
        simulate.MACEWorkers(concentration=0)
