from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError


def test_moments_of_the_rows():
    diag, off, k = 3.0, 0.5, 4
    confusion = simulate.DirichletWorkers(diag, off).sample(20_000, k, np.random.default_rng(0))
    total = diag + (k - 1) * off
    alpha = np.where(np.eye(k, dtype=bool), diag, off)
    mean = alpha / total
    np.testing.assert_allclose(confusion.mean(axis=0), mean, atol=0.01)
    variance = mean * (1 - mean) / (total + 1)
    np.testing.assert_allclose(confusion.var(axis=0), variance, atol=0.005)


def test_tiny_parameters_stay_on_the_simplex():
    confusion = simulate.DirichletWorkers(0.01, 0.005).sample(500, 3, np.random.default_rng(0))
    assert np.isfinite(confusion).all()
    np.testing.assert_allclose(confusion.sum(axis=2), 1.0)


def test_given_matrices_are_repeated_in_turn():
    a, b = np.array([[0.9, 0.1], [0.3, 0.7]]), np.eye(2)
    confusion = simulate.FixedConfusion([a, b]).sample(4, 2, np.random.default_rng(0))
    np.testing.assert_array_equal(confusion, [a, b, a, b])


def test_given_matrices_are_copied():
    given = np.eye(2)
    population = simulate.FixedConfusion(given)
    given[:] = 0.5
    np.testing.assert_array_equal(population.matrices[0], np.eye(2))


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        ([[0.9, 0.1], [0.5, 0.4]], "Row 1 of matrix 0"),
        ([np.eye(2), [[1.5, -0.5], [0.0, 1.0]]], "Row 0 of matrix 1"),
        ([[np.nan, 1.0], [0.5, 0.5]], "Row 0 of matrix 0"),
        ([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], "shape"),
        ([1.0], "shape"),
    ],
)
def test_matrices_that_are_no_confusion(matrices, message):
    with pytest.raises(ParameterError, match=message):
        simulate.FixedConfusion(matrices)


def test_sizes_that_do_not_fit():
    population = simulate.FixedConfusion([np.eye(2), np.eye(2)])
    with pytest.raises(ParameterError, match="2 classes, but there are 3"):
        population.sample(2, 3, np.random.default_rng(0))
    with pytest.raises(ParameterError, match="shared out to 3 workers"):
        population.sample(3, 2, np.random.default_rng(0))


def test_bad_parameters():
    with pytest.raises(ParameterError, match=r"^off is "):
        simulate.DirichletWorkers(1, 0)
