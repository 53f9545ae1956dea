"""Mean, median and trimmed mean have closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregation import Mean
from wisecrowd.core.exceptions import DataError, ParameterError

TASK, WORKER = ["a"] * 4 + ["b"] * 3, list("wxyz") + list("wxy")
VALUE = [1.0, 2.0, 4.0, 9.0, 3.0, 5.0, 10.0]


def test_the_variance_is_the_pooled_one_over_the_labels():
    fitted = Mean().fit((TASK, WORKER, VALUE))
    np.testing.assert_allclose(fitted.values_, [4.0, 6.0])
    pooled = (9 + 4 + 0 + 25 + 9 + 1 + 16) / (3 + 2)
    np.testing.assert_allclose(fitted.variance_, [pooled / 4, pooled / 3])
    half = 1.959963984540054 * np.sqrt(pooled / 4)
    np.testing.assert_allclose(fitted.interval(0.95)[1][0], 4 + half)


def test_one_label_per_task_has_the_variance_of_all_labels():
    fitted = Mean().fit((["a", "b", "c"], ["w", "w", "x"], [1.0, 2.0, 6.0]))
    np.testing.assert_allclose(fitted.variance_, np.var([1.0, 2.0, 6.0]))
    assert [finding.id for finding in fitted.findings_] == [
        "shared-bias-invisible",
        "one-label-per-task",
    ]


def test_known_numbers_need_no_degree_of_freedom():
    fitted = Mean().fit((TASK, WORKER, VALUE), gold={"a": 3.0})
    squares = 4 + 1 + 1 + 36 + 9 + 1 + 16
    np.testing.assert_allclose(fitted.noise_variance_, squares / (4 + 2))
    np.testing.assert_allclose(fitted.values_, [3.0, 6.0])


def test_the_log_scale_has_geometric_means():
    fitted = Mean(scale="log").fit((TASK, WORKER, VALUE))
    np.testing.assert_allclose(fitted.values_[0], (1 * 2 * 4 * 9) ** 0.25)
    with pytest.raises(DataError, match=r"label of task 'b' by worker 'x' is -5, .*scale"):
        Mean(scale="log").fit((TASK, WORKER, [*VALUE[:5], -5.0, 2.0]))
    with pytest.raises(ParameterError, match="task_prior"):
        Mean().fit((TASK, WORKER, VALUE), task_prior=(0.0, 1.0))


def test_a_log_scale_is_suggested_for_skewed_labels():
    rng = np.random.default_rng(1)
    task, worker = np.repeat(np.arange(60), 5), np.tile(np.arange(5), 60)
    logs = rng.normal(size=60)[task] + rng.normal(size=300)
    skewed, plain = Mean().fit((task, worker, np.exp(logs))), Mean().fit((task, worker, 10 + logs))
    assert [finding.id for finding in skewed.findings_] == ["shared-bias-invisible", "log-scale"]
    assert [finding.severity for finding in skewed.findings_] == ["info", "info"]
    assert [finding.id for finding in plain.findings_] == ["shared-bias-invisible"]


def test_calibration_needs_gold_that_the_fit_has_not_used():
    rng = np.random.default_rng(1)
    task, worker = np.repeat(np.arange(60), 5), np.tile(np.arange(5), 60)
    truth = rng.normal(size=60)
    value = truth[task] + 0.5 * rng.normal(size=300) + rng.normal(size=60)[task]  # shared errors
    fitted = Mean().fit((task, worker, value))
    gold = dict(zip(range(30), truth[:30], strict=True))
    low, high = fitted.calibrated(gold).interval(0.9)
    inside = (low <= truth) & (truth <= high)
    narrow = fitted.interval(0.9)
    assert np.mean((narrow[0] <= truth) & (truth <= narrow[1])) < 0.7
    assert 0.75 <= inside[30:].mean() <= 1.0
    used = Mean().fit((task, worker, value), gold=gold)
    with pytest.raises(DataError, match="Gold has 0 tasks"):
        used.calibrated(gold)
