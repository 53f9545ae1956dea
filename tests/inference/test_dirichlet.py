from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.inference.dirichlet import divergence, expectation, expected_log, row_parameters
from wisecrowd.inference.priors import DirichletRows, OneCoinPrior


@pytest.mark.parametrize(("a", "b"), [(0.7, 2.5), (4.0, 1.0), (12.0, 30.0)])
def test_moments_against_integrals_of_the_beta_density(a, b):
    density = stats.beta(a, b).pdf
    alpha = np.array([a, b])
    mean = integrate.quad(lambda x: x * density(x), 0, 1)[0]
    logs = [
        integrate.quad(lambda x: np.log(x) * density(x), 0, 1)[0],
        integrate.quad(lambda x: np.log1p(-x) * density(x), 0, 1)[0],
    ]
    np.testing.assert_allclose(expectation(alpha), [mean, 1 - mean], atol=1e-7)
    np.testing.assert_allclose(expected_log(alpha), logs, atol=1e-6)


def test_divergence_against_its_integral():
    posterior, prior = stats.beta(5.5, 2.0), stats.beta(1.5, 3.0)
    exact = integrate.quad(
        lambda x: posterior.pdf(x) * (posterior.logpdf(x) - prior.logpdf(x)), 1e-12, 1 - 1e-12
    )[0]
    b, a = np.array([5.5, 2.0]), np.array([1.5, 3.0])
    assert divergence(b, a, expected_log(b)) == pytest.approx(exact, abs=1e-8)


def test_divergence_sums_over_rows_along_any_axis_and_repeats_the_prior():
    rng = np.random.default_rng(0)
    b, a = rng.uniform(0.2, 5, (4, 3, 2)), rng.uniform(0.2, 5, (1, 3, 1))
    total = sum(
        divergence(b[i, :, j], a[0, :, 0], expected_log(b[i, :, j]))
        for i in range(4)
        for j in range(2)
    )
    assert divergence(b, a, expected_log(b, axis=1), axis=1) == pytest.approx(total, abs=1e-10)
    np.testing.assert_allclose(expectation(b, axis=1).sum(axis=1), 1)


def test_divergence_from_itself_is_zero():
    a = np.array([[0.01, 3.0, 1.0]])
    assert divergence(a, a, expected_log(a)) == pytest.approx(0, abs=1e-12)


def test_row_parameters():
    weak = row_parameters("weak", (), 3)
    np.testing.assert_array_equal(weak, [[4, 1, 1], [1, 4, 1], [1, 1, 4]])
    np.testing.assert_array_equal(row_parameters(0.5, (), 2), np.full((2, 2), 0.5))
    per_worker = np.arange(1.0, 13.0).reshape(3, 2, 2)
    np.testing.assert_array_equal(row_parameters(DirichletRows(per_worker), "abc", 2), per_worker)


@pytest.mark.parametrize("bad", [None, 0.0, "strong", np.ones((3, 3)), OneCoinPrior(2, 1)])
def test_priors_that_are_no_rows_or_no_density(bad):
    with pytest.raises(ParameterError):
        row_parameters(bad, (), 2)
