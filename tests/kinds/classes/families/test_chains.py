"""R-hat and effective sample size: against the definition, and on chains that are known."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.kinds.classes.families.chains import ChainMonitor


def monitored(values):
    """Return a monitor of traces (sweeps, chains, quantities)."""
    monitor = ChainMonitor(*values.shape)
    for row in values:
        monitor.add(row)
    return monitor


def autoregressive(rho, n_sweeps, n_chains, seed=0):
    rng = np.random.default_rng(seed)
    x = np.zeros((n_sweeps, n_chains, 1))
    x[0] = rng.normal(size=(n_chains, 1))
    for t in range(1, n_sweeps):
        x[t] = rho * x[t - 1] + np.sqrt(1 - rho**2) * rng.normal(size=(n_chains, 1))
    return x


def test_r_hat_is_that_of_the_definition():
    values = np.random.default_rng(0).normal(size=(100, 3, 4)) + np.arange(3)[:, None] * 0.3 + 1e6
    halves = values.reshape(2, 50, 3, 4).transpose(0, 2, 1, 3).reshape(6, 50, 4)
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = 50 * halves.mean(axis=1).var(axis=0, ddof=1)
    expected = np.sqrt((49 / 50 * within + between / 50) / within)
    np.testing.assert_allclose(monitored(values).r_hat(), expected, rtol=1e-8)


def test_independent_draws_count_in_full():
    values = np.random.default_rng(1).normal(size=(400, 8, 5))
    size = monitored(values).effective_size()
    assert (size > 0.7 * 3200).all()
    assert (size <= 3200).all()


@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_effective_size_of_an_autoregressive_chain(rho):
    values = autoregressive(rho, 4000, 8)
    expected = 32000 * (1 - rho) / (1 + rho)
    assert monitored(values).effective_size()[0] == pytest.approx(expected, rel=0.25)


def test_drift_and_disagreement_show():
    drift = (
        np.random.default_rng(2).normal(size=(200, 4, 1)) + np.linspace(0, 4, 200)[:, None, None]
    )
    assert monitored(drift).r_hat()[0] > 1.2
    apart = np.random.default_rng(3).normal(size=(200, 4, 1)) + 3 * np.arange(4)[:, None]
    assert monitored(apart).r_hat()[0] > 1.5
    assert monitored(apart).effective_size()[0] < 40


def test_constants():
    same = np.full((30, 4, 1), 0.3)
    assert monitored(same).r_hat()[0] == 1
    assert monitored(same).effective_size()[0] == 120
    stuck = np.tile(np.arange(4.0)[:, None], (30, 1, 1))
    assert monitored(stuck).r_hat()[0] == np.inf
