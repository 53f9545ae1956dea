"""Held-out scores of numbers: densities that integrate to one, and a sensible order of methods."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import GaussianEM, Mean, Median
from wisecrowd.core.exceptions import DataError
from wisecrowd.inference.held_out import paired_difference, scoring_plan
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.held_out import fit_number_judge, held_out_number_score, log_student


def score(method, data):
    return held_out_number_score(lambda visible: method().fit(visible).values_, scoring_plan(data))


def test_the_better_model_of_biased_workers_has_the_higher_score():
    data = simulate.numbers(200, 10, simulate.PerTask(5), bias=1.0).data
    em, mean = score(GaussianEM, data), score(Mean, data)
    difference, error = paired_difference(em, mean)
    assert difference > 3 * error > 0


def test_the_median_wins_with_far_off_labels():
    data = simulate.numbers(200, 10, simulate.PerTask(5), nu=1.2).data
    assert score(Median, data).mean > score(Mean, data).mean


def test_the_score_is_near_the_entropy_of_known_noise():
    noise = np.full(8, 0.5)
    made = simulate.numbers(600, 8, simulate.Dense(), noise=noise)
    known = held_out_number_score(lambda visible: made.truth, scoring_plan(made.data))
    entropy = -0.5 * np.log(2 * np.pi * np.e * 0.25)
    assert abs(known.mean - entropy) < 0.02


def test_shift_and_scale_only_add_a_constant():
    data = simulate.numbers(60, 6, mean=50.0).data
    moved = CrowdNumbers.from_arrays(data.task, data.worker, -3 * data.value)
    plain, other = score(Mean, data), score(Mean, moved)
    linear = CrowdNumbers.from_arrays(data.task, data.worker, -data.value)
    assert abs(other.mean - score(Mean, linear).mean + np.log(3)) < 1e-6
    assert abs(plain.mean - score(Mean, linear).mean) < 0.05  # the judge may take logarithms


@pytest.mark.parametrize("nu", [2.0, 8.0, np.inf])
def test_densities_integrate_to_one(nu):
    x = np.linspace(-4000, 4000, 8_000_001)
    assert abs(np.exp(log_student(x, nu)).sum() * (x[1] - x[0]) - 1) < 1e-3


def test_the_judge_recovers_bias_and_scale():
    rng = np.random.default_rng(0)
    worker = np.repeat([0, 1], 2000)
    away = np.array([1.0, -1.0])[worker] + np.array([0.5, 2.0])[worker] * rng.normal(size=4000)
    judge = fit_number_judge(away, worker, None, 2, 10.0, np.inf)
    np.testing.assert_allclose(judge.bias, [1, -1], atol=0.15)
    np.testing.assert_allclose(judge.scale, [0.5, 2], rtol=0.05)


def test_one_label_per_task_cannot_be_scored():
    data = CrowdNumbers.from_arrays([1, 2], [1, 2], [1.0, 2.0])
    with pytest.raises(DataError, match="tasks with two labels"):
        score(Mean, data)
