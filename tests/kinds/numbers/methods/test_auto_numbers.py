"""Tests of the default method for numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.aggregation import AutoNumbers, GaussianEM, Mean
from wisecrowd.core.exceptions import FindingWarning, ParameterError, WisecrowdError
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods import auto_numbers
from wisecrowd.kinds.numbers.methods.base import TaskEstimates
from wisecrowd.kinds.numbers.methods.facts import DIFFERENT_SCALES
from wisecrowd.kinds.numbers.scorer import APART

SHARED = "shared-bias-invisible"


@pytest.fixture(scope="module")
def uneven():
    return simulate.numbers(80, 6, noise=np.array([0.2] * 2 + [3.0] * 4), bias=0.5)


@pytest.fixture(scope="module")
def fitted(uneven):
    return AutoNumbers().fit(uneven.data)


def test_a_clear_lead_is_taken_and_explained(fitted, uneven):
    assert fitted.chosen_ in ("gaussian-em", "student-em")
    assert fitted.scores_[fitted.chosen_]["lead"] > fitted.scores_[fitted.chosen_]["lead_error"]
    assert fitted.chosen_ in fitted.reason_
    assert fitted.score(uneven.data, dict(enumerate(uneven.truth))) > 0.9
    assert [finding.id for finding in fitted.findings_].count(SHARED) == 1


def test_intervals_hold_the_truth(fitted, uneven):
    inside = (fitted.low_ <= uneven.truth) & (uneven.truth <= fitted.high_)
    assert inside.mean() > 0.85
    np.testing.assert_allclose(fitted.interval(0.95)[0], fitted.low_)


def test_refits_keep_the_choice(fitted, uneven):
    again = fitted._for_refit()
    assert (again.candidates, again.scale) == ([fitted.chosen_], fitted.chosen_scale_)
    assert AutoNumbers()._for_refit().candidates == AutoNumbers().candidates
    near = again.fit(uneven.data).values_ - fitted.values_
    assert np.abs(near).max() < 1e-6


def test_compare_scores_as_the_choice_does(fitted, uneven):
    table = wc.compare(uneven.data, methods=["mean", "gaussian-em"], library="pyarrow").to_pydict()
    own = fitted.scores_["gaussian-em"]["score"]
    found = table["held_out_score"][table["method"].index("gaussian-em")]
    assert found == pytest.approx(own, rel=0.02)  # candidates of the choice stop earlier


def test_few_tasks_leave_nothing_to_choose():
    made = simulate.numbers(9, 5, simulate.PerTask(4))
    found = AutoNumbers().fit(made.data)
    assert (found.chosen_, found.scores_) == ("gaussian-em", {})
    assert "fewer than 10 tasks have two labels or more" in found.reason_
    np.testing.assert_array_equal(found.values_, GaussianEM().fit(made.data).values_)
    np.testing.assert_array_equal(found.low_, GaussianEM().fit(made.data).low_)


def test_one_candidate_is_that_method(uneven):
    found = AutoNumbers(candidates=["gaussian-em"], scale="linear").fit(uneven.data)
    plain = GaussianEM().fit(uneven.data)
    for name in ("values_", "low_", "high_", "variance_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))


def test_a_candidate_that_raises_is_left_out(uneven, monkeypatch):
    def fail(self, problem):
        raise WisecrowdError("no")

    monkeypatch.setattr(GaussianEM, "_fit_numbers", fail)
    found = AutoNumbers(candidates=["gaussian-em", "mean", "median"], scale="linear")
    monkeypatch.setattr(
        auto_numbers,
        "own_errors",  # of averages it needs the failing method
        lambda chosen, fit, problem: TaskEstimates(fit._fitted_mean(), fit.variance_),
    )
    found.fit(uneven.data)
    assert set(found.scores_) == {"mean", "median"}


def test_multiples_are_chosen_on_the_log_scale_and_survive_saving(tmp_path):
    rng = np.random.default_rng(0)
    task, worker = np.repeat(np.arange(40), 5), np.tile(np.arange(5), 40)
    value = np.exp(rng.normal(0, 2, 40)[task] + 0.5 * rng.normal(size=200))
    found = AutoNumbers().fit((task, worker, value))
    assert found.chosen_scale_ == "log"
    assert (found.low_ > 0).all()
    found.save(tmp_path / "model")
    again = wc.load(tmp_path / "model")
    np.testing.assert_array_equal(again.high_, found.high_)
    new = CrowdNumbers.from_arrays(["x", "x"], [0, 1], [4.0, 5.0])
    np.testing.assert_array_equal(again.predict(new), found.predict(new))


def test_known_numbers_take_away_the_finding(uneven):
    found = AutoNumbers(candidates=["mean", "gaussian-em"]).fit(
        uneven.data, gold=dict(enumerate(uneven.truth[:12]))
    )
    assert SHARED not in {finding.id for finding in found.findings_}
    np.testing.assert_allclose(found.values_[:12], uneven.truth[:12])
    np.testing.assert_array_equal(found.low_[:12], found.high_[:12])


@pytest.fixture(scope="module")
def apart():
    rng = np.random.default_rng(0)
    task, worker = np.repeat(np.arange(50), 3), np.tile(np.arange(3), 50)
    value = rng.normal(size=50)[task] + 1.5 * (worker == 2) + 0.4 * rng.normal(size=150)
    return CrowdNumbers.from_arrays(task, worker, value)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("noise-levels", "apart by 1.44: 2. Values follow the majority; labels cannot say"),
        ("mean", "apart by 1.44: 2. Values are 0.416 from the level of the majority; labels"),
        ("gaussian-em", "apart by 1.44: 2. Values follow the majority; labels cannot say"),
    ],
)
def test_who_stands_apart_is_named_whatever_method_is_chosen(apart, method, said):
    found = AutoNumbers(candidates=[method], scale="linear").fit(apart)
    (finding,) = [one for one in found.findings_ if one.id == APART]
    assert finding.affected == (2,)
    assert said in finding.explanation


def test_a_method_with_biases_is_chosen_where_a_minority_stands_apart():
    rng = np.random.default_rng(200)
    truth, task, worker = rng.normal(size=100), np.repeat(np.arange(100), 3), np.tile(range(3), 100)
    value = truth[task] + 1.5 * (worker == 2) + 0.5 * rng.normal(size=300)
    names = ["mean", "gaussian-em", "noise-levels"]
    found = AutoNumbers(candidates=names, scale="linear").fit((task, worker, value))
    assert found.scores_["noise-levels"]["lead"] > found.scores_["noise-levels"]["lead_error"]
    assert found.chosen_ == "gaussian-em"
    assert "some workers stand apart" in found.reason_
    assert np.sqrt(np.mean((found.values_ - truth) ** 2)) < 0.31


def test_a_distance_of_logarithms_is_told_as_a_factor(apart):
    found = AutoNumbers(candidates=["gaussian-em"], scale="log").fit(
        replace(apart, value=np.exp(apart.value))
    )
    (finding,) = [one for one in found.findings_ if one.id == APART]
    assert "apart by a factor of 4.23: 2." in finding.explanation


def test_equal_workers_have_nobody_apart():
    made = simulate.numbers(60, 5, bias=0.0)
    found = AutoNumbers(candidates=["mean"], scale="linear").fit(made.data)
    assert APART not in {finding.id for finding in found.findings_}


def test_other_units_are_a_finding_and_values_stay_inside_the_labels():
    rng = np.random.default_rng(0)
    task, worker = np.repeat(np.arange(30), 4), np.tile(np.arange(4), 30)
    value = np.exp(rng.normal(3, 1, 30))[task] * np.where(worker == 3, 1000, 1)
    data = CrowdNumbers.from_arrays(task, worker, value * np.exp(0.05 * rng.normal(size=120)))
    with pytest.warns(FindingWarning, match="different scales"):
        found = AutoNumbers().fit(data)
    assert DIFFERENT_SCALES in {finding.id for finding in found.findings_}
    table = data.value.reshape(30, 4)
    assert (table.min(axis=1) <= found.values_ * (1 + 1e-9)).all()
    assert (found.values_ <= table.max(axis=1) * (1 + 1e-9)).all()
    assert (found.low_ <= table.min(axis=1) * (1 + 1e-9)).all()
    assert (found.high_ >= table.max(axis=1) * (1 - 1e-9)).all()


def test_wrong_candidates_are_refused():
    for wrong in ("mean", [], ["auto-numbers"], ["dawid-skene"]):
        with pytest.raises(ParameterError, match="candidates"):
            AutoNumbers(candidates=wrong).fit(([0], [0], [1.0]))


def test_the_default_of_numbers_is_this_method():
    made = simulate.numbers(12, 4)
    table = wc.aggregate(made.data, "auto")
    values = AutoNumbers().fit(made.data).values_
    np.testing.assert_array_equal(np.asarray(table["value"]), values)
    assert wc.aggregate(made.data, candidates=["mean"], scale="linear")["value"].to_numpy() == (
        pytest.approx(Mean().fit(made.data).values_)
    )
