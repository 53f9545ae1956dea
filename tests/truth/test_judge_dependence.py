"""Judges who err together."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.truth.judge_dependence import effective_number, error_correlation


def test_effective_number_by_its_definition():
    rng = np.random.default_rng(0)
    shared = rng.random(400) < 0.2
    errors = np.stack([shared | (rng.random(400) < 0.1) for _ in range(4)], axis=1).astype(float)
    cov = np.cov(errors.T)
    expected = 4 * np.trace(cov) / cov.sum()
    found = effective_number(errors)
    assert found.value == pytest.approx(expected, rel=1e-12)
    assert found.low < expected < found.high < 3
    assert found.n_questions == 400


def test_intervals_cover_the_effective_number():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(200):  # errors with correlation .4 / (.4 + .6): J_eff = 3 / 1.8
        latent = rng.normal(size=(150, 1)) * np.sqrt(0.4) + rng.normal(size=(150, 3)) * np.sqrt(0.6)
        found = effective_number(latent)
        covered += found.low <= 3 / 1.8 <= found.high
    assert 0.9 <= covered / 200 <= 0.995


def test_blocks_keep_clusters_together():
    rng = np.random.default_rng(2)
    once = (rng.random((60, 3)) < 0.3).astype(float)
    alone = effective_number(once)
    copied = effective_number(np.repeat(once, 10, axis=0), np.repeat(np.arange(60), 10))
    assert copied.value == pytest.approx(alone.value, rel=1e-9)
    assert copied.high - copied.low == pytest.approx(alone.high - alone.low, rel=1e-6)


@pytest.mark.parametrize(
    "errors",
    [np.ones((100, 3)), np.zeros((100, 2)), np.ones((20, 2)), np.ones((100, 1)),
     np.full((50, 2), np.nan)],
)  # fmt: skip
def test_nothing_is_said_without_errors_or_judges(errors):
    assert np.isnan(effective_number(errors).value)


def test_correlation_of_errors_is_phi():
    rng = np.random.default_rng(3)
    a, b = (rng.random(50) < 0.4).astype(float), (rng.random(50) < 0.4).astype(float)
    assert error_correlation(a, b) == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert np.isnan(error_correlation(a, np.ones(50)))
    assert np.isnan(error_correlation(a[:1], b[:1]))
