"""The simulator of numbers has the moments that it promises."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError


def errors(made):
    data = made.data
    return (data.value - made.truth[data.task]).reshape(-1, data.n_workers)


def test_bias_noise_and_truth_have_their_moments():
    made = simulate.numbers(20_000, 4, simulate.Dense(), mean=5.0, spread=2.0, bias=1.0)
    rest = errors(made)
    np.testing.assert_allclose(rest.mean(axis=0), made.bias, atol=0.05)
    np.testing.assert_allclose(rest.std(axis=0), made.noise, rtol=0.03)
    np.testing.assert_allclose([made.truth.mean(), made.truth.std()], [5, 2], rtol=0.03)


def test_gains_are_slopes():
    made = simulate.numbers(5000, 3, simulate.Dense(), noise=np.full(3, 0.1), gain=0.3)
    slope = [np.polyfit(made.truth, made.data.value.reshape(-1, 3)[:, j], 1)[0] for j in range(3)]
    np.testing.assert_allclose(slope, made.gain, atol=0.01)


def test_only_the_clique_shares_errors():
    made = simulate.numbers(20_000, 5, simulate.Dense(), clique=2, clique_error=1.5)
    covariance = np.cov(errors(made).T)
    off = covariance[~np.eye(5, dtype=bool)]
    assert made.clique.tolist() == [False] * 3 + [True] * 2
    np.testing.assert_allclose(covariance[3, 4], 1.5**2, rtol=0.05)
    assert (np.abs(off) > 0.1).sum() == 2


def test_heavy_tails_and_the_log_scale():
    heavy = simulate.numbers(5000, 5, simulate.Dense(), noise=np.ones(5), nu=2.0)
    assert np.abs(errors(heavy)).max() > 10
    plain, log = (simulate.numbers(50, 5, scale=scale) for scale in ("linear", "log"))
    np.testing.assert_allclose(np.log(log.data.value), plain.data.value)
    np.testing.assert_allclose(np.log(log.truth), plain.truth)


def test_bad_arguments_are_refused():
    for options in ({"noise": (2.0, 1.0)}, {"noise": [-1.0, 1.0]}, {"spread": -1.0}, {"nu": 0.0},
                    {"clique": 9}, {"scale": "cubic"}):  # fmt: skip
        with pytest.raises(ParameterError):
            simulate.numbers(10, 5, **options)
