"""Check lists: strata, allocation, looks, and what the list must not show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import CrowdLabels, simulate
from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.inference.checking import Checking
from wisecrowd.truth import check_list
from wisecrowd.truth.check_lists import allocate, draw, strata_of


@pytest.fixture(scope="module")
def made():
    return simulate.crowd(
        400, 20 * simulate.OneCoinWorkers(6, 2), simulate.PerTask(4), random_state=1
    )


@pytest.fixture(scope="module")
def fit(made):
    return DawidSkene().fit(made.labels)


def test_a_list_has_the_columns_that_a_person_needs(made, fit):
    found = check_list(made.labels, 60, fit=fit)
    assert list(found.columns) == ["order", "task", "stratum", "weight", "label"]
    assert found.columns["order"].tolist() == list(range(1, 61))
    assert len(set(found.columns["task"].tolist())) == 60
    assert set(found.columns["label"].tolist()) == {""}
    assert found.to_fill_in == ["label"]


def test_weights_add_up_to_all_tasks(made, fit):
    found = check_list(made.labels, 60, fit=fit)
    assert found.columns["weight"].sum() == pytest.approx(400)
    assert found.strata["n_tasks"].tolist() == [80] * 5
    assert found.strata["n_listed"].sum() == 60


def test_strata_are_ranges_of_confidence(made, fit):
    found = check_list(made.labels, 60, fit=fit)
    low, high = found.strata["confidence_from"], found.strata["confidence_to"]
    assert (low <= high).all()
    assert (high[:-1] <= low[1:]).all()
    sure = fit.confidence_[found.columns["task"].astype(int)]
    own = found.columns["stratum"] - 1
    assert ((low[own] <= sure) & (sure <= high[own])).all()


def test_uncertain_strata_are_asked_more(made, fit):
    listed = check_list(made.labels, 60, fit=fit).strata["n_listed"]
    assert listed[0] > listed[-1] >= 3


def test_half_of_the_list_is_spread_evenly():
    found = allocate(np.full(5, 1000), np.array([1.0, 0, 0, 0, 0]), 100, np.full(5, 3))
    assert found.tolist() == [60, 10, 10, 10, 10]


def test_no_stratum_gets_more_than_it_has():
    found = allocate(np.array([5, 100]), np.array([0.5, 0.0]), 50, np.array([3, 3]))
    assert found.tolist() == [5, 45]


def test_claimed_certainty_gives_an_even_list():
    assert allocate(np.full(4, 50), np.zeros(4), 40, np.full(4, 3)).tolist() == [10] * 4


def test_ties_are_broken_at_random():
    found = [strata_of(np.ones(100), 5, np.random.default_rng(seed)) for seed in (0, 1)]
    assert np.bincount(found[0]).tolist() == [20] * 5
    assert (found[0] != found[1]).any()


def test_every_task_of_a_stratum_is_as_likely():
    """Rows of the list, and its first rows, are simple random samples within strata."""
    sure, rng, n_draws = np.linspace(0.5, 1, 100), np.random.default_rng(0), 120
    counts = {10: np.zeros(100), 20: np.zeros(100), 40: np.zeros(100)}  # 10: within a look
    for _ in range(n_draws):
        drawn = draw(sure, Checking(), (20, 40), 100, rng)
        for size, count in counts.items():
            count[drawn.rows[:size]] += 1
        assert (drawn.look == np.repeat([0, 1], 20)).all()
    for count in counts.values():
        groups = count.reshape(5, 20)
        expected = groups.mean(axis=1, keepdims=True)
        chi2 = ((groups - expected) ** 2 / (expected * (1 - expected / n_draws))).sum(axis=1)
        assert (chi2 < 45).all()  # 19 degrees of freedom: p < .001


def test_rows_up_to_a_look_have_the_allocation_of_that_size(made, fit):
    whole = check_list(made.labels, 100, fit=fit, looks=(30, 60))
    assert whole.looks == (30, 60, 100)
    assert np.bincount(whole.columns["look"]).tolist() == [0, 30, 30, 40]
    small = check_list(made.labels, 30, fit=fit)
    strata = whole.columns["stratum"][:30]
    assert np.bincount(strata)[1:].tolist() == small.strata["n_listed"].tolist()


def test_a_list_for_any_time_is_one_random_sample(made, fit):
    found = check_list(made.labels, 60, fit=fit, anytime=True)
    assert set(found.columns["look"].tolist()) == {"any"}
    assert found.strata["n_tasks"].tolist() == [400]


def test_the_same_seed_gives_the_same_list(made, fit):
    lists = [check_list(made.labels, fit=fit, random_state=s).columns["task"] for s in (0, 0, 1)]
    assert (lists[0] == lists[1]).all()
    assert (lists[0] != lists[2]).any()


@pytest.mark.parametrize(("n_tasks", "n"), [(29, 10), (50, 50), (50, 80)])
def test_small_crowds_are_checked_completely(n_tasks, n):
    made = simulate.crowd(n_tasks, 5 * simulate.OneCoinWorkers(6, 2))
    assert len(check_list(made.labels, n, fit=MajorityVote().fit(made.labels))) == n_tasks


@pytest.mark.parametrize(("n", "n_strata"), [(1, 1), (2, 1), (4, 1), (7, 2), (14, 4), (15, 5)])
def test_short_lists_have_fewer_strata(made, fit, n, n_strata):
    found = check_list(made.labels, n, fit=fit)
    assert (len(found), len(found.strata["stratum"])) == (n, n_strata)


def test_attributes_of_tasks_are_shown_but_not_their_answers(made, fit):
    columns = {"text": made.labels.tasks.astype(str), "truth": made.truth, "label": made.truth}
    shown = replace(made.labels, task_columns=columns)
    found = check_list(shown, fit=fit)
    assert list(found.columns) == ["order", "task", "text", "stratum", "weight", "label"]
    assert set(found.columns["label"].tolist()) == {""}


def test_tasks_without_labels_are_not_listed():
    task, worker = np.repeat(np.arange(40), 2), np.tile([0, 1], 40)
    data = CrowdLabels.from_arrays(task, worker, (task + worker) % 2, tasks=np.arange(60))
    assert data.n_tasks == 60
    found = check_list(data, 60, fit=MajorityVote().fit(data))
    assert sorted(found.columns["task"].tolist()) == list(range(40))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"n": 0}, ParameterError),
        ({"n": 2.5}, ParameterError),
        ({"looks": (90,)}, ParameterError),
        ({"looks": (0,)}, ParameterError),
        ({"looks": (10, 20, 30, 40, 50)}, ParameterError),
        ({"looks": (30,), "anytime": True}, ParameterError),
        ({"anytime": 1}, ParameterError),
        ({"fit": DawidSkene()}, ParameterError),
    ],
)
def test_what_cannot_be_planned_is_refused(made, options, error):
    with pytest.raises(error):
        check_list(made.labels, **options)


def test_a_fit_of_other_tasks_or_with_gold_is_refused(made, fit):
    with pytest.raises(DataError, match="other tasks"):
        check_list(made.labels[np.arange(100)], fit=fit)
    more = CrowdLabels.from_arrays(
        np.append(made.labels.task, [0, 1]), np.append(made.labels.worker, [99, 99]),
        np.append(made.labels.label, [0, 1]),
    )  # fmt: skip
    with pytest.raises(DataError, match="answers of the person among them"):
        check_list(made.labels, fit=DawidSkene().fit(more))
    with pytest.raises(ParameterError, match="seen gold"):
        check_list(made.labels, fit=DawidSkene().fit(made.labels, gold={0: made.truth[0]}))


def test_kinds_whose_results_have_no_tasks_are_refused():
    pairs = wc.CrowdPairs.from_arrays(["a", "b"], ["x", "y"], ["y", "x"], ["left", "right"])
    with pytest.raises(ParameterError, match="cannot be checked"):
        check_list(pairs)
