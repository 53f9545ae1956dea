"""Workers who use different scales are found, and nothing is claimed beyond their labels."""

from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import CrowdNumbers
from wisecrowd.core.exceptions import WisecrowdError
from wisecrowd.core.kinds import KINDS
from wisecrowd.core.registry import get_method, kebab_case
from wisecrowd.kinds.numbers.answers import t_quantiles
from wisecrowd.kinds.numbers.methods.base import TaskEstimates, inside_labels
from wisecrowd.kinds.numbers.methods.facts import different_scales

METHODS = [kebab_case(name) for name in KINDS["numbers"].method_modules()]
TASK, WORKER = np.divmod(np.arange(40), 4)


def thousands():
    """Two workers give i, and two give 1000 i."""
    value = TASK * np.where(WORKER < 2, 1.0, 1000.0)
    return CrowdNumbers.from_arrays(TASK, np.array(list("abcd"))[WORKER], value)


@pytest.mark.parametrize("name", METHODS)
def test_other_scales_are_a_finding_and_claim_nothing(name):
    data = thousands()
    fitted = get_method(name)().fit(data)
    finding = next(f for f in fitted.findings_ if f.id == "different-scales")
    assert finding.severity == "high"
    assert finding.affected == ("c", "d")
    assert finding.score == pytest.approx(1000)
    assert "1e+03 times" in finding.explanation
    low, high = np.arange(10) * 1.0, np.arange(10) * 1000.0
    assert (fitted.values_ >= low).all()
    assert (fitted.values_ <= high).all()
    assert (fitted.low_ <= low + 1e-9).all()
    assert (fitted.high_ >= high - 1e-9).all()
    assert fitted.interval(0.95)[0] == pytest.approx(fitted.low_)
    if fitted.tags().inductive:
        assert fitted.predict(data) == pytest.approx(fitted.values_)


@pytest.mark.parametrize(
    ("factor", "workers"), [(0.01, [1]), (1 / 12, [0, 1]), (-20.0, [3]), (7.0, [2, 3])]
)
def test_factor_and_workers(factor, workers):
    rng = np.random.default_rng(0)
    value = rng.uniform(1, 9, 10)[TASK] + rng.normal(0, 0.3, 40)
    value *= np.where(np.isin(WORKER, workers), factor, 1.0)
    found = different_scales(CrowdNumbers.from_arrays(TASK, WORKER, value))
    if factor < 1 and len(workers) == 2:  # equal groups: those with the larger numbers are named
        workers, factor = [2, 3], 1 / factor
    assert found.workers.tolist() == workers
    assert found.factor == pytest.approx(abs(factor), rel=0.15)


@pytest.mark.parametrize("seed", range(20))
def test_honest_crowds_have_one_scale(seed):
    rng = np.random.default_rng(seed)
    made = wc.simulate.numbers(30, 8, bias=rng.uniform(0, 1), noise=(0.01, 3.0), random_state=seed)
    for value in (made.data.value, made.data.value + 5, np.exp(made.data.value / 2)):
        data = CrowdNumbers.from_arrays(made.data.task, made.data.worker, value)
        assert different_scales(data) is None


def test_a_bias_is_not_another_scale():
    value = TASK % 5 + 1.0 + 3.0 * (WORKER == 3)
    fitted = get_method("gaussian-em")().fit((TASK, WORKER, value))
    assert "different-scales" not in {finding.id for finding in fitted.findings_}
    # Biases are still subtracted: a single label of the biased worker leaves its range.
    assert fitted.predict((["new"], [3], [9.0]))[0] < 9


@pytest.mark.parametrize("name", METHODS)
def test_two_numbers_are_both_inside_the_interval(name):
    for n_tasks in (1, 4):
        task = np.repeat(np.arange(n_tasks), 2)
        data = CrowdNumbers.from_arrays(task, ["x", "y"] * n_tasks, [0.0, 10.0] * n_tasks)
        try:
            fitted = get_method(name)().fit(data)
        except WisecrowdError:
            continue  # too few tasks for this method, which says so
        assert fitted.values_ == pytest.approx(5, abs=0.5)
        if n_tasks == 1:
            assert (fitted.low_ <= 0).all()
            assert (fitted.high_ >= 10).all()
        assert (fitted.high_ - fitted.low_ > 1).all()


@pytest.mark.parametrize("name", METHODS)
def test_one_number_is_not_certain(name):
    fitted = get_method(name)().fit((["t"], ["x"], [3.5]))
    assert fitted.values_[0] == pytest.approx(3.5)
    assert fitted.low_[0] < 0 < 7 < fitted.high_[0]
    shown = get_method(name)(scale="log").fit((["t"], ["x"], [3.5]))
    assert shown.low_[0] < 3.5 / 5
    assert shown.high_[0] > 3.5 * 5


def test_the_audit_names_workers_of_another_scale():
    found = wc.audit.audit_crowd(thousands(), parts=["scale"]).findings
    assert [finding.affected for finding in found if finding.id == "different-scales"] == [
        ("c", "d")
    ]


@pytest.mark.parametrize("name", ["auto-numbers", "gaussian-em", "student-em", "mean"])
def test_three_numbers_of_each_worker_show_a_factor_of_a_thousand(name):
    task, worker = np.divmod(np.arange(9), 3)
    value = np.array([10.1, 9.6, 11147, 9.1, 8.4, 10550, 12.1, 10.3, 11600])
    fitted = get_method(name)().fit((task, worker, value))
    assert [f.affected for f in fitted.findings_ if f.id == "different-scales"] == [(2,)]
    low, high = value.reshape(3, 3).min(axis=1), value.reshape(3, 3).max(axis=1)
    assert (fitted.values_ >= low).all()
    assert (fitted.values_ <= high).all()
    assert different_scales(CrowdNumbers.from_arrays(task, worker, np.minimum(value, 99))) is None


def test_intervals_end_at_the_labels_with_few_degrees_of_freedom():
    task, worker = np.divmod(np.arange(6), 3)
    data = CrowdNumbers.from_arrays(task, worker, np.array([9.0, 10, 10000, 19, 20, 22000]))
    few = TaskEstimates(np.array([22.0, 48.0]), np.array([1.0, 1.0]), np.array([1.5, 3.0]))
    mean, variance, freedom = inside_labels(few, data)
    half = t_quantiles(0.975, freedom) * np.sqrt(variance)
    np.testing.assert_allclose(mean + half, [10000, 22000])


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("scale", ["linear", "log"])
def test_labels_that_are_equal_may_have_been_rounded(name, scale):
    for value, half in ((3.0, 0.5), (0.25, 0.005)):
        fitted = get_method(name)(scale=scale)
        try:
            fitted.fit((["a", "a"], ["x", "y"], [value, value]))
        except WisecrowdError:
            continue
        assert fitted.low_[0] <= value - 0.9 * half
        assert fitted.high_[0] >= value + half


def test_a_fit_with_a_choice_of_equal_labels_is_rounded_too():
    task = np.repeat(np.arange(30), 3)
    same = get_method("auto-numbers")().fit((task, np.tile(np.arange(3), 30), np.full(90, 5)))
    assert same.scores_
    assert same.low_.max() < 4.5
    gold = get_method("auto-numbers")().fit((["a", "a"], ["x", "y"], [3, 3]), gold={"a": 3})
    assert gold.low_ == gold.high_ == 3
