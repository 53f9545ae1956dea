"""Sizes of samples: published figures, and a simulation of the power."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.truth.sample_sizes import answers_needed, checks_needed, judgements_needed


@pytest.mark.parametrize(
    ("half_width", "needed"), [(0.1, 43), (0.08, 66), (0.05, 165), (0.03, 454)]
)
def test_checks_of_many_tasks(half_width, needed):
    assert np.ceil(checks_needed(half_width, 0.85)) == needed


def test_checks_of_few_tasks_never_exceed_them():
    assert checks_needed(0.01, 0.5, n_tasks=80) < 80
    assert checks_needed(0.05, 0.85, n_tasks=165) == pytest.approx(82, abs=1)


def test_answers_give_the_width():
    n = answers_needed(0.1, 2.0, 0.6, np.inf)
    assert 1.96 * np.sqrt(4 * (1 - 0.36) / (n - 2)) == pytest.approx(0.1, rel=1e-3)


@pytest.mark.parametrize(("rho", "n_tasks"), [(0.0, 10**9), (0.8, 400)])
def test_judgements_have_the_power(rho, n_tasks):
    difference, sd = 0.3, 1.0
    n = round(judgements_needed(difference, sd, rho, n_tasks))
    # The mean of n residuals and of n_tasks predictions.
    rng = np.random.default_rng(0)
    error = np.sqrt((1 - rho**2) / n + rho**2 / n_tasks)
    z = (difference + error * rng.normal(size=20_000)) / error
    assert (z > 1.96).mean() == pytest.approx(0.8, abs=0.02)


def test_too_few_texts_have_no_answer():
    assert np.isnan(judgements_needed(0.05, 1.0, 0.9, n_tasks=100))
